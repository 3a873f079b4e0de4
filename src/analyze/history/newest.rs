//! A result set against the newest level of a history: the points since the last change.

use std::collections::BTreeMap;

use super::dates::{DateOptions, DatePoint, changes, points};
use crate::analyze::Comparison;
use crate::analyze::comparison::StepComparison;
use crate::domain::metric::{Direction, Metric};
use crate::domain::verdict::Rules;
use crate::stats::summary::mean;
use crate::stats::{Interval, Prediction};

/// Fewer result sets tell too little of how they scatter.
const SETS_MIN: usize = 4;

/// A step of a target in the new result sets, beside the same in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// Label of the target.
    pub label: String,
    /// Name of the step.
    pub step: String,
    /// Result sets of the newest level, on the same host.
    pub sets: usize,
    /// Start of the newest level, RFC 3339; empty without result sets.
    pub since: String,
    /// True if both were divided by the baseline of their own result set.
    pub is_relative: bool,
    /// New value / level. NaN without result sets.
    pub ratio: f64,
    /// New value / what the level predicts, at both ends of its 95 % prediction interval; `None`
    /// with too few result sets.
    pub interval: Option<Interval>,
    /// p that it is worse than the level by more than τ; `None` with too few result sets.
    pub p_worse: Option<f64>,
}

impl Newest {
    /// The reason why there is no test.
    pub fn why_open(&self) -> String {
        match self.sets {
            0 => "the history has no result set of this target, step and host".to_owned(),
            sets => format!(
                "the newest level of the history has {sets} result sets on this host; a test needs \
                 {SETS_MIN}"
            ),
        }
    }
}

/// Holds the new result sets against the newest level of the past ones, for each step and target:
/// the baseline, too, if it is all there is to hold.
///
/// If every result set has the baseline, the values are ratios to it, because the baseline measures
/// the speed of the host on that day. The new value is compared with the [`Prediction`] of the
/// level's logarithms.
pub fn against_newest(
    new: &Comparison,
    past: &Comparison,
    metric: Metric,
    rules: &Rules,
) -> Vec<Newest> {
    let mut found = Vec::new();
    for step in new.measured_steps() {
        let earlier = past.steps.iter().find(|other| other.name == step.name);
        let first = usize::from(new.targets.len() > 1);
        for place in first..new.targets.len() {
            for (host, now) in points(new, &step.targets[place], metric) {
                let sides = Sides { new, past, step, earlier, place, host: &host, metric };
                found.push(sides.judge(&now, rules));
            }
        }
    }
    found
}

/// One step of one target on one host, now and before.
struct Sides<'a> {
    new: &'a Comparison,
    past: &'a Comparison,
    step: &'a StepComparison,
    earlier: Option<&'a StepComparison>,
    place: usize,
    host: &'a str,
    metric: Metric,
}

impl Sides<'_> {
    fn judge(&self, now: &[DatePoint], rules: &Rules) -> Newest {
        let label = &self.new.targets[self.place].label;
        let before = self.before(label);
        let baseline = &self.new.targets[0].label;
        let divided = (self.place > 0)
            .then(|| self.divided(baseline, now, &before))
            .flatten()
            .filter(|(_, before)| !before.is_empty());
        let is_relative = divided.is_some();
        let (now, before) = divided.unwrap_or((now.to_vec(), before));
        let of =
            DateOptions { metric: self.metric, as_otava: false, max_p: 0.001, min_magnitude: 0.0 };
        let begin = changes(&before, &of).last().map_or(0, |change| change.at);
        let level = &before[begin.min(before.len())..];
        let logs: Vec<f64> = level.iter().map(|point| point.value.ln()).collect();
        let value = mean(&now.iter().map(|point| point.value.ln()).collect::<Vec<f64>>());
        let mut newest = Newest {
            label: label.clone(),
            step: self.step.name.clone(),
            sets: level.len(),
            since: level.first().map(|point| point.date.clone()).unwrap_or_default(),
            is_relative,
            ratio: f64::NAN,
            interval: None,
            p_worse: None,
        };
        if logs.is_empty() {
            return newest;
        }
        newest.ratio = (value - mean(&logs)).exp();
        if let Some(next) = Prediction::after(&logs).filter(|_| logs.len() >= SETS_MIN) {
            let Interval { low, high } = next.interval(rules.confidence);
            let around = |end: f64| (value - end).exp();
            newest.interval = Some(Interval { low: around(high), high: around(low) });
            newest.p_worse = Some(match self.metric.better() {
                Direction::Lower => next.p_above(value - rules.tau),
                // The mirror image of what lies above.
                Direction::Higher | Direction::Neither => {
                    next.p_above(2.0 * next.mean - value - rules.tau)
                }
            });
        }
        newest
    }

    /// Points of a label in the history, on this host.
    fn before(&self, label: &str) -> Vec<DatePoint> {
        let place = self.past.targets.iter().position(|target| target.label == label);
        let (Some(step), Some(place)) = (self.earlier, place) else { return Vec::new() };
        points(self.past, &step.targets[place], self.metric).remove(self.host).unwrap_or_default()
    }

    /// Both divided by the baseline of the same result sets; `None` if one has no baseline.
    fn divided(
        &self,
        baseline: &str,
        now: &[DatePoint],
        before: &[DatePoint],
    ) -> Option<(Vec<DatePoint>, Vec<DatePoint>)> {
        let mut baselines = points(self.new, &self.step.targets[0], self.metric);
        let new = quotients(now, &baselines.remove(self.host)?)?;
        Some((new, quotients(before, &self.before(baseline))?))
    }
}

fn quotients(points: &[DatePoint], baselines: &[DatePoint]) -> Option<Vec<DatePoint>> {
    let baselines: BTreeMap<&str, f64> =
        baselines.iter().map(|baseline| (baseline.result_set.as_str(), baseline.value)).collect();
    let quotient = |point: &DatePoint| {
        let baseline = baselines.get(point.result_set.as_str())?;
        Some(DatePoint { value: point.value / baseline, ..point.clone() })
    };
    points.iter().map(quotient).collect()
}
