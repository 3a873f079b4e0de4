//! Ladders: many versions in one comparison, in the order of the versions, with the places where
//! the level of a step changed. Histories: the same over the result sets of many days. Series: both
//! over all result sets of a site. Bisections of versions.

mod ladder;
mod newest;
mod series;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::comparison::{Comparison, StepComparison, TargetFacts, TargetResult};
pub use ladder::{
    Ladder, LadderOptions, LevelChange, Rung, StepLadder, VersionPoint, family_of, ladders,
};
use ladder::{family, rung};
use newest::outliers;
pub use newest::{Newest, PastSets, against_newest};
use rqps_model::benchmark::{Group, Workload};
use rqps_model::host::{Host, compared};
use rqps_model::metric::{Direction, Metric};
use rqps_model::units;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;
use rqps_stats::change_points::{Compatibility, EDivisive, Shift, e_divisive};
use rqps_stats::moderated::benjamini_hochberg;
use rqps_stats::summary::geomean;
pub use series::{
    FamilyLadder, FirstSet, LabelDates, LevelLine, SeriesOptions, SeriesSet, StepSeries,
    join_hosts, step_series,
};

// The values of one result set, small enough that a site reads a thousand sets at once.

/// All values of a result set that have a better direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetPoints {
    /// Start of its first run, RFC 3339; empty if unknown.
    pub started: String,
    /// Its targets.
    pub targets: Vec<PointTarget>,
    /// Under what its runs were measured.
    pub conditions: Vec<Condition>,
    /// Its runs; values refer to them by place.
    pub runs: Vec<PointRun>,
    /// Its steps.
    pub steps: Vec<StepPoints>,
}

/// A target of a result set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PointTarget {
    /// Its label.
    pub label: String,
    /// The DBMS, and the storage engine where one is named.
    pub family: String,
    /// The version, if known.
    pub version: Option<String>,
    /// Name of its configuration.
    pub config: String,
    /// The branch of the version, `10.11`; empty where the version is unknown.
    pub branch: String,
}

/// The facts that two points of one series share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The benchmark.
    pub benchmark: String,
    /// Hash of the workload.
    pub workload: String,
    /// Fingerprint of the host.
    pub host: String,
    /// Workload and host in words.
    pub words: String,
}

/// A run of a result set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointRun {
    /// Place of its target.
    pub target: usize,
    /// Place of its condition.
    pub condition: usize,
    /// Block and attempt: runs that share both are pairs.
    pub block: (u32, u32),
}

/// A step of a result set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepPoints {
    /// Its name.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// One value for each run, `None` where the run has none. Seven digits are more than any
    /// measurement has.
    pub metrics: Vec<(Metric, Vec<Option<f32>>)>,
}

impl Condition {
    /// The fields that identify a condition: all but the words.
    pub(super) fn identity(&self) -> [&str; 3] {
        [&self.benchmark, &self.workload, &self.host]
    }

    /// The part of an address that all series of this condition share. A hash, so compute it once.
    pub(super) fn key(&self) -> String {
        units::short_hash(self.identity().join("\n"))
    }
}

/// The values of a comparison of one result set, and of its counted runs.
pub fn set_points(comparison: &Comparison) -> SetPoints {
    let targets = comparison.targets.iter().enumerate().map(|(place, facts)| {
        let Rung { label, version, config, branch, .. } = rung(comparison, place);
        PointTarget { label, family: family(facts), version, config, branch }
    });
    // Published results without dates have none.
    let is_date = |text: &&str| text.starts_with(|first: char| first.is_ascii_digit());
    let started = comparison.runs.iter().map(|run| run.started.as_str()).filter(is_date).min();
    let mut set = SetPoints {
        started: started.unwrap_or_default().to_owned(),
        targets: targets.collect(),
        ..SetPoints::default()
    };
    for part in std::iter::once(comparison).chain(comparison.counts.as_deref()) {
        set.add(part);
    }
    set
}

impl SetPoints {
    fn add(&mut self, part: &Comparison) {
        let first = self.runs.len();
        let mut known: HashMap<(&str, &str, &str), usize> = HashMap::new();
        let hashes: Vec<String> = part.targets.iter().map(workload_hash).collect();
        for run in &part.runs {
            let of_label = |label: &str| label == run.key.label;
            let target = self.targets.iter().position(|target| of_label(&target.label));
            let key = (&*run.key.label, &*run.benchmark, &*run.host_fingerprint);
            let condition = *known.entry(key).or_insert_with(|| {
                let place = part.targets.iter().position(|target| of_label(&target.label));
                let workload = place.and_then(|place| part.targets[place].workloads.first());
                self.condition_place(Condition {
                    benchmark: run.benchmark.clone(),
                    workload: place.map_or_else(String::new, |place| hashes[place].clone()),
                    host: run.host_fingerprint.clone(),
                    words: words(part, workload, &run.host_fingerprint),
                })
            });
            let block = (run.key.block, run.key.attempt);
            self.runs.push(PointRun { target: target.unwrap_or(0), condition, block });
        }
        for step in part.measured_steps() {
            self.add_step(step, first);
        }
        // Steps of the first part are shorter now.
        for (_, values) in self.steps.iter_mut().flat_map(|step| &mut step.metrics) {
            values.resize(self.runs.len(), None);
        }
    }

    /// Index of a condition, which this adds to the list if it is new.
    fn condition_place(&mut self, condition: Condition) -> usize {
        let known = self.conditions.iter().position(|other| *other == condition);
        known.unwrap_or_else(|| {
            self.conditions.push(condition);
            self.conditions.len() - 1
        })
    }

    fn add_step(&mut self, step: &StepComparison, first: usize) {
        let mut metrics: BTreeMap<Metric, Vec<Option<f32>>> = BTreeMap::new();
        for (target, sample) in
            step.targets.iter().flat_map(|target| target.samples.iter().map(move |it| (target, it)))
        {
            for &metric in target.metrics.keys() {
                let value = sample.get(metric).filter(|value| *value > 0.0 && value.is_finite());
                let Some(value) = value.filter(|_| metric.better() != Direction::Neither) else {
                    continue;
                };
                let values = metrics.entry(metric).or_default();
                values.resize(self.runs.len(), None);
                values[first + sample.run] = Some(value as f32);
            }
        }
        let known = self.steps.iter().position(|other| other.step == step.name);
        let place = known.unwrap_or_else(|| {
            let (step, group) = (step.name.clone(), step.group);
            self.steps.push(StepPoints { step, group, metrics: Vec::new() });
            self.steps.len() - 1
        });
        let known = &mut self.steps[place].metrics;
        for (metric, values) in metrics {
            if !known.iter().any(|(other, _)| *other == metric) {
                known.push((metric, values));
            }
        }
    }
}

/// Hash of the workload of a target; empty where it is unknown.
fn workload_hash(facts: &TargetFacts) -> String {
    // A struct of numbers, strings and lists cannot fail to become JSON.
    let hash = |of| units::short_hash(serde_json::to_string(of).unwrap_or_default());
    facts.workloads.first().map_or_else(String::new, hash)
}

fn words(part: &Comparison, workload: Option<&Workload>, fingerprint: &str) -> String {
    let of_workload =
        workload.map(|of| format!("{}, {}", of.data_text(), of.clients_text())).unwrap_or_default();
    let host = part.hosts.get(fingerprint);
    let cpus = host.map(|host| match &host.cpu_model {
        Some(model) => format!("{} CPUs {model}", host.cpus),
        None => format!("{} CPUs", host.cpus),
    });
    let parts = [of_workload, cpus.unwrap_or_default(), format!("host {fingerprint}")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

// The result of a bisection, as reports show it.

/// The result of a bisection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bisection {
    /// The step.
    pub step: String,
    /// Name of the metric that was searched by.
    pub metric: String,
    /// The reason for this metric.
    pub reason: String,
    /// All versions, the baseline first.
    pub versions: Vec<VersionFacts>,
    /// Candidate / baseline of that metric.
    pub ends: f64,
    /// Its 95 % interval; `None` for counts.
    pub ends_interval: Option<Interval>,
    /// True if the ends differ. Otherwise rqps does not search.
    pub reproduced: bool,
    /// The versions that changed the step, the largest change first. Empty if the difference is
    /// spread over many small changes.
    pub culprits: Vec<Culprit>,
    /// Its costs.
    pub cost: BisectionCost,
}

/// One version of a bisection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionFacts {
    /// Its label.
    pub label: String,
    /// Date and subject of a commit; else empty.
    pub about: String,
    /// Relative to the baseline; `None` if it was not measured.
    pub ratio: Option<f64>,
    /// Number of values.
    pub n: usize,
    /// The reason why it could not be measured.
    pub lost: Option<String>,
    /// True if it cannot matter: a commit of documentation or tests.
    pub passed_over: bool,
}

/// A version that changed the step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// Places of the versions that may have done it, with their probability.
    pub suspects: Vec<(usize, f64)>,
    /// The last version before the change.
    pub after: usize,
    /// The first version with it.
    pub at: usize,
    /// The change, new / old.
    pub ratio: f64,
    /// Its share of the difference between the ends.
    pub share: f64,
    /// The verdict on fresh blocks of both; `None` if none were measured.
    pub check: Option<CulpritCheck>,
    /// Functions that changed most, with the difference of their instructions per operation.
    pub functions: Vec<(String, f64)>,
}

/// Fresh blocks of the versions before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CulpritCheck {
    /// The metric: the rate.
    pub metric: String,
    /// New / old.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of pairs.
    pub pairs: usize,
    /// The result folder, in that of the bisection.
    pub folder: String,
}

/// The costs of a bisection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BisectionCost {
    /// Versions that were measured.
    pub versions: usize,
    /// Versions that could not be.
    pub lost: usize,
    /// Counts of one version.
    pub counts: usize,
    /// Blocks of two versions.
    pub blocks: usize,
    /// Seconds, builds and loads included.
    pub seconds: f64,
}

// Histories over time: one point for each result set of a target, and the changes of its level by
// E-divisive means.

/// The smallest logarithm by which an outlier sticks out.
const OUTLIER_MIN: f64 = 0.02;

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
    /// Places of points that stick out alone: in no level.
    pub outliers: Vec<usize>,
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
                    let dates = StepDates::find(&step.name, points, of);
                    histories.entry((place, host)).or_default().push(dates);
                }
            }
        }
    }
    let history = |((place, host), mut steps): ((usize, String), Vec<StepDates>)| {
        if !of.as_otava {
            keep_shown(&mut steps);
        }
        DateHistory {
            label: comparison.targets[place].label.clone(),
            host,
            host_changes: host_changes(comparison, place),
            metric: of.metric.name().to_owned(),
            better: of.metric.better(),
            steps,
        }
    };
    histories.into_iter().map(history).collect()
}

/// Takes the changes from steps that show none for certain, so that a history of many steps without
/// a change seldom shows any: the smallest p of a step, times the places of a change, by Benjamini
/// and Hochberg (1995) over the steps.
fn keep_shown(steps: &mut [StepDates]) {
    let of_step = |step: &StepDates| {
        // Two levels without any scatter have no p.
        let p = |change: &DateChange| if change.p.is_nan() { 0.0 } else { change.p };
        let least = step.changes.iter().map(p).fold(1.0, f64::min);
        (least * step.points.len() as f64).min(1.0)
    };
    let p: Vec<f64> = steps.iter().map(of_step).collect();
    for (step, q) in steps.iter_mut().zip(benjamini_hochberg(&p)) {
        if q > ladder::ALPHA {
            step.changes.clear();
        }
    }
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

impl StepDates {
    /// Finds the changes of level. A point that sticks out alone is set aside first: one broken
    /// night would hide a change that begins the next one. Otava knows no outliers.
    pub(super) fn find(step: &str, points: Vec<DatePoint>, of: &DateOptions) -> StepDates {
        let compatibility = if of.as_otava { Compatibility::Otava } else { Compatibility::Mended };
        let rules = EDivisive {
            max_p: of.max_p,
            min_magnitude: of.min_magnitude,
            compatibility,
            ..EDivisive::default()
        };
        let logs: Vec<f64> = points.iter().map(|point| point.value.ln()).collect();
        let outliers = if of.as_otava { Vec::new() } else { outliers(&logs, OUTLIER_MIN) };
        let kept: Vec<usize> = (0..points.len()).filter(|at| !outliers.contains(at)).collect();
        let values: Vec<f64> = kept.iter().map(|at| points[*at].value).collect();
        let change = |shift: Shift| DateChange {
            at: kept[shift.index],
            means: shift.means,
            ratio: shift.means[1] / shift.means[0],
            p: shift.p,
        };
        let changes = e_divisive(&values, &rules).into_iter().map(change).collect();
        StepDates { step: step.to_owned(), points, changes, outliers }
    }

    /// Geometric mean of the points of the first level.
    pub fn first_level(&self) -> f64 {
        self.level(0..self.changes.first().map_or(self.points.len(), |change| change.at))
    }

    /// Geometric mean of the points since the last change.
    pub fn present_level(&self) -> f64 {
        self.level(self.changes.last().map_or(0, |change| change.at)..self.points.len())
    }

    /// Geometric mean of points, without outliers.
    pub fn level(&self, places: Range<usize>) -> f64 {
        let kept = places.filter(|at| !self.outliers.contains(at));
        let values = kept.filter_map(|at| self.points.get(at)).map(|point| point.value);
        geomean(&values.collect::<Vec<f64>>())
    }
}

// Changes of the host along a history: a new kernel or release of the system makes another
// fingerprint, and so another history, unless the user takes both for one host.

/// Differing facts that are named at most.
const FACTS_MOST: usize = 6;

/// The first result set of another host than that before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostChange {
    /// Start of its first run, RFC 3339.
    pub date: String,
    /// Fingerprint of the host before.
    pub before: String,
    /// Fingerprint of its host.
    pub after: String,
    /// The facts that differ: `os: Debian 12 → Debian 13`.
    pub differs: String,
}

/// The changes of host between the runs of a target, the oldest first, each pair of hosts once.
fn host_changes(comparison: &Comparison, target: usize) -> Vec<HostChange> {
    let mut runs: Vec<(&str, &str)> = comparison.targets[target]
        .runs
        .iter()
        .map(|run| &comparison.runs[*run])
        .map(|run| (run.started.as_str(), run.host_fingerprint.as_str()))
        .collect();
    runs.sort_unstable();
    let mut known = BTreeSet::new();
    let changes = runs.windows(2).filter_map(|pair| {
        let [(_, before), (date, after)] = [pair[0], pair[1]];
        let new = before != after && known.insert([before.min(after), before.max(after)]);
        new.then(|| HostChange {
            date: date.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            differs: host_difference(comparison.hosts.get(before), comparison.hosts.get(after)),
        })
    });
    changes.collect()
}

/// `kernel: 6.1 → 6.12; os: Debian 12 → Debian 13` between two hosts.
pub(super) fn host_difference(before: Option<&Host>, after: Option<&Host>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return "what differs is not recorded".to_owned();
    };
    let [before, after] = [before, after].map(facts);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |facts: &BTreeMap<String, String>, name| {
        facts.get(name).cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    let pairs = names.into_iter().filter_map(|name| {
        let [before, after] = [value(&before, name), value(&after, name)];
        (before != after).then(|| format!("{name}: {before} → {after}"))
    });
    let mut pairs: Vec<String> = pairs.collect();
    let more = pairs.len().saturating_sub(FACTS_MOST);
    pairs.truncate(FACTS_MOST);
    if more > 0 {
        pairs.push(format!("{more} more"));
    }
    pairs.join("; ")
}

/// The facts of a fingerprint, those of a map one by one.
fn facts(host: &Host) -> BTreeMap<String, String> {
    let Ok(Value::Object(map)) = serde_json::to_value(compared(host)) else {
        return BTreeMap::new();
    };
    let mut facts = BTreeMap::new();
    for (name, value) in map {
        match value {
            Value::Null => {}
            Value::Object(inner) => facts.extend(
                inner.into_iter().map(|(own, value)| (format!("{name} {own}"), text(value))),
            ),
            value => {
                facts.insert(name, text(value));
            }
        }
    }
    facts
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod dates_tests {
    use super::*;

    #[test]
    fn one_broken_night_hides_no_change() {
        let point = |(day, value): (usize, f64)| DatePoint {
            date: format!("2026-01-{day:02}"),
            result_set: day.to_string(),
            value,
            n: 1,
        };
        let scatter = |day: usize| 1.0 + 0.002 * ((day * 7 % 5) as f64 - 2.0);
        let rate = |day: usize| match day {
            11 => 400.0,
            12.. => 940.0 * scatter(day),
            _ => 1000.0 * scatter(day),
        };
        let of = |as_otava: bool| {
            let rules = DateOptions {
                metric: Metric::Rate,
                as_otava,
                max_p: 0.001,
                min_magnitude: 0.0,
                same_host: false,
            };
            StepDates::find("scan", (0..24).map(|day| point((day, rate(day)))).collect(), &rules)
        };
        let found = of(false);
        assert_eq!(found.outliers, [11]);
        assert_eq!(found.changes.iter().map(|it| it.at).collect::<Vec<_>>(), [12]);
        let ratio = found.present_level() / found.first_level();
        assert!((ratio - 0.94).abs() < 0.005, "{ratio}");
        assert_eq!(of(true).outliers, [0; 0]);
    }

    #[test]
    fn what_makes_another_host_is_named() {
        let before = Host {
            kernel: Some("6.1".to_owned()),
            memory_bytes: (8 << 30) - 5,
            mitigations: BTreeMap::from([("retbleed".to_owned(), "Vulnerable".to_owned())]),
            ..Host::default()
        };
        let check = |after: Host, expected: &str| {
            assert_eq!(host_difference(Some(&before), Some(&after)), expected);
        };
        check(before.clone(), "");
        check(Host { memory_bytes: (8 << 30) - 9, ..before.clone() }, "");
        check(Host { kernel: Some("6.12".to_owned()), ..before.clone() }, "kernel: 6.1 → 6.12");
        check(
            Host {
                os: Some("Debian 13".to_owned()),
                mitigations: BTreeMap::from([("retbleed".to_owned(), "Mitigated".to_owned())]),
                ..before.clone()
            },
            "mitigations retbleed: Vulnerable → Mitigated; os: unknown → Debian 13",
        );
        assert_eq!(host_difference(None, Some(&before)), "what differs is not recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    const NIGHTS: usize = 100;

    /// Twelve steps of a hundred nights with a scatter of 1 %, of which the first `changed` lose 3 %
    /// in the 60th.
    fn history(rng: &mut Rng, changed: usize) -> Vec<StepDates> {
        let of = DateOptions {
            metric: Metric::Rate,
            as_otava: false,
            max_p: 0.001,
            min_magnitude: 0.0,
            same_host: false,
        };
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let mut step = |at: usize| {
            let level = |night: usize| if at < changed && night >= 60 { 0.97 } else { 1.0 };
            let point = |night: usize| DatePoint {
                date: format!("{night:03}"),
                result_set: night.to_string(),
                value: 1000.0 * level(night) * (0.01 * normal()).exp(),
                n: 1,
            };
            StepDates::find(&at.to_string(), (0..NIGHTS).map(point).collect(), &of)
        };
        (0..12).map(&mut step).collect()
    }

    #[test]
    fn histories_of_many_steps_without_a_change_seldom_show_one() {
        let mut rng = Rng::new(3);
        let has_any = |steps: &[StepDates]| steps.iter().any(|step| !step.changes.is_empty());
        let (mut before, mut after, mut found) = (0, 0, 0);
        for _ in 0..30 {
            let mut steps = history(&mut rng, 0);
            before += usize::from(has_any(&steps));
            keep_shown(&mut steps);
            after += usize::from(has_any(&steps));
            let mut steps = history(&mut rng, 2);
            keep_shown(&mut steps);
            let is_there = |change: &DateChange| change.at.abs_diff(60) <= 2;
            found += steps[..2].iter().filter(|it| it.changes.iter().any(is_there)).count();
        }
        assert!(before >= 8 && after <= 3, "{before} and {after} of 30");
        assert!(found >= 57, "{found} of 60");
    }
}
