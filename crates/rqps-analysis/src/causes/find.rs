//! Finds what else differs: settings that servers had, and counters of the DBMS.

use std::collections::{BTreeMap, BTreeSet};

use super::counters_of_runs::{CountersOfRuns, ReadCounters, WantedSteps};
use super::found::{Causes, CausesOfStep, SettingsOfTarget};
use crate::comparison::{Comparison, StepComparison, TargetResult};
use crate::counted::TotalChange;
use crate::counters::{CounterChange, MovedCounter, moved};
use crate::measurement::Measurement;
use crate::pairing::{PairKey, pair_key};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run};
use rqps_stats::parallel;

/// Settings that say who a server is, not what it does.
const NAMES_OF_PLACES: [&str; 10] = [
    "hostname", "port", "pseudo_thread_id", "rand_seed1", "rand_seed2", "server_uuid",
    "server_version", "server_version_num", "timestamp", "version",
];

/// Reads the settings that the server of a run said it had.
pub type ReadSettings<'a> = &'a (dyn Fn(&Run) -> Result<BTreeMap<String, String>, String> + Sync);

/// Readers of run folders: analysis reads no files itself.
#[derive(Clone, Copy)]
pub struct CauseReaders<'a> {
    /// The settings that the server of a run said it had.
    pub settings: ReadSettings<'a>,
    /// The counters of the DBMS that moved in a step of a run.
    pub counters: ReadCounters<'a>,
}

/// The steps whose rate was shown to differ in any target, or counted instructions, or the time of
/// a sampled function.
pub fn differing_steps(comparison: &Comparison) -> Vec<&StepComparison> {
    comparison.measured_steps().filter(|step| differs(comparison, step)).collect()
}

fn differs(comparison: &Comparison, step: &StepComparison) -> bool {
    let of_rate = |target: &TargetResult| {
        let verdict = target.judgement(Metric::Rate);
        verdict
            .is_some_and(|judgement| judgement.verdict.is_worse() || judgement.verdict.is_better())
    };
    let moved = |target: &TargetResult| {
        let change = target.counted.as_ref().map(|counted| counted.change);
        matches!(change, Some(TotalChange::More | TotalChange::Fewer))
    };
    let counted = comparison.counted_step(step);
    let sampled = comparison.profiled_step(step);
    let differs = |target: &TargetResult| {
        target.sampled.as_ref().is_some_and(|change| !change.functions.is_empty())
    };
    step.targets.iter().any(of_rate)
        || counted.is_some_and(|step| step.targets.iter().any(moved))
        || sampled.is_some_and(|step| step.targets.iter().any(differs))
}

/// The causes of these steps of a comparison, which came from this dataset.
pub fn find(
    comparison: &Comparison,
    dataset: &Dataset,
    steps: &[&StepComparison],
    read: CauseReaders,
) -> Causes {
    let mut finder = Finder { comparison, dataset, read, faults: BTreeSet::new() };
    let settings = finder.settings();
    let steps = finder.steps(steps);
    Causes { settings, steps, faults: finder.faults.into_iter().collect() }
}

struct Finder<'a> {
    comparison: &'a Comparison,
    dataset: &'a Dataset,
    read: CauseReaders<'a>,
    faults: BTreeSet<String>,
}

impl Finder<'_> {
    /// The settings of the first run of each target.
    fn settings(&mut self) -> Vec<SettingsOfTarget> {
        let mut all = Vec::new();
        for target in &self.comparison.targets {
            let run = target.runs.first().map(|run| &self.dataset.runs[*run]);
            let found = run.map_or(Ok(BTreeMap::new()), |run| (self.read.settings)(run));
            all.push(self.heard(found));
        }
        differing_settings(&all)
    }

    /// The counters that moved otherwise than the baseline's, for each step.
    fn steps(&mut self, steps: &[&StepComparison]) -> Vec<CausesOfStep> {
        if steps.is_empty() {
            return Vec::new();
        }
        let mut wanted = WantedSteps::default();
        let samples = steps.iter().flat_map(|step| &step.targets).flat_map(|it| &it.samples);
        samples.for_each(|sample| wanted.add(sample.run, &sample.record));
        let targets = &self.comparison.targets;
        targets.iter().flat_map(|target| &target.runs).for_each(|run| wanted.add_run(*run));
        let counters = CountersOfRuns::read(self.dataset, &wanted, self.read.counters);
        self.faults.extend(counters.faults().cloned());
        let known: Vec<Vec<bool>> =
            targets.iter().map(|target| counters.known(&target.runs)).collect();
        let both = |(own, baseline): (&bool, &bool)| *own && *baseline;
        let shared: Vec<Vec<bool>> =
            known.iter().map(|own| own.iter().zip(&known[0]).map(both).collect()).collect();
        parallel::map(steps.to_vec(), |step| self.of_step(step, &counters, &shared))
    }

    fn of_step(
        &self,
        step: &StepComparison,
        counters: &CountersOfRuns,
        shared: &[Vec<bool>],
    ) -> CausesOfStep {
        let mut moved = vec![Vec::new(); step.targets.len()];
        for place in (1..step.targets.len()).filter(|place| shared[*place].contains(&true)) {
            let (baseline, target) = (&step.targets[0], &step.targets[place]);
            moved[place] = self.moved_counters(baseline, target, (counters, &shared[place]));
        }
        CausesOfStep { name: step.name.clone(), counters: moved }
    }

    /// The counters of both targets that differ, from the blocks in which both were measured.
    fn moved_counters(
        &self,
        baseline: &TargetResult,
        target: &TargetResult,
        (counters, shared): (&CountersOfRuns, &[bool]),
    ) -> Vec<MovedCounter> {
        let runs = &self.comparison.runs;
        let key = |sample: &Measurement| pair_key(&runs[sample.run]);
        let partners: BTreeMap<PairKey<'_>, &Measurement> =
            target.samples.iter().map(|after| (key(after), after)).collect();
        let changes = |sample: &Measurement| {
            counters.changes(&self.dataset.runs[sample.run], sample.run, &sample.record)
        };
        let pairs: Vec<(&[CounterChange], &[CounterChange])> = baseline
            .samples
            .iter()
            .filter_map(|before| Some((changes(before), changes(partners.get(&key(before))?))))
            .collect();
        moved(counters.names(), shared, &pairs)
    }

    /// The value that was read; after a failure the default, and the fault is kept.
    fn heard<T: Default>(&mut self, read: Result<T, String>) -> T {
        read.unwrap_or_else(|fault| {
            self.faults.insert(fault);
            T::default()
        })
    }
}

fn differing_settings(all: &[BTreeMap<String, String>]) -> Vec<SettingsOfTarget> {
    if all.iter().any(BTreeMap::is_empty) {
        return Vec::new();
    }
    let everywhere = |name: &String| all.iter().all(|other| other.contains_key(name));
    let differs = |name: &String| all.iter().any(|other| other.get(name) != all[0].get(name));
    let is_place = |name: &String| all.iter().any(|other| is_place(name, other.get(name)));
    let of_target = |own: &BTreeMap<String, String>| SettingsOfTarget {
        differing: own
            .iter()
            .filter(|(name, _)| everywhere(name) && differs(name) && !is_place(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        unknown_elsewhere: own.keys().filter(|name| !everywhere(name)).cloned().collect(),
    };
    all.iter().map(of_target).collect()
}

/// Settings that say who or where a server is, not what it does.
fn is_place(name: &str, value: Option<&String>) -> bool {
    value.is_some_and(|value| value.contains('/')) || NAMES_OF_PLACES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_and_settings_of_one_server() {
        let server = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let same = ("work_mem", "4MB");
        let a = server(&[same, ("datadir", "/a"), ("io_capacity", "200"), ("old", "on")]);
        let b = server(&[same, ("datadir", "/b"), ("io_capacity", "400"), ("new", "on")]);
        let [a, b]: [SettingsOfTarget; 2] =
            differing_settings(&[a, b]).try_into().expect("one for each target");
        let names = |all: &SettingsOfTarget| all.differing.keys().cloned().collect::<Vec<_>>();
        assert_eq!((names(&a), names(&b)), (vec!["io_capacity".to_owned()], names(&a)));
        assert_eq!(
            (a.unknown_elsewhere, b.unknown_elsewhere),
            (vec!["old".to_owned()], vec!["new".to_owned()])
        );
        let unknown = differing_settings(&[BTreeMap::new(), server(&[same])]);
        assert_eq!(unknown, []);
    }

    #[test]
    fn places_are_no_causes() {
        let check = |name, value: &str, expected| {
            assert_eq!(is_place(name, Some(&value.to_owned())), expected, "{name}");
        };
        check("datadir", "/tmp/x", true);
        check("server_uuid", "1-2", true);
        check("innodb_io_capacity", "200", false);
    }
}
