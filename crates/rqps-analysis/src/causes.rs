//! Finds other differences between targets whose rates or counts differ: settings of their servers,
//! and counters of the DBMS. Such a difference may be the cause of a rate; it is no proof.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::caveat::{Caveat, CaveatKind, Evidence};
use super::comparison::{Comparison, StepComparison, TargetResult};
use super::counted::TotalChange;
use super::measurement::Measurement;
use super::measurement::operations;
use super::pairing::{PairKey, pair_key};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_stats::parallel;
use rqps_stats::summary::mean;

// Possible causes of a difference between targets, as data.

/// Facts in a comparison's run folders beside its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// Settings of the servers, defaults included, for each target of the comparison; empty if the
    /// run folders do not hold those of all.
    pub settings: Vec<SettingsOfTarget>,
    /// The explained steps, in the order of the comparison.
    pub steps: Vec<CausesOfStep>,
    /// Files that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Settings of a server that differ from those of other targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingsOfTarget {
    /// Settings that all targets have, with other values.
    pub differing: BTreeMap<String, String>,
    /// Settings that another target does not have.
    pub unknown_elsewhere: Vec<String>,
}

/// Differences in one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CausesOfStep {
    /// The step.
    pub name: String,
    /// For each target of the comparison: counters of the DBMS that differ from the baseline's.
    pub counters: Vec<Vec<MovedCounter>>,
}

impl Causes {
    /// The differences in a step; `None` if it is not explained.
    pub fn of_step(&self, step: &str) -> Option<&CausesOfStep> {
        self.steps.iter().find(|causes| causes.name == step)
    }
}

// Finds what else differs: settings that servers had, and counters of the DBMS.

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

// The counters of the runs of a comparison: each file is read once, and each name held once.

/// Receives the name of a counter and its values before and after a step.
pub type TakeCounter<'a> = &'a mut dyn FnMut(&str, f64, f64);

/// Reads the counters of the DBMS that moved in a step of a run.
pub type ReadCounters<'a> =
    &'a (dyn Fn(&Run, &StepRecord, TakeCounter<'_>) -> Result<(), String> + Sync);

/// Runs whose counters are known by name, and their steps of which the changes are wanted, too.
#[derive(Default)]
struct WantedSteps<'a>(BTreeMap<usize, BTreeSet<(u32, &'a str)>>);

impl<'a> WantedSteps<'a> {
    /// Adds a run by its place in the dataset.
    fn add_run(&mut self, run: usize) {
        self.0.entry(run).or_default();
    }

    /// Adds a step of a run.
    fn add(&mut self, run: usize, step: &'a StepRecord) {
        self.0.entry(run).or_default().insert((step.index, step.name.as_str()));
    }
}

/// The counters of all wanted runs.
struct CountersOfRuns {
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
    fn read(dataset: &Dataset, wanted: &WantedSteps<'_>, read: ReadCounters<'_>) -> CountersOfRuns {
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
    fn names(&self) -> &[String] {
        &self.names
    }

    /// For each name, true if the counter moved in any step of these runs. A version may lack what
    /// another one counts, and folders hold only what moved: a counter that never did says nothing.
    fn known(&self, runs: &[usize]) -> Vec<bool> {
        let mut known = vec![false; self.names.len()];
        for place in runs.iter().filter_map(|run| self.runs.get(run)).flat_map(|run| &run.known) {
            known[*place as usize] = true;
        }
        known
    }

    /// The changes of counters in a wanted step of a run, which has this place in the dataset.
    fn changes(&self, run: &Run, place: usize, step: &StepRecord) -> &[CounterChange] {
        let is_step = |other: &StepRecord| other.index == step.index && other.name == step.name;
        let at = run.steps.iter().position(|other| is_step(other));
        let counters = self.runs.get(&place).zip(at);
        counters.and_then(|(run, at)| run.steps.get(at)).map_or(&[], Vec::as_slice)
    }

    /// Files that could not be read.
    fn faults(&self) -> impl Iterator<Item = &String> {
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

// Counters of the DBMS per operation: what it did beside answering.

/// A counter that differs by a smaller share is not told.
const MOVED_LEAST: f64 = 0.05;
/// One that moves less often, per operation, in both targets is not told either.
const OFTEN_LEAST: f64 = 0.001;

/// How far a counter moved, per operation; the counter is a place in a list of names. A counter
/// that a list lacks did not move.
pub type CounterChange = (u32, f64);

/// A counter that differs between two targets, means per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MovedCounter {
    /// Its name.
    pub name: String,
    /// In the baseline.
    pub baseline: f64,
    /// In the target.
    pub target: f64,
}

/// The change of a counter per operation, in the unit of the step's rate.
///
/// Counters are read before the warm-up and after the last session has ended, so they include the
/// statements of the warm-up. The divisor includes them too: operations × (statements + those
/// outside of the window) / statements. `None` without counts.
pub fn per_operation(step: &StepRecord, before: f64, after: f64) -> Option<f64> {
    let outcome = &step.outcome;
    let statements = outcome.statements as f64;
    let all = operations(step)? * (statements + outcome.outside as f64) / statements;
    let per_operation = (after - before) / all;
    per_operation.is_finite().then_some(per_operation)
}

/// The counters that differ in every pair in the same direction, and by [`MOVED_LEAST`] in the
/// mean; those that differ by the largest factor first, and equal ones in the order of `names`.
/// `shared` has true for each name that counts.
pub fn moved(
    names: &[String],
    shared: &[bool],
    pairs: &[(&[CounterChange], &[CounterChange])],
) -> Vec<MovedCounter> {
    let mut columns: Vec<Option<[Vec<f64>; 2]>> = vec![None; names.len()];
    for (pair, (before, after)) in pairs.iter().enumerate() {
        for (side, changes) in [before, after].into_iter().enumerate() {
            for (place, change) in changes.iter().map(|(place, change)| (*place as usize, change)) {
                if shared[place] {
                    let column = columns[place]
                        .get_or_insert_with(|| [vec![0.0; pairs.len()], vec![0.0; pairs.len()]]);
                    column[side][pair] = *change;
                }
            }
        }
    }
    let mut found: Vec<MovedCounter> = names
        .iter()
        .zip(&columns)
        .filter_map(|(name, column)| {
            let [before, after] = column.as_ref()?;
            let more = before.iter().zip(after).all(|(before, after)| after > before);
            let less = before.iter().zip(after).all(|(before, after)| after < before);
            let (baseline, target) = (mean(before), mean(after));
            let (small, large) = (baseline.min(target), baseline.max(target));
            let far = small <= large * (1.0 - MOVED_LEAST) && large >= OFTEN_LEAST;
            ((more || less) && far).then(|| MovedCounter { name: name.clone(), baseline, target })
        })
        .collect();
    let factor = |it: &MovedCounter| (it.target / it.baseline).ln().abs();
    found.sort_by(|a, b| {
        let size = |it: &MovedCounter| it.baseline.max(it.target);
        factor(b).total_cmp(&factor(a)).then(size(b).total_cmp(&size(a)))
    });
    found
}

// Query plans made comparable: what a plan does, without its estimates; and the caveats on plans
// that differ.

/// The plan without costs, estimates and literals; names stay whole, so another index or another
/// order of tables is another plan. All targets are asked for the plans of the same tables.
///
/// Rows with tabs are EXPLAIN of MySQL and MariaDB as the driver keeps them: select_type, table,
/// type, key, key_len, ref, Extra. Only table, type, key and Extra say what is done: 5.7 began to
/// name writes in select_type, which is no other plan, and the table of an INSERT, which has none.
pub fn normalize(plan: &str) -> String {
    let lines = plan.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells.as_slice() {
            ["INSERT", ..] | [.., "No tables used"] => "no table is read".to_owned(),
            [_, table, access, key, _, _, extra] => {
                let [table, key] = [table, key].map(|name| without_own_numbers(name));
                format!("{table} {access} {key} {}", without_figures(extra))
            }
            _ if is_of_sqlite(line) => without_own_words(&without_estimates(line)),
            _ => without_figures(&without_estimates(line)),
        }
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// True for a line of SQLite about a table: it quotes no name, so that a number in it may be one.
fn is_of_sqlite(line: &str) -> bool {
    ["SCAN ", "SEARCH "].iter().any(|begin| line.starts_with(begin))
}

/// Such a line without what SQLite numbers and estimates itself: `SUBQUERY 2`, `(subquery-2)`, and
/// `(~25 rows)` of old versions.
fn without_own_words(line: &str) -> String {
    let own = |word: &&str| {
        let word = word.trim_matches(['(', ')', '~']);
        !word.starts_with("subquery-") && word != "SUBQUERY"
    };
    let kept = line.split(" (~").next().unwrap_or(line);
    let mut words: Vec<&str> = kept.split_whitespace().filter(own).collect();
    if kept.contains(" SUBQUERY ") && words.get(1).is_some_and(|word| is_figure(word)) {
        words.remove(1);
    }
    // Until 3.36 it wrote `t AS a`, since then `a`.
    if let Some(place) = words.iter().position(|word| *word == "AS") {
        words.drain(place.saturating_sub(1).max(1)..=place);
    }
    words.join(" ")
}

/// Names that MySQL makes up, such as `<derived2>` and `<auto_key0>`, without their numbers.
fn without_own_numbers(name: &str) -> String {
    if name.starts_with('<') { without_numbers(name) } else { name.to_owned() }
}

/// The line without parentheses of estimates and measurements, and in the words of today's SQLite:
/// until 3.36 it wrote `SCAN TABLE t`.
fn without_estimates(line: &str) -> String {
    let mut kept = line.replacen("SCAN TABLE ", "SCAN ", 1).replacen("SEARCH TABLE ", "SEARCH ", 1);
    for begin in ["(cost=", "(actual ", "(never executed"] {
        if let Some(open) = kept.find(begin)
            && let Some(close) = kept[open..].find(')')
        {
            kept.replace_range(open..=open + close, "");
        }
    }
    kept
}

/// Each number that is no part of a name becomes `#`, as does each literal text; each run of
/// blanks becomes one. The number of workers says what is done.
fn without_figures(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.starts_with("Workers Planned:") {
        return line;
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let (taken, shown) = match first {
            '"' => {
                let name = quoted(rest, '"');
                (name.len(), name)
            }
            '\'' => (quoted(rest, '\'').len(), "#"),
            first if is_of_word(first) => {
                let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                (end, if is_figure(word) { "#" } else { word })
            }
            other => (other.len_utf8(), &rest[..other.len_utf8()]),
        };
        text.push_str(shown);
        rest = &rest[taken..];
    }
    text
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.')
}

/// The quoted text at the beginning, with its quotes; a doubled quote is part of it.
fn quoted(text: &str, quote: char) -> &str {
    let mut end = 1;
    while let Some(close) = text[end..].find(quote) {
        end += close + 1;
        if text[end..].starts_with(quote) { end += 1 } else { return &text[..end] }
    }
    text
}

/// True for `500`, `0.42`, `1e+06` up to its sign, `8192kB`, an address and a parameter such as
/// `$1`; false for `t1`, and for `2024_q1`, which MySQL allows as a name.
fn is_figure(word: &str) -> bool {
    let word = word.strip_prefix('$').unwrap_or(word);
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_unit = matches!(unit, "" | "e" | "kB" | "MB" | "GB" | "ms");
    let address = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let is_address = address.is_some_and(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()));
    word.starts_with(|c: char| c.is_ascii_digit()) && (is_unit || is_address)
}

/// A plan on one line of at most `width` characters.
pub fn shorten(normalized: &str, width: usize) -> String {
    if normalized.chars().count() <= width {
        return normalized.to_owned();
    }
    let head: String = normalized.chars().take(width.saturating_sub(1)).collect();
    format!("{head}…")
}

/// Each number becomes `#`, each run of blanks one blank, wherever the number stands.
pub(super) fn without_numbers(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut in_number = false;
    for c in line.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        let number = c.is_ascii_digit() || (in_number && c == '.');
        if number && !in_number {
            text.push('#');
        } else if !number {
            text.push(c);
        }
        in_number = number;
    }
    text
}

// Query plans that differ between targets, or between the blocks of one.

/// Characters of a plan that are shown.
const PLAN_WIDTH: usize = 120;

/// Plans are long, come in every step of every run and are nearly always the same: each distinct
/// text is made comparable once.
#[derive(Default)]
struct Normalized<'a>(HashMap<&'a str, String>);

impl<'a> Normalized<'a> {
    fn of(&mut self, plan: &'a str) -> String {
        self.0.entry(plan).or_insert_with(|| normalize(plan)).clone()
    }
}

pub(super) fn caveats(evidence: &Evidence) -> Vec<Caveat> {
    evidence.by_target(|target, label| of_target(evidence, target, label))
}

fn of_target(evidence: &Evidence, target: usize, label: &str) -> Vec<Caveat> {
    let mut normalized = Normalized::default();
    let mut caveats = Vec::new();
    if target > 0 && same_dialect(evidence, target) {
        for (difference, steps) in differences(evidence, target, &mut normalized) {
            caveats.push(
                Caveat::of(
                    CaveatKind::PlanDiffers,
                    label,
                    difference.spell(&evidence.comparison.baseline, label),
                )
                .in_steps(steps),
            );
        }
    }
    caveats.extend(changes(evidence, target, label, &mut normalized));
    caveats
}

/// Plans of two products have no words in common.
fn same_dialect(evidence: &Evidence, target: usize) -> bool {
    let dialect = |place: usize| {
        let facts = &evidence.comparison.targets[place];
        facts.target.as_ref().map(|target| target.dbms.dialect())
    };
    dialect(0) == dialect(target)
}

#[derive(PartialEq)]
struct Difference {
    kind: String,
    baseline: String,
    target: String,
}

impl Difference {
    fn spell(&self, baseline: &str, target: &str) -> String {
        format!(
            "{}: {baseline} `{}`, {target} `{}`",
            self.kind,
            shorten(&self.baseline, PLAN_WIDTH),
            shorten(&self.target, PLAN_WIDTH)
        )
    }
}

/// Differences from the baseline, each with the steps that have it. The first run of each side
/// speaks; that a target's own plans change is another caveat.
fn differences<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    normalized: &mut Normalized<'a>,
) -> Vec<(Difference, Vec<String>)> {
    let mut found: Vec<(Difference, Vec<String>)> = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let (Some(baseline), Some(other)) = (planned(&records[0]), planned(&records[target]))
        else {
            continue;
        };
        for (kind, plan) in &baseline.outcome.plans {
            let Some(other) = other.outcome.plans.get(kind).filter(|other| *other != plan) else {
                continue;
            };
            let (baseline, target) = (normalized.of(plan), normalized.of(other));
            if baseline == target {
                continue;
            }
            let difference = Difference { kind: kind.clone(), baseline, target };
            match found.iter_mut().find(|(other, _)| *other == difference) {
                Some((_, steps)) => steps.push(step.name.clone()),
                None => found.push((difference, vec![step.name.clone()])),
            }
        }
    }
    found
}

/// The first run that has plans: not every run need ask for them.
fn planned<'a>(records: &[&'a StepRecord]) -> Option<&'a StepRecord> {
    records.iter().copied().find(|record| !record.outcome.plans.is_empty())
}

fn changes<'a>(
    evidence: &Evidence<'a>,
    target: usize,
    label: &str,
    normalized: &mut Normalized<'a>,
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let Some(first) = planned(&records[target]) else { continue };
        for (kind, plan) in &first.outcome.plans {
            let others = records[target].iter().filter_map(|record| record.outcome.plans.get(kind));
            let mut differing = others.filter(|other| *other != plan);
            let changed = differing.find(|other| normalized.of(other) != normalized.of(plan));
            if let Some(changed) = changed {
                caveats.push(
                    Caveat::of(
                        CaveatKind::PlanChanges,
                        label,
                        format!(
                            "{kind}: `{}`, then `{}`",
                            shorten(&normalized.of(plan), PLAN_WIDTH),
                            shorten(&normalized.of(changed), PLAN_WIDTH)
                        ),
                    )
                    .in_steps(vec![step.name.clone()]),
                );
            }
        }
    }
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::{Group, RateUnit};
    use rqps_model::run::Outcome;

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

    fn step(rate: RateUnit, outcome: Outcome) -> StepRecord {
        StepRecord { outcome, ..StepRecord::empty(1, "point-query", Group::Point, rate) }
    }

    #[test]
    fn a_counter_moved_if_it_did_so_in_every_pair() {
        let names = ["pages", "syncs", "rare", "time", "other"].map(str::to_owned);
        let values = |all: [f64; 5]| -> Vec<CounterChange> {
            (0..).zip(all).filter(|(_, value)| *value > 0.0).collect()
        };
        let first = (values([1.0, 0.0, 0.0, 7.0, 1.0]), values([2.0, 0.5, 0.0001, 7.1, 9.0]));
        let second = (values([1.5, 0.0, 0.0, 7.0, 1.0]), values([2.5, 0.75, 0.0001, 6.9, 9.0]));
        let pairs = [(&first.0[..], &first.1[..]), (&second.0[..], &second.1[..])];
        let shared = [true, true, true, true, false];
        let found: Vec<(String, f64, f64)> = moved(&names, &shared, &pairs)
            .into_iter()
            .map(|it| (it.name, it.baseline, it.target))
            .collect();
        assert_eq!(found, [("syncs".to_owned(), 0.0, 0.625), ("pages".to_owned(), 1.25, 2.25)]);
        assert_eq!(moved(&names, &shared, &[]), []);
    }

    #[test]
    fn statements_of_the_warm_up_are_operations_too() {
        let check = |rate, statements, outside, rows_scanned, want| {
            let outcome =
                Outcome { seconds: 2.0, statements, outside, rows_scanned, ..Outcome::default() };
            assert_eq!(per_operation(&step(rate, outcome), 100.0, 700.0), want);
        };
        check(RateUnit::Queries, 200, 0, 0, Some(3.0));
        check(RateUnit::Queries, 200, 100, 0, Some(2.0));
        // An operation is a thousand rows.
        check(RateUnit::RowsScanned, 2, 1, 2_000_000, Some(0.2));
        check(RateUnit::Queries, 0, 100, 0, None);
        check(RateUnit::Relative, 200, 0, 0, None);
    }
}

#[cfg(test)]
mod plans_tests {
    use super::*;

    fn check_same(a: &str, b: &str) {
        assert_eq!(normalize(a), normalize(b));
    }

    fn check_different(a: &str, b: &str) {
        assert_ne!(normalize(a), normalize(b));
    }

    #[test]
    fn estimates_and_literals_are_no_difference() {
        check_same(
            "Index Scan using sbtest1_pkey on sbtest1  (cost=0.29..8.31 rows=1 width=121)\n  \
             Index Cond: ((id = 500) AND (c = 'it''s 5'::text))",
            "Index Scan using sbtest1_pkey on sbtest1  (cost=0.43..2.45 rows=7 width=9) \
             (actual time=0.1..0.2 rows=1 loops=1)\n    \
             Index Cond: ((id = 77) AND (c = 'x'::text))",
        );
        check_same(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
            "UPDATE\tsbtest1\trange\tPRIMARY\t4\tconst\tUsing where",
        );
        check_same(
            "SIMPLE\tNULL\tNULL\tNULL\tNULL\tNULL\tNo tables used",
            "INSERT\tsbtest1\tALL\tNULL\tNULL\tNULL\tNULL",
        );
        check_same(
            "PRIMARY\t<derived2>\tref\t<auto_key0>\t4\tb\tNULL",
            "PRIMARY\t<derived3>\tref\t<auto_key1>\t4\tb\tNULL",
        );
        check_same(
            "SEARCH TABLE t1 USING INDEX i (a=?) (~10 rows)",
            "SEARCH t1 USING INDEX i (a=?) (~1 rows)",
        );
        check_same("SCAN SUBQUERY 0x55d0", "SCAN SUBQUERY 0x7fa1");
        check_same("SCAN SUBQUERY 1 AS a", "SCAN a");
        check_same(
            "SEARCH TABLE t AS a USING INDEX i 1 (x=?) (~9 rows)",
            "SEARCH a USING INDEX i 1 (x=?)",
        );
        check_different("SEARCH t USING INDEX i 1 (x=?)", "SEARCH t USING INDEX i 2 (x=?)");
        check_different("SCAN 2024", "SCAN 2025");
        check_same("InitPlan 1 (returns $0)", "InitPlan 2 (returns $1)");
    }

    #[test]
    fn names_that_differ_in_a_digit_are_a_difference() {
        check_different("SEARCH t1 USING INDEX t1_i2 (a=?)", "SEARCH t1 USING INDEX t1_i1 (a=?)");
        check_different(
            "SCAN t1\nSEARCH t2 USING INDEX i (a=?)",
            "SCAN t2\nSEARCH t1 USING INDEX i (a=?)",
        );
        check_different("Seq Scan on \"log 2\"", "Seq Scan on \"log 3\"");
        check_different("Index Cond: (t1.c10 = 5)", "Index Cond: (t1.c11 = 5)");
        check_different("Workers Planned: 2", "Workers Planned: 4");
        let row = |table, key| format!("SIMPLE\t{table}\tref\t{key}\t4\tconst\tUsing where");
        check_different(&row("o", "k_1"), &row("o", "k_2"));
        check_different(&row("2024_q1", "k"), &row("2024_q2", "k"));
        check_different(&row("1", "k"), &row("2", "k"));
    }

    #[test]
    fn another_access_is_a_difference() {
        check_different("Index Only Scan using k_1 on sbtest1", "Seq Scan on sbtest1");
        check_different(
            "SIMPLE\tsbtest1\trange\tPRIMARY\t4\tNULL\tUsing where",
            "SIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tUsing where",
        );
    }

    #[test]
    fn a_long_plan_is_cut_with_a_mark() {
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(shorten("abcd", 4), "abcd");
    }
}
