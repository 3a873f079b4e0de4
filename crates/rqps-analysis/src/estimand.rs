//! What verdicts are about: the builds, and how many loads, sittings and hosts stand for all others.

use std::collections::BTreeSet;

use crate::comparison::{Comparison, RunFacts};
use rqps_model::units::counted;

/// One sentence; empty for a baseline alone, and where others measured.
pub fn line(comparison: &Comparison) -> String {
    let targets = 0..comparison.targets.len();
    if targets.len() < 2 || targets.clone().any(|target| comparison.is_imported(target)) {
        return String::new();
    }
    let distinct = |get: fn(&RunFacts) -> &str| {
        comparison.runs.iter().map(get).collect::<BTreeSet<&str>>().len()
    };
    let hosts = distinct(|run| &run.host_fingerprint);
    let sittings = distinct(|run| &run.session);
    let loads = targets.map(|target| loads(comparison, target)).min().filter(|loads| *loads > 0);
    let class = comparison.hosts.values().next().map(|host| format!(" ({})", host.class()));
    let place = match hosts {
        0 | 1 => format!("this host{}", class.unwrap_or_default()),
        several => format!("these {several} hosts"),
    };
    let number = |count: usize, what: &str| match count {
        1 => format!("one {what}"),
        count => counted(count, what),
    };
    let mut basis: Vec<String> =
        loads.map(|loads| number(loads, "load") + " of each").into_iter().collect();
    basis.push(number(sittings, "sitting"));
    let mut others = vec![];
    if loads == Some(1) {
        others.push("load");
    }
    if sittings == 1 {
        others.push("sitting");
    }
    others.push("host");
    let others = match others.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => others.concat(),
    };
    format!(
        "These verdicts are about these builds on {place}: {}. Another {others} may give other \
         ratios.",
        basis.join(", ")
    )
}

/// The number of loads that blocks of a target started from; 0 if each block loads in a step.
fn loads(comparison: &Comparison, target: usize) -> usize {
    let runs = comparison.targets[target].runs.iter().map(|run| &comparison.runs[*run]);
    let loads = runs.filter_map(|run| Some((&run.result_set, &run.node, run.load?)));
    loads.collect::<BTreeSet<_>>().len()
}
