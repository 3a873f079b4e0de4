//! Selects the steps of a plan with `blocks = "auto"` that need more blocks.

use serde::Serialize;

use crate::comparison::Comparison;
use rqps_model::metric::Metric;
use rqps_model::verdict::LookSchedule;

/// A step that is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenStep {
    /// Name of the step.
    pub step: String,
    /// Labels of the targets that it is open for.
    pub targets: Vec<String>,
    /// Pairs after which it will probably be settled: at least one more than there are, at most
    /// those of the schedule.
    pub pairs_needed: u32,
}

/// The steps that must be measured in the next block; empty when the plan is done. A step that is
/// settled for all targets, or has been looked at as often as the schedule allows, is not among
/// them.
///
/// The comparison must be over runs whose records carry the schedule ([`RunRecord::schedule`]):
/// then its verdicts are those of the looks.
///
/// [`RunRecord::schedule`]: rqps_model::run::RunRecord::schedule
pub fn open_steps(comparison: &Comparison, schedule: &LookSchedule) -> Vec<OpenStep> {
    let mut open = Vec::new();
    for step in comparison.measured_steps() {
        let mut targets = Vec::new();
        let mut needed = 0;
        for target in step.targets.iter().skip(1) {
            let relative = target.relative(Metric::Rate);
            let pairs = relative.map_or(0, |relative| relative.pairs as u32);
            let judgement = relative.and_then(|relative| relative.judgement.as_ref());
            let settled =
                judgement.and_then(|judgement| judgement.test.as_ref()).is_some_and(|t| t.settled);
            // More blocks do not make it comparable.
            let void = target.is_void(Metric::Rate);
            if settled || void || pairs >= schedule.blocks_max {
                continue;
            }
            let wanted =
                judgement.and_then(|judgement| judgement.pairs_needed).unwrap_or(pairs + 1);
            let least = schedule.blocks_min.max(pairs + 1);
            needed = needed.max(wanted.clamp(least, schedule.blocks_max.max(least)));
            targets.push(target.label.clone());
        }
        if !targets.is_empty() {
            open.push(OpenStep { step: step.name.clone(), targets, pairs_needed: needed });
        }
    }
    open
}
