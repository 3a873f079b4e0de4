//! Chooses the searches that a counted run counts.

use rqps_model::benchmark::{Step, Workload};
use rqps_model::counted::StepCount;
use rqps_model::vector::{VectorOperation, VectorWork};

/// `--statements` per counted search, because a search costs as much as many statements.
const STATEMENTS_PER_SEARCH: u64 = 5;

/// The number of counted searches of a step with one client; the reason why other steps are not
/// counted.
pub(super) fn counted(step: &Step, _: &Workload, statements: u64) -> StepCount {
    let left_out = |why: &str| StepCount::LeftOut(why.to_owned());
    let Some(work) = step.own::<VectorWork>() else { return left_out("its work is not known") };
    match &work.operation {
        VectorOperation::Search(search) | VectorOperation::Payload(search) => {
            if search.clients > 1 {
                left_out("it has several clients, and threads under valgrind run one at a time")
            } else if search.cold {
                left_out("it measures how long the first query waits for data")
            } else {
                StepCount::Events((statements / STATEMENTS_PER_SEARCH).max(1))
            }
        }
        VectorOperation::Load { .. }
        | VectorOperation::Build(_)
        | VectorOperation::Delete { .. }
        | VectorOperation::Clean => {
            StepCount::CarriedOut("it makes what the steps after it search".to_owned())
        }
        VectorOperation::Target { .. } => left_out("it tries widths until the recall is reached"),
        VectorOperation::Mixed { .. } => {
            left_out("the inserts beside its queries keep to a clock, which valgrind slows down")
        }
        VectorOperation::Isolate { .. } => left_out("it tests what transactions see"),
        VectorOperation::Fill { .. } => left_out("it inserts until a time is over"),
    }
}
