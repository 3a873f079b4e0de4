//! Targets divided by their base, step by step, over pairs that were measured in the same block.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::caveat::{self, Caveat};
use super::groups::{GroupSummary, summarize_groups};
use super::measured::{self, Distribution, Measured};
use super::metrics::Values;
use super::remarks::{self, Remark};
use super::sessions::{self, Sessions};
use super::verdict::{self, Explanation, Judgement, Summary, VerdictOptions};
use super::write_rate::{self, MissedRate};
use crate::benchmarks::vector::analyze::equal_recall;
use crate::domain::benchmark::{Group, RateUnit, Workload};
use crate::domain::build::{BuildSource, Manifest};
use crate::domain::config::Config;
use crate::domain::gate::HostLog;
use crate::domain::host::Host;
use crate::domain::metric::Metric;
use crate::domain::run::{Dataset, LoadRecord, Run, RunKey, Status, StepRecord};
use crate::domain::target::Target;
use crate::domain::vector::Point;
use crate::domain::verdict::{LookSchedule, Rules};
use crate::parallel;
use crate::stats::Interval;
use crate::stats::paired::{HodgesLehmann, hodges_lehmann, mean_interval};
use crate::stats::stability::Stability;
use crate::stats::summary::median;

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Why there is nothing to compare.
#[derive(Debug, Error)]
pub enum AnalyzeError {
    /// No run folder in what was read.
    #[error(
        "compare: there is no run in these folders: nothing was measured yet; go on with one by \
         `rqps run --resume`, or name a folder that holds run folders"
    )]
    NoRuns,
    /// The base that was asked for is not among the targets.
    #[error("compare with base `{base}`: there is no such target; these folders hold {}",
            labels.join(", "))]
    UnknownBase {
        /// As asked for.
        base: String,
        /// The labels there are.
        labels: Vec<String>,
    },
}

/// All targets against the base. Everything that a report shows comes from here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Label of the base.
    pub base: String,
    /// The base first, then the others in the order of the plan.
    pub targets: Vec<TargetFacts>,
    /// Fingerprint → host.
    pub hosts: BTreeMap<String, Host>,
    /// All runs, in the order of their keys.
    pub runs: Vec<RunFacts>,
    /// Reported steps in the field's order: by group, then by name.
    pub steps: Vec<StepComparison>,
    /// Summaries of point, range and write.
    pub groups: Vec<GroupSummary>,
    /// By what verdicts were given.
    pub rules: Rules,
    /// How the plan looked at its results, if it measured until steps were settled.
    pub schedule: Option<LookSchedule>,
    /// All verdicts in short.
    pub summary: Summary,
    /// Result set → what happened on the host beside its blocks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gates: BTreeMap<String, HostLog>,
    /// Why numbers deserve doubt, the gravest first.
    pub caveats: Vec<Caveat>,
    /// What imported files say besides numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

impl Comparison {
    /// True if targets took turns within every step that was measured.
    pub fn all_in_turns(&self) -> bool {
        let targets = self.measured_steps().flat_map(|step| &step.targets);
        let mut samples = targets.flat_map(|target| &target.samples).peekable();
        samples.peek().is_some() && samples.all(|sample| sample.record.outcome.turns.is_some())
    }

    /// True if targets took turns within any step.
    pub fn has_turns(&self) -> bool {
        let targets = self.steps.iter().flat_map(|step| &step.targets);
        let mut samples = targets.flat_map(|target| &target.samples);
        samples.any(|sample| sample.record.outcome.turns.is_some())
    }
}

/// What is known of a target from its runs. Lists hold distinct values in the order of the runs;
/// more than one value is a caveat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetFacts {
    /// Its label.
    pub label: String,
    /// As planned; `None` if none of its runs was begun.
    pub target: Option<Target>,
    /// Its builds.
    pub manifests: Vec<Manifest>,
    /// Where its tables were on a server that rqps does not run.
    pub places: Vec<String>,
    /// Its configurations.
    pub configs: Vec<Config>,
    /// Its workloads.
    pub workloads: Vec<Workload>,
    /// Loads, one for each result set.
    pub loads: Vec<LoadRecord>,
    /// Places of its runs in the comparison's list.
    pub runs: Vec<usize>,
}

/// One run folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFacts {
    /// The folder as the reader finds it.
    pub folder: String,
    /// The result set.
    pub result_set: String,
    /// Which run.
    pub key: RunKey,
    /// How it went.
    pub status: Status,
    /// The benchmark.
    pub benchmark: String,
    /// Fingerprint of the host.
    pub host_fingerprint: String,
    /// Version of rqps that measured.
    pub rqps_version: String,
    /// Seed.
    pub seed: u64,
    /// Hash of the plan.
    pub plan_hash: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC.
    pub finished: Option<String>,
}

/// One step of all targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepComparison {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: Group,
    /// True parameters.
    pub detail: String,
    /// What the rate counts.
    pub rate: RateUnit,
    /// One for each target of the comparison, in its order: the base first.
    pub targets: Vec<TargetResult>,
}

/// One step of one target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetResult {
    /// The target.
    pub label: String,
    /// The step that was measured, where it is not that of the comparison but the target's own
    /// choice: its best at a recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Completed measurements, in the order of the runs.
    pub samples: Vec<Sample>,
    /// Those that did not come to their end.
    pub failures: Vec<Failure>,
    /// Folders of the runs of both, in this order.
    #[serde(skip)]
    pub folders: Arc<[String]>,
    /// All metrics that at least one sample has, or that have a reason to be missing.
    pub metrics: BTreeMap<Metric, MetricResult>,
    /// The write rate beside the queries, if the target did not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_rate: Option<MissedRate>,
    /// Why nothing can be said of this target and the base in this step although both were
    /// measured; empty where they can be compared. Ratios then get no verdict and enter no mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_comparable: Vec<String>,
    /// Costs that moved with the rate, the largest change first; empty for the base and where the
    /// rate did not change.
    pub explanations: Vec<Explanation>,
}

impl Comparison {
    /// True if a target could have been measured on a step. Indexes of vectors have parameters of
    /// their own on each DBMS, and steps are named after them: nobody could measure both sides.
    pub fn is_for(&self, step: &StepComparison, target: usize) -> bool {
        let dbms = |place: usize| self.targets[place].target.as_ref().map(|target| target.dbms);
        let measured =
            (0..step.targets.len()).filter(|place| !step.targets[*place].samples.is_empty());
        !Point::is_named_in(&step.name) || measured.into_iter().any(|at| dbms(at) == dbms(target))
    }

    /// True if others measured a target.
    pub fn is_imported(&self, target: usize) -> bool {
        let source = self.targets[target].target.as_ref().map(|target| &target.source);
        matches!(source, Some(BuildSource::Imported(_)))
    }

    /// Groups that have steps, in the order of reports; those of a newer rqps come last.
    pub fn groups_of_steps(&self) -> BTreeSet<Group> {
        self.steps.iter().map(|step| step.group).collect()
    }

    /// Metrics that any target has on any step, in the order of reports; those of a newer rqps come
    /// last.
    pub fn metrics(&self) -> BTreeSet<Metric> {
        let targets = self.steps.iter().flat_map(|step| &step.targets);
        targets.flat_map(|target| target.metrics.keys().copied()).collect()
    }

    /// The steps that were measured under their own names.
    pub fn measured_steps(&self) -> impl Iterator<Item = &StepComparison> {
        self.steps.iter().filter(|step| !step.is_choice())
    }
}

impl StepComparison {
    /// True if its targets were not measured under its name, but each has its own choice in it.
    pub fn is_choice(&self) -> bool {
        self.targets.iter().any(|target| target.chosen.is_some())
    }
}

impl TargetResult {
    /// A target that has nothing of a step.
    pub(crate) fn none(label: &str) -> TargetResult {
        TargetResult {
            label: label.to_owned(),
            chosen: None,
            samples: Vec::new(),
            failures: Vec::new(),
            folders: Arc::default(),
            metrics: BTreeMap::new(),
            missed_rate: None,
            not_comparable: Vec::new(),
            explanations: Vec::new(),
        }
    }

    /// The same measurements in another step, with no ratio yet.
    pub(crate) fn chosen_for_another(&self, name: &str) -> TargetResult {
        let mut chosen = TargetResult { chosen: Some(name.to_owned()), ..self.clone() };
        chosen.metrics.values_mut().for_each(|result| result.relative = None);
        chosen
    }

    /// True if a run of the target carried it out, to its end or not.
    pub fn was_carried_out(&self) -> bool {
        !self.samples.is_empty() || !self.failures.is_empty()
    }

    /// The metric in comparison with the base.
    pub fn relative(&self, metric: Metric) -> Option<&Relative> {
        self.metrics.get(&metric).and_then(|result| result.relative.as_ref())
    }

    /// The same, only where target and base can be compared in this step: for means, and for
    /// tables that have no room for a reason.
    pub fn comparable(&self, metric: Metric) -> Option<&Relative> {
        self.relative(metric).filter(|_| !self.is_void(metric))
    }

    /// True if the target was measured, but cannot be compared with the base by this metric. Rates
    /// of the writers themselves can, also where they are what makes the rest incomparable.
    pub fn is_void(&self, metric: Metric) -> bool {
        let of_writers = matches!(metric, Metric::InsertRate | Metric::DeleteRate);
        !self.not_comparable.is_empty() && !of_writers
    }

    /// The median of the metric over the samples.
    pub fn absolute(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).and_then(|result| result.absolute)
    }
}

/// One completed step of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Place of the run in the comparison's list.
    pub run: usize,
    /// Events in the window.
    pub events: u64,
    /// Statements in the window.
    pub statements: u64,
    /// Errors of all codes.
    pub errors: u64,
    /// Writes that met no row.
    pub no_ops: u64,
    /// Its metrics.
    pub values: Values,
    /// How evenly its rate was delivered, and whether it was steady; `None` where the record has
    /// no intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub course: Option<Stability>,
    /// How its latencies are distributed; `None` where the histogram cannot be read.
    #[serde(skip)]
    pub distribution: Option<Distribution>,
    /// What all this follows from; its latencies may be gone ([`measured::digest`]).
    #[serde(skip)]
    pub record: Arc<StepRecord>,
}

/// A step that did not come to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Place of the run in the comparison's list.
    pub run: usize,
    /// How it went: never [`Status::Complete`].
    pub status: Status,
}

/// One metric of one step of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MetricResult {
    /// Median over the samples that have it.
    pub absolute: Option<f64>,
    /// How many samples have it.
    pub n: usize,
    /// Why the first sample that lacks it does.
    pub missing: Option<String>,
    /// In comparison with the base; `None` for the base itself, and where one side has nothing.
    pub relative: Option<Relative>,
}

/// Target / base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Relative {
    /// The ratio; infinite where only the base is 0 (in JSON: the text `inf`).
    #[serde(serialize_with = "number_or_inf")]
    pub ratio: f64,
    /// 95 % t interval on the paired logarithms; `None` for fewer than two pairs, and where a
    /// value is 0.
    pub interval: Option<Interval>,
    /// Sample standard deviation of the paired ln ratios.
    pub sd_ln: Option<f64>,
    /// Pairs: one for each block and attempt in which both completed the step. 0 if the ratio is
    /// one of unpaired medians.
    pub pairs: usize,
    /// The robust check on the rate, as a ratio: from 6 pairs on, with its exact 95 % interval.
    pub robust: Option<Robust>,
    /// The ln ratio of each pair, in the order of the blocks.
    #[serde(skip)]
    pub differences: Vec<f64>,
    /// With pairs of several result sets: what each of them found. The ratio and its interval are
    /// then the pooled ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    /// What is said about it.
    pub judgement: Option<Judgement>,
}

impl Relative {
    /// A ratio of medians: without pairs, or with pairs of which one has a value of 0.
    fn of_medians(ratio: f64, pairs: usize) -> Relative {
        Relative {
            ratio,
            interval: None,
            sd_ln: None,
            pairs,
            robust: None,
            differences: Vec::new(),
            sessions: None,
            judgement: None,
        }
    }

    /// What a verdict rests on: a value for each session if there are several, else one for each
    /// pair.
    pub fn evidence(&self) -> &[f64] {
        match &self.sessions {
            Some(sessions) => &sessions.values,
            None => &self.differences,
        }
    }
}

/// Hodges-Lehmann estimate of the ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Robust {
    /// exp of the median Walsh average of the ln ratios.
    pub ratio: f64,
    /// Exact interval of the signed-rank statistic.
    pub interval: Interval,
}

pub(crate) fn number_or_inf<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() {
        serializer.serialize_f64(*number)
    } else {
        serializer.serialize_str("inf")
    }
}

/// Compares every target of a dataset with its base: the one of `options`, or the first target of
/// the plan.
///
/// Per step and metric, each block and attempt in which both sides completed the step is a pair
/// with d = ln(target) − ln(base); the ratio is exp(mean d) and its interval the t interval on d,
/// which covers what it promises from few pairs on ([`mean_interval`]). The ratio of one pair is
/// its quotient. Pairs of several result sets are pooled with a random effect for the set
/// ([`sessions`]). All completed pairs count, also those of a block that was interrupted and done
/// again. Where a value of a pair is 0 the ratio is that of the medians over the pairs, in the
/// field's convention: 0/0 is 1, x/0 is infinite; it has no interval. Where both sides were
/// measured but never in one block, the ratio is that of the medians, has no pairs and no interval,
/// and a caveat says so.
pub fn compare(dataset: &Dataset, options: &VerdictOptions) -> Result<Comparison, AnalyzeError> {
    let measured = parallel::map(dataset.runs.iter().collect(), measured::measure);
    compare_measured(dataset, measured, options)
}

/// The same with what [`measured::measure`] or [`measured::digest`] made of each run of the
/// dataset, in its order.
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Vec<Option<Measured>>>,
    options: &VerdictOptions,
) -> Result<Comparison, AnalyzeError> {
    assert_eq!(measured.len(), dataset.runs.len(), "every run is measured");
    let labels = ordered_labels(dataset, options.base.as_deref())?;
    let runs: Vec<RunFacts> = dataset.runs.iter().map(run_facts).collect();
    let targets = target_facts(dataset, &labels);
    let heads = step_heads(dataset, &labels, measured);
    let steps = parallel::map(heads, |head| {
        let mut step = measured_step(dataset, &labels, head);
        divide(&runs, &mut step);
        write_rate::note(&targets, &mut step);
        step
    });
    let groups = summarize_groups(&steps);
    let mut comparison = Comparison {
        base: labels[0].clone(),
        targets,
        hosts: dataset.hosts.clone(),
        runs,
        steps,
        groups,
        rules: options.rules,
        schedule: dataset.runs.iter().find_map(|run| run.record.schedule),
        summary: Summary::default(),
        gates: dataset.gates.clone(),
        caveats: Vec::new(),
        remarks: remarks::find(dataset),
    };
    let mut choices = equal_recall::steps(&comparison);
    choices.iter_mut().for_each(|step| divide(&comparison.runs, step));
    // What a reader of points wants to know first.
    let points = comparison.steps.partition_point(|step| step.group < Group::Point);
    comparison.steps.splice(points..points, choices);
    verdict::judge(&mut comparison, &dataset.gates);
    comparison.caveats = caveat::find(dataset, &comparison);
    Ok(comparison)
}

/// Labels with the base first and the others in the order of the plans.
fn ordered_labels(dataset: &Dataset, base: Option<&str>) -> Result<Vec<String>, AnalyzeError> {
    let records = dataset.runs.iter().map(|run| &run.record);
    let named = records.flat_map(|record| record.targets.iter().chain([&record.key.label]));
    let mut known = BTreeSet::new();
    let new = named.filter(|label| known.insert(label.as_str()));
    let mut labels: Vec<String> = new.cloned().collect();
    let Some(first) = labels.first().cloned() else { return Err(AnalyzeError::NoRuns) };
    let base = base.unwrap_or(&first);
    match labels.iter().position(|label| label == base) {
        Some(place) => {
            let base = labels.remove(place);
            labels.insert(0, base);
            Ok(labels)
        }
        None => Err(AnalyzeError::UnknownBase { base: base.to_owned(), labels }),
    }
}

fn run_facts(run: &Run) -> RunFacts {
    let record = &run.record;
    RunFacts {
        folder: run.folder.clone(),
        result_set: run.result_set.clone(),
        key: record.key.clone(),
        status: record.status.clone(),
        benchmark: record.benchmark.clone(),
        host_fingerprint: record.host_fingerprint.clone(),
        rqps_version: record.rqps_version.clone(),
        seed: record.seed,
        plan_hash: record.plan_hash.clone(),
        started: record.started.clone(),
        finished: record.finished.clone(),
    }
}

fn target_facts(dataset: &Dataset, labels: &[String]) -> Vec<TargetFacts> {
    let nothing = |label: &String| TargetFacts {
        label: label.clone(),
        target: None,
        manifests: Vec::new(),
        places: Vec::new(),
        configs: Vec::new(),
        workloads: Vec::new(),
        loads: Vec::new(),
        runs: Vec::new(),
    };
    let mut targets: Vec<TargetFacts> = labels.iter().map(nothing).collect();
    let places = places(labels);
    for (index, run) in dataset.runs.iter().enumerate() {
        let record = &run.record;
        let facts = &mut targets[places[record.key.label.as_str()]];
        facts.target.get_or_insert_with(|| record.target.clone());
        push_new(&mut facts.manifests, &record.manifest);
        if let Some(place) = &record.place {
            push_new(&mut facts.places, place);
        }
        push_new(&mut facts.configs, &record.config);
        push_new(&mut facts.workloads, &record.workload);
        if let Some(load) = &record.load {
            push_new(&mut facts.loads, load);
        }
        facts.runs.push(index);
    }
    targets
}

/// Where each label stands. All labels of a dataset are among those of [`ordered_labels`].
fn places(labels: &[String]) -> HashMap<&str, usize> {
    labels.iter().enumerate().map(|(place, label)| (label.as_str(), place)).collect()
}

fn push_new<T: Clone + PartialEq>(list: &mut Vec<T>, value: &T) {
    if !list.contains(value) {
        list.push(value.clone());
    }
}

/// A step, and how it went each time that it was carried out.
struct Head<'a> {
    /// The first time.
    step: &'a StepRecord,
    /// For each target, in the order of the runs.
    times: Vec<Vec<Time<'a>>>,
}

/// Place of the run, its record of the step, and what follows from that if it was completed.
type Time<'a> = (usize, &'a Arc<StepRecord>, Option<Measured>);

/// The reported steps of all runs in the field's order.
fn step_heads<'a>(
    dataset: &'a Dataset,
    labels: &[String],
    measured: Vec<Vec<Option<Measured>>>,
) -> Vec<Head<'a>> {
    let places = places(labels);
    let mut heads: BTreeMap<&str, Head<'a>> = BTreeMap::new();
    for ((index, run), measured) in dataset.runs.iter().enumerate().zip(measured) {
        if let Status::Discarded(_) = run.record.status {
            continue;
        }
        assert_eq!(measured.len(), run.steps.len(), "every step is measured");
        let target = places[run.record.key.label.as_str()];
        for (step, measured) in run.steps.iter().zip(measured).filter(|(step, _)| step.reported) {
            let new = || Head { step, times: labels.iter().map(|_| Vec::new()).collect() };
            let head = heads.entry(&step.name).or_insert_with(new);
            head.times[target].push((index, step, measured));
        }
    }
    let mut heads: Vec<Head<'a>> = heads.into_values().collect();
    // Steps of the Insert Benchmark build on each other: their order is that of the sequence.
    let sequence = dataset.runs.iter().all(|run| run.record.benchmark == "insert");
    heads.sort_by(|Head { step: a, .. }, Head { step: b, .. }| match sequence {
        true => (a.index, &a.name).cmp(&(b.index, &b.name)),
        false => (a.group, field_order(&a.name)).cmp(&(b.group, field_order(&b.name))),
    });
    heads
}

/// The field's order of names: letters and digits only, larger numbers first, so that
/// random-points comes as 1000, 100, 10 and read-only-count before read-only_range.
fn field_order(name: &str) -> (String, std::cmp::Reverse<u64>, &str) {
    let (text, number) = match name.rsplit_once('=') {
        Some((text, number)) => (text, number.parse().unwrap_or(0)),
        None => (name, 0),
    };
    let text = text.chars().filter(char::is_ascii_alphanumeric).collect();
    (text, std::cmp::Reverse(number), name)
}

fn measured_step(dataset: &Dataset, labels: &[String], head: Head<'_>) -> StepComparison {
    let targets = labels.iter().zip(head.times);
    StepComparison {
        name: head.step.name.clone(),
        group: head.step.group,
        detail: head.step.detail.clone(),
        rate: head.step.rate,
        targets: targets.map(|(label, times)| target_step(dataset, label, times)).collect(),
    }
}

/// Fills in the ratios of all targets but the base.
fn divide(runs: &[RunFacts], step: &mut StepComparison) {
    let pair_keys = |target: &TargetResult| -> Vec<(usize, PairKey<'_>)> {
        let key = |sample: &Sample| pair_key(&runs[sample.run]);
        target.samples.iter().enumerate().map(|(i, sample)| (i, key(sample))).collect()
    };
    let Some((base, others)) = step.targets.split_first_mut() else { return };
    let base_keys: BTreeMap<PairKey<'_>, usize> =
        pair_keys(base).into_iter().map(|(index, key)| (key, index)).collect();
    for target in others {
        let pairs: Vec<(usize, usize)> = pair_keys(target)
            .into_iter()
            .filter_map(|(index, key)| base_keys.get(&key).map(|base| (*base, index)))
            .collect();
        let known: Vec<Metric> = target.metrics.keys().copied().collect();
        for metric in known {
            let set = |place: usize| runs[target.samples[place].run].result_set.as_str();
            let relative = relative(metric, base, target, &pairs, &set);
            if let Some(result) = target.metrics.get_mut(&metric) {
                result.relative = relative;
            }
        }
    }
}

/// What two runs share if they may be paired: result set, block, attempt.
pub(crate) type PairKey<'a> = (&'a str, u32, u32);

pub(crate) fn pair_key(run: &RunFacts) -> PairKey<'_> {
    (&run.result_set, run.key.block, run.key.attempt)
}

fn target_step(dataset: &Dataset, label: &str, times: Vec<Time<'_>>) -> TargetResult {
    let mut samples = Vec::with_capacity(times.len());
    let mut failures = Vec::new();
    for (run, record, measured) in times {
        let Some(Measured { values, course, distribution }) = measured else {
            failures.push(Failure { run, status: record.status.clone() });
            continue;
        };
        samples.push(Sample {
            run,
            events: record.outcome.events,
            statements: record.outcome.statements,
            errors: record.outcome.errors.values().sum(),
            no_ops: record.outcome.no_ops,
            values,
            course,
            distribution,
            record: Arc::clone(record),
        });
    }
    let mut known = BTreeSet::new();
    samples.iter().for_each(|sample| known.extend(sample.values.metrics()));
    let metrics = known
        .into_iter()
        .filter_map(|metric| metric_result(&samples, metric).map(|result| (metric, result)))
        .collect();
    let runs = samples.iter().map(|sample| sample.run);
    let runs = runs.chain(failures.iter().map(|failure| failure.run));
    let folders = runs.map(|run| dataset.runs[run].folder.clone()).collect();
    TargetResult { samples, failures, folders, metrics, ..TargetResult::none(label) }
}

fn metric_result(samples: &[Sample], metric: Metric) -> Option<MetricResult> {
    let numbers: Vec<f64> = samples.iter().filter_map(|sample| sample.values.get(metric)).collect();
    let missing = samples.iter().find_map(|sample| sample.values.why_missing(metric));
    (!numbers.is_empty() || missing.is_some()).then(|| MetricResult {
        absolute: median(&numbers),
        n: numbers.len(),
        missing: missing.map(str::to_owned),
        relative: None,
    })
}

fn relative<'a>(
    metric: Metric,
    base: &TargetResult,
    target: &TargetResult,
    places: &[(usize, usize)],
    set: &dyn Fn(usize) -> &'a str,
) -> Option<Relative> {
    let value = |side: &TargetResult, index: usize| side.samples[index].values.get(metric);
    let with_sets: Vec<(&str, (f64, f64))> = places
        .iter()
        .filter_map(|(b, t)| Some((set(*t), (value(base, *b)?, value(target, *t)?))))
        .collect();
    let pairs: Vec<(f64, f64)> = with_sets.iter().map(|(_, pair)| *pair).collect();
    if pairs.is_empty() {
        let ratio = field_ratio(target.absolute(metric)?, base.absolute(metric)?);
        return Some(Relative::of_medians(ratio, 0));
    }
    if pairs.iter().any(|(base, target)| *base <= 0.0 || *target <= 0.0) {
        let bases: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let targets: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let ratio = field_ratio(median(&targets)?, median(&bases)?);
        return Some(Relative::of_medians(ratio, pairs.len()));
    }
    let differences: Vec<f64> =
        pairs.iter().map(|(base, target)| target.ln() - base.ln()).collect();
    let mean = mean_interval(&differences, CONFIDENCE)?;
    // The check costs n² per step: on the rate only, which is what verdicts rest on.
    let robust =
        if metric == Metric::Rate { hodges_lehmann(&differences, CONFIDENCE) } else { None };
    // exp(ln − ln) of one pair may differ from its quotient in the last bit, which moves what is
    // printed of a ratio that lies halfway between two decimals.
    let own = match pairs.as_slice() {
        [(base, target)] => target / base,
        _ => mean.mean.exp(),
    };
    let sets = with_sets.iter().map(|(set, _)| *set);
    let of_sets: Vec<(&str, f64)> = sets.zip(differences.iter().copied()).collect();
    let sessions = sessions::pool(&of_sets, CONFIDENCE);
    let pooled = sessions.as_ref().map(|sessions| sessions.ratio(CONFIDENCE));
    let (ratio, interval) = match pooled {
        Some((ratio, interval)) => (ratio, Some(interval)),
        None => (own, mean.interval.map(exp)),
    };
    Some(Relative {
        ratio,
        interval,
        sd_ln: mean.sd,
        pairs: mean.n,
        robust: robust.filter(|_| sessions.is_none()).and_then(robust_ratio),
        differences,
        sessions,
        judgement: None,
    })
}

fn robust_ratio(result: HodgesLehmann) -> Option<Robust> {
    let interval = exp(result.interval?);
    Some(Robust { ratio: result.estimate.exp(), interval })
}

fn exp(interval: Interval) -> Interval {
    Interval { low: interval.low.exp(), high: interval.high.exp() }
}

/// The field's division: 0/0 is 1, x/0 is infinite.
pub fn field_ratio(target: f64, base: f64) -> f64 {
    match (target == 0.0, base == 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => target / base,
    }
}
