//! Input of the detectors of caveats, and the form of their findings.

use std::collections::HashSet;

use super::kind::{Caveat, CaveatKind};
use crate::comparison::{Comparison, StepComparison, TargetResult};
use rqps_model::run::{Dataset, StepRecord};
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
        facts.target.as_ref().is_some_and(|target| target.dbms.is_embedded())
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
    Some(Caveat { kind, target: Some(target.to_owned()), steps, text: text(worst) })
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
