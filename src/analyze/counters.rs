//! Counters of the DBMS per operation: what it did beside answering.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::metrics::operations;
use crate::domain::run::{Counter, StepRecord};
use crate::stats::summary::mean;

/// A counter that differs by a smaller share is not told.
const MOVED_LEAST: f64 = 0.05;
/// One that moves less often, per operation, in both targets is not told either.
const OFTEN_LEAST: f64 = 0.001;

/// Counter → how far it moved, per operation; one that is not there did not move.
pub type CounterValues = BTreeMap<String, f64>;

/// A counter that differs between two targets, means per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedCounter {
    /// Its name.
    pub name: String,
    /// In the baseline.
    pub baseline: f64,
    /// In the target.
    pub target: f64,
}

/// The change of a counter per operation, in the unit of the step's rate.
///
/// Counters are read before the warm-up and after the last session has ended, so they include the
/// statements of the warm-up. The divisor includes them too: operations × (statements + those
/// outside of the window) / statements. `None` without counts.
pub fn per_operation(step: &StepRecord, counter: &Counter) -> Option<f64> {
    let outcome = &step.outcome;
    let statements = outcome.statements as f64;
    let all = operations(step)? * (statements + outcome.outside as f64) / statements;
    let per_operation = (counter.after - counter.before) / all;
    per_operation.is_finite().then_some(per_operation)
}

/// The counters that differ in every pair in the same direction, and by [`MOVED_LEAST`] in the
/// mean; those that differ by the largest factor first.
pub fn moved(pairs: &[(CounterValues, CounterValues)]) -> Vec<MovedCounter> {
    let names: BTreeSet<&String> =
        pairs.iter().flat_map(|(before, after)| before.keys().chain(after.keys())).collect();
    let value = |values: &CounterValues, name: &String| values.get(name).copied().unwrap_or(0.0);
    let mut found: Vec<MovedCounter> = names
        .into_iter()
        .filter_map(|name| {
            let before: Vec<f64> = pairs.iter().map(|(before, _)| value(before, name)).collect();
            let after: Vec<f64> = pairs.iter().map(|(_, after)| value(after, name)).collect();
            let more = before.iter().zip(&after).all(|(before, after)| after > before);
            let less = before.iter().zip(&after).all(|(before, after)| after < before);
            let (baseline, target) = (mean(&before), mean(&after));
            let (small, large) = (baseline.min(target), baseline.max(target));
            let far = small <= large * (1.0 - MOVED_LEAST) && large >= OFTEN_LEAST;
            ((more || less) && far).then(|| MovedCounter { name: name.clone(), baseline, target })
        })
        .collect();
    let factor = |it: &MovedCounter| (it.target / it.baseline).ln().abs();
    found.sort_by(|a, b| {
        let size = |it: &MovedCounter| it.baseline.max(it.target);
        factor(b).total_cmp(&factor(a)).then(size(b).total_cmp(&size(a)))
    });
    found
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
    fn a_counter_moved_if_it_did_so_in_every_pair() {
        let values = |all: [f64; 4]| {
            let names = ["pages", "syncs", "rare", "time"].map(str::to_owned);
            names.into_iter().zip(all).filter(|(_, value)| *value > 0.0).collect::<CounterValues>()
        };
        let pairs = [
            (values([1.0, 0.0, 0.0, 7.0]), values([2.0, 0.5, 0.0001, 7.1])),
            (values([1.5, 0.0, 0.0, 7.0]), values([2.5, 0.75, 0.0001, 6.9])),
        ];
        let found: Vec<(String, f64, f64)> =
            moved(&pairs).into_iter().map(|it| (it.name, it.baseline, it.target)).collect();
        assert_eq!(found, [("syncs".to_owned(), 0.0, 0.625), ("pages".to_owned(), 1.25, 2.25)]);
        assert_eq!(moved(&[]), []);
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
