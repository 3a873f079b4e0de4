//! Summaries of the relative rate over the steps of a group.

use std::collections::BTreeSet;

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

/// Summaries of point, range and write, as far as there are steps: one for each number of clients.
pub fn summarize_groups(steps: &[StepComparison]) -> Vec<GroupSummary> {
    let groups = [Group::Point, Group::Range, Group::Write];
    let clients: BTreeSet<Option<u32>> = steps.iter().map(clients).collect();
    let pairs = groups.into_iter().flat_map(|group| clients.iter().map(move |it| (group, *it)));
    pairs.filter_map(|pair| summarize_group(steps, pair)).collect()
}

/// The number of clients of a step, where several were measured.
pub fn clients(step: &StepComparison) -> Option<u32> {
    step.client_count.as_ref().map(|count| count.clients)
}

fn summarize_group(
    steps: &[StepComparison],
    (group, of_clients): (Group, Option<u32>),
) -> Option<GroupSummary> {
    let is_of = |step: &&StepComparison| step.group == group && clients(step) == of_clients;
    let counted: Vec<&StepComparison> =
        steps.iter().filter(is_of).filter(|step| is_summarized(step)).collect();
    let labels = counted.first()?.targets.iter().skip(1).map(|target| target.label.clone());
    let targets = labels.enumerate().map(|(index, label)| {
        let ratios: Vec<f64> = counted
            .iter()
            .filter_map(|step| relative_rate(step, index + 1))
            .map(|relative| relative.ratio)
            .filter(|ratio| ratio.is_finite())
            .collect();
        TargetSummary { label, summary: summarize(&ratios) }
    });
    let targets = targets.collect();
    Some(GroupSummary { group, clients: of_clients, steps: counted.len(), targets })
}
