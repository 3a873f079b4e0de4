//! Functions that are gone or new by name, but whose work is still done or was done before:
//! renamed, inlined into a caller, split off from one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::difference::{Change, FunctionChange};
use super::work::Callers;

/// Two functions are one under two names if instructions and calls differ by less than this share.
const ALIKE: f64 = 0.1;
/// A caller took a function over if it gained at least this share of what is gone.
const TAKEN_LEAST: f64 = 0.5;

/// Finds the partners of functions that are gone or new.
pub(super) fn mark(changes: &mut [FunctionChange], before: &Callers, after: &Callers) {
    let places: BTreeMap<Arc<str>, usize> =
        (0..).zip(changes.iter()).map(|(place, it)| (Arc::clone(&it.name), place)).collect();
    let mut gained: Vec<f64> = changes.iter().map(FunctionChange::difference).collect();
    let of = |change: Change, changes: &[FunctionChange]| -> Vec<usize> {
        (0..changes.len())
            .filter(|place| changes[*place].change == change && changes[*place].difference() != 0.0)
            .collect()
    };
    for gone in of(Change::Gone, changes) {
        let new = of(Change::New, changes);
        let is_same = |new: &usize| is_renamed(&changes[gone], &changes[*new], before, after);
        if let Some(new) = new.into_iter().find(is_same) {
            pair(changes, (gone, new), Change::Renamed);
            let back = Arc::clone(&changes[gone].name);
            (changes[new].change, changes[new].partner) = (Change::Renamed, Some(back));
            continue;
        }
        let lost = changes[gone].baseline.own.max(f64::MIN_POSITIVE);
        if let Some(caller) = taker(changes, gone, (before, &places), |at| gained[at] / lost) {
            gained[caller] -= lost;
            pair(changes, (gone, caller), Change::Inlined);
        }
    }
    for new in of(Change::New, changes) {
        let got = changes[new].target.own.max(f64::MIN_POSITIVE);
        if let Some(caller) = taker(changes, new, (after, &places), |at| -gained[at] / got) {
            gained[caller] += got;
            pair(changes, (new, caller), Change::SplitOff);
        }
    }
}

fn pair(changes: &mut [FunctionChange], (place, partner): (usize, usize), change: Change) {
    let name = Arc::clone(&changes[partner].name);
    (changes[place].change, changes[place].partner) = (change, Some(name));
}

/// True if both cost the same and a caller of the one calls the other.
fn is_renamed(
    gone: &FunctionChange,
    new: &FunctionChange,
    before: &Callers,
    after: &Callers,
) -> bool {
    let alike = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.max(b);
    let none = BTreeSet::new();
    let of_gone = before.get(&gone.name).unwrap_or(&none);
    let of_new = after.get(&new.name).unwrap_or(&none);
    gone.baseline.own > 0.0
        && alike(gone.baseline.own, new.target.own)
        && alike(gone.baseline.calls, new.target.calls)
        && !of_gone.is_disjoint(of_new)
}

/// The caller of a function that has the largest share of its instructions, if that is enough.
fn taker(
    changes: &[FunctionChange],
    place: usize,
    (callers, places): (&Callers, &BTreeMap<Arc<str>, usize>),
    share: impl Fn(usize) -> f64,
) -> Option<usize> {
    let callers = callers.get(&changes[place].name)?.iter();
    let callers = callers.filter_map(|name| places.get(name).copied());
    let there = |at: &usize| changes[*at].baseline.own > 0.0 && changes[*at].target.own > 0.0;
    let taken = callers.filter(there).filter(|at| share(*at) >= TAKEN_LEAST);
    taken.max_by(|a, b| share(*a).total_cmp(&share(*b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::FunctionCost;

    fn function(name: &str, before: f64, after: f64) -> FunctionChange {
        let cost = |own: f64| FunctionCost { own, inclusive: own, calls: own / 10.0 };
        let change = match (before > 0.0, after > 0.0) {
            (true, false) => Change::Gone,
            (false, true) => Change::New,
            _ => Change::Cost,
        };
        FunctionChange {
            name: Arc::from(name),
            baseline_name: None,
            baseline: cost(before),
            target: cost(after),
            change,
            partner: None,
        }
    }

    fn callers(edges: &[(&str, &str)]) -> Callers {
        let mut all = Callers::new();
        for (caller, callee) in edges {
            all.entry(Arc::from(*callee)).or_default().insert(Arc::from(*caller));
        }
        all
    }

    #[test]
    fn work_under_another_name_is_found() {
        let mut changes = vec![
            function("run", 1000.0, 1090.0),
            function("old_name", 300.0, 0.0),
            function("new_name", 0.0, 310.0),
            function("helper", 100.0, 0.0),
            function("another", 80.0, 0.0),
            function("big", 500.0, 420.0),
            function("part_of_big", 0.0, 85.0),
            function("feature", 0.0, 305.0),
        ];
        let before =
            callers(&[("run", "old_name"), ("run", "helper"), ("run", "another"), ("main", "big")]);
        let after = callers(&[("run", "new_name"), ("big", "part_of_big"), ("main", "feature")]);
        mark(&mut changes, &before, &after);
        let found = changes.iter().map(|it| (&*it.name, it.change, it.partner.as_deref()));
        let expected = [
            ("run", Change::Cost, None),
            ("old_name", Change::Renamed, Some("new_name")),
            ("new_name", Change::Renamed, Some("old_name")),
            ("helper", Change::Inlined, Some("run")),
            // The gain of the caller is used up.
            ("another", Change::Gone, None),
            ("big", Change::Cost, None),
            ("part_of_big", Change::SplitOff, Some("big")),
            ("feature", Change::New, None),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
