//! A result set against the newest level of a history.

use std::collections::{BTreeMap, BTreeSet};

use super::dates::{DatePoint, points};
use super::hosts::host_difference;
use super::reference::{Reference, WalkRules, reference};
use crate::Comparison;
use crate::comparison::StepComparison;
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::Rules;
use rqps_stats::Interval;
use rqps_stats::summary::mean;

/// Fewer result sets tell too little of how they scatter, unless an earlier level does.
const SETS_MIN: usize = 4;

/// Earlier result sets, and in which of them the speed of a step was accepted.
#[derive(Clone, Debug)]
pub struct PastSets {
    /// Their runs.
    pub comparison: Comparison,
    /// Result set → steps whose speed in it was accepted as a new level.
    pub accepted: BTreeMap<String, BTreeSet<String>>,
    /// True if all its hosts are that of the new result set, such as before a new kernel.
    pub same_host: bool,
}

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
    /// Result sets beside the level, with their values divided by it: outliers, and the last ones
    /// if they are off and were not accepted.
    pub beside: Vec<(String, f64)>,
    /// Without result sets of this host: how the newest other host of the history differs.
    pub other_host: Option<String>,
    /// p that it is worse than the level by more than τ; `None` with too few result sets.
    pub p_worse: Option<f64>,
}

impl Newest {
    /// The reason why there is no test.
    pub fn why_open(&self) -> String {
        match self.sets {
            0 => {
                let none = "the history has no result set of this target, step and host";
                match &self.other_host {
                    Some(other) => format!("{none}; {other}"),
                    None => none.to_owned(),
                }
            }
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
    past: &PastSets,
    metric: Metric,
    rules: &Rules,
) -> Vec<Newest> {
    let mut found = Vec::new();
    // A night was reported if it passed Holm's first step.
    let alpha = rules.alpha / new.measured_steps().count().max(1) as f64;
    let walk = WalkRules { metric, tau: rules.tau, delta: rules.delta, alpha };
    for step in new.measured_steps() {
        let earlier = past.comparison.steps.iter().find(|other| other.name == step.name);
        let first = usize::from(new.targets.len() > 1);
        for place in first..new.targets.len() {
            for (host, now) in points(new, &step.targets[place], metric, None) {
                let sides = Sides { new, past, step, earlier, place, host: &host, walk };
                found.push(sides.judge(&now, rules.confidence));
            }
        }
    }
    found
}

/// One step of one target on one host, now and before.
struct Sides<'a> {
    new: &'a Comparison,
    past: &'a PastSets,
    step: &'a StepComparison,
    earlier: Option<&'a StepComparison>,
    place: usize,
    host: &'a str,
    walk: WalkRules,
}

impl Sides<'_> {
    fn judge(&self, now: &[DatePoint], confidence: f64) -> Newest {
        let label = &self.new.targets[self.place].label;
        let before = self.before(label);
        let baseline = &self.new.targets[0].label;
        let divided = (self.place > 0)
            .then(|| self.divided(baseline, now, &before))
            .flatten()
            .filter(|(_, before)| !before.is_empty());
        let is_relative = divided.is_some();
        let (now, before) = divided.unwrap_or((now.to_vec(), before));
        let is_accepted = |point: &DatePoint| {
            let steps = self.past.accepted.get(&point.result_set);
            steps.is_some_and(|steps| steps.contains(&self.step.name))
        };
        let Reference { level, aside, off, next } = reference(&before, is_accepted, &self.walk);
        let logs: Vec<f64> = level.iter().map(|place| before[*place].value.ln()).collect();
        let value = mean(&now.iter().map(|point| point.value.ln()).collect::<Vec<f64>>());
        let beside = aside.iter().chain(&off).map(|place| &before[*place]);
        let beside =
            beside.map(|point| (point.date.clone(), (point.value.ln() - mean(&logs)).exp()));
        let mut newest = Newest {
            label: label.clone(),
            step: self.step.name.clone(),
            sets: level.len(),
            since: level.first().map(|place| before[*place].date.clone()).unwrap_or_default(),
            beside: beside.collect(),
            is_relative,
            ratio: f64::NAN,
            interval: None,
            p_worse: None,
            other_host: self.other_host(label),
        };
        if logs.is_empty() {
            return newest;
        }
        newest.ratio = (value - mean(&logs)).exp();
        if let Some(next) = next {
            let badness = self.walk.badness(value.exp());
            let Interval { low, high } = next.interval(confidence);
            let [low, high] = [badness - high, badness - low];
            newest.interval = Some(match self.walk.metric.better() {
                Direction::Lower => Interval { low: low.exp(), high: high.exp() },
                Direction::Higher | Direction::Neither => {
                    Interval { low: (-high).exp(), high: (-low).exp() }
                }
            });
            newest.p_worse = Some(next.p_above(badness - self.walk.tau));
        }
        newest
    }

    /// Points of a label in the history, on this host.
    fn before(&self, label: &str) -> Vec<DatePoint> {
        let past = &self.past.comparison;
        let place = past.targets.iter().position(|target| target.label == label);
        let (Some(step), Some(place)) = (self.earlier, place) else { return Vec::new() };
        let one_host = self.past.same_host.then_some(self.host);
        let mut hosts = points(past, &step.targets[place], self.walk.metric, one_host);
        hosts.remove(self.host).unwrap_or_default()
    }

    /// How the newest host on which the history has the label differs from this one.
    fn other_host(&self, label: &str) -> Option<String> {
        let past = &self.past.comparison;
        let runs = past.runs.iter().filter(|run| run.key.label == label);
        let newest = runs.max_by_key(|run| &run.started)?;
        let other = newest.host_fingerprint.as_str();
        (other != self.host).then(|| {
            format!(
                "its newest host {other} differs ({}): --same-host takes both for one",
                host_difference(past.hosts.get(other), self.new.hosts.get(self.host))
            )
        })
    }

    /// Both divided by the baseline of the same result sets; `None` if one has no baseline.
    fn divided(
        &self,
        baseline: &str,
        now: &[DatePoint],
        before: &[DatePoint],
    ) -> Option<(Vec<DatePoint>, Vec<DatePoint>)> {
        let mut baselines = points(self.new, &self.step.targets[0], self.walk.metric, None);
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
