//! The comparison as data: targets, steps, and the results of one target in one step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::answers::AnswerFinding;
use super::causes::Causes;
use super::caveat::Caveat;
use super::counted::CountedChange;
use super::measurement::Measurement;
use super::pairing::{Loads, Sessions};
use super::sampled::{Overhead, SampledChange};
use super::verdict::{Explanation, Judgement, Test, VerdictSummary};
use rqps_model::benchmark::{ClientCount, Group, RateUnit, Workload};
use rqps_model::build::{BuildSource, Config, Manifest, Target};
use rqps_model::gate::HostLog;
use rqps_model::host::Host;
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, LoadRecord, RunKey, Status, StepRecord};
use rqps_model::script::StepParameters;
use rqps_model::verdict::{LookSchedule, Rules};
use rqps_stats::Interval;
use rqps_stats::summary::Summary;

/// All targets against the baseline. Everything that a report shows comes from here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Label of the baseline.
    #[serde(rename = "base")]
    pub baseline: String,
    /// The baseline first, then the others in the order of the plan.
    pub targets: Vec<TargetFacts>,
    /// Fingerprint → host.
    pub hosts: BTreeMap<String, Host>,
    /// All runs, in the order of their keys.
    pub runs: Vec<RunFacts>,
    /// Reported steps in the field's order: by group, then by name.
    pub steps: Vec<StepComparison>,
    /// Summaries of point, range and write.
    pub groups: Vec<GroupSummary>,
    /// The rules of the verdicts.
    pub rules: Rules,
    /// The interim looks of a plan that measured until steps were decided.
    pub schedule: Option<LookSchedule>,
    /// All verdicts in short.
    pub summary: VerdictSummary,
    /// Result set → what happened on the host beside its blocks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gates: BTreeMap<String, HostLog>,
    /// Reasons to doubt numbers, the gravest first.
    pub caveats: Vec<Caveat>,
    /// Whether answers and data of the targets are the same; caveats tell it.
    #[serde(skip)]
    pub answers: Vec<AnswerFinding>,
    /// True to leave out what vendors ask of those who publish results.
    #[serde(skip)]
    pub hides_terms: bool,
    /// The counted runs of the same targets, compared among themselves; their runs come after
    /// those of this comparison in the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Box<Comparison>>,
    /// The runs of the same targets with a profiler at work, compared among themselves; their runs
    /// come after those of this comparison and of its counts in the dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Box<Comparison>>,
    /// The cost of profiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead: Option<Overhead>,
    /// Other differences in the steps that differ, after the run folders were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub causes: Option<Box<Causes>>,
    /// Remarks in imported files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

impl TargetFacts {
    /// A target of which nothing is known yet.
    pub fn of(label: &str) -> TargetFacts {
        TargetFacts { label: label.to_owned(), ..TargetFacts::default() }
    }
}

impl Comparison {
    /// True if targets took turns within every step that was measured. Loads before all steps have
    /// the number 0 and never do.
    pub fn all_in_turns(&self) -> bool {
        let targets = self.measured_steps().flat_map(|step| &step.targets);
        let samples = targets.flat_map(|target| &target.samples);
        let mut samples = samples.filter(|sample| sample.record.index > 0).peekable();
        samples.peek().is_some() && samples.all(|sample| sample.record.outcome.turns.is_some())
    }

    /// True if targets took turns within any step.
    pub fn has_turns(&self) -> bool {
        let targets = self.steps.iter().flat_map(|step| &step.targets);
        let mut samples = targets.flat_map(|target| &target.samples);
        samples.any(|sample| sample.record.outcome.turns.is_some())
    }
}

/// Facts about a target from its runs. Lists hold distinct values in the order of the runs; more
/// than one value is a caveat.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TargetFacts {
    /// Its label.
    pub label: String,
    /// The target in the plan; `None` if none of its runs was begun.
    pub target: Option<Target>,
    /// Its builds.
    pub manifests: Vec<Manifest>,
    /// The schemas or databases of its tables on a server that rqps does not run.
    pub places: Vec<String>,
    /// Settings of its server without which rates mean little, of its first run that has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub server_settings: BTreeMap<String, String>,
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
    /// The key of the run.
    pub key: RunKey,
    /// The end of the run.
    pub status: Status,
    /// The benchmark.
    pub benchmark: String,
    /// Fingerprint of the host.
    pub host_fingerprint: String,
    /// Name of the host, where several hosts measured blocks of one plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The session that its pair belongs to: the result set, with the host and the sitting where it
    /// has several.
    #[serde(skip)]
    pub session: String,
    /// Version of rqps that measured.
    pub rqps_version: String,
    /// The number of the load that it started from, from 1; `None` if unknown.
    #[serde(skip)]
    pub load: Option<u32>,
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
    /// The step and its clients, if each step was measured once per client count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_count: Option<ClientCount>,
    /// Its group.
    pub group: Group,
    /// True parameters.
    pub detail: String,
    /// The unit of the rate.
    pub rate: RateUnit,
    /// One for each target of the comparison, in its order: the baseline first.
    pub targets: Vec<TargetResult>,
    /// Its parameters as data.
    #[serde(skip)]
    pub parameters: StepParameters,
}

/// One step of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TargetResult {
    /// The target.
    pub label: String,
    /// The step that was measured, where it is not that of the comparison but the target's own
    /// choice: its best at a recall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// Completed measurements, in the order of the runs.
    pub samples: Vec<Measurement>,
    /// Incomplete measurements.
    pub failures: Vec<Failure>,
    /// Folders of the runs of both, in this order.
    #[serde(skip)]
    pub folders: Arc<[String]>,
    /// All metrics that at least one sample has, or that have a reason to be missing.
    pub metrics: BTreeMap<Metric, MetricResult>,
    /// The write rate beside the queries, if the target did not keep it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_rate: Option<MissedRate>,
    /// Reasons why this target and the baseline cannot be compared in this step although both were
    /// measured; empty if they can. Ratios then get no verdict and enter no mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_comparable: Vec<String>,
    /// Costs that moved with the rate, the largest change first; empty for the baseline and where
    /// the rate did not change.
    pub explanations: Vec<Explanation>,
    /// The change of counted instructions against the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Box<CountedChange>>,
    /// The change of sampled time against the baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Box<SampledChange>>,
}

impl Comparison {
    /// Returns true if a target could have been measured on a step. Where the parameters of a step
    /// are those of one DBMS, no other DBMS can be measured on it.
    pub fn is_for(&self, step: &StepComparison, target: usize) -> bool {
        let dbms = |place: usize| self.targets[place].target.as_ref().map(|target| target.dbms);
        let mut measured =
            (0..step.targets.len()).filter(|place| !step.targets[*place].samples.is_empty());
        !step.parameters.of_one_dbms || measured.any(|at| dbms(at) == dbms(target))
    }

    /// True if others measured a target.
    pub fn is_imported(&self, target: usize) -> bool {
        let source = self.targets[target].target.as_ref().map(|target| &target.source);
        matches!(source, Some(BuildSource::Imported(_)))
    }

    /// Groups that have steps, in the order of reports.
    pub fn groups_of_steps(&self) -> BTreeSet<Group> {
        self.steps.iter().map(|step| step.group).collect()
    }

    /// Metrics that any target has on any step, in the order of reports.
    pub fn metrics(&self) -> BTreeSet<Metric> {
        let targets = self.steps.iter().flat_map(|step| &step.targets);
        targets.flat_map(|target| target.metrics.keys().copied()).collect()
    }

    /// This step in the counted runs; in a comparison of counts, the step itself.
    pub fn counted_step<'a>(&'a self, step: &'a StepComparison) -> Option<&'a StepComparison> {
        match &self.counts {
            Some(counts) => counts.steps.iter().find(|other| other.name == step.name),
            None => Some(step),
        }
    }

    /// This step in the profiled runs; in a comparison without such runs, the step itself.
    pub fn profiled_step<'a>(&'a self, step: &'a StepComparison) -> Option<&'a StepComparison> {
        match &self.profiles {
            Some(profiles) => profiles.steps.iter().find(|other| other.name == step.name),
            None => Some(step),
        }
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
    pub fn none(label: &str) -> TargetResult {
        TargetResult { label: label.to_owned(), ..TargetResult::default() }
    }

    /// The measurements for another step, without ratios.
    pub fn chosen_for_another(&self, name: &str) -> TargetResult {
        let mut chosen = TargetResult { chosen: Some(name.to_owned()), ..self.clone() };
        chosen.metrics.values_mut().for_each(|result| result.relative = None);
        chosen
    }

    /// True if a run of the target carried it out, to its end or not.
    pub fn was_carried_out(&self) -> bool {
        !self.samples.is_empty() || !self.failures.is_empty()
    }

    /// The metric in comparison with the baseline.
    pub fn relative(&self, metric: Metric) -> Option<&Relative> {
        self.metrics.get(&metric).and_then(|result| result.relative.as_ref())
    }

    /// The judgement of the metric.
    pub fn judgement(&self, metric: Metric) -> Option<&Judgement> {
        self.relative(metric)?.judgement.as_ref()
    }

    /// The ratio only if target and baseline can be compared in this step: for means, and for
    /// tables without room for a reason.
    pub fn comparable(&self, metric: Metric) -> Option<&Relative> {
        self.relative(metric).filter(|_| !self.is_void(metric))
    }

    /// True if the target was measured, but cannot be compared with the baseline by this metric.
    /// Rates of the writers themselves can, also where they are what makes the rest incomparable.
    pub fn is_void(&self, metric: Metric) -> bool {
        let of_writers = metric.spec().of_writers;
        !self.not_comparable.is_empty() && !of_writers
    }

    /// Takes over the judgement of a ratio. One that cannot be compared loses its interval, which
    /// would be taken for evidence.
    pub(super) fn take_judgement(&mut self, metric: Metric, judgement: Judgement) {
        let is_void = self.is_void(metric);
        let result = self.metrics.get_mut(&metric);
        let Some(relative) = result.and_then(|result| result.relative.as_mut()) else { return };
        if is_void {
            (relative.interval, relative.sd_ln, relative.robust) = (None, None, None);
        }
        relative.judgement = Some(judgement);
    }

    /// The median of the metric over the samples.
    pub fn absolute(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).and_then(|result| result.absolute)
    }
}

/// A step that did not come to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Place of the run in the comparison's list.
    pub run: usize,
    /// The end of it: never [`Status::Complete`].
    pub status: Status,
}

/// One metric of one step of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MetricResult {
    /// Median over the samples that have it.
    pub absolute: Option<f64>,
    /// Number of samples with it.
    pub n: usize,
    /// The reason why the first sample without it lacks it.
    pub missing: Option<String>,
    /// In comparison with the baseline; `None` for the baseline itself, and where one side has
    /// nothing.
    pub relative: Option<Relative>,
}

/// Target / baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Relative {
    /// The ratio; infinite where only the baseline is 0 (in JSON: the text `inf`).
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
    /// The standard error of each difference, from the shares of its window; empty if a pair did
    /// not take turns, and for other metrics than the rate.
    #[serde(skip)]
    pub block_errors: Vec<f64>,
    /// The run of each pair.
    #[serde(skip)]
    pub blocks: Vec<usize>,
    /// With pairs of several result sets: what each of them found. The ratio and its interval are
    /// then the pooled ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    /// With blocks that share loads: what those of each load found. The ratio and its interval are
    /// then the pooled ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<Loads>,
    /// Its verdict.
    pub judgement: Option<Judgement>,
}

impl Relative {
    /// A ratio of medians: without pairs, or with pairs of which one has a value of 0.
    pub(super) fn of_medians(ratio: f64, pairs: usize) -> Relative {
        Relative { ratio, pairs, ..Relative::default() }
    }

    /// The test of its verdict.
    pub fn test(&self) -> Option<&Test> {
        self.judgement.as_ref()?.test.as_ref()
    }

    /// The interval of its verdict, else its own.
    pub fn shown_interval(&self) -> Option<Interval> {
        self.test().map(|test| test.interval).or(self.interval)
    }

    /// The values that the verdict uses: one for each session if there are several, else for each
    /// load if blocks share several, else for each pair.
    pub fn evidence(&self) -> &[f64] {
        match (&self.sessions, &self.loads) {
            (Some(sessions), _) => &sessions.values,
            (None, Some(loads)) => &loads.values,
            (None, None) => &self.differences,
        }
    }

    /// The standard errors of [`Relative::evidence`] inside a block; empty if unknown.
    pub fn evidence_errors(&self) -> &[f64] {
        if self.sessions.is_none() && self.loads.is_none() { &self.block_errors } else { &[] }
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

/// The relative rates of one group of steps, for every target but the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupSummary {
    /// The group.
    pub group: Group,
    /// The number of clients, where steps were measured at several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Steps that count: reported, and not of the phase before the writes.
    pub steps: usize,
    /// One for each target but the baseline, in the order of the comparison.
    pub targets: Vec<TargetSummary>,
}

impl GroupSummary {
    /// `point`, `point.clients=24`.
    pub fn name(&self) -> String {
        let clients = self.clients.map(|clients| format!(".clients={clients}"));
        self.group.name().to_owned() + &clients.unwrap_or_default()
    }
}

/// One target in one group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetSummary {
    /// The target.
    pub label: String,
    /// Over the relative rates of the group's steps; `None` if no step has one. `n` says how many
    /// of the steps have.
    pub summary: Option<Summary>,
}

/// A write rate that one target did not keep in one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedRate {
    /// Rows per second that were asked for, all clients together.
    pub target: f64,
    /// The lowest rate of the blocks, rows per second.
    pub lowest: f64,
    /// Blocks in which the rate was missed.
    pub missed: usize,
    /// Blocks that were measured.
    pub blocks: usize,
}

impl MissedRate {
    /// `misses its write rate: 312 of 1000 rows/s, in 2 of 3 blocks`.
    pub fn text(&self) -> String {
        format!(
            "misses its write rate: {:.0} of {:.0} rows/s, in {} of {} blocks",
            self.lowest, self.target, self.missed, self.blocks
        )
    }

    /// The share of the rate that is missing where it is lowest.
    pub fn loss(&self) -> f64 {
        1.0 - self.lowest / self.target
    }

    /// True if more than half of the blocks missed the rate: then it is not one bad block.
    pub fn is_regular(&self) -> bool {
        2 * self.missed > self.blocks
    }
}

// Numbers in JSON, which has no infinity.

/// Writes an infinite number as the text `inf`.
pub(super) fn number_or_inf<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() {
        serializer.serialize_f64(*number)
    } else {
        serializer.serialize_str("inf")
    }
}

// Remarks on published numbers: texts of their authors, and cells without a metric.

/// Something that imported files say besides numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The step whose row it stands beside; empty for what is the same in all steps.
    pub step: String,
    /// Its targets.
    pub targets: Vec<String>,
    /// The head of the column; empty for words of an author.
    pub column: String,
    /// The published text; empty for a column whose cells differ from step to step.
    pub text: String,
    /// Cells that it stands for.
    pub cells: usize,
}

/// All of them: words of authors by step; columns that say one thing of a target, such as the hash
/// of its build, with what they say; other columns with the number of their cells.
pub(super) fn published_remarks(dataset: &Dataset) -> Vec<Remark> {
    let mut words: Vec<Remark> = Vec::new();
    let mut columns: BTreeMap<(&str, &str), (BTreeSet<&str>, usize)> = BTreeMap::new();
    for run in &dataset.runs {
        let label = run.record.key.label.as_str();
        for step in &run.steps {
            let Some(imported) = &step.imported else { continue };
            for text in &imported.remarks {
                add(&mut words, step, label, text);
            }
            for (column, cell) in &imported.annotations {
                let (values, cells) = columns.entry((column, label)).or_default();
                values.insert(cell);
                *cells += 1;
            }
        }
    }
    let mut varying: BTreeMap<&str, Remark> = BTreeMap::new();
    for ((column, label), (values, cells)) in columns {
        let one = values.first().filter(|_| values.len() == 1 && cells > 1);
        let remark = Remark {
            step: String::new(),
            targets: vec![label.to_owned()],
            column: column.to_owned(),
            text: one.map_or_else(String::new, |one| (*one).to_owned()),
            cells,
        };
        if one.is_some() {
            words.push(remark);
        } else if let Some(other) = varying.get_mut(column) {
            other.targets.push(label.to_owned());
            other.cells += cells;
        } else {
            varying.insert(column, remark);
        }
    }
    words.extend(varying.into_values());
    words
}

fn add(words: &mut Vec<Remark>, step: &StepRecord, label: &str, text: &str) {
    let same = words.iter_mut().find(|word| word.step == step.name && word.text == text);
    match same {
        Some(word) if word.targets.iter().any(|other| other == label) => {}
        Some(word) => word.targets.push(label.to_owned()),
        None => words.push(Remark {
            step: step.name.clone(),
            targets: vec![label.to_owned()],
            column: String::new(),
            text: text.to_owned(),
            cells: 1,
        }),
    }
}
