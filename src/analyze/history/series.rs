//! Series over many result sets: a step and a metric under one condition, over dates and over
//! versions.

use std::collections::{BTreeMap, HashMap};

use super::changes::{StepLadder, StepValues, of_values};
use super::dates::{DateOptions, DatePoint, StepDates, changes};
use super::fit::BlockValue;
use super::points::{Condition, SetPoints};
use super::rung::{Rung, by_config, sorted};
use crate::domain::benchmark::Group;
use crate::domain::metric::Metric;
use crate::parallel;
use crate::stats::summary::mean;

/// Fewer versions are a comparison, which the report of their result set shows.
const VERSIONS_MIN: usize = 3;

/// A result set that series are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSet {
    /// Its name, unique among the sets.
    pub name: String,
    /// Its values.
    pub points: SetPoints,
}

/// What series are computed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesOptions {
    /// Changes over time must be less probable than this without a change.
    pub max_p: f64,
    /// Standard deviation of ln by which the layout of a build moves a step.
    pub layout_sd: f64,
}

/// A step and a metric under one condition.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSeries {
    /// Workload and host.
    pub condition: Condition,
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
    /// The oldest result set of each version.
    pub since: Vec<FirstSet>,
    /// Levels and changes.
    pub step: StepLadder,
}

/// The oldest result set with a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstSet {
    /// When its first run began, RFC 3339.
    pub date: String,
    /// The result set.
    pub result_set: String,
}

/// One value: which set, which run of it, how much.
#[derive(Clone, Copy)]
struct SeriesValue {
    set: u32,
    run: u32,
    ln: f64,
}

/// Values of all result sets by what makes a series.
type Values<'a> = HashMap<(usize, Metric, &'a str), (Group, Vec<SeriesValue>)>;

/// All series that have something to show, by condition, group, step and metric.
pub fn step_series(sets: &[SeriesSet], of: &SeriesOptions) -> Vec<StepSeries> {
    // The oldest first, so that all points come in order.
    let mut sets: Vec<&SeriesSet> = sets.iter().collect();
    sets.sort_by(|a, b| (&a.points.started, &a.name).cmp(&(&b.points.started, &b.name)));
    let (conditions, values) = values(&sets);
    let mut ladders = all_ladders(&sets, &conditions, &values, of);
    let items: Vec<_> = values.into_iter().collect();
    let mut series: Vec<StepSeries> =
        parallel::map(items, |((place, metric, step), (group, values))| StepSeries {
            condition: conditions[place].clone(),
            step: step.to_owned(),
            group,
            metric,
            dates: label_dates(&sets, &values, step, metric, of),
            ladders: Vec::new(),
        });
    for one in &mut series {
        let key = (one.condition.key(), one.metric, one.step.clone());
        one.ladders = ladders.remove(&key).unwrap_or_default();
    }
    series.retain(|one| !one.dates.is_empty() || !one.ladders.is_empty());
    series.sort_by(|a, b| order(a).cmp(&order(b)));
    series
}

fn order(series: &StepSeries) -> (&str, &str, String, Group, &str, Metric) {
    let Condition { benchmark, words, .. } = &series.condition;
    (benchmark, words, series.condition.key(), series.group, &series.step, series.metric)
}

fn values<'a>(sets: &[&'a SeriesSet]) -> (Vec<Condition>, Values<'a>) {
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    let mut conditions: Vec<Condition> = Vec::new();
    let mut values: Values<'_> = HashMap::new();
    for (set, one) in sets.iter().enumerate() {
        let points = &one.points;
        let of_set: Vec<usize> = points
            .conditions
            .iter()
            .map(|condition| {
                *keys.entry(condition.key()).or_insert_with(|| {
                    conditions.push(condition.clone());
                    conditions.len() - 1
                })
            })
            .collect();
        for step in &points.steps {
            for (metric, numbers) in &step.metrics {
                for (run, number) in numbers.iter().enumerate() {
                    let Some(number) = number.filter(|number| *number > 0.0) else { continue };
                    let condition = of_set[points.runs[run].condition];
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
    (conditions, values)
}

fn label_dates(
    sets: &[&SeriesSet],
    values: &[SeriesValue],
    step: &str,
    metric: Metric,
    of: &SeriesOptions,
) -> Vec<LabelDates> {
    let mut labels: BTreeMap<&str, BTreeMap<u32, Vec<f64>>> = BTreeMap::new();
    for value in values {
        let points = &sets[value.set as usize].points;
        let label = &points.targets[points.runs[value.run as usize].target].label;
        labels.entry(label).or_default().entry(value.set).or_default().push(value.ln);
    }
    let rules = DateOptions { metric, as_otava: false, max_p: of.max_p, min_magnitude: 0.0 };
    let several = labels.into_iter().filter(|(_, sets)| sets.len() > 1);
    let dates = several.map(|(label, of_sets)| {
        let point = |(set, logs): (u32, Vec<f64>)| DatePoint {
            date: sets[set as usize].points.started.clone(),
            result_set: sets[set as usize].name.clone(),
            value: mean(&logs).exp(),
            n: logs.len(),
        };
        let points: Vec<DatePoint> = of_sets.into_iter().map(point).collect();
        let changes = changes(&points, &rules);
        let dates = StepDates { step: step.to_owned(), points, changes };
        LabelDates { label: label.to_owned(), dates }
    });
    dates.collect()
}

type LadderKey = (String, Metric, String);

/// Name, group and values of a step.
type ValuesOfStep<'a> = (&'a str, Group, &'a [SeriesValue]);

/// Ladders of every condition and metric; the steps of one share a variance.
fn all_ladders(
    sets: &[&SeriesSet],
    conditions: &[Condition],
    values: &Values<'_>,
    of: &SeriesOptions,
) -> HashMap<LadderKey, Vec<FamilyLadder>> {
    let mut found: HashMap<LadderKey, Vec<FamilyLadder>> = HashMap::new();
    for (condition, facts) in conditions.iter().enumerate() {
        let key = facts.key();
        let families = families(sets, &key);
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
                let chain: Vec<usize> = (0..rungs.len()).collect();
                for step in of_values(of_family, rungs.len(), (&[chain], of.layout_sd)) {
                    if step.points.iter().flatten().count() < VERSIONS_MIN {
                        continue;
                    }
                    let (family, rungs) = (family.clone(), rungs.clone());
                    let since = rungs.iter().map(|rung| first_set(sets, rung)).collect();
                    let entry = found.entry((key.clone(), metric, step.step.clone()));
                    let ladder = FamilyLadder { family, rungs, since, step };
                    entry.or_default().push(ladder);
                }
            }
        }
    }
    found
}

/// Sets come with the oldest first.
fn first_set(sets: &[&SeriesSet], rung: &Rung) -> FirstSet {
    let has = |set: &&&SeriesSet| set.points.targets.iter().any(|it| it.label == rung.label);
    let set = sets.iter().find(has);
    FirstSet {
        date: set.map(|set| set.points.started.clone()).unwrap_or_default(),
        result_set: set.map(|set| set.name.clone()).unwrap_or_default(),
    }
}

/// Families with enough versions under one condition, their versions in order.
fn families(sets: &[&SeriesSet], key: &str) -> Vec<(String, Vec<Rung>)> {
    let mut families: BTreeMap<&str, BTreeMap<&str, Rung>> = BTreeMap::new();
    for points in sets.iter().map(|set| &set.points) {
        let keys: Vec<bool> = points.conditions.iter().map(|it| it.key() == key).collect();
        for target in points.runs.iter().filter(|run| keys[run.condition]).map(|run| run.target) {
            let target = &points.targets[target];
            let rungs = families.entry(&target.family).or_default();
            let next = rungs.len();
            rungs.entry(&target.label).or_insert_with(|| Rung {
                label: target.label.clone(),
                version: target.version.clone(),
                config: target.config.clone(),
                branch: String::new(),
                target: next,
            });
        }
    }
    families
        .into_iter()
        .flat_map(|(family, rungs)| by_config(family.to_owned(), rungs.into_values().collect()))
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
    sets: &[&SeriesSet],
    rungs: &[Rung],
) -> StepValues {
    let places: HashMap<&str, usize> =
        rungs.iter().enumerate().map(|(place, rung)| (rung.label.as_str(), place)).collect();
    let mut blocks: HashMap<(u32, (u32, u32)), usize> = HashMap::new();
    let mut of_step = Vec::new();
    for value in values {
        let points = &sets[value.set as usize].points;
        let run = &points.runs[value.run as usize];
        let Some(&version) = places.get(points.targets[run.target].label.as_str()) else {
            continue;
        };
        let next = blocks.len();
        let block = *blocks.entry((value.set, run.block)).or_insert(next);
        of_step.push(BlockValue { version, block, ln: value.ln });
    }
    StepValues { step: step.to_owned(), group, values: of_step, blocks: blocks.len() }
}
