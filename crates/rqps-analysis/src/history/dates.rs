//! Histories over time: one point for each result set of a target, and the changes of its level by
//! E-divisive means.

use std::collections::BTreeMap;

use serde::Serialize;

use super::hosts::{HostChange, host_changes};
use crate::Comparison;
use crate::comparison::TargetResult;
use rqps_model::metric::{Direction, Metric};
use rqps_stats::change_points::{Compatibility, EDivisive, e_divisive};
use rqps_stats::summary::geomean;

/// Options of a history over dates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DateOptions {
    /// The metric.
    pub metric: Metric,
    /// True for the arithmetic of Otava 0.8.0, digit for digit.
    pub as_otava: bool,
    /// A change must be less probable than this without a change.
    pub max_p: f64,
    /// Changes up to this share are none.
    pub min_magnitude: f64,
    /// True if all hosts of a target are one, such as before and after a new kernel.
    pub same_host: bool,
}

/// One target on one host over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DateHistory {
    /// Label of the target.
    pub label: String,
    /// Fingerprint of the host; of the newest one, if several are taken for one.
    pub host: String,
    /// Changes of the host along the points of the target.
    pub host_changes: Vec<HostChange>,
    /// Key of the metric.
    pub metric: String,
    /// The better direction.
    pub better: Direction,
    /// Steps in the order of reports.
    pub steps: Vec<StepDates>,
}

/// A step over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepDates {
    /// Its name.
    pub step: String,
    /// Points, the oldest first.
    pub points: Vec<DatePoint>,
    /// Changes of level, the oldest first.
    pub changes: Vec<DateChange>,
}

/// One result set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatePoint {
    /// Start of its first run, RFC 3339.
    pub date: String,
    /// The result set.
    pub result_set: String,
    /// Geometric mean of its values.
    pub value: f64,
    /// Number of values.
    pub n: usize,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DateChange {
    /// Place of the first point of the new level.
    pub at: usize,
    /// Means before and after: to the changes beside it.
    pub means: [f64; 2],
    /// After / before.
    pub ratio: f64,
    /// p value of Student's t test.
    pub p: f64,
}

/// The histories of all targets that have two points or more, one for each host.
pub fn date_histories(comparison: &Comparison, of: &DateOptions) -> Vec<DateHistory> {
    let mut histories: BTreeMap<(usize, String), Vec<StepDates>> = BTreeMap::new();
    for step in comparison.measured_steps() {
        for (place, target) in step.targets.iter().enumerate() {
            let one_host = of.same_host.then(|| newest_host(comparison, place)).flatten();
            for (host, points) in points(comparison, target, of.metric, one_host) {
                if points.len() > 1 {
                    let changes = changes(&points, of);
                    let dates = StepDates { step: step.name.clone(), points, changes };
                    histories.entry((place, host)).or_default().push(dates);
                }
            }
        }
    }
    let history = |((place, host), steps): ((usize, String), Vec<StepDates>)| DateHistory {
        label: comparison.targets[place].label.clone(),
        host,
        host_changes: host_changes(comparison, place),
        metric: of.metric.name().to_owned(),
        better: of.metric.better(),
        steps,
    };
    histories.into_iter().map(history).collect()
}

/// The host of the newest run of a target.
fn newest_host(comparison: &Comparison, target: usize) -> Option<&str> {
    let runs = comparison.targets[target].runs.iter().map(|run| &comparison.runs[*run]);
    runs.max_by_key(|run| &run.started).map(|run| run.host_fingerprint.as_str())
}

/// Host → points of a target, the oldest first; with `one_host`, all are of that one. Values that are no positive number are left out.
pub(super) fn points(
    comparison: &Comparison,
    target: &TargetResult,
    metric: Metric,
    one_host: Option<&str>,
) -> BTreeMap<String, Vec<DatePoint>> {
    let mut sets: BTreeMap<(&str, &str), (&str, Vec<f64>)> = BTreeMap::new();
    for sample in &target.samples {
        let value = sample.get(metric).filter(|value| *value > 0.0 && value.is_finite());
        let Some(value) = value else { continue };
        let run = &comparison.runs[sample.run];
        let host = one_host.unwrap_or(&run.host_fingerprint);
        let key = (host, run.result_set.as_str());
        let (date, values) = sets.entry(key).or_insert((run.started.as_str(), Vec::new()));
        *date = (*date).min(run.started.as_str());
        values.push(value);
    }
    let mut hosts: BTreeMap<String, Vec<DatePoint>> = BTreeMap::new();
    for ((host, result_set), (date, values)) in sets {
        hosts.entry(host.to_owned()).or_default().push(DatePoint {
            date: date.to_owned(),
            result_set: result_set.to_owned(),
            value: geomean(&values),
            n: values.len(),
        });
    }
    for points in hosts.values_mut() {
        points.sort_by(|a, b| (&a.date, &a.result_set).cmp(&(&b.date, &b.result_set)));
    }
    hosts
}

pub(super) fn changes(points: &[DatePoint], of: &DateOptions) -> Vec<DateChange> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let compatibility = if of.as_otava { Compatibility::Otava } else { Compatibility::Mended };
    let rules = EDivisive {
        max_p: of.max_p,
        min_magnitude: of.min_magnitude,
        compatibility,
        ..EDivisive::default()
    };
    let found = e_divisive(&values, &rules);
    let change = |shift: rqps_stats::change_points::Shift| DateChange {
        at: shift.index,
        means: shift.means,
        ratio: shift.means[1] / shift.means[0],
        p: shift.p,
    };
    found.into_iter().map(change).collect()
}

impl StepDates {
    /// Geometric mean of the points of the first level.
    pub fn first_level(&self) -> f64 {
        let end = self.changes.first().map_or(self.points.len(), |change| change.at);
        StepDates::level(&self.points[..end.min(self.points.len())])
    }

    /// Geometric mean of the points since the last change.
    pub fn present_level(&self) -> f64 {
        let begin = self.changes.last().map_or(0, |change| change.at);
        StepDates::level(&self.points[begin.min(self.points.len())..])
    }

    /// Geometric mean of points.
    pub fn level(points: &[DatePoint]) -> f64 {
        geomean(&points.iter().map(|point| point.value).collect::<Vec<f64>>())
    }
}
