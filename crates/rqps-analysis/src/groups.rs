//! Summaries of the relative rate over the steps of a group.

use super::comparison::{GroupSummary, Relative, StepComparison, TargetSummary};
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_stats::summary::summarize;

/// True for steps whose relative rates enter group summaries and the geometric mean: not loads, not
/// steps that only warm or come before the writes, which the field leaves out since December 2024,
/// and not a choice among steps that count themselves. rqps itself leaves steps that only warm out
/// of a comparison; published tables have them, and the field strikes them out by hand.
pub fn is_summarized(step: &StepComparison) -> bool {
    matches!(step.group, Group::Point | Group::Range | Group::Write)
        && !step.is_choice()
        && step.parameters.purpose.is_result()
}

/// The relative rate of a target in a step, if both can be compared and one of them has a rate:
/// 0/0 is no ratio.
pub(super) fn relative_rate(step: &StepComparison, target: usize) -> Option<&Relative> {
    let rate = |place: usize| step.targets[place].absolute(Metric::Rate).unwrap_or(0.0);
    let relative = step.targets[target].comparable(Metric::Rate)?;
    (rate(0) > 0.0 || rate(target) > 0.0).then_some(relative)
}

/// Summaries of point, range and write, as far as there are steps.
pub fn summarize_groups(steps: &[StepComparison]) -> Vec<GroupSummary> {
    let mut groups = Vec::new();
    for group in [Group::Point, Group::Range, Group::Write] {
        let counted: Vec<&StepComparison> =
            steps.iter().filter(|step| step.group == group && is_summarized(step)).collect();
        let Some(first) = counted.first() else { continue };
        let labels = first.targets.iter().skip(1).map(|target| target.label.clone());
        let targets = labels.enumerate().map(|(index, label)| {
            let ratios: Vec<f64> = counted
                .iter()
                .filter_map(|step| relative_rate(step, index + 1))
                .map(|relative| relative.ratio)
                .filter(|ratio| ratio.is_finite())
                .collect();
            TargetSummary { label, summary: summarize(&ratios) }
        });
        groups.push(GroupSummary { group, steps: counted.len(), targets: targets.collect() });
    }
    groups
}
