//! Computes how many events of a script a counted run executes.

use crate::spec::Counting;
use rqps_model::benchmark::{RateUnit, Step, Workload};
use rqps_model::counted::StepCount;
use rqps_model::script::{Parameter, Script};

/// Most rows that the events of a step read per `--statements`; otherwise long scans and ranges
/// would take most of a counted run. They need fewer events, because each row that an event reads
/// adds to its mean.
const ROWS_PER_STATEMENT: u64 = 30;
/// Rows of a range or scan that take as many instructions as the search for one row.
const ROWS_PER_SEARCH: u64 = 5;

impl Counting {
    /// Counting of steps that are scripts, on few rows and in windows of 1 s; the seconds only
    /// enter the estimate.
    pub const SCRIPTS: Counting = Counting {
        step: of_script,
        settings: &["read_seconds=1", "write_seconds=1", "warmup_seconds=0", "settle_scale=0"],
    };
}

fn of_script(step: &Step, workload: &Workload, statements: u64) -> StepCount {
    if !step.reported && step.only_reads {
        let why = "it warms caches, which a counted run fills before its first step";
        return StepCount::LeftOut(why.to_owned());
    }
    match step.script() {
        Some(script) => StepCount::Events(events(script, step.rate, statements, workload.rows)),
        None => StepCount::LeftOut("its work is no script of statements".to_owned()),
    }
}

/// The number of events whose statements are counted.
fn events(script: &Script, rate: RateUnit, statements: u64, rows: u64) -> u64 {
    let events = statements / script.statements_per_event().max(1);
    let spans = script.operations().map(|operation| {
        let spans = operation.parameters.iter().map(|parameter| match parameter {
            Parameter::RangeEnd { span } => u64::from(*span),
            Parameter::Id | Parameter::Key | Parameter::HotId { .. } => ROWS_PER_SEARCH,
            _ => 0,
        });
        u64::from(operation.repeat) * spans.sum::<u64>()
    });
    let of_event = match rate {
        RateUnit::RowsScanned => rows,
        _ => spans.sum(),
    };
    let affordable = statements * ROWS_PER_STATEMENT / of_event.max(1);
    events.min(affordable).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::script::{Distribution, Operation};

    #[test]
    fn long_ranges_are_carried_out_fewer_times() {
        let check = |transaction, parameters: &[Parameter], rate, expected| {
            let operation = Operation {
                kind: "read".to_owned(),
                sql: "SELECT 1".to_owned(),
                parameters: parameters.to_vec(),
                repeat: 2,
                ..Operation::PLAIN
            };
            let script = Script::of(transaction, vec![operation], Distribution::Uniform);
            assert_eq!(events(&script, rate, 1000, 100_000), expected);
        };
        let range = |span| [Parameter::RangeStart, Parameter::RangeEnd { span }];
        check(false, &[Parameter::Id], RateUnit::Queries, 500);
        check(true, &[Parameter::Id], RateUnit::Queries, 250);
        check(false, &[Parameter::Id; 10], RateUnit::Queries, 300);
        check(false, &[Parameter::Key; 100], RateUnit::Queries, 30);
        check(false, &range(99), RateUnit::Queries, 151);
        check(false, &range(29), RateUnit::Queries, 500);
        check(false, &range(999), RateUnit::Queries, 15);
        check(false, &range(99_999), RateUnit::Queries, 1);
        check(false, &[], RateUnit::RowsScanned, 1);
    }
}
