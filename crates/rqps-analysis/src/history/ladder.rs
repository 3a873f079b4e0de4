//! The versions of a ladder and their order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::AnalyzeError;
use crate::comparison::{Comparison, StepComparison, TargetFacts};
use crate::counted::COUNTS_TAU;
use crate::pairing::{CONFIDENCE, PairKey, pair_key};
use rqps_model::benchmark::Group;
use rqps_model::build::{Dbms, Target, Version};
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_stats::change_points::{VersionLevel, VersionMean, partition, penalty};
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread};
use rqps_stats::{Interval, summary};

/// Options of a ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderOptions {
    /// The metric.
    pub metric: Metric,
    /// Labels of targets in the wanted order; `None` for the order of their versions.
    pub order: Option<Vec<String>>,
    /// True to look for changes along the first versions of branches and along each branch; false
    /// to look along all versions.
    pub branches: bool,
}

/// Versions of one DBMS, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// `postgres`; `mysql, config binlog` where one version was measured with several
    /// configurations, each of which is a ladder then.
    pub family: String,
    /// Key of the metric.
    pub metric: String,
    /// Its versions in order: ratios are relative to the first.
    pub rungs: Vec<Rung>,
    /// Along which versions changes were searched, by place: all of them; with branches, the first
    /// version of each branch, then each branch with two or more.
    pub chains: Vec<Vec<usize>>,
    /// True if the order is that of versions; false if a version is unknown, or the user gave an
    /// order. Then it is that of the plan or the user.
    pub by_version: bool,
    /// Standard deviation of ln by which the layout of a build moves a step: half of the threshold
    /// tau, which stands for pairs of builds, over √2. For counted instructions, the same of the
    /// scatter of counts.
    pub layout_sd: f64,
    /// Labels of targets whose every step has the value 0: runs that were broken.
    pub broken: Vec<String>,
    /// Steps in the order of reports.
    pub steps: Vec<StepLadder>,
}

/// One ladder for each DBMS with two or more targets. Where one version has several
/// configurations, each configuration is a ladder; else configurations may change along it, as
/// later versions need others.
///
/// # Errors
/// The order names targets that are not there, or twice. Targets that it leaves out are left out.
pub fn ladders(comparison: &Comparison, of: &LadderOptions) -> Result<Vec<Ladder>, AnalyzeError> {
    let places = places(comparison, of.order.as_deref())?;
    let mut families: BTreeMap<String, Vec<Rung>> = BTreeMap::new();
    for place in places {
        let family = family(&comparison.targets[place]);
        families.entry(family).or_default().push(rung(comparison, place));
    }
    let ladder = |(family, rungs): (String, Vec<Rung>)| {
        let (rungs, by_version) = match of.order {
            Some(_) => (rungs, false),
            None => sorted(rungs),
        };
        let layout_sd = build_sd(of.metric, comparison.rules.layout_sd());
        let (broken, rungs): (Vec<Rung>, Vec<Rung>) =
            rungs.into_iter().partition(|rung| is_broken(comparison, rung.target, of.metric));
        let chains = chains(&rungs, of.branches && by_version);
        let steps = steps(comparison, &rungs, of.metric, (&chains, layout_sd));
        Ladder {
            family,
            metric: of.metric.name().to_owned(),
            rungs,
            chains,
            by_version,
            layout_sd,
            broken: broken.into_iter().map(|rung| rung.label).collect(),
            steps,
        }
    };
    let families = families.into_iter().flat_map(|(family, rungs)| by_config(family, rungs));
    let several = families.filter(|(_, rungs)| rungs.len() > 1);
    Ok(several.map(ladder).filter(|ladder| !ladder.steps.is_empty()).collect())
}

/// Places of targets: all, or those of an order.
fn places(comparison: &Comparison, order: Option<&[String]>) -> Result<Vec<usize>, AnalyzeError> {
    let targets = &comparison.targets;
    let Some(order) = order else { return Ok((0..targets.len()).collect()) };
    let mut places = Vec::new();
    for label in order {
        let Some(place) = targets.iter().position(|target| target.label == *label) else {
            let labels: Vec<&str> = targets.iter().map(|target| target.label.as_str()).collect();
            return Err(AnalyzeError(format!(
                "unknown target `{label}` in the order; the targets are: {}",
                labels.join(", ")
            )));
        };
        if places.contains(&place) {
            return Err(AnalyzeError(format!("the order names `{label}` twice")));
        }
        places.push(place);
    }
    Ok(places)
}

/// True if the target has values of the metric, and all of them are 0.
fn is_broken(comparison: &Comparison, target: usize, metric: Metric) -> bool {
    let of_target = comparison.steps.iter().map(|step| &step.targets[target]);
    let samples = of_target.flat_map(|one| &one.samples);
    let mut values = samples.filter_map(|sample| sample.get(metric)).peekable();
    values.peek().is_some() && values.all(|value| value == 0.0)
}

// The targets of a ladder: which belong together, and in which order.

/// One target of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// Label of the target.
    pub label: String,
    /// The version, if known.
    pub version: Option<String>,
    /// Name of its configuration.
    pub config: String,
    /// The branch of the version, `10.11`; empty where the version is unknown.
    pub branch: String,
    /// Place in the comparison.
    #[serde(skip)]
    pub target: usize,
}

impl Rung {
    /// The version, which is short, or the label where no version is known.
    pub fn name(&self) -> &str {
        self.version.as_deref().unwrap_or(&self.label)
    }
}

/// The family of a target of a comparison.
pub(super) fn family(facts: &TargetFacts) -> String {
    family_of(facts.target.as_ref())
}

/// The name of a ladder: the DBMS, with its storage engine if the target names one.
pub fn family_of(target: Option<&Target>) -> String {
    let Some(target) = target else { return "unknown".to_owned() };
    let mut name = target.dbms.name().to_owned();
    if let Some(storage) = &target.storage_engine {
        name.push_str(&format!(" with {storage}"));
    }
    name
}

/// Apart by configuration if one version has several.
pub(super) fn by_config(family: String, rungs: Vec<Rung>) -> Vec<(String, Vec<Rung>)> {
    let mut names: Vec<&str> = rungs.iter().map(Rung::name).collect();
    names.sort_unstable();
    if names.windows(2).all(|pair| pair[0] != pair[1]) {
        return vec![(family, rungs)];
    }
    let mut parts: BTreeMap<String, Vec<Rung>> = BTreeMap::new();
    for rung in rungs {
        parts.entry(rung.config.clone()).or_default().push(rung);
    }
    let named = |(config, rungs)| (format!("{family}, config {config}"), rungs);
    parts.into_iter().map(named).collect()
}

/// The rung of a target.
pub(super) fn rung(comparison: &Comparison, target: usize) -> Rung {
    let facts = &comparison.targets[target];
    let version = facts.manifests.first().map(|manifest| manifest.version.as_str().to_owned());
    let config = facts.target.as_ref().map_or_else(String::new, |target| target.config.clone());
    let version = version.filter(|text| !text.is_empty());
    let branch = branch(facts.target.as_ref().map(|target| target.dbms), version.as_deref());
    Rung { label: facts.label.clone(), version, config, branch, target }
}

/// The branch of a version of a DBMS.
pub(super) fn branch(dbms: Option<Dbms>, version: Option<&str>) -> String {
    match (dbms, version) {
        (Some(dbms), Some(version)) => dbms.branch(&Version::new(version)),
        _ => String::new(),
    }
}

/// Places of versions along which changes are searched: all, or with branches the first version of
/// each branch and then each branch with two or more. A later branch begins from an early version
/// of the one before, not from its last fix.
pub(super) fn chains(rungs: &[Rung], branches: bool) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..rungs.len()).collect();
    if !branches {
        return vec![all];
    }
    let parts: Vec<&[usize]> = all.chunk_by(|a, b| rungs[*a].branch == rungs[*b].branch).collect();
    let trunk: Vec<usize> = parts.iter().map(|part| part[0]).collect();
    let several = parts.into_iter().filter(|part| part.len() > 1).map(<[usize]>::to_vec);
    std::iter::once(trunk).chain(several).collect()
}

/// By the numbers of their versions, so that 10.11.14 stands before 11.0.6 although it came out
/// later: each branch is together. Equal versions keep the plan's order. Not sorted, and false, if
/// a version has no numbers.
pub(super) fn sorted(mut rungs: Vec<Rung>) -> (Vec<Rung>, bool) {
    let numbers = |rung: &Rung| {
        let version = rung.version.as_ref().map(Version::new);
        version.map(|version| version.numbers()).unwrap_or_default()
    };
    let known = rungs.iter().all(|rung| !numbers(rung).is_empty());
    if known {
        rungs.sort_by_key(numbers);
    }
    (rungs, known)
}

// Points, levels and changes of each step of a ladder.

/// One step of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepLadder {
    /// Its name.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// One for each version of the ladder; `None` where it was not measured.
    pub points: Vec<Option<VersionPoint>>,
    /// Standard deviation of ln of one value, moderated over the steps.
    pub sd_ln: f64,
    /// True if `sd_ln` follows from values of several blocks. False if each version has one value:
    /// it then follows from how far neighbouring versions scatter.
    pub replicated: bool,
    /// Changes of level in the order of versions.
    pub changes: Vec<LevelChange>,
    /// The author's remarks beside the step, in imported results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// One version of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionPoint {
    /// Relative to the first version of the ladder that was measured on the step.
    pub ratio: f64,
    /// 95 % interval of what was measured, without the layout of the build. `None` for one value.
    pub interval: Option<Interval>,
    /// Number of blocks.
    pub n: usize,
    /// VersionLevel of this version and its neighbours, as a ratio to the first version.
    pub level: f64,
    /// It is off by itself: its neighbours on both sides share a level.
    pub outlier: bool,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// Place in the ladder of the first version of the new level.
    pub at: usize,
    /// Place of the measured version before it.
    pub after: usize,
    /// Levels: new / old.
    pub ratio: f64,
    /// 95 % t interval of the ratio. The layout of builds is in it; that the place was chosen by
    /// the data is not.
    pub interval: Interval,
}

/// Standard deviation, as ln, of one build among builds of the same code: from their layout, or for
/// an exact metric from the scatter of counts, tau / (2 √2) as of [`Rules::layout_sd`].
pub(super) fn build_sd(metric: Metric, layout_sd: f64) -> f64 {
    if metric.spec().exact {
        Rules { tau: COUNTS_TAU.ln_1p(), ..Rules::default() }.layout_sd()
    } else {
        layout_sd
    }
}

/// Every step that two or more of the rungs were measured on.
pub(super) fn steps(
    comparison: &Comparison,
    rungs: &[Rung],
    metric: Metric,
    (chains, layout_sd): (&[Vec<usize>], f64),
) -> Vec<StepLadder> {
    let values = comparison.measured_steps().map(|step| values(comparison, step, rungs, metric));
    let mut ladders = of_values(values, rungs.len(), (chains, layout_sd));
    for ladder in &mut ladders {
        ladder.remarks = remarks(comparison, &ladder.step);
    }
    ladders
}

/// The values of one step on a ladder.
pub(super) struct StepValues {
    pub step: String,
    pub group: Group,
    pub values: Vec<BlockValue>,
    /// Number of blocks of the values.
    pub blocks: usize,
}

/// Every step that two or more of so many versions have values of, without remarks. Changes are
/// those along chains of versions. Variances are moderated over these steps.
pub(super) fn of_values(
    steps: impl Iterator<Item = StepValues>,
    versions: usize,
    (chains, layout_sd): (&[Vec<usize>], f64),
) -> Vec<StepLadder> {
    let fits: Vec<(StepValues, VersionFit)> = steps
        .map(|step| {
            let fit = fit(&step.values, versions, step.blocks);
            (step, fit)
        })
        .filter(|(_, fit)| fit.means.iter().flatten().count() > 1)
        .collect();
    let spreads: Vec<Spread> = fits.iter().map(|(_, fit)| spread(fit, chains)).collect();
    // Not the robust prior of verdicts: with it 16 of 18 labelled slowdowns are found, 17 without.
    let prior = Prior::fit(&spreads);
    let moderated =
        spreads.iter().map(|own| prior.as_ref().map_or(*own, |prior| prior.moderate(*own)));
    let moderated: Vec<Spread> = moderated.collect();
    let ladder = |at: usize, alpha: f64| {
        let (step, fit) = &fits[at];
        step_ladder(step, fit, moderated[at], (chains, layout_sd), alpha)
    };
    // The largest number R of steps with a change where each has a chance of α R / m: Benjamini and
    // Hochberg (1995), so that of m steps without a change seldom one shows any.
    let all = fits.len().max(1);
    let mut found: Vec<StepLadder> = (0..fits.len()).map(|at| ladder(at, ALPHA)).collect();
    let mut changed = all;
    loop {
        let count = found.iter().filter(|step| !step.changes.is_empty()).count();
        if count == changed {
            return found;
        }
        changed = count;
        // Without a change at this level, there is none at a stricter one: only its place matters.
        let alpha = ALPHA * changed.max(1) as f64 / all as f64;
        found = (0..fits.len()).map(|at| ladder(at, alpha)).collect();
    }
}

/// The chance that a ladder or a history without changes shows one, for all its steps together.
pub(super) const ALPHA: f64 = 0.05;

fn remarks(comparison: &Comparison, step: &str) -> Vec<String> {
    let of_step =
        comparison.remarks.iter().filter(|remark| remark.step == step && remark.column.is_empty());
    let mut texts: Vec<String> = of_step.map(|remark| remark.text.clone()).collect();
    texts.dedup();
    texts
}

fn values(
    comparison: &Comparison,
    step: &StepComparison,
    rungs: &[Rung],
    metric: Metric,
) -> StepValues {
    // Fewer than one instruction per operation in other threads are those of a rare event.
    let least = if metric == Metric::BackgroundInstructionsPerOp { 1.0 } else { 0.0 };
    let mut blocks: BTreeMap<PairKey<'_>, usize> = BTreeMap::new();
    let mut values = Vec::new();
    for (version, rung) in rungs.iter().enumerate() {
        for sample in &step.targets[rung.target].samples {
            let Some(value) = sample.get(metric).filter(|value| *value > least) else { continue };
            let next = blocks.len();
            let block = *blocks.entry(pair_key(&comparison.runs[sample.run])).or_insert(next);
            values.push(BlockValue { version, block, ln: value.ln() });
        }
    }
    StepValues { step: step.name.clone(), group: step.group, values, blocks: blocks.len() }
}

/// Turns the median of absolute differences of neighbours into the standard deviation of one.
const MEDIAN_OF_DIFFERENCES_TO_SD: f64 = 1.4826 / std::f64::consts::SQRT_2;
/// Degrees of freedom of a median absolute deviation, per value.
const EFFICIENCY_OF_MEDIAN: f64 = 0.37;

/// Spread of one value: from blocks, or, with one value per version, from the differences of
/// neighbours in a chain, most of which span no change.
fn spread(fit: &VersionFit, chains: &[Vec<usize>]) -> Spread {
    if fit.df > 0 {
        return Spread { sd: (fit.squares / fit.df as f64).sqrt(), df: fit.df as f64 };
    }
    let mut differences = Vec::new();
    for chain in chains {
        let means: Vec<f64> = chain.iter().filter_map(|at| fit.means[*at]).collect();
        differences.extend(means.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
    }
    let median = summary::median(&differences).unwrap_or(0.0);
    let df = (EFFICIENCY_OF_MEDIAN * differences.len() as f64).max(1.0);
    Spread { sd: MEDIAN_OF_DIFFERENCES_TO_SD * median, df }
}

fn step_ladder(
    step: &StepValues,
    fit: &VersionFit,
    spread: Spread,
    (chains, layout_sd): (&[Vec<usize>], f64),
    alpha: f64,
) -> StepLadder {
    let first = fit.means.iter().flatten().next().copied().unwrap_or(0.0);
    let sd = spread.sd.max(SD_MIN);
    let error = |at: usize| sd / (fit.counts[at] as f64).sqrt();
    // The scatter of one value for each version is a guess that changes themselves widen: a cost of
    // 3 ln V, without a correction, finds the slowdowns that people have labelled.
    let alpha = if fit.df > 0 { alpha } else { 1.0 };
    let (count, values) = (fit.means.iter().flatten().count(), fit.counts.iter().sum::<usize>());
    // The layout is known, so the sum has more degrees of freedom than the scatter.
    let own = Estimate { mean: 0.0, se: sd / (values as f64 / count as f64).sqrt(), df: spread.df };
    // The whole ladder has as many places for a change, however it is divided into chains.
    let price = penalty(count, own.with_error(layout_sd).df, alpha);
    let mut points = vec![None; fit.means.len()];
    let mut changes = Vec::new();
    for chain in chains {
        // Places of measured versions, and their means: the partition knows no gaps.
        let measured: Vec<(usize, f64)> =
            chain.iter().filter_map(|&at| Some((at, fit.means[at]?))).collect();
        let versions: Vec<VersionMean> = measured
            .iter()
            .map(|(at, mean)| {
                let variance = error(*at).powi(2) + layout_sd * layout_sd;
                VersionMean { mean: mean - first, variance }
            })
            .collect();
        let levels = partition(&versions, price).levels;
        for level in &levels {
            for (place, &(at, mean)) in measured.iter().enumerate().take(level.to).skip(level.from)
            {
                let own = Estimate { mean: mean - first, se: error(at), df: spread.df };
                let several = fit.counts[at] > 1 && fit.df > 0;
                // The first version of a branch is in two chains; the first of them counts.
                points[at].get_or_insert_with(|| VersionPoint {
                    ratio: own.mean.exp(),
                    interval: several.then(|| own.interval(CONFIDENCE).exp()),
                    n: fit.counts[at],
                    level: level.mean.exp(),
                    outlier: level.outliers.contains(&place),
                });
            }
        }
        changes.extend(levels.windows(2).map(|pair| {
            let [after, at] = [pair[1].from - 1, pair[1].from].map(|place| measured[place].0);
            change([&pair[0], &pair[1]], spread.df, [after, at])
        }));
    }
    changes.sort_by_key(|change| change.at);
    StepLadder {
        step: step.step.clone(),
        group: step.group,
        points,
        sd_ln: spread.sd,
        replicated: fit.df > 0,
        changes,
        remarks: Vec::new(),
    }
}

fn change([old, new]: [&VersionLevel; 2], df: f64, [after, at]: [usize; 2]) -> LevelChange {
    let se = (old.error.powi(2) + new.error.powi(2)).sqrt();
    let estimate = Estimate { mean: new.mean - old.mean, se, df };
    LevelChange {
        at,
        after,
        ratio: estimate.mean.exp(),
        interval: estimate.interval(CONFIDENCE).exp(),
    }
}

// One mean per version from values of blocks: versions and blocks add up.

/// A value of one version in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockValue {
    pub version: usize,
    pub block: usize,
    /// Natural logarithm of the metric.
    pub ln: f64,
}

/// Means of versions, free of what each block gave to all of them.
#[derive(Clone, Debug, PartialEq)]
struct VersionFit {
    /// One for each version; `None` without a value.
    pub means: Vec<Option<f64>>,
    /// Number of values of each version.
    pub counts: Vec<usize>,
    /// Sum of squares of what versions and blocks do not explain.
    pub squares: f64,
    /// Its degrees of freedom; 0 if every version has one value.
    pub df: usize,
}

const ROUNDS_MAX: usize = 500;
const STILL: f64 = 1e-12;

/// Least squares of ln = version + block, by alternating means. Block effects average to 0.
fn fit(values: &[BlockValue], versions: usize, blocks: usize) -> VersionFit {
    let mut counts = vec![0; versions];
    let mut in_blocks = vec![0; blocks];
    for value in values {
        counts[value.version] += 1;
        in_blocks[value.block] += 1;
    }
    let mut means = vec![0.0; versions];
    let mut offsets = vec![0.0; blocks];
    for _ in 0..ROUNDS_MAX {
        let old = means.clone();
        means.fill(0.0);
        for value in values {
            means[value.version] +=
                (value.ln - offsets[value.block]) / counts[value.version] as f64;
        }
        offsets.fill(0.0);
        for value in values {
            offsets[value.block] +=
                (value.ln - means[value.version]) / in_blocks[value.block] as f64;
        }
        if means.iter().zip(&old).all(|(new, old)| (new - old).abs() < STILL) {
            break;
        }
    }
    let rest = |value: &BlockValue| value.ln - means[value.version] - offsets[value.block];
    let squares = values.iter().map(|value| rest(value).powi(2)).sum();
    let used = |counts: &[usize]| counts.iter().filter(|count| **count > 0).count();
    let df = (values.len() + 1).saturating_sub(used(&counts) + used(&in_blocks));
    let known = |(mean, count): (f64, &usize)| (*count > 0).then_some(mean);
    VersionFit { means: means.into_iter().zip(&counts).map(known).collect(), counts, squares, df }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    fn rungs(versions: &[&str]) -> Vec<Rung> {
        let rung = |(target, version): (usize, &&str)| Rung {
            label: (*version).to_owned(),
            version: Some((*version).to_owned()).filter(|text| !text.is_empty()),
            branch: branch(Some(Dbms::Mariadb), Some(version)),
            config: format!("c{}", target % 2),
            target,
        };
        versions.iter().enumerate().map(rung).collect()
    }

    #[test]
    fn branches_stay_together() {
        let (sorted, by_version) = sorted(rungs(&["11.0.6", "10.11.14", "10.4.8", "10.4.34"]));
        let labels: Vec<&str> = sorted.iter().map(|rung| rung.label.as_str()).collect();
        assert_eq!(labels, ["10.4.8", "10.4.34", "10.11.14", "11.0.6"]);
        assert!(by_version);
    }

    #[test]
    fn configurations_are_ladders_where_a_version_has_several() {
        let one = by_config("mysql".to_owned(), rungs(&["5.6", "5.7", "8.0"]));
        assert_eq!(one.len(), 1);
        let two = by_config("mysql".to_owned(), rungs(&["5.6", "5.6", "8.0", "8.0"]));
        let names: Vec<&str> = two.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["mysql, config c0", "mysql, config c1"]);
        assert!(two.iter().all(|(_, rungs)| rungs.len() == 2));
    }

    #[test]
    fn branches_are_chains() {
        let all = rungs(&["10.2.30", "10.4.8", "10.4.34", "10.11.14", "11.0.6"]);
        assert_eq!(chains(&all, false), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(chains(&all, true), [vec![0, 1, 3, 4], vec![1, 2]]);
        let of = |dbms, version| branch(Some(dbms), Some(version));
        assert_eq!(of(Dbms::Postgres, "17.2.0"), "17");
        assert_eq!(of(Dbms::Postgres, "9.6.24"), "9.6");
        assert_eq!(of(Dbms::Rocksdb, "10.6.2"), "10.6");
    }

    #[test]
    fn an_unknown_version_keeps_the_order_of_the_plan() {
        let (sorted, by_version) = sorted(rungs(&["11.0.6", "", "10.4.8"]));
        let targets: Vec<usize> = sorted.iter().map(|rung| rung.target).collect();
        assert_eq!(targets, [0, 1, 2]);
        assert!(!by_version);
    }

    #[test]
    fn counts_show_changes_that_a_layout_would_hide_in_rates() {
        let found = |metric| {
            let value = |version: usize, block: usize| BlockValue {
                version,
                block,
                ln: (if version < 3 { 0.0 } else { 0.006 }) + 1e-5 * (block as f64),
            };
            let values = (0..6).flat_map(|version| (0..3).map(move |block| value(version, block)));
            let step = StepValues {
                step: "point-query".to_owned(),
                group: Group::Point,
                values: values.collect(),
                blocks: 3,
            };
            let chains = [(0..6).collect()];
            let sd = build_sd(metric, 0.0035);
            let ladders = of_values(std::iter::once(step), 6, (&chains, sd));
            ladders[0].changes.iter().map(|change| change.at).collect::<Vec<_>>()
        };
        assert_eq!(found(Metric::InstructionsPerOp), [3]);
        assert_eq!(found(Metric::Rate), [0; 0]);
    }

    /// Ladders of 33 steps and eight versions of four blocks, seeded; in the first `changed` steps the
    /// fifth version loses 3 %. The share of ladders with a false change, that of false changes among
    /// all, and that of changes found.
    fn simulated(changed: usize, layout: f64) -> [f64; 3] {
        let (ladders, steps, versions, blocks) = (60, 33, 8, 4);
        let mut rng = Rng::stream(5, "ladders", changed as u64);
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let (mut any, mut wrong, mut found) = (0, 0, 0);
        for _ in 0..ladders {
            let mut step = |at: usize| {
                let mut values = Vec::new();
                for version in 0..versions {
                    let lost = if at < changed && version >= 4 { -0.03 } else { 0.0 };
                    let level = lost + layout * normal();
                    values.extend((0..blocks).map(|block| BlockValue {
                        version,
                        block,
                        ln: level + 0.01 * normal(),
                    }));
                }
                StepValues { step: at.to_string(), group: Group::Point, values, blocks }
            };
            let all: Vec<StepValues> = (0..steps).map(&mut step).collect();
            let chains = [(0..versions).collect()];
            let found_in = of_values(all.into_iter(), versions, (&chains, 0.0035));
            let (of_changed, equal) = found_in.split_at(changed);
            let count = equal.iter().filter(|step| !step.changes.is_empty()).count();
            (any, wrong) = (any + usize::from(count > 0), wrong + count);
            let is_there = |step: &&StepLadder| step.changes.iter().any(|change| change.at == 4);
            found += of_changed.iter().filter(is_there).count();
        }
        let share = |part: usize, all: usize| part as f64 / all.max(1) as f64;
        [share(any, ladders), share(wrong, wrong + found), share(found, ladders * changed)]
    }

    /// Before the correction over the steps (a cost of 3 ln V for each), .45 of the ladders without
    /// a change showed one, .85 with layout, and .26 of the changes that were found were false.
    #[test]
    fn ladders_of_many_steps_without_a_change_seldom_show_one() {
        for layout in [0.0, 0.0035] {
            let [any, ..] = simulated(0, layout);
            assert!(any <= 0.1, "{layout}: {any}");
        }
        let [_, wrong, found] = simulated(5, 0.0035);
        assert!(wrong <= 0.07 && found >= 0.95, "{wrong} {found}");
    }

    fn values(table: &[&[Option<f64>]]) -> Vec<BlockValue> {
        let rows = table.iter().enumerate();
        let cells = rows.flat_map(|(block, row)| {
            row.iter()
                .enumerate()
                .filter_map(move |(version, ln)| ln.map(|ln| BlockValue { version, block, ln }))
        });
        cells.collect()
    }

    #[test]
    fn a_complete_table_gives_its_column_means() {
        let of = |row: [f64; 3]| row.map(Some);
        let (a, b) = (of([1.0, 2.0, 4.0]), of([2.0, 3.0, 5.3]));
        let fit = fit(&values(&[&a, &b]), 3, 2);
        let centre = |mean: Option<f64>| mean.map(|mean| mean - fit.means[0].unwrap_or(0.0));
        let means: Vec<f64> = fit.means.iter().filter_map(|mean| centre(*mean)).collect();
        let expected = [0.0, 1.0, 3.15];
        assert!(means.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{means:?}");
        // Residuals of ±.05 and ±.1 by hand: interactions of a 2 x 3 table.
        assert!((fit.squares - (4.0 * 0.05_f64.powi(2) + 2.0 * 0.1_f64.powi(2))).abs() < 1e-9);
        assert_eq!(fit.df, 2);
    }

    /// A version that lacks the slow block is not taken for a fast one.
    #[test]
    fn a_missing_block_moves_no_mean() {
        let fit = fit(
            &values(&[
                &[Some(1.0), Some(1.5), Some(1.0)],
                &[Some(0.0), Some(0.5), None],
                &[Some(1.0), Some(1.5), Some(1.0)],
            ]),
            3,
            3,
        );
        let means: Vec<f64> = fit.means.iter().map(|mean| mean.expect("a mean")).collect();
        assert!((means[1] - means[0] - 0.5).abs() < 1e-6, "{means:?}");
        assert!((means[2] - means[0]).abs() < 1e-6, "{means:?}");
        assert!(fit.squares < 1e-9);
        assert_eq!(fit.df, 3);
    }

    #[test]
    fn one_block_has_no_spread() {
        let fit = fit(&values(&[&[Some(1.0), Some(2.0), None]]), 3, 1);
        assert_eq!((fit.df, fit.means[2]), (0, None));
    }
}
