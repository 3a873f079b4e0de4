//! Counters of the DBMS per operation: what it did beside answering.

use super::metrics::operations;
use crate::domain::run::{Counter, StepRecord};

/// How far a counter moved, per operation of the step as its rate counts them.
///
/// Counters are read before the warm-up and after the last session has ended, so they hold the
/// statements of the warm-up too, and are divided by all: operations × (statements + those outside
/// of the window) / statements. `None` if there are no counts.
pub fn per_operation(step: &StepRecord, counter: &Counter) -> Option<f64> {
    let outcome = &step.outcome;
    let statements = outcome.statements as f64;
    let all = operations(step)? * (statements + outcome.outside as f64) / statements;
    let per_operation = (counter.after - counter.before) / all;
    per_operation.is_finite().then_some(per_operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::benchmark::{Group, RateUnit};
    use crate::domain::run::Outcome;

    fn step(rate: RateUnit, outcome: Outcome) -> StepRecord {
        StepRecord { outcome, ..StepRecord::empty(1, "point-query", Group::Point, rate) }
    }

    #[test]
    fn statements_of_the_warm_up_are_operations_too() {
        let counter = Counter { name: "pages_read".to_owned(), before: 100.0, after: 700.0 };
        let check = |rate, statements, outside, rows_scanned, want| {
            let outcome =
                Outcome { seconds: 2.0, statements, outside, rows_scanned, ..Outcome::default() };
            assert_eq!(per_operation(&step(rate, outcome), &counter), want);
        };
        check(RateUnit::Queries, 200, 0, 0, Some(3.0));
        check(RateUnit::Queries, 200, 100, 0, Some(2.0));
        // An operation is a thousand rows.
        check(RateUnit::RowsScanned, 2, 1, 2_000_000, Some(0.2));
        check(RateUnit::Queries, 0, 100, 0, None);
        check(RateUnit::Relative, 200, 0, 0, None);
    }
}
