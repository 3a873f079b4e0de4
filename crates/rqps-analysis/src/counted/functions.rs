//! The comparison of two targets by function: which functions a target executes more or less of.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::difference::{Change, FunctionChange, FunctionComparison, FunctionCost};
use super::weaker::{self, WeakMatches};
use super::work::{Callers, CountedWork, ThreadWork, work};
use super::{moved, nameless};
use crate::comparison::{RunFacts, TargetResult};
use crate::measurement::Measurement;
use rqps_stats::summary::{mean, stddev};

/// Differences below this share of the baseline's total are not listed one by one.
const SHARE_LEAST: f64 = 0.0005;
/// Rows of the list at most.
const ROWS_MOST: usize = 20;
/// A difference of so many standard errors is no scatter of the repeats.
const ERRORS_LEAST: f64 = 3.0;
/// Calls, or instructions of a call, that differ by less than this share are the same.
const SAME_SHARE: f64 = 0.005;

/// One repeat: result set, block and attempt, which it shares with its partner of the other
/// target, and what it executed.
type Repeat<T = ThreadWork> = ((String, u32, u32), T);

/// The functions of a step in two targets: those of the thread that serves the client, and those of
/// all other threads.
pub(super) struct ComparedFunctions {
    pub(super) client: Option<FunctionComparison>,
    pub(super) background: Option<FunctionComparison>,
}

/// Compares the functions of two targets in a step; `None` where one of them has no profile, or no
/// instructions.
pub(super) fn compare_functions(
    baseline: &TargetResult,
    target: &TargetResult,
    runs: &[RunFacts],
) -> ComparedFunctions {
    let (baseline, target) = (repeats(baseline, runs), repeats(target, runs));
    let of = |all: &[Repeat<CountedWork>], threads: fn(&CountedWork) -> &ThreadWork| {
        all.iter().map(|(pair, work)| (pair.clone(), threads(work).clone())).collect()
    };
    let compare = |threads: fn(&CountedWork) -> &ThreadWork| {
        compare(of(&baseline, threads), of(&target, threads))
    };
    ComparedFunctions {
        client: compare(|work| &work.client),
        background: compare(|work| &work.background),
    }
}

fn compare(mut baseline: Vec<Repeat>, mut target: Vec<Repeat>) -> Option<FunctionComparison> {
    let executes = |all: &[Repeat]| all.iter().any(|(_, work)| work.total > 0.0);
    if !executes(&baseline) || !executes(&target) {
        return None;
    }
    let works = baseline.iter_mut().chain(&mut target).map(|(_, work)| work);
    nameless::roll_up(works.collect());
    let matches = weaker::rename(
        baseline.iter_mut().map(|(_, work)| work).collect(),
        &target.iter().map(|(_, work)| work).collect::<Vec<_>>(),
    );
    let total =
        |all: &[Repeat]| mean(&all.iter().map(|(_, work)| work.total).collect::<Vec<f64>>());
    let (baseline_total, target_total) = (total(&baseline), total(&target));
    let names: BTreeSet<&Arc<str>> =
        baseline.iter().chain(&target).flat_map(|(_, work)| work.functions.keys()).collect();
    let mut changes: Vec<FunctionChange> =
        names.into_iter().map(|name| change(name, (&baseline, &target), &matches)).collect();
    changes.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    moved::mark(&mut changes, &callers(&baseline), &callers(&target));
    let is_common = |it: &&FunctionChange| it.baseline.own > 0.0 && it.target.own > 0.0;
    let both = || changes.iter().filter(is_common);
    let share = |of: &mut dyn Iterator<Item = &FunctionChange>| {
        of.map(|it| it.baseline.own).sum::<f64>() / baseline_total
    };
    let common = share(&mut both());
    let weakly = share(&mut both().filter(|it| it.baseline_name.is_some()));
    let least = SHARE_LEAST * baseline_total;
    let listed = changes.iter().take(ROWS_MOST).take_while(|it| it.difference().abs() >= least);
    let count = listed.count();
    let rest = changes.split_off(count);
    let others = (rest.len(), rest.iter().map(FunctionChange::difference).sum());
    Some(FunctionComparison { baseline_total, target_total, changes, others, common, weakly })
}

fn repeats(target: &TargetResult, runs: &[RunFacts]) -> Vec<Repeat<CountedWork>> {
    let repeat = |sample: &Measurement| {
        let record = &sample.record;
        let work = work(record, record.counted.as_ref()?).ok()?;
        let run = &runs[sample.run];
        Some(((run.result_set.clone(), run.key.block, run.key.attempt), work))
    };
    target.samples.iter().filter_map(repeat).collect()
}

/// The callers of all repeats together.
fn callers(repeats: &[Repeat]) -> Callers {
    let mut all = Callers::new();
    for (callee, callers) in repeats.iter().flat_map(|(_, work)| &work.callers) {
        all.entry(Arc::clone(callee)).or_default().extend(callers.iter().cloned());
    }
    all
}

fn change(
    name: &Arc<str>,
    (baseline, target): (&[Repeat], &[Repeat]),
    matches: &WeakMatches,
) -> FunctionChange {
    let (before, after) = (cost(name, baseline), cost(name, target));
    let own = |work: &ThreadWork| work.functions.get(name).map_or(0.0, |cost| cost.own);
    let pairs = baseline.iter().filter_map(|(pair, before)| {
        let (_, after) = target.iter().find(|(other, _)| other == pair)?;
        Some(own(after) - own(before))
    });
    // Repeats have other keys, which scatter more than the targets of a pair.
    let differences: Vec<f64> = pairs.collect();
    let error = stddev(&differences).map(|sd| sd / (differences.len() as f64).sqrt());
    let change = class(&before, &after, error);
    FunctionChange {
        name: Arc::clone(name),
        baseline_name: matches.get(name).cloned(),
        baseline: before,
        target: after,
        change,
        partner: None,
    }
}

/// The mean of a function over the repeats.
fn cost(name: &Arc<str>, repeats: &[Repeat]) -> FunctionCost {
    let cost = |(_, work): &Repeat| work.functions.get(name).cloned().unwrap_or_default();
    let costs: Vec<FunctionCost> = repeats.iter().map(cost).collect();
    let values = |get: fn(&FunctionCost) -> f64| costs.iter().map(get).collect::<Vec<f64>>();
    FunctionCost {
        own: mean(&values(|cost| cost.own)),
        inclusive: mean(&values(|cost| cost.inclusive)),
        calls: mean(&values(|cost| cost.calls)),
    }
}

/// The change, given the standard error of the difference if it is known.
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

    fn target(works: &[&[(&str, f64, f64)]]) -> Vec<Repeat> {
        let work = |functions: &&[(&str, f64, f64)]| ThreadWork {
            total: functions.iter().map(|function| function.1).sum(),
            functions: functions
                .iter()
                .map(|(name, own, calls)| (Arc::from(*name), cost(*own, *calls)))
                .collect(),
            ..ThreadWork::default()
        };
        let pair = |block| (String::new(), block, 1);
        (1..).map(pair).zip(works.iter().map(work)).collect()
    }

    #[test]
    fn differences_are_means_over_the_repeats() {
        let before = target(&[&[("f", 10.0, 1.0)], &[("f", 12.0, 1.0), ("g", 4.0, 2.0)]]);
        let after = target(&[&[("f", 21.0, 2.0)], &[("f", 23.0, 2.0)]]);
        let f = change(&Arc::from("f"), (&before, &after), &WeakMatches::new());
        assert_eq!((f.baseline.own, f.target.own, f.difference()), (11.0, 22.0, 11.0));
        assert_eq!(f.change, Change::Calls);
        let g = change(&Arc::from("g"), (&before, &after), &WeakMatches::new());
        assert_eq!((g.baseline.calls, g.difference(), g.change), (1.0, -2.0, Change::Scatter));
    }
}
