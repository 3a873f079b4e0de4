//! The only step.

use crate::domain::benchmark::{
    BenchmarkParameters, Group, OwnWork, Phase, RateUnit, Step, StepBody, Workload,
};
use crate::domain::orders::OrdersShape;
use crate::domain::step_parameters::StepParameters;

/// What every report says of the workload.
pub(super) const DERIVED: &str =
    "a workload derived from TPC-C; not comparable with published TPC-C results";

/// The kinds of transactions in the order of records: names in records, and for readers.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("new_order", "new order"),
    ("payment", "payment"),
    ("delivery", "delivery"),
    ("stock_level", "stock level"),
    ("order_status", "order status"),
];

/// The shape, if the workload is the order mix.
pub(super) fn shape(workload: &Workload) -> Option<&OrdersShape> {
    match &workload.shape {
        BenchmarkParameters::Orders(shape) => Some(shape),
        _ => None,
    }
}

/// All that the workload does after its load.
pub(super) fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let step = Step {
        name: "orders".to_owned(),
        client_count: None,
        group: Group::Write,
        reported: true,
        seconds: workload.write_seconds,
        warmup_seconds: workload.warmup_seconds,
        rate: RateUnit::Operations,
        detail: format!(
            "operations are new orders, among five kinds of transactions{}; {DERIVED}",
            if shape.procedures { " stored in the server" } else { "" }
        ),
        parameters: StepParameters::default(),
        makes: None,
        needs: None,
        restart_before: false,
        // Waits for keys that nobody presses would fill the turns.
        takes_turns: !shape.keying,
        only_reads: false,
        work: StepBody::Own(OwnWork::new("orders", shape)),
    };
    vec![Phase::Measure(Box::new(step))]
}
