//! Input of the detectors of caveats, and the form of their findings.

use std::collections::HashSet;

use super::kind::{Caveat, CaveatKind};
use crate::comparison::{Comparison, StepComparison, TargetResult};
use rqps_model::run::{Dataset, StepRecord};
use rqps_model::target::Target;
use rqps_model::units::counted;
use rqps_stats::parallel;

/// The input of detectors.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// All runs.
    pub dataset: &'a Dataset,
    /// The comparison of the runs, with its verdicts.
    pub comparison: &'a Comparison,
    /// For each step of the comparison and each target: the records behind its samples.
    pub records: Vec<Vec<Vec<&'a StepRecord>>>,
}

fn records(comparison: &Comparison) -> Vec<Vec<Vec<&StepRecord>>> {
    fn of_target(target: &TargetResult) -> Vec<&StepRecord> {
        target.samples.iter().map(|sample| &*sample.record).collect()
    }
    fn of_step(step: &StepComparison) -> Vec<Vec<&StepRecord>> {
        match step.is_choice() {
            // The steps that they were measured as have their caveats.
            true => vec![Vec::new(); step.targets.len()],
            false => step.targets.iter().map(of_target).collect(),
        }
    }
    comparison.steps.iter().map(of_step).collect()
}

impl<'a> Evidence<'a> {
    /// The evidence that a comparison of a dataset gives.
    pub(super) fn of(dataset: &'a Dataset, comparison: &'a Comparison) -> Evidence<'a> {
        Evidence { dataset, comparison, records: records(comparison) }
    }

    /// For one target, a value of each step where `judge` finds one: name and value.
    pub fn each_step<T>(
        &self,
        target: usize,
        judge: impl Fn(&[&'a StepRecord]) -> Option<T>,
    ) -> Vec<(String, T)> {
        let steps = self.comparison.steps.iter().zip(&self.records);
        steps
            .filter_map(|(step, records)| Some((step.name.clone(), judge(&records[target])?)))
            .collect()
    }

    /// The caveats that `find` returns for each target, given its index and label; in the order of
    /// targets.
    pub fn by_target(&self, find: impl Fn(usize, &'a str) -> Vec<Caveat> + Sync) -> Vec<Caveat> {
        let targets = self.targets().collect();
        parallel::map(targets, |(target, label)| find(target, label))
            .into_iter()
            .flatten()
            .collect()
    }

    /// Places and labels of all targets.
    pub fn targets(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let targets = self.comparison.targets.iter();
        targets.map(|target| target.label.as_str()).enumerate()
    }

    /// True if others measured a target.
    pub fn is_imported(&self, target: usize) -> bool {
        self.comparison.is_imported(target)
    }

    /// True if the DBMS of a target runs inside the client.
    pub fn is_embedded(&self, target: usize) -> bool {
        let facts = &self.comparison.targets[target];
        facts.target.as_ref().is_some_and(Target::is_in_client)
    }
}

/// One caveat of the steps that were found, with the largest value of all in its text; none if
/// there are none.
pub fn worst(
    kind: CaveatKind,
    target: &str,
    found: Vec<(String, f64)>,
    text: impl Fn(f64) -> String,
) -> Option<Caveat> {
    let worst = found.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let steps = found.into_iter().map(|(step, _)| step).collect();
    Some(Caveat::of(kind, target, text(worst)).in_steps(steps))
}

/// The largest of a step's runs, if it is more than `limit`.
pub fn most(
    records: &[&StepRecord],
    limit: f64,
    get: impl Fn(&StepRecord) -> Option<f64>,
) -> Option<f64> {
    let most = records.iter().filter_map(|record| get(record)).max_by(f64::total_cmp);
    most.filter(|most| *most > limit)
}

/// `up to 3 pages`, of the largest number of several; `1 page` where that is one.
pub(super) fn up_to(most: f64, noun: &str) -> String {
    let counted = counted(most as usize, noun);
    if most > 1.0 { format!("up to {counted}") } else { counted }
}

/// `12.3 %`, with more digits for small shares.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// The distinct ones of a list that has few, in the order of their first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Distinct values in the order of their first appearance, each with the distinct names that have
/// it; empty if all agree.
pub(super) type Disagreement = Vec<(String, Vec<String>)>;

/// The names that disagree, from pairs of name and value.
pub(super) fn disagreement(pairs: impl IntoIterator<Item = (String, String)>) -> Disagreement {
    let mut values = Disagreement::new();
    let mut known: HashSet<(usize, String)> = HashSet::new();
    for (name, value) in pairs {
        let place = values.iter().position(|(other, _)| *other == value).unwrap_or(values.len());
        if place == values.len() {
            values.push((value, Vec::new()));
        }
        if known.insert((place, name.clone())) {
            values[place].1.push(name);
        }
    }
    if values.len() > 1 { values } else { Vec::new() }
}

/// `A (x, y); B (z)`.
pub(super) fn spell(values: &[(String, Vec<String>)]) -> String {
    let parts = values.iter().map(|(value, names)| format!("{value} ({})", names.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

/// A client thread that used more than this share of its CPU limits the rate.
pub const CLIENT_BUSY_MAX: f64 = 0.8;
/// A client host that used more than this share of its CPUs limits the rate.
pub const CLIENT_HOST_BUSY_MAX: f64 = 0.8;
/// A client that used more than this share of the CPU of client and server hides differences
/// between servers: what both targets spend alike draws their ratio towards 1.
pub const CLIENT_SHARE_MAX: f64 = 0.2;
/// An open pace that achieves less than this share of the scheduled events is behind.
pub const PACE_ACHIEVED_MIN: f64 = 0.99;
/// Errors below this share of the events of a step are not worth a caveat.
pub const ERROR_SHARE_MIN: f64 = 0.001;
/// Writes that matched no row, from this share of a step's writes on, decide what its rate means.
pub const NO_OP_SHARE_MIN: f64 = 0.1;
/// More CPU time than this share taken by the hypervisor.
pub const STEAL_SHARE_MAX: f64 = 0.01;
/// More CPU time than this share used by processes that are neither rqps nor the server.
pub const FOREIGN_SHARE_MAX: f64 = 0.02;
/// KiB/s that a disk writes in a step that only reads, and that are worth a word: a server without
/// dirty pages writes some KiB/s of logs and statistics.
pub const WRITE_BACK_MIN_KB: f64 = 256.0;
/// Tasks that waited for a CPU for more than this share of a window, where the load itself leaves
/// CPUs free.
pub const PRESSURE_SHARE_MAX: f64 = 0.05;
/// Carry-over of two targets that differs by more than this share and by so many standard errors.
pub const CARRY_OVER_MIN: f64 = 0.005;
/// See [`CARRY_OVER_MIN`].
pub const CARRY_OVER_ERRORS: f64 = 3.0;
/// An interval of fewer pairs is too wide to be of use.
pub const PAIRS_MIN: usize = 3;
