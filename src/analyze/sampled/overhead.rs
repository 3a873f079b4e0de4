//! What sampling cost: rates with a profiler at work beside those without.

use super::difference::Overhead;
use crate::analyze::comparison::{Comparison, TargetResult};
use crate::domain::metric::Metric;
use crate::stats::Interval;
use crate::stats::paired::mean_interval;
use crate::stats::summary::mean;

/// What sampling cost; `None` if nothing was measured both ways.
pub(in crate::analyze) fn overhead(
    comparison: &Comparison,
    profiles: &Comparison,
) -> Option<Overhead> {
    let mut differences = Vec::new();
    for step in &comparison.steps {
        let Some(sampled) = profiles.steps.iter().find(|other| other.name == step.name) else {
            continue;
        };
        for target in &step.targets {
            let with = sampled.targets.iter().find(|other| other.label == target.label);
            let with = with.and_then(log_rate);
            differences.extend(with.zip(log_rate(target)).map(|(with, without)| with - without));
        }
    }
    let ratio = (!differences.is_empty()).then(|| mean(&differences).exp())?;
    let interval = mean_interval(&differences, 0.95).and_then(|it| it.interval).map(Interval::exp);
    Some(Overhead { ratio, interval, count: differences.len() })
}

/// The mean logarithm of the rate over the blocks.
fn log_rate(target: &TargetResult) -> Option<f64> {
    let rates = target.samples.iter().filter_map(|sample| sample.get(Metric::Rate));
    let logs: Vec<f64> = rates.filter(|rate| *rate > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| mean(&logs))
}
