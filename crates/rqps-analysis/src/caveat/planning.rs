//! Query plans that differ between targets, or between the blocks of one.

use std::collections::HashMap;

use super::evidence::Evidence;
use super::kind::{Caveat, CaveatKind};
use crate::plans::{normalize, shorten};
use rqps_model::run::StepRecord;

/// Characters of a plan that are shown.
const PLAN_WIDTH: usize = 120;

/// Plans are long, come in every step of every run and are nearly always the same: each distinct
/// text is made comparable once.
#[derive(Default)]
struct Normalized<'a>(HashMap<&'a str, String>);

impl<'a> Normalized<'a> {
    fn of(&mut self, plan: &'a str) -> String {
        self.0.entry(plan).or_insert_with(|| normalize(plan)).clone()
    }
}

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    evidence.by_target(|target, label| of_target(evidence, target, label))
}

fn of_target(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut normalized = Normalized::default();
    let mut caveats = Vec::new();
    if target > 0 && same_dialect(evidence, target) {
        for (difference, steps) in differences(evidence, target, &mut normalized) {
            caveats.push(
                Caveat::of(
                    CaveatKind::PlanDiffers,
                    label,
                    difference.spell(&evidence.comparison.baseline, label),
                )
                .in_steps(steps),
            );
        }
    }
    caveats.extend(changes(evidence, target, label, &mut normalized));
    caveats
}

/// Plans of two products have no words in common.
fn same_dialect(evidence: &Evidence, target: usize) -> bool {
    let dialect = |place: usize| {
        let facts = &evidence.comparison.targets[place];
        facts.target.as_ref().map(|target| target.dbms.dialect())
    };
    dialect(0) == dialect(target)
}

#[derive(PartialEq)]
struct Difference {
    kind: String,
    baseline: String,
    target: String,
}

impl Difference {
    fn spell(&self, baseline: &str, target: &str) -> String {
        format!(
            "{}: {baseline} `{}`, {target} `{}`",
            self.kind,
            shorten(&self.baseline, PLAN_WIDTH),
            shorten(&self.target, PLAN_WIDTH)
        )
    }
}

/// Differences from the baseline, each with the steps that have it. The first run of each side
/// speaks; that a target's own plans change is another caveat.
fn differences<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    normalized: &mut Normalized<'a>,
) -> Vec<(Difference, Vec<String>)> {
    let mut found: Vec<(Difference, Vec<String>)> = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let (Some(baseline), Some(other)) = (planned(&records[0]), planned(&records[target]))
        else {
            continue;
        };
        for (kind, plan) in &baseline.outcome.plans {
            let Some(other) = other.outcome.plans.get(kind).filter(|other| *other != plan) else {
                continue;
            };
            let (baseline, target) = (normalized.of(plan), normalized.of(other));
            if baseline == target {
                continue;
            }
            let difference = Difference { kind: kind.clone(), baseline, target };
            match found.iter_mut().find(|(other, _)| *other == difference) {
                Some((_, steps)) => steps.push(step.name.clone()),
                None => found.push((difference, vec![step.name.clone()])),
            }
        }
    }
    found
}

/// The first run that has plans: not every run need ask for them.
fn planned<'a>(records: &[&'a StepRecord]) -> Option<&'a StepRecord> {
    records.iter().copied().find(|record| !record.outcome.plans.is_empty())
}

fn changes<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    label: &str,
    normalized: &mut Normalized<'a>,
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let Some(first) = planned(&records[target]) else { continue };
        for (kind, plan) in &first.outcome.plans {
            let others = records[target].iter().filter_map(|record| record.outcome.plans.get(kind));
            let mut differing = others.filter(|other| *other != plan);
            let changed = differing.find(|other| normalized.of(other) != normalized.of(plan));
            if let Some(changed) = changed {
                caveats.push(
                    Caveat::of(
                        CaveatKind::PlanChanges,
                        label,
                        format!(
                            "{kind}: `{}`, then `{}`",
                            shorten(&normalized.of(plan), PLAN_WIDTH),
                            shorten(&normalized.of(changed), PLAN_WIDTH)
                        ),
                    )
                    .in_steps(vec![step.name.clone()]),
                );
            }
        }
    }
    caveats
}
