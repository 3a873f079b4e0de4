//! Functions without a name, `FILE+0x1230`: an address means something only in builds whose
//! functions are at the same places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::work::{Callers, ThreadWork};

/// Share of a file's nameless instructions at addresses that all repeats have, by which the file
/// is the same in all of them.
const SAME_FILE: f64 = 0.9;

/// Makes one function of all nameless ones of each file that is not the same in all works.
pub(super) fn roll_up(mut works: Vec<&mut ThreadWork>) {
    let mut files: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    let all: Vec<BTreeSet<&Arc<str>>> =
        works.iter().map(|work| work.functions.keys().collect()).collect();
    for work in &works {
        for (name, cost) in &work.functions {
            let Some(file) = file_of(name) else { continue };
            let [everywhere, sum] = files.entry(file.to_owned()).or_default();
            *sum += cost.own;
            if all.iter().all(|names| names.contains(name)) {
                *everywhere += cost.own;
            }
        }
    }
    let differ: BTreeSet<String> = files
        .into_iter()
        .filter(|(_, [everywhere, sum])| *everywhere < SAME_FILE * sum)
        .map(|(file, _)| file)
        .collect();
    if differ.is_empty() {
        return;
    }
    let new_name = |name: &Arc<str>| match file_of(name).filter(|file| differ.contains(*file)) {
        Some(file) => all_of(file),
        None => Arc::clone(name),
    };
    for work in &mut works {
        for (name, cost) in std::mem::take(&mut work.functions) {
            let sum = work.functions.entry(new_name(&name)).or_default();
            sum.own += cost.own;
            sum.inclusive = (sum.inclusive + cost.inclusive).min(work.total);
            sum.calls += cost.calls;
        }
        let mut callers = Callers::new();
        for (callee, by) in std::mem::take(&mut work.callers) {
            let all = callers.entry(new_name(&callee)).or_default();
            all.extend(by.iter().map(new_name));
        }
        work.callers = callers;
    }
}

const NO_SYMBOL: &str = "(no symbol) ";

/// The row of all nameless functions of a file.
pub(super) fn all_of(file: &str) -> Arc<str> {
    Arc::from(format!("{NO_SYMBOL}{file}"))
}

/// True for the row of all nameless functions of a file.
pub(super) fn is_all_of(name: &str) -> bool {
    name.starts_with(NO_SYMBOL)
}

/// The file of a nameless function.
pub(super) fn file_of(name: &str) -> Option<&str> {
    let (file, address) = name.rsplit_once("+0x")?;
    address.chars().all(|c| c.is_ascii_hexdigit()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::FunctionCost;

    fn work(functions: &[(&str, f64)]) -> ThreadWork {
        let cost = |own| FunctionCost { own, inclusive: own, calls: 1.0 };
        let named = functions.iter().map(|(name, own)| (Arc::from(*name), cost(*own)));
        let callers = functions.iter().map(|(name, _)| {
            (Arc::from(*name), BTreeSet::from([Arc::from("db+0x7f"), Arc::from("main")]))
        });
        ThreadWork {
            total: functions.iter().map(|function| function.1).sum(),
            functions: named.collect(),
            callers: callers.collect(),
            simulated: None,
        }
    }

    fn names(work: &ThreadWork) -> Vec<&str> {
        work.functions.keys().map(|name| &**name).collect()
    }

    #[test]
    fn addresses_of_one_build_stay_and_those_of_two_are_one_function() {
        let (mut one, mut again) =
            (work(&[("db+0x10", 50.0), ("main", 5.0)]), work(&[("db+0x10", 51.0), ("main", 5.0)]));
        roll_up(vec![&mut one, &mut again]);
        assert_eq!(names(&one), ["db+0x10", "main"]);
        let mut other = work(&[("db+0x20", 60.0), ("db+0x30", 7.0), ("f+0xyz", 1.0)]);
        roll_up(vec![&mut one, &mut other]);
        assert_eq!(names(&one), ["(no symbol) db", "main"]);
        assert_eq!(names(&other), ["(no symbol) db", "f+0xyz"]);
        let sum = &other.functions["(no symbol) db"];
        assert_eq!((sum.own, sum.calls), (67.0, 2.0));
        let by: Vec<&str> = other.callers["(no symbol) db"].iter().map(|by| &**by).collect();
        assert_eq!(by, ["(no symbol) db", "main"]);
    }
}
