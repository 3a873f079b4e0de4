//! Finds what else differs: settings that servers had, and counters of the DBMS.

use std::collections::{BTreeMap, BTreeSet};

use super::found::{Causes, CausesOfStep, SettingsOfTarget};
use crate::analyze::comparison::{Comparison, StepComparison, TargetResult};
use crate::analyze::counted::TotalChange;
use crate::analyze::counters::{CounterValues, MovedCounter, moved, per_operation};
use crate::analyze::measurement::Measurement;
use crate::analyze::pairing::{PairKey, pair_key};
use crate::domain::metric::Metric;
use crate::domain::run::{Counter, Dataset, Run, StepRecord};
use crate::parallel;

/// Settings that say who a server is, not what it does.
const NAMES_OF_PLACES: [&str; 10] = [
    "hostname",
    "port",
    "pseudo_thread_id",
    "rand_seed1",
    "rand_seed2",
    "server_uuid",
    "server_version",
    "server_version_num",
    "timestamp",
    "version",
];

/// Reads the settings that the server of a run said it had.
pub type ReadSettings<'a> = &'a dyn Fn(&Run) -> Result<BTreeMap<String, String>, String>;

/// Reads the counters of the DBMS that moved in a step of a run.
pub type ReadCounters<'a> = &'a (dyn Fn(&Run, &StepRecord) -> Result<Vec<Counter>, String> + Sync);

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
        let verdict = target.relative(Metric::Rate).and_then(|it| it.judgement.as_ref());
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
    let shared = if steps.is_empty() { Vec::new() } else { finder.shared_counters() };
    let steps = steps.iter().map(|step| finder.of_step(step, &shared)).collect();
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

    /// For each target, its counters that the baseline has, too.
    fn shared_counters(&mut self) -> Vec<BTreeSet<String>> {
        let targets = self.comparison.targets.iter();
        let known: Vec<BTreeSet<String>> =
            targets.map(|target| self.known_counters(&target.runs)).collect();
        known.iter().map(|own| &known[0] & own).collect()
    }

    fn of_step(&mut self, step: &StepComparison, shared: &[BTreeSet<String>]) -> CausesOfStep {
        let mut counters = vec![Vec::new(); step.targets.len()];
        for place in (1..step.targets.len()).filter(|place| !shared[*place].is_empty()) {
            let (baseline, target) = (&step.targets[0], &step.targets[place]);
            counters[place] = self.moved_counters(baseline, target, &shared[place]);
        }
        CausesOfStep { name: step.name.clone(), counters }
    }

    /// Counters that moved in any step of these runs. A version may lack what another one counts,
    /// and folders hold only what moved: a counter that never did says nothing.
    fn known_counters(&mut self, runs: &[usize]) -> BTreeSet<String> {
        let counters = self.read.counters;
        let of_run = |run: &Run| -> Vec<Result<BTreeSet<String>, String>> {
            let names = |all: Vec<Counter>| all.into_iter().map(|counter| counter.name).collect();
            run.steps.iter().map(|step| counters(run, step).map(names)).collect()
        };
        let runs = runs.iter().map(|run| &self.dataset.runs[*run]);
        let found = parallel::map(runs.filter(|run| run.has_counters).collect(), of_run);
        found.into_iter().flatten().flat_map(|names| self.heard(names)).collect()
    }

    /// The counters of both targets that differ, from the blocks in which both were measured.
    fn moved_counters(
        &mut self,
        baseline: &TargetResult,
        target: &TargetResult,
        shared: &BTreeSet<String>,
    ) -> Vec<MovedCounter> {
        let runs = &self.comparison.runs;
        let key = |sample: &Measurement| pair_key(&runs[sample.run]);
        let partners: BTreeMap<PairKey<'_>, &Measurement> =
            target.samples.iter().map(|after| (key(after), after)).collect();
        let mut pairs: Vec<(CounterValues, CounterValues)> = Vec::new();
        for before in &baseline.samples {
            let Some(after) = partners.get(&key(before)) else { continue };
            pairs.push((self.values(before, shared), self.values(after, shared)));
        }
        moved(&pairs)
    }

    fn values(&mut self, sample: &Measurement, shared: &BTreeSet<String>) -> CounterValues {
        let all = (self.read.counters)(&self.dataset.runs[sample.run], &sample.record);
        let all = self.heard(all).into_iter().filter(|counter| shared.contains(&counter.name));
        all.filter_map(|counter| {
            let value = per_operation(&sample.record, &counter)?;
            Some((counter.name, value))
        })
        .collect()
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
