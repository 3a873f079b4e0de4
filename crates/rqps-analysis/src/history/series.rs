//! Series over many result sets: a step and a metric under one condition, over dates and over
//! versions.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use super::ladder::{
    BlockValue, Rung, StepLadder, StepValues, build_sd, by_config, chains, of_values, sorted,
};
use super::{Condition, PointTarget, SetPoints};
use super::{DateOptions, DatePoint, StepDates};
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_stats::parallel;
use rqps_stats::summary::mean;

/// Fewest versions of a ladder. The report of a result set compares fewer.
const VERSIONS_MIN: usize = 3;

/// A result set that series are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSet {
    /// Its name, unique among the sets.
    pub name: String,
    /// Its values.
    pub points: SetPoints,
}

/// The options of [`step_series`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesOptions {
    /// Changes over time must be less probable than this without a change.
    pub max_p: f64,
    /// Standard deviation of ln by which the layout of a build moves a step.
    pub layout_sd: f64,
    /// True to look for changes along the first versions of branches and along each branch; false
    /// to look along all versions.
    pub branches: bool,
}

/// A step and a metric under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSeries {
    /// Workload and host.
    pub condition: Condition,
    /// Key of the condition: the part of an address that all its series share.
    pub key: String,
    /// Name of the step.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// The metric.
    pub metric: Metric,
    /// Labels with two result sets or more, over time.
    pub dates: Vec<LabelDates>,
    /// Families with three versions or more, in the order of versions.
    pub ladders: Vec<FamilyLadder>,
}

/// One label over time.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelDates {
    /// Label of the target.
    pub label: String,
    /// Its points and changes.
    pub dates: StepDates,
}

/// One DBMS over its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyLadder {
    /// `postgres`.
    pub family: String,
    /// Versions in order.
    pub rungs: Vec<Rung>,
    /// The versions along which changes were searched, as indexes into `rungs`: one chain of all
    /// versions; with branches, one of the first version of each branch, then one for each branch
    /// of two or more.
    pub chains: Vec<Vec<usize>>,
    /// The oldest result set of each version.
    pub since: Vec<FirstSet>,
    /// Levels and changes.
    pub step: StepLadder,
}

/// The levels along one chain of versions.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelLine {
    /// The branch; `None` for the first chain.
    pub branch: Option<String>,
    /// Index and level of each version, in order.
    pub levels: Vec<(usize, f64)>,
}

impl FamilyLadder {
    /// The levels of each chain with two measured versions or more.
    pub fn level_lines(&self) -> Vec<LevelLine> {
        let level = |at: usize| self.step.points[at].as_ref().map(|point| (at, point.level));
        let line = |(place, chain): (usize, &Vec<usize>)| {
            let mut levels: Vec<(usize, f64)> = chain.iter().filter_map(|at| level(*at)).collect();
            if let (true, [first, next, ..]) = (place > 0, &mut levels[..]) {
                // The first version has its level from the chain of first versions. In this chain
                // its level is that of the next version, before any change.
                let change = self.step.changes.iter().find(|change| change.at == next.0);
                first.1 = next.1 / change.map_or(1.0, |change| change.ratio);
            }
            let branch = (place > 0).then(|| self.rungs[chain[0]].branch.clone());
            LevelLine { branch, levels }
        };
        let lines = self.chains.iter().enumerate().map(line);
        lines.filter(|line| line.levels.len() > 1).collect()
    }
}

/// The oldest result set with a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstSet {
    /// Start of its first run, RFC 3339.
    pub date: String,
    /// The result set.
    pub result_set: String,
}

/// One value, with the indexes of its set and of its run there.
#[derive(Clone, Copy)]
struct SeriesValue {
    set: u32,
    run: u32,
    ln: f64,
}

/// Values of all result sets by the key of their series: condition, metric, step.
type Values<'a> = HashMap<(usize, Metric, &'a str), (Group, Vec<SeriesValue>)>;

/// Takes all hosts for the one of the newest set.
pub fn join_hosts(sets: &mut [SeriesSet]) {
    let newest = sets.iter().max_by(|a, b| a.points.started.cmp(&b.points.started));
    let known = newest.map(|set| set.points.conditions.clone()).unwrap_or_default();
    let Some(host) = known.first().map(|condition| condition.host.clone()) else { return };
    for condition in sets.iter_mut().flat_map(|set| &mut set.points.conditions) {
        condition.host.clone_from(&host);
        if let Some(same) = known.iter().find(|known| known.identity() == condition.identity()) {
            condition.words.clone_from(&same.words);
        }
    }
}

/// All series with at least two points, ordered by condition, group, step and metric.
pub fn step_series(sets: &[SeriesSet], of: &SeriesOptions) -> Vec<StepSeries> {
    let sets = Sets::of(sets);
    let values = values(&sets);
    let mut ladders = all_ladders(&sets, &values, of);
    let items: Vec<_> = values.into_iter().collect();
    let mut series: Vec<StepSeries> =
        parallel::map(items, |((place, metric, step), (group, values))| StepSeries {
            condition: sets.conditions[place].clone(),
            key: sets.keys[place].clone(),
            step: step.to_owned(),
            group,
            metric,
            dates: label_dates(&sets, &values, step, metric, of),
            ladders: Vec::new(),
        });
    for one in &mut series {
        let key = (one.key.clone(), one.metric, one.step.clone());
        one.ladders = ladders.remove(&key).unwrap_or_default();
    }
    series.retain(|one| !one.dates.is_empty() || !one.ladders.is_empty());
    series.sort_by(|a, b| order(a).cmp(&order(b)));
    series
}

fn order(series: &StepSeries) -> (&str, &str, &str, Group, &str, Metric) {
    let Condition { benchmark, words, .. } = &series.condition;
    (benchmark, words, &series.key, series.group, &series.step, series.metric)
}

/// Result sets, the oldest first, and their distinct conditions and targets.
struct Sets<'a> {
    sets: Vec<&'a SeriesSet>,
    conditions: Vec<&'a Condition>,
    /// Keys of the conditions, which are hashes.
    keys: Vec<String>,
    targets: Vec<&'a PointTarget>,
    /// For each set, the indexes of its conditions in `conditions`.
    conditions_of: Vec<Vec<usize>>,
    /// For each set, the indexes of its targets in `targets`.
    targets_of: Vec<Vec<usize>>,
    /// The oldest set with a run of a target under a condition: (condition, target) → set.
    since: BTreeMap<(usize, usize), usize>,
}

impl<'a> Sets<'a> {
    fn of(sets: &'a [SeriesSet]) -> Sets<'a> {
        let mut sets: Vec<&SeriesSet> = sets.iter().collect();
        sets.sort_by(|a, b| (&a.points.started, &a.name).cmp(&(&b.points.started, &b.name)));
        let (mut conditions, mut targets) = (Places::default(), Places::default());
        let (mut conditions_of, mut targets_of) = (Vec::new(), Vec::new());
        let mut since = BTreeMap::new();
        for (place, SeriesSet { points, .. }) in sets.iter().enumerate() {
            let of_set = points.conditions.iter().map(|one| conditions.of(one.identity(), one));
            conditions_of.push(of_set.collect::<Vec<_>>());
            let of_set = points.targets.iter().map(|one| targets.of(one, one));
            targets_of.push(of_set.collect::<Vec<_>>());
            for run in &points.runs {
                let key = (conditions_of[place][run.condition], targets_of[place][run.target]);
                since.entry(key).or_insert(place);
            }
        }
        let (conditions, targets) = (conditions.all, targets.all);
        let keys = conditions.iter().map(|condition: &&Condition| condition.key()).collect();
        Sets { sets, conditions, keys, targets, conditions_of, targets_of, since }
    }

    /// Index of the target of a value.
    fn target(&self, value: &SeriesValue) -> usize {
        let set = value.set as usize;
        self.targets_of[set][self.sets[set].points.runs[value.run as usize].target]
    }

    fn first_set(&self, condition: usize, rung: &Rung) -> FirstSet {
        let set = self.since.get(&(condition, rung.target)).map(|place| self.sets[*place]);
        FirstSet {
            date: set.map(|set| set.points.started.clone()).unwrap_or_default(),
            result_set: set.map(|set| set.name.clone()).unwrap_or_default(),
        }
    }
}

/// Distinct values in the order of their first occurrence, with their indexes.
struct Places<K, T> {
    places: HashMap<K, usize>,
    all: Vec<T>,
}

impl<K, T> Default for Places<K, T> {
    fn default() -> Self {
        Places { places: HashMap::new(), all: Vec::new() }
    }
}

impl<K: Eq + Hash, T> Places<K, T> {
    fn of(&mut self, key: K, one: T) -> usize {
        *self.places.entry(key).or_insert_with(|| {
            self.all.push(one);
            self.all.len() - 1
        })
    }
}

fn values<'a>(sets: &Sets<'a>) -> Values<'a> {
    let mut values: Values<'_> = HashMap::new();
    for (set, one) in sets.sets.iter().enumerate() {
        let points = &one.points;
        for step in &points.steps {
            for (metric, numbers) in &step.metrics {
                for (run, number) in numbers.iter().enumerate() {
                    let Some(number) = number.filter(|number| *number > 0.0) else { continue };
                    let condition = sets.conditions_of[set][points.runs[run].condition];
                    let key = (condition, *metric, step.step.as_str());
                    let value = SeriesValue {
                        set: set as u32,
                        run: run as u32,
                        ln: f64::from(number).ln(),
                    };
                    values.entry(key).or_insert((step.group, Vec::new())).1.push(value);
                }
            }
        }
    }
    values
}

fn label_dates(
    sets: &Sets<'_>,
    values: &[SeriesValue],
    step: &str,
    metric: Metric,
    of: &SeriesOptions,
) -> Vec<LabelDates> {
    let mut labels: BTreeMap<&str, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for value in values {
        let label = &sets.targets[sets.target(value)].label;
        labels.entry(label).or_default().entry(value.set).or_default().push(value.ln);
    }
    let rules = DateOptions {
        metric,
        as_otava: false,
        max_p: of.max_p,
        min_magnitude: 0.0,
        same_host: false,
    };
    let several = labels.into_iter().filter(|(_, sets)| sets.len() > 1);
    let dates = several.map(|(label, of_sets)| {
        let point = |(set, logs): (u32, Vec<f64>)| DatePoint {
            date: sets.sets[set as usize].points.started.clone(),
            result_set: sets.sets[set as usize].name.clone(),
            value: mean(&logs).exp(),
            n: logs.len(),
        };
        let points: Vec<DatePoint> = of_sets.into_iter().map(point).collect();
        LabelDates { label: label.to_owned(), dates: StepDates::find(step, points, &rules) }
    });
    dates.collect()
}

type LadderKey = (String, Metric, String);

/// Name, group and values of a step.
type ValuesOfStep<'a> = (&'a str, Group, &'a [SeriesValue]);

/// Ladders of every condition and metric. The steps of one condition and metric share a variance.
fn all_ladders(
    sets: &Sets<'_>,
    values: &Values<'_>,
    of: &SeriesOptions,
) -> HashMap<LadderKey, Vec<FamilyLadder>> {
    let mut found: HashMap<LadderKey, Vec<FamilyLadder>> = HashMap::new();
    for (condition, key) in sets.keys.iter().enumerate() {
        let families = families(sets, condition);
        if families.is_empty() {
            continue;
        }
        let mut metrics: BTreeMap<Metric, Vec<ValuesOfStep<'_>>> = BTreeMap::new();
        for ((at, metric, step), (group, values)) in values {
            if *at == condition {
                metrics.entry(*metric).or_default().push((step, *group, values));
            }
        }
        for (metric, mut steps) in metrics {
            steps.sort_unstable_by_key(|(step, ..)| *step);
            for (family, rungs) in &families {
                let of_family = steps.iter().map(|(step, group, values)| {
                    ladder_values((step, *group), values, sets, rungs)
                });
                let chains = chains(rungs, of.branches);
                let sd = build_sd(metric, of.layout_sd);
                for step in of_values(of_family, rungs.len(), (&chains, sd)) {
                    if step.points.iter().flatten().count() < VERSIONS_MIN {
                        continue;
                    }
                    let (family, rungs) = (family.clone(), rungs.clone());
                    let since = rungs.iter().map(|rung| sets.first_set(condition, rung)).collect();
                    let entry = found.entry((key.clone(), metric, step.step.clone()));
                    let chains = chains.clone();
                    let ladder = FamilyLadder { family, rungs, chains, since, step };
                    entry.or_default().push(ladder);
                }
            }
        }
    }
    found
}

/// Families with enough versions under one condition, with their versions in order. A label with
/// several versions, such as that of a nightly build, gives several rungs.
fn families(sets: &Sets<'_>, condition: usize) -> Vec<(String, Vec<Rung>)> {
    let mut families: BTreeMap<&str, Vec<Rung>> = BTreeMap::new();
    for (_, target) in sets.since.range((condition, 0)..(condition + 1, 0)).map(|(key, _)| *key) {
        let facts = sets.targets[target];
        families.entry(&facts.family).or_default().push(Rung {
            label: facts.label.clone(),
            version: facts.version.clone(),
            config: facts.config.clone(),
            branch: facts.branch.clone(),
            target,
        });
    }
    families
        .into_iter()
        .flat_map(|(family, rungs)| by_config(family.to_owned(), rungs))
        .filter(|(_, rungs)| rungs.len() >= VERSIONS_MIN)
        .map(|(family, rungs)| (family, sorted(rungs)))
        .filter(|(_, (_, by_version))| *by_version)
        .map(|(family, (rungs, _))| (family, rungs))
        .collect()
}

/// Values of one step on these versions; values of one block of one result set are pairs.
fn ladder_values(
    (step, group): (&str, Group),
    values: &[SeriesValue],
    sets: &Sets<'_>,
    rungs: &[Rung],
) -> StepValues {
    let places: HashMap<usize, usize> =
        rungs.iter().enumerate().map(|(place, rung)| (rung.target, place)).collect();
    let mut blocks: HashMap<(u32, (u32, u32)), usize> = HashMap::new();
    let mut of_step = Vec::new();
    for value in values {
        let Some(&version) = places.get(&sets.target(value)) else { continue };
        let run = &sets.sets[value.set as usize].points.runs[value.run as usize];
        let next = blocks.len();
        let block = *blocks.entry((value.set, run.block)).or_insert(next);
        of_step.push(BlockValue { version, block, ln: value.ln });
    }
    StepValues { step: step.to_owned(), group, values: of_step, blocks: blocks.len() }
}

#[cfg(test)]
mod tests {
    use super::super::{PointRun, StepPoints};
    use super::*;

    /// A result set of one target with three blocks.
    fn set(day: u32, version: &str, host: &str, value: f32) -> SeriesSet {
        let text = str::to_owned;
        let points = SetPoints {
            started: format!("2026-01-{day:02}T00:00:00Z"),
            targets: vec![PointTarget {
                label: text("nightly"),
                family: text("postgres"),
                version: Some(text(version)),
                config: String::new(),
                branch: version.split('.').next().unwrap_or_default().to_owned(),
            }],
            conditions: vec![Condition {
                benchmark: text("sysbench"),
                workload: text("w"),
                host: text(host),
                words: text(host),
            }],
            runs: (1..=3)
                .map(|block| PointRun { target: 0, condition: 0, block: (block, 1) })
                .collect(),
            steps: vec![StepPoints {
                step: text("scan"),
                group: Group::Range,
                metrics: vec![(Metric::Rate, vec![Some(value); 3])],
            }],
        };
        SeriesSet { name: format!("day{day:02}"), points }
    }

    fn series(sets: &[SeriesSet]) -> Vec<StepSeries> {
        searched(sets, false)
    }

    fn searched(sets: &[SeriesSet], branches: bool) -> Vec<StepSeries> {
        step_series(sets, &SeriesOptions { max_p: 0.001, layout_sd: 0.0035, branches })
    }

    #[test]
    fn a_nightly_label_is_a_ladder_of_its_versions() {
        let versions = ["17.0", "17.1", "18.0", "18.1"];
        let value = |at: usize| if at < 2 { 100.0 } else { 80.0 };
        let sets: Vec<SeriesSet> = versions
            .iter()
            .enumerate()
            .map(|(at, version)| set(at as u32 + 1, version, "a", value(at)))
            .collect();
        let found = series(&sets);
        let [ladder] = &found[0].ladders[..] else { panic!("{found:#?}") };
        let names: Vec<&str> = ladder.rungs.iter().map(Rung::name).collect();
        assert_eq!(names, versions);
        let counts: Vec<usize> = ladder.step.points.iter().flatten().map(|it| it.n).collect();
        assert_eq!(counts, [3; 4], "each version has its own values");
        let [change] = &ladder.step.changes[..] else { panic!("{ladder:#?}") };
        assert!(change.at == 2 && (change.ratio - 0.8).abs() < 1e-6, "{change:?}");
    }

    /// Branch 16 got a fix late, which branch 17 never lost.
    #[test]
    fn a_late_fix_is_a_change_of_its_branch() {
        let days =
            [("15.0", 100.0), ("16.0", 100.0), ("16.1", 100.0), ("16.8", 120.0), ("17.0", 100.0)];
        let sets: Vec<SeriesSet> = days
            .iter()
            .zip(1..)
            .map(|((version, value), day)| set(day, version, "a", *value))
            .collect();
        let found = searched(&sets, true);
        let ladder = &found[0].ladders[0];
        let changes: Vec<(usize, usize)> =
            ladder.step.changes.iter().map(|change| (change.after, change.at)).collect();
        assert_eq!(changes, [(2, 3)], "{:#?}", ladder.step);
        let lines = ladder.level_lines();
        let [trunk, branch] = &lines[..] else { panic!("{lines:#?}") };
        let places = |line: &LevelLine| line.levels.iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!((trunk.branch.as_deref(), places(trunk)), (None, vec![0, 1, 4]));
        assert_eq!((branch.branch.as_deref(), places(branch)), (Some("16"), vec![1, 2, 3]));
        let near = |(_, level): (usize, f64), expected: f64| (level - expected).abs() < 0.01;
        assert!(trunk.levels.iter().all(|it| near(*it, 1.0)), "{trunk:?}");
        let expected = [1.0, 1.0, 1.2];
        assert!(branch.levels.iter().zip(expected).all(|(it, level)| near(*it, level)));
        assert!(searched(&sets, false)[0].ladders[0].level_lines().len() == 1);
    }

    #[test]
    fn the_first_set_of_a_version_is_of_the_same_host() {
        let versions = ["17.0", "17.1", "18.0"];
        let of = |first: u32, host: &str| {
            let days = versions.iter().zip(first..);
            days.map(|(version, day)| set(day, version, host, 100.0)).collect::<Vec<_>>()
        };
        let found = series(&[of(1, "a"), of(11, "b")].concat());
        let first_days = |host: &str| {
            let one = found.iter().find(|one| one.condition.host == host);
            let since = one.map(|one| &one.ladders[0].since[..]).unwrap_or_default();
            since.iter().map(|first| first.result_set.clone()).collect::<Vec<_>>()
        };
        assert_eq!(first_days("a"), ["day01", "day02", "day03"]);
        assert_eq!(first_days("b"), ["day11", "day12", "day13"]);
        assert_ne!(found[0].key, found[1].key);
    }

    #[test]
    fn joined_hosts_are_the_newest() {
        let mut sets = [set(1, "17.0", "old", 100.0), set(2, "17.0", "new", 100.0)];
        assert_eq!(series(&sets), []);
        join_hosts(&mut sets);
        let [joined] = &series(&sets)[..] else { panic!("not one series") };
        let Condition { host, words, .. } = &joined.condition;
        assert_eq!((host.as_str(), words.as_str()), ("new", "new"));
        assert_eq!(joined.dates[0].dates.points.len(), 2);
    }
}
