//! The comparison of two targets by function: which functions a target executes more or less of.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::difference::{Change, FunctionChange, FunctionComparison, FunctionCost};
use super::work::{CountedWork, work};
use crate::analyze::comparison::TargetResult;
use crate::stats::summary::{mean, stddev};

/// Differences below this share of the baseline's total are not listed one by one.
const SHARE_LEAST: f64 = 0.0005;
/// Rows of the list at most.
const ROWS_MOST: usize = 20;
/// A difference of so many standard errors is no scatter of the repeats.
const ERRORS_LEAST: f64 = 3.0;
/// Calls, or instructions of a call, that differ by less than this share are the same.
const SAME_SHARE: f64 = 0.005;

/// Compares the functions of two targets in a step; `None` if one of them has no profile.
pub(super) fn compare_functions(
    baseline: &TargetResult,
    target: &TargetResult,
) -> Option<FunctionComparison> {
    let (baseline, target) = (works(baseline), works(target));
    if baseline.is_empty() || target.is_empty() {
        return None;
    }
    let total = |works: &[CountedWork]| mean(&works.iter().map(|it| it.total).collect::<Vec<_>>());
    let (baseline_total, target_total) = (total(&baseline), total(&target));
    let names: BTreeSet<&Arc<str>> =
        baseline.iter().chain(&target).flat_map(|work| work.functions.keys()).collect();
    let mut changes: Vec<FunctionChange> =
        names.into_iter().map(|name| change(name, &baseline, &target)).collect();
    changes.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    let least = SHARE_LEAST * baseline_total;
    let listed = changes.iter().take(ROWS_MOST).take_while(|it| it.difference().abs() >= least);
    let count = listed.count();
    let rest = changes.split_off(count);
    let others = (rest.len(), rest.iter().map(FunctionChange::difference).sum());
    Some(FunctionComparison { baseline_total, target_total, changes, others })
}

fn works(target: &TargetResult) -> Vec<CountedWork> {
    let records = target.samples.iter().map(|sample| &sample.record);
    records.filter_map(|record| work(record, record.counted.as_ref()?).ok()).collect()
}

fn change(name: &Arc<str>, baseline: &[CountedWork], target: &[CountedWork]) -> FunctionChange {
    let (before, before_error) = side(name, baseline);
    let (after, after_error) = side(name, target);
    let error = before_error.zip(after_error).map(|(a, b)| a.hypot(b));
    let change = class(&before, &after, error);
    FunctionChange { name: Arc::clone(name), baseline: before, target: after, change }
}

/// The mean of a function over the repeats, with the standard error of its own instructions.
fn side(name: &Arc<str>, works: &[CountedWork]) -> (FunctionCost, Option<f64>) {
    let costs: Vec<FunctionCost> =
        works.iter().map(|work| work.functions.get(name).cloned().unwrap_or_default()).collect();
    let values = |get: fn(&FunctionCost) -> f64| costs.iter().map(get).collect::<Vec<f64>>();
    let own = values(|cost| cost.own);
    let error = stddev(&own).map(|sd| sd / (own.len() as f64).sqrt());
    let cost = FunctionCost {
        own: mean(&own),
        inclusive: mean(&values(|cost| cost.inclusive)),
        calls: mean(&values(|cost| cost.calls)),
    };
    (cost, error)
}

/// What changed, given the standard error of the difference, if it is known.
fn class(before: &FunctionCost, after: &FunctionCost, error: Option<f64>) -> Change {
    let difference = (after.own - before.own).abs();
    if error.is_some_and(|error| difference < ERRORS_LEAST * error) {
        return Change::Scatter;
    }
    let is_there = |cost: &FunctionCost| cost.own > 0.0 || cost.calls > 0.0;
    match (is_there(before), is_there(after)) {
        (false, _) => return Change::New,
        (_, false) => return Change::Gone,
        _ => {}
    }
    // Functions that began before the count have no calls: one loop serves all statements.
    if before.calls == 0.0 || after.calls == 0.0 {
        return Change::Cost;
    }
    let differs = |before: f64, after: f64| (after / before - 1.0).abs() > SAME_SHARE;
    let calls = differs(before.calls, after.calls);
    let cost = differs(before.own / before.calls, after.own / after.calls);
    match (calls, cost) {
        (true, false) => Change::Calls,
        (true, true) => Change::CallsAndCost,
        (false, _) => Change::Cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(own: f64, calls: f64) -> FunctionCost {
        FunctionCost { own, inclusive: own, calls }
    }

    #[test]
    fn what_changed_about_a_function() {
        let check = |before: (f64, f64), after: (f64, f64), error, expected| {
            let found = class(&cost(before.0, before.1), &cost(after.0, after.1), error);
            assert_eq!(found, expected, "{before:?} {after:?}");
        };
        let exact = Some(0.01);
        check((0.0, 0.0), (50.0, 2.0), exact, Change::New);
        check((50.0, 2.0), (0.0, 0.0), exact, Change::Gone);
        check((50.0, 2.0), (75.0, 3.0), exact, Change::Calls);
        check((50.0, 2.0), (75.0, 2.0), exact, Change::Cost);
        check((50.0, 2.0), (90.0, 3.0), exact, Change::CallsAndCost);
        check((50.0, 0.0), (90.0, 0.0), exact, Change::Cost);
        check((50.0, 2.0), (51.0, 2.0), Some(0.5), Change::Scatter);
        // One repeat tells nothing of scatter.
        check((50.0, 2.0), (51.0, 2.0), None, Change::Cost);
    }

    fn target(works: &[&[(&str, f64, f64)]]) -> Vec<CountedWork> {
        let work = |functions: &&[(&str, f64, f64)]| CountedWork {
            total: functions.iter().map(|function| function.1).sum(),
            background: 0.0,
            functions: functions
                .iter()
                .map(|(name, own, calls)| (Arc::from(*name), cost(*own, *calls)))
                .collect(),
        };
        works.iter().map(work).collect()
    }

    #[test]
    fn differences_are_means_over_the_repeats() {
        let before = target(&[&[("f", 10.0, 1.0)], &[("f", 12.0, 1.0), ("g", 4.0, 2.0)]]);
        let after = target(&[&[("f", 21.0, 2.0)], &[("f", 23.0, 2.0)]]);
        let f = change(&Arc::from("f"), &before, &after);
        assert_eq!((f.baseline.own, f.target.own, f.difference()), (11.0, 22.0, 11.0));
        assert_eq!(f.change, Change::Calls);
        let g = change(&Arc::from("g"), &before, &after);
        assert_eq!((g.baseline.calls, g.difference(), g.change), (1.0, -2.0, Change::Scatter));
    }
}
