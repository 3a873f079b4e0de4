//! The counters of the runs of a comparison: each file is read once, and each name held once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::counters::{CounterChange, per_operation};
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_stats::parallel;

/// Receives the name of a counter and its values before and after a step.
pub type TakeCounter<'a> = &'a mut dyn FnMut(&str, f64, f64);

/// Reads the counters of the DBMS that moved in a step of a run.
pub type ReadCounters<'a> =
    &'a (dyn Fn(&Run, &StepRecord, TakeCounter<'_>) -> Result<(), String> + Sync);

/// Runs whose counters are known by name, and their steps of which the changes are wanted, too.
#[derive(Default)]
pub(super) struct WantedSteps<'a>(BTreeMap<usize, BTreeSet<(u32, &'a str)>>);

impl<'a> WantedSteps<'a> {
    /// Adds a run by its place in the dataset.
    pub(super) fn add_run(&mut self, run: usize) {
        self.0.entry(run).or_default();
    }

    /// Adds a step of a run.
    pub(super) fn add(&mut self, run: usize, step: &'a StepRecord) {
        self.0.entry(run).or_default().insert((step.index, step.name.as_str()));
    }
}

/// The counters of all wanted runs.
pub(super) struct CountersOfRuns {
    /// Names of all counters, sorted.
    names: Vec<String>,
    /// By place of the run in the dataset.
    runs: HashMap<usize, CountersOfRun>,
}

/// The counters of one run.
#[derive(Default)]
struct CountersOfRun {
    /// Places of the names of all counters that moved in any of its steps.
    known: Vec<u32>,
    /// Changes in each of its steps; empty where they are not wanted.
    steps: Vec<Vec<CounterChange>>,
    /// Files that could not be read.
    faults: Vec<String>,
}

impl CountersOfRuns {
    /// Reads the counters of all wanted runs, on all CPUs.
    pub(super) fn read(
        dataset: &Dataset,
        wanted: &WantedSteps<'_>,
        read: ReadCounters<'_>,
    ) -> CountersOfRuns {
        let wanted = wanted.0.iter().filter(|(run, _)| dataset.runs[**run].has_counters);
        let read = parallel::map(wanted.collect(), |(run, steps)| {
            (*run, of_run(&dataset.runs[*run], steps, read))
        });
        let all: BTreeSet<&String> = read.iter().flat_map(|(_, (names, _))| names).collect();
        let names: Vec<String> = all.into_iter().cloned().collect();
        let runs = parallel::map(read, |(run, (own, counters))| {
            let places = own.iter().map(|name| names.partition_point(|other| other < name) as u32);
            (run, counters.renumbered(&places.collect::<Vec<_>>()))
        });
        CountersOfRuns { names, runs: runs.into_iter().collect() }
    }

    /// Names of all counters, sorted.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// For each name, true if the counter moved in any step of these runs. A version may lack what
    /// another one counts, and folders hold only what moved: a counter that never did says nothing.
    pub(super) fn known(&self, runs: &[usize]) -> Vec<bool> {
        let mut known = vec![false; self.names.len()];
        for place in runs.iter().filter_map(|run| self.runs.get(run)).flat_map(|run| &run.known) {
            known[*place as usize] = true;
        }
        known
    }

    /// The changes of counters in a wanted step of a run, which has this place in the dataset.
    pub(super) fn changes(&self, run: &Run, place: usize, step: &StepRecord) -> &[CounterChange] {
        let is_step = |other: &StepRecord| other.index == step.index && other.name == step.name;
        let at = run.steps.iter().position(|other| is_step(other));
        let counters = self.runs.get(&place).zip(at);
        counters.and_then(|(run, at)| run.steps.get(at)).map_or(&[], Vec::as_slice)
    }

    /// Files that could not be read.
    pub(super) fn faults(&self) -> impl Iterator<Item = &String> {
        self.runs.values().flat_map(|run| &run.faults)
    }
}

impl CountersOfRun {
    /// The same with other places of names: old place → new place.
    fn renumbered(mut self, places: &[u32]) -> CountersOfRun {
        let changes = self.steps.iter_mut().flatten().map(|(place, _)| place);
        changes.chain(&mut self.known).for_each(|place| *place = places[*place as usize]);
        self
    }
}

/// The counters of a run with its own list of names.
fn of_run(
    run: &Run,
    wanted: &BTreeSet<(u32, &str)>,
    read: ReadCounters<'_>,
) -> (Vec<String>, CountersOfRun) {
    let mut counters = CountersOfRun::default();
    let mut names = NameList::default();
    let mut is_known: Vec<bool> = Vec::new();
    let mut rows: Vec<(u32, f64, f64)> = Vec::new();
    for step in &run.steps {
        rows.clear();
        names.restart();
        let mut take = |name: &str, before: f64, after: f64| {
            rows.push((names.place(name), before, after));
        };
        if let Err(fault) = read(run, step, &mut take) {
            counters.faults.push(fault);
            rows.clear();
        }
        is_known.resize(names.all.len(), false);
        rows.iter().for_each(|(place, ..)| is_known[*place as usize] = true);
        let is_wanted = wanted.contains(&(step.index, step.name.as_str()));
        let change = |(place, before, after): &(u32, f64, f64)| {
            Some((*place, per_operation(step, *before, *after)?))
        };
        let changes = rows.iter().filter(|_| is_wanted).filter_map(change);
        counters.steps.push(changes.collect());
    }
    let known = (0..).zip(is_known).filter_map(|(place, is_known)| is_known.then_some(place));
    counters.known = known.collect();
    (names.all, counters)
}

/// Names, each once.
#[derive(Default)]
struct NameList {
    all: Vec<String>,
    places: HashMap<String, u32>,
    /// Where the next name is likely to be: files have their counters in the same order.
    next: usize,
}

impl NameList {
    /// Begins a file.
    fn restart(&mut self) {
        self.next = 0;
    }

    /// The place of a name, which it gets when it is new.
    fn place(&mut self, name: &str) -> u32 {
        let place = match self.all.get(self.next) {
            Some(likely) if likely == name => self.next as u32,
            _ => self.found(name),
        };
        self.next = place as usize + 1;
        place
    }

    fn found(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.all.len() as u32;
        self.all.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_place_in_any_order() {
        let mut names = NameList::default();
        let mut file = |all: &[&str]| {
            names.restart();
            all.iter().map(|name| names.place(name)).collect::<Vec<_>>()
        };
        assert_eq!(file(&["a", "c", "d"]), [0, 1, 2]);
        assert_eq!(file(&["a", "b", "c", "d"]), [0, 3, 1, 2]);
        assert_eq!(file(&["d", "a"]), [2, 0]);
    }
}
