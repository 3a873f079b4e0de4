//! Caveats on missing data: failed and missing runs and steps, missing pairs.

use super::evidence::Evidence;
use super::evidence::PAIRS_MIN;
use super::kind::{Caveat, CaveatKind};
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_model::units::counted;

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
                "{:.3} [{:.3}, {:.3}] by the mean, {:.3} [{:.3}, {:.3}] by Hodges-Lehmann",
                relative.ratio,
                interval.low,
                interval.high,
                robust.ratio,
                robust.interval.low,
                robust.interval.high
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
