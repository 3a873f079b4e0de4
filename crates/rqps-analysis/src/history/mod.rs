//! Ladders: many versions in one comparison, in the order of the versions, with the places where
//! the level of a step changed. Histories: the same over the result sets of many days. Series: both
//! over all result sets of a site. Bisections of versions.

mod dates;
mod ladder;
mod newest;
mod series;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::comparison::{Comparison, StepComparison, TargetFacts};
use ladder::{family, rung};
use rqps_model::benchmark::{Group, Workload};
use rqps_model::metric::{Direction, Metric};
use rqps_model::units;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;

pub use dates::{
    DateChange, DateHistory, DateOptions, DatePoint, HostChange, StepDates, date_histories,
};
pub use ladder::{
    Ladder, LadderOptions, LevelChange, Rung, StepLadder, VersionPoint, family_of, ladders,
};
pub use newest::{Newest, PastSets, against_newest};
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
