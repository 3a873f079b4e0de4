//! Caveats on missing data (failed and missing runs and steps, missing pairs) and uneven rates.

use super::{
    CARRY_OVER_ERRORS, CARRY_OVER_MIN, Caveat, CaveatKind, Evidence, PAIRS_MIN, percent, up_to,
};
use crate::pairing;
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_model::units::counted;
use rqps_stats::stability::Stability;
use rqps_stats::summary::median;

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(runs(evidence));
    for (target, label) in evidence.targets() {
        if evidence.comparison.targets[target].runs.is_empty() {
            let text = "in the plan, but without a run".to_owned();
            caveats.push(of(CaveatKind::NeverMeasured, label, Vec::new(), text));
            continue;
        }
        caveats.extend(failed_steps(evidence, target, label));
        caveats.extend(missing_steps(evidence, target, label));
        if target > 0 {
            caveats.extend(pairs(evidence, target, label));
        }
    }
    caveats
}

fn of(kind: CaveatKind, target: &str, steps: Vec<String>, text: String) -> Caveat {
    Caveat::of(kind, target, text).in_steps(steps)
}

/// The end of a run, in words.
fn spell(status: &Status) -> String {
    match status {
        Status::Running => "ended without a status".to_owned(),
        Status::Complete => "complete".to_owned(),
        Status::Failed(why) => format!("failed: {}", why.trim()),
        Status::Interrupted => "interrupted by the user".to_owned(),
        Status::Discarded(why) => format!("discarded with its block: {}", why.trim()),
    }
}

fn runs(evidence: &Evidence) -> Vec<Caveat> {
    let broken = evidence.comparison.runs.iter().filter(|run| run.status != Status::Complete);
    let caveats = broken.map(|run| {
        let text = format!("{}: {}", run.folder, spell(&run.status));
        let kind = match run.status {
            Status::Discarded(_) => CaveatKind::DiscardedBlock,
            _ => CaveatKind::FailedRun,
        };
        of(kind, &run.key.label, Vec::new(), text)
    });
    caveats.collect()
}

/// Failures of one target, those with the same reason together.
fn failed_steps(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut reasons: Vec<(String, Vec<String>, usize)> = Vec::new();
    for step in &evidence.comparison.steps {
        for failure in &step.targets[target].failures {
            let why = spell(&failure.status);
            let place = reasons.iter().position(|(other, _, _)| *other == why);
            let place = place.unwrap_or_else(|| {
                reasons.push((why, Vec::new(), 0));
                reasons.len() - 1
            });
            let (_, steps, count) = &mut reasons[place];
            *count += 1;
            if steps.last() != Some(&step.name) {
                steps.push(step.name.clone());
            }
        }
    }
    let caveats = reasons.into_iter().map(|(why, steps, count)| {
        let times = if count > 1 { format!("{count} times: ") } else { String::new() };
        of(CaveatKind::FailedStep, label, steps, format!("{times}{why}"))
    });
    caveats.collect()
}

fn missing_steps(evidence: &Evidence, target: usize, label: &str) -> Option<Caveat> {
    let missing = evidence.comparison.measured_steps().filter(|step| {
        !step.targets[target].was_carried_out() && evidence.comparison.is_for(step, target)
    });
    let missing: Vec<String> = missing.map(|step| step.name.clone()).collect();
    let text = "not measured, while another target was".to_owned();
    (!missing.is_empty()).then(|| of(CaveatKind::MissingStep, label, missing, text))
}

/// Ratios without pairs and with too few of them; mean and robust estimate apart.
fn pairs(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut unpaired = Vec::new();
    let mut few: Vec<(String, usize)> = Vec::new();
    let mut apart = Vec::new();
    for step in &evidence.comparison.steps {
        let Some(relative) = step.targets[target].relative(Metric::Rate) else { continue };
        match relative.pairs {
            0 => unpaired.push(step.name.clone()),
            pairs if pairs < PAIRS_MIN => few.push((step.name.clone(), pairs)),
            _ => {}
        }
        if let (Some(robust), Some(interval)) = (&relative.robust, relative.interval)
            && !(interval.low..=interval.high).contains(&robust.ratio)
        {
            let text = format!(
                "{:.3} {interval} by the mean, {:.3} {} by Hodges-Lehmann",
                relative.ratio, robust.ratio, robust.interval
            );
            apart.push(of(CaveatKind::RobustDisagrees, label, vec![step.name.clone()], text));
        }
    }
    let mut caveats = apart;
    if !unpaired.is_empty() {
        let text = "no block where both completed the step".to_owned();
        caveats.push(of(CaveatKind::NotPaired, label, unpaired, text));
    }
    // Nobody can add a block to published results; another caveat says that they are imported.
    let published = evidence.is_imported(0) || evidence.is_imported(target);
    if published {
        few.clear();
    }
    if let Some(least) = few.iter().map(|(_, pairs)| *pairs).min() {
        let steps = few.into_iter().map(|(step, _)| step).collect();
        let text = format!("only {}", counted(least, "pair"));
        caveats.push(of(CaveatKind::TooFewBlocks, label, steps, text));
    }
    caveats
}

// Rates that were not the same from the first second to the last, or from turn to turn.

pub(super) fn courses(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = evidence.by_target(|target, label| of_target(evidence, target, label));
    caveats.extend(carry_over(evidence));
    caveats
}

/// Targets that the turns of others slow down more or less than the baseline.
fn carry_over(evidence: &Evidence) -> Vec<Caveat> {
    let found = pairing::carry_over(evidence.comparison);
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
