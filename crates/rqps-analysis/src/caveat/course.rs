//! Rates that were not the same from the first second to the last, or from turn to turn.

use super::evidence::{CARRY_OVER_ERRORS, CARRY_OVER_MIN};
use super::evidence::{Evidence, percent, up_to};
use super::kind::{Caveat, CaveatKind};
use crate::turns;
use rqps_stats::stability::Stability;
use rqps_stats::summary::median;

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = evidence.by_target(|target, label| of_target(evidence, target, label));
    caveats.extend(carry_over(evidence));
    caveats
}

/// Targets that the turns of others slow down more or less than the baseline.
fn carry_over(evidence: &Evidence) -> Vec<Caveat> {
    let found = turns::carry_over(evidence.comparison);
    let Some(Some(baseline)) = found.first().copied() else { return Vec::new() };
    let caveat = |(target, label): (usize, &str)| {
        let own = found[target]?;
        let difference = own.slower - baseline.slower;
        let limit = CARRY_OVER_ERRORS * own.error.hypot(baseline.error);
        let text = || {
            format!(
                "a turn after another target's is {} slower than this target's next turn, but {} \
                 with the baseline; so ratios of rates may be up to {} {} than without turns",
                percent(own.slower),
                percent(baseline.slower),
                percent(difference.abs()),
                if difference > 0.0 { "lower" } else { "higher" },
            )
        };
        let matters = difference.abs() > limit.max(CARRY_OVER_MIN);
        matters.then(|| Caveat::of(CaveatKind::CarryOver, label, text()))
    };
    evidence.targets().skip(1).filter_map(caveat).collect()
}

fn of_target(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let stalls = each(evidence, target, |courses| {
        let longest = |course: &Stability| course.evenness.map(|even| even.longest_stall);
        courses.iter().filter_map(longest).max().filter(|seconds| *seconds > 0)
    });
    let longest = stalls.iter().map(|(_, seconds)| *seconds).max();
    caveats.extend(longest.map(|seconds| {
        caveat(CaveatKind::Stalls, label, &stalls, format!("up to {seconds} s in a row"))
    }));
    // One run in a hundred looks unsteady by chance: most of a step's runs must.
    let unsteady = each(evidence, target, |courses| {
        let count = courses.iter().filter(|course| course.is_unsteady()).count();
        (2 * count > courses.len()).then_some(count)
    });
    let most = unsteady.iter().map(|(_, runs)| *runs).max();
    caveats.extend(most.map(|runs| {
        let text = format!("in {} of a step", up_to(runs as f64, "run"));
        caveat(CaveatKind::NotSteady, label, &unsteady, text)
    }));
    let drifting = each(evidence, target, |courses| {
        let drifts: Vec<f64> = courses.iter().filter_map(Stability::drift).collect();
        if 2 * drifts.len() > courses.len() { median(&drifts) } else { None }
    });
    let largest = drifting.iter().map(|(_, drift)| *drift);
    let largest = largest.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    caveats.extend(largest.map(|drift| {
        let way = if drift < 0.0 { "falls" } else { "rises" };
        let text = format!("{way} by up to {} over the window", percent(drift.abs()));
        caveat(CaveatKind::Drifting, label, &drifting, text)
    }));
    caveats
}

/// For one target, a value of each step where `judge` finds one in the courses of its runs.
fn each<T>(
    evidence: &Evidence,
    target: usize,
    judge: impl Fn(&[Stability]) -> Option<T>,
) -> Vec<(String, T)> {
    let steps = evidence.comparison.steps.iter();
    steps
        .filter_map(|step| {
            let samples = step.targets[target].samples.iter();
            let courses: Vec<Stability> = samples.filter_map(|sample| sample.stability).collect();
            Some((step.name.clone(), judge(&courses)?))
        })
        .collect()
}

fn caveat<T>(kind: CaveatKind, label: &str, found: &[(String, T)], text: String) -> Caveat {
    let steps = found.iter().map(|(step, _)| step.clone()).collect();
    Caveat::of(kind, label, text).in_steps(steps)
}
