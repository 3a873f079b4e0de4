//! Charts of a comparison: one for each group of steps.

use std::collections::BTreeSet;

use super::chart::{Axis, Chart, Form, Line, Point, Rule, Series};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::pairing::clients;
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_stats::Interval;

use super::document::Digits;

/// Forest plots: the relative rate of every step of a group on every target, with intervals and the
/// equivalence margin δ. One chart for each group and number of clients that has a ratio. Omits steps that only one
/// target has, such as those named after parameters of an index.
pub(crate) fn relative_rates(comparison: &Comparison) -> Vec<Chart> {
    let key = |step: &StepComparison| (step.group, clients(step));
    let keys: BTreeSet<(Group, Option<u32>)> = comparison.steps.iter().map(key).collect();
    let of_key = |wanted: (Group, Option<u32>)| {
        let steps = comparison.steps.iter().filter(|step| key(step) == wanted);
        let shared: Vec<&StepComparison> = steps.filter(|step| is_shared(step)).collect();
        let (group, clients) = wanted;
        let clients = clients.map(|clients| format!(".clients={clients}")).unwrap_or_default();
        chart(comparison, &format!("{}{clients}", group.name()), &shared)
    };
    keys.into_iter().filter_map(of_key).collect()
}

/// Returns true if the baseline and another target have the step, or a run of theirs failed in it.
fn is_shared(step: &StepComparison) -> bool {
    let mut carried_out = step.targets.iter().map(TargetResult::was_carried_out);
    carried_out.next().unwrap_or(false) && carried_out.any(|it| it)
}

fn chart(comparison: &Comparison, group: &str, steps: &[&StepComparison]) -> Option<Chart> {
    let names = steps.iter().map(|step| step.name.clone()).collect();
    let title = format!("{group}: rate relative to {}", comparison.baseline);
    let mut chart = Chart::new(format!("rates-{group}"), title, Form::Forest)
        .axes(Axis::of_categories("step", names), Axis::log("rQPS", ""));
    for (slot, facts) in comparison.targets.iter().enumerate().skip(1) {
        let points = steps.iter().enumerate().filter_map(|(place, step)| {
            let target = &step.targets[slot];
            let relative = target.comparable(Metric::Rate)?;
            let runs =
                target.samples.iter().map(|sample| comparison.runs[sample.run].folder.clone());
            let point = Point::at(place as f64, relative.ratio).within(relative.shown_interval());
            let word = relative.judgement.as_ref().map_or("", |judgement| judgement.verdict.name());
            Some(point.noted(word).from_runs(runs.collect()))
        });
        let series = Series::new(facts.label.clone(), slot, Line::None);
        chart.series.push(Series { points: points.collect(), ..series });
    }
    let delta = comparison.rules.delta;
    chart.margin = Some(Interval { low: 1.0 - delta, high: 1.0 / (1.0 - delta) });
    let percent = Digits::Significant(2).write(100.0 * delta);
    chart.notes.push(format!("Shaded: differences below {percent} % (delta)."));
    chart.rules.push(Rule { value: 1.0, label: comparison.baseline.clone() });
    let infinite = chart.series.iter().flat_map(|s| &s.points).filter(|p| !p.y.is_finite()).count();
    if infinite > 0 {
        chart
            .notes
            .push(format!("Infinite ratios not drawn (the baseline's value is 0): {infinite}."));
    }
    chart.series.iter().any(|series| !series.points.is_empty()).then_some(chart)
}
