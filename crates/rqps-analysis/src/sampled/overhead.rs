//! The cost of sampling: rates of blocks with and without the profiler.

use super::difference::Overhead;
use crate::comparison::{Comparison, TargetResult};
use rqps_model::metric::Metric;
use rqps_stats::Interval;
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::mean;

/// The cost of sampling in a profiling pass; `None` if no step was measured with and without it.
pub(crate) fn overhead(profiles: &Comparison) -> Option<Overhead> {
    let targets = profiles.steps.iter().flat_map(|step| &step.targets);
    let difference =
        |target: &TargetResult| Some(log_rate(target, true)? - log_rate(target, false)?);
    let differences: Vec<f64> = targets.filter_map(difference).collect();
    let ratio = (!differences.is_empty()).then(|| mean(&differences).exp())?;
    let interval = mean_interval(&differences, 0.95).and_then(|it| it.interval).map(Interval::exp);
    Some(Overhead { ratio, interval, count: differences.len() })
}

/// The mean logarithm of the rate over the blocks with samples, or over those without.
fn log_rate(target: &TargetResult, is_sampled: bool) -> Option<f64> {
    let samples = target.samples.iter();
    let samples = samples.filter(|sample| sample.record.sampled.is_some() == is_sampled);
    let rates = samples.filter_map(|sample| sample.get(Metric::Rate)).filter(|rate| *rate > 0.0);
    let logs: Vec<f64> = rates.map(f64::ln).collect();
    (!logs.is_empty()).then(|| mean(&logs))
}
