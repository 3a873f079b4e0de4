//! Counters of the DBMS per operation: what it did beside answering.

use serde::Serialize;

use super::metrics::operations;
use rqps_model::run::StepRecord;
use rqps_stats::summary::mean;

/// A counter that differs by a smaller share is not told.
const MOVED_LEAST: f64 = 0.05;
/// One that moves less often, per operation, in both targets is not told either.
const OFTEN_LEAST: f64 = 0.001;

/// How far a counter moved, per operation; the counter is a place in a list of names. A counter
/// that a list lacks did not move.
pub type CounterChange = (u32, f64);

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
pub fn per_operation(step: &StepRecord, before: f64, after: f64) -> Option<f64> {
    let outcome = &step.outcome;
    let statements = outcome.statements as f64;
    let all = operations(step)? * (statements + outcome.outside as f64) / statements;
    let per_operation = (after - before) / all;
    per_operation.is_finite().then_some(per_operation)
}

/// The counters that differ in every pair in the same direction, and by [`MOVED_LEAST`] in the
/// mean; those that differ by the largest factor first, and equal ones in the order of `names`.
/// `shared` has true for each name that counts.
pub fn moved(
    names: &[String],
    shared: &[bool],
    pairs: &[(&[CounterChange], &[CounterChange])],
) -> Vec<MovedCounter> {
    let mut columns: Vec<Option<[Vec<f64>; 2]>> = vec![None; names.len()];
    for (pair, (before, after)) in pairs.iter().enumerate() {
        for (side, changes) in [before, after].into_iter().enumerate() {
            for (place, change) in changes.iter().map(|(place, change)| (*place as usize, change)) {
                if shared[place] {
                    let column = columns[place]
                        .get_or_insert_with(|| [vec![0.0; pairs.len()], vec![0.0; pairs.len()]]);
                    column[side][pair] = *change;
                }
            }
        }
    }
    let mut found: Vec<MovedCounter> = names
        .iter()
        .zip(&columns)
        .filter_map(|(name, column)| {
            let [before, after] = column.as_ref()?;
            let more = before.iter().zip(after).all(|(before, after)| after > before);
            let less = before.iter().zip(after).all(|(before, after)| after < before);
            let (baseline, target) = (mean(before), mean(after));
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
    use rqps_model::benchmark::{Group, RateUnit};
    use rqps_model::run::Outcome;

    fn step(rate: RateUnit, outcome: Outcome) -> StepRecord {
        StepRecord { outcome, ..StepRecord::empty(1, "point-query", Group::Point, rate) }
    }

    #[test]
    fn a_counter_moved_if_it_did_so_in_every_pair() {
        let names = ["pages", "syncs", "rare", "time", "other"].map(str::to_owned);
        let values = |all: [f64; 5]| -> Vec<CounterChange> {
            (0..).zip(all).filter(|(_, value)| *value > 0.0).collect()
        };
        let first = (values([1.0, 0.0, 0.0, 7.0, 1.0]), values([2.0, 0.5, 0.0001, 7.1, 9.0]));
        let second = (values([1.5, 0.0, 0.0, 7.0, 1.0]), values([2.5, 0.75, 0.0001, 6.9, 9.0]));
        let pairs = [(&first.0[..], &first.1[..]), (&second.0[..], &second.1[..])];
        let shared = [true, true, true, true, false];
        let found: Vec<(String, f64, f64)> = moved(&names, &shared, &pairs)
            .into_iter()
            .map(|it| (it.name, it.baseline, it.target))
            .collect();
        assert_eq!(found, [("syncs".to_owned(), 0.0, 0.625), ("pages".to_owned(), 1.25, 2.25)]);
        assert_eq!(moved(&names, &shared, &[]), []);
    }

    #[test]
    fn statements_of_the_warm_up_are_operations_too() {
        let check = |rate, statements, outside, rows_scanned, want| {
            let outcome =
                Outcome { seconds: 2.0, statements, outside, rows_scanned, ..Outcome::default() };
            assert_eq!(per_operation(&step(rate, outcome), 100.0, 700.0), want);
        };
        check(RateUnit::Queries, 200, 0, 0, Some(3.0));
        check(RateUnit::Queries, 200, 100, 0, Some(2.0));
        // An operation is a thousand rows.
        check(RateUnit::RowsScanned, 2, 1, 2_000_000, Some(0.2));
        check(RateUnit::Queries, 0, 100, 0, None);
        check(RateUnit::Relative, 200, 0, 0, None);
    }
}
