//! The order of calls from a dataset to a comparison.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use thiserror::Error;

use super::comparison::{
    self, Comparison, Failure, MetricResult, MissedRate, RunFacts, StepComparison, TargetFacts,
    TargetResult,
};
use super::measurement::unit_of;
use super::measurement::{Extension, Measurement, measure};
use super::pairing::{divide, summarize_groups, widen};
use super::verdict::{self, VerdictOptions, VerdictSummary};
use super::{answers, caveat, counted, sampled};
use rqps_model::benchmark::Group;
use rqps_model::build::{
    BuildSource, CONNECTION, OPTIMIZER_SWITCH, Target, is_installed, is_of_durability,
};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, RunRecord, Status, StepRecord};
use rqps_model::verdict::LookSchedule;
use rqps_stats::parallel;
use rqps_stats::summary::median;

/// The reason why nothing can be computed from runs.
#[derive(Debug, Error, PartialEq)]
#[error("{0}")]
pub struct AnalyzeError(pub(super) String);

/// No run folder in the input.
fn no_runs() -> AnalyzeError {
    let why = "compare: no run in these folders; resume one with `rqps run --resume`, or name a \
               folder that holds run folders";
    AnalyzeError(why.to_owned())
}

/// The measurements of the steps of one run, in their order.
type Measured = Vec<Option<Measurement>>;

/// Compares every target of a dataset with its baseline: the one of `options`, or the first target
/// of the plan.
///
/// Per step and metric, each block and attempt in which both sides completed the step is a pair
/// with d = ln(target) − ln(baseline); the ratio is exp(mean d) and its interval the t interval on
/// d, which covers what it promises from few pairs on (`stats::paired::mean_interval`). The ratio
/// of one pair is its quotient. Pairs of several result sets are pooled with a random effect for
/// the set ([`super::pairing`]). All completed pairs count, also those of a block that was
/// interrupted and done again. Where a value of a pair is 0 the ratio is that of the medians over
/// the pairs, in the field's convention: 0/0 is 1, x/0 is infinite; it has no interval. Where both
/// sides were measured but never in one block, the ratio is that of the medians, has no pairs and
/// no interval, and a caveat says so.
pub fn compare(
    dataset: &Dataset,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    let measured = parallel::map(dataset.runs.iter().collect(), |run| measure(run, extensions));
    compare_measured(dataset, measured, options, extensions)
}

/// [`compare`] with the measurements that [`measure`] or [`digest`](super::digest) made of each run
/// of the dataset, in its order.
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Measured>,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    assert_eq!(measured.len(), dataset.runs.len(), "every run is measured");
    let mut measured = measured;
    let mut passes: Vec<(Cow<'_, Dataset>, Vec<Measured>)> = Vec::new();
    for runs in dataset.runs.chunk_by(|one, next| one.pass() == next.pass()) {
        let rest = measured.split_off(runs.len());
        passes.push((with_runs(dataset, runs), std::mem::replace(&mut measured, rest)));
    }
    let mut passes = passes.into_iter();
    let Some((first, measured)) = passes.next() else { return Err(no_runs()) };
    let mut comparison = compare_alike(&first, measured, options, extensions)?;
    for (part, measured) in passes {
        // Without runs of the baseline in this pass, its first target is the baseline.
        let labels = ordered_labels(&part, None)?;
        let baseline =
            Some(comparison.baseline.clone()).filter(|baseline| labels.contains(baseline));
        let options = VerdictOptions { baseline, ..options.clone() };
        let beside = compare_alike(&part, measured, &options, extensions)?;
        if part.runs.iter().any(Run::is_profiled) {
            sampled::explain(&mut comparison, &beside);
            comparison.overhead = sampled::overhead(&beside);
            comparison.profiles = Some(Box::new(beside));
        } else {
            counted::explain(&mut comparison, &beside);
            comparison.counts = Some(Box::new(beside));
        }
    }
    Ok(comparison)
}

/// The dataset with only these runs. Most datasets have one pass, and then nothing is copied.
fn with_runs<'a>(dataset: &'a Dataset, runs: &[Run]) -> Cow<'a, Dataset> {
    if runs.len() == dataset.runs.len() {
        return Cow::Borrowed(dataset);
    }
    let Dataset { hosts, tunings, gates, .. } = dataset;
    Cow::Owned(Dataset {
        hosts: hosts.clone(),
        tunings: tunings.clone(),
        runs: runs.to_vec(),
        gates: gates.clone(),
    })
}

/// Compares runs of one pass: all measured, all counted or all profiled.
fn compare_alike(
    dataset: &Dataset,
    measured: Vec<Measured>,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    let labels = ordered_labels(dataset, options.baseline.as_deref())?;
    let runs = run_facts(dataset);
    let targets = target_facts(dataset, &labels);
    let in_sequence = extensions
        .iter()
        .filter(|own| own.in_sequence)
        .any(|own| dataset.runs.iter().all(|run| run.record.benchmark == own.benchmark));
    let heads = step_heads(dataset, &labels, measured, (in_sequence, extensions));
    let mut steps = parallel::map(heads, |head| {
        let mut step = measured_step(dataset, &labels, head);
        divide(&runs, &mut step);
        note_write_rate(&targets, &mut step, extensions);
        note_settings(&targets, &mut step);
        step
    });
    let answers = answers::find(dataset, &labels, &options.rules, &mut steps);
    let groups = summarize_groups(&steps);
    let comparison = Comparison {
        baseline: labels[0].clone(),
        targets,
        hosts: dataset.hosts.clone(),
        runs,
        steps,
        groups,
        rules: options.rules,
        schedule: schedule(dataset),
        summary: VerdictSummary::default(),
        gates: dataset.gates.clone(),
        counts: None,
        profiles: None,
        overhead: None,
        causes: None,
        caveats: Vec::new(),
        answers,
        hides_terms: false,
        remarks: comparison::published_remarks(dataset),
    };
    let mut comparison = judged(with_derived(comparison, extensions));
    comparison.caveats = caveat::find(dataset, &comparison, extensions);
    Ok(comparison)
}

/// The interim looks of the plans of all runs. A plan whose number of blocks was raised after a
/// look at fewer has a look at each number from then on.
fn schedule(dataset: &Dataset) -> Option<LookSchedule> {
    let mut of_sets: BTreeMap<&str, LookSchedule> = BTreeMap::new();
    for run in &dataset.runs {
        if let Some(own) = run.record.schedule {
            let all = of_sets.entry(&run.result_set).or_insert(own);
            all.blocks_min = all.blocks_min.min(own.blocks_min);
            all.blocks_max = all.blocks_max.max(own.blocks_max);
        }
    }
    of_sets.into_values().find(|all| all.blocks_min < all.blocks_max)
}

/// Adds the steps that follow from the measured ones, where a reader of points meets them first.
fn with_derived(mut comparison: Comparison, extensions: &[&Extension]) -> Comparison {
    let derived = extensions.iter().flat_map(|own| (own.derive)(&comparison));
    let mut derived: Vec<StepComparison> = derived.collect();
    derived.iter_mut().for_each(|step| divide(&comparison.runs, step));
    let points = comparison.steps.partition_point(|step| step.group < Group::Point);
    comparison.steps.splice(points..points, derived);
    comparison
}

/// Adds the verdicts, what explains them, and their summary.
fn judged(mut comparison: Comparison) -> Comparison {
    let judged = verdict::judge(&comparison);
    for (at, judgement) in judged.judgements {
        comparison.steps[at.step].targets[at.target].take_judgement(at.metric, judgement);
    }
    widen(&mut comparison);
    counted::compare(&mut comparison);
    sampled::compare(&mut comparison);
    for target in comparison.steps.iter_mut().flat_map(|step| step.targets.iter_mut().skip(1)) {
        target.explanations = verdict::explanations(target);
    }
    comparison.summary =
        verdict::summarize(&comparison, judged.families, (&judged.notes, judged.widened));
    comparison
}

/// Labels with the baseline first and the others in the order of the plans.
fn ordered_labels(dataset: &Dataset, baseline: Option<&str>) -> Result<Vec<String>, AnalyzeError> {
    let mut records: Vec<&RunRecord> = dataset.runs.iter().map(|run| &run.record).collect();
    // The runs of one plan name the same targets, their own among them.
    records
        .dedup_by(|next, one| next.targets == one.targets && one.targets.contains(&next.key.label));
    let named = records.iter().flat_map(|it| it.targets.iter().chain([&it.key.label]));
    let mut known = BTreeSet::new();
    let new = named.filter(|label| known.insert(label.as_str()));
    let mut labels: Vec<String> = new.cloned().collect();
    let Some(first) = labels.first().cloned() else { return Err(no_runs()) };
    let baseline = baseline.unwrap_or(&first);
    match labels.iter().position(|label| label == baseline) {
        Some(place) => {
            let baseline = labels.remove(place);
            labels.insert(0, baseline);
            Ok(labels)
        }
        None => Err(AnalyzeError(format!(
            "compare with baseline `{baseline}`: no such target; these folders hold {}",
            labels.join(", ")
        ))),
    }
}

// Assembles runs into targets with their facts, and into steps with their measurements.

/// When rqps was started for a sitting of a result set: more than once if it was resumed.
type Begun<'a> = BTreeMap<(&'a str, u32), BTreeSet<&'a str>>;

fn run_facts(dataset: &Dataset) -> Vec<RunFacts> {
    let mut begun = Begun::new();
    for run in dataset.runs.iter().filter(|run| run.record.node.is_none()) {
        if let Some(sitting) = &run.record.sitting {
            let place = (run.result_set.as_str(), sitting.number);
            begun.entry(place).or_default().insert(&sitting.begun);
        }
    }
    dataset.runs.iter().map(|run| facts_of(run, &begun)).collect()
}

/// The result set, the host where it has several, and the sitting where its plan has several. What
/// is left of a sitting that was interrupted is one of its own, because time went by.
fn session(run: &Run, begun: &Begun<'_>) -> String {
    let mut session = run.result_set.clone();
    if let Some(node) = &run.record.node {
        session.push_str(&format!(", host {node}"));
    }
    let Some(sitting) = &run.record.sitting else { return session };
    session.push_str(&format!(", sitting {}", sitting.number));
    let parts = begun.get(&(run.result_set.as_str(), sitting.number));
    let part = parts.and_then(|all| all.iter().position(|it| *it == sitting.begun));
    if let Some(part) = part.filter(|part| *part > 0) {
        session.push_str(&format!(", resumed {part}"));
    }
    session
}

fn facts_of(run: &Run, begun: &Begun<'_>) -> RunFacts {
    let record = &run.record;
    RunFacts {
        folder: run.folder.clone(),
        result_set: run.result_set.clone(),
        key: record.key.clone(),
        status: record.status.clone(),
        benchmark: record.benchmark.clone(),
        host_fingerprint: record.host_fingerprint.clone(),
        node: record.node.clone(),
        session: session(run, begun),
        rqps_version: record.rqps_version.clone(),
        load: record.load.as_ref().map(|load| load.number),
        seed: record.seed,
        plan_hash: record.plan_hash.clone(),
        started: record.started.clone(),
        finished: record.finished.clone(),
    }
}

fn target_facts(dataset: &Dataset, labels: &[String]) -> Vec<TargetFacts> {
    let mut targets: Vec<TargetFacts> = labels.iter().map(|label| TargetFacts::of(label)).collect();
    let places = places(labels);
    for (index, run) in dataset.runs.iter().enumerate() {
        let record = &run.record;
        let facts = &mut targets[places[record.key.label.as_str()]];
        facts.target.get_or_insert_with(|| record.target.clone());
        push_new(&mut facts.manifests, &record.manifest);
        if let Some(place) = &record.place {
            push_new(&mut facts.places, place);
        }
        if facts.server_settings.is_empty() {
            facts.server_settings.clone_from(&record.server_settings);
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

/// The index of each label. All labels of a dataset are among those of the comparison.
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
    /// True if its group is that of what it did.
    by_facts: bool,
    /// Its group.
    group: Group,
    /// For each target, in the order of the runs.
    times: Vec<Vec<Time<'a>>>,
}

/// Place of the run, its record of the step, and what follows from that if it was completed.
type Time<'a> = (usize, &'a Arc<StepRecord>, Option<Measurement>);

/// The reported steps of all runs: in the order of the sequence if they build on each other, else
/// in the field's order.
fn step_heads<'a>(
    dataset: &'a Dataset,
    labels: &[String],
    measured: Vec<Vec<Option<Measurement>>>,
    (in_sequence, extensions): (bool, &[&Extension]),
) -> Vec<Head<'a>> {
    let places = places(labels);
    let mut heads: BTreeMap<&str, Head<'a>> = BTreeMap::new();
    for ((index, run), measured) in dataset.runs.iter().enumerate().zip(measured) {
        if let Status::Discarded(_) = run.record.status {
            continue;
        }
        assert_eq!(measured.len(), run.steps.len(), "every step is measured");
        let target = places[run.record.key.label.as_str()];
        let is_own = |own: &&&Extension| own.benchmark == run.record.benchmark;
        let by_facts = extensions.iter().find(is_own).is_some_and(|own| own.groups_by_facts);
        for (step, measured) in run.steps.iter().zip(measured).filter(|(step, _)| step.reported) {
            let times = || labels.iter().map(|_| Vec::new()).collect();
            let new = || Head { step, by_facts, group: step.group, times: times() };
            let head = heads.entry(&step.name).or_insert_with(new);
            head.times[target].push((index, step, measured));
        }
    }
    let mut heads: Vec<Head<'a>> = heads.into_values().collect();
    heads.iter_mut().for_each(|head| head.group = head.group_by_facts());
    heads.sort_by(|one, other| {
        let (a, b) = (one.step, other.step);
        if in_sequence {
            (a.index, &a.name).cmp(&(b.index, &b.name))
        } else {
            (one.group, field_order(a)).cmp(&(other.group, field_order(b)))
        }
    });
    heads
}

impl Head<'_> {
    /// The times that were completed.
    fn completed(&self) -> impl Iterator<Item = &StepRecord> {
        let times = self.times.iter().flatten().filter(|(.., measured)| measured.is_some());
        times.map(|(_, record, _)| record.as_ref())
    }

    /// The group by what the step did: a plan cannot know whether a script writes.
    fn group_by_facts(&self) -> Group {
        let step = self.step;
        let is_open = self.by_facts && step.group == Group::Write;
        if !is_open || step.imported.is_some() || self.completed().next().is_none() {
            return step.group;
        }
        let only_read = |step: &StepRecord| {
            let outcome = &step.outcome;
            let wrote = outcome.writes + outcome.no_ops > 0;
            outcome.events > 0 && !wrote && (outcome.reads > 0 || outcome.statements == 0)
        };
        let of_single_rows = |step: &StepRecord| {
            let outcome = &step.outcome;
            outcome.reads > 0 && outcome.rows <= outcome.reads
        };
        match (self.completed().all(only_read), self.completed().all(of_single_rows)) {
            (false, _) => Group::Write,
            (true, true) => Group::Point,
            (true, false) => Group::Range,
        }
    }
}

/// The field's order of names: letters and digits only, larger numbers first, so that
/// random-points comes as 1000, 100, 10 and read-only-count before read-only_range. The rows of one
/// step at several client counts stay together, the fewest clients first.
fn field_order(record: &StepRecord) -> (String, std::cmp::Reverse<u64>, u32, &str) {
    let count = record.client_count.as_ref();
    let (name, clients) =
        count.map_or((record.name.as_str(), 0), |count| (count.step.as_str(), count.clients));
    let (text, number) = match name.rsplit_once('=') {
        Some((text, number)) => (text, number.parse().unwrap_or(0)),
        None => (name, 0),
    };
    let text = text.chars().filter(char::is_ascii_alphanumeric).collect();
    (text, std::cmp::Reverse(number), clients, name)
}

fn measured_step(dataset: &Dataset, labels: &[String], head: Head<'_>) -> StepComparison {
    let rate = head.completed().next().map_or(head.step.rate, unit_of);
    let targets = labels.iter().zip(head.times);
    StepComparison {
        name: head.step.name.clone(),
        client_count: head.step.client_count.clone(),
        group: head.group,
        detail: head.step.detail.clone(),
        rate,
        targets: targets.map(|(label, times)| target_step(dataset, label, times)).collect(),
        parameters: head.step.parameters.clone(),
    }
}

fn target_step(dataset: &Dataset, label: &str, times: Vec<Time<'_>>) -> TargetResult {
    let mut samples = Vec::with_capacity(times.len());
    let mut failures = Vec::new();
    for (run, record, measured) in times {
        match measured {
            Some(mut measured) => {
                measured.run = run;
                samples.push(measured);
            }
            None => failures.push(Failure { run, status: record.status.clone() }),
        }
    }
    let mut known = BTreeSet::new();
    samples.iter().for_each(|sample| known.extend(sample.metrics()));
    let metrics = known
        .into_iter()
        .filter_map(|metric| metric_result(&samples, metric).map(|result| (metric, result)))
        .collect();
    let runs = samples.iter().map(|sample| sample.run);
    let runs = runs.chain(failures.iter().map(|failure| failure.run));
    let folders = runs.map(|run| dataset.runs[run].folder.clone()).collect();
    TargetResult { samples, failures, folders, metrics, ..TargetResult::none(label) }
}

fn metric_result(samples: &[Measurement], metric: Metric) -> Option<MetricResult> {
    let numbers: Vec<f64> = samples.iter().filter_map(|sample| sample.get(metric)).collect();
    let missing = samples.iter().find_map(|sample| sample.why_missing(metric));
    (!numbers.is_empty() || missing.is_some()).then(|| MetricResult {
        absolute: median(&numbers),
        n: numbers.len(),
        missing: missing.map(str::to_owned),
        relative: None,
    })
}

// Servers that are set up differently. Between a server that somebody else runs and another, a
// difference of settings is taken for one of the builds unless it is said; where commits differ in
// what they flush, steps that write have no verdict. What the user put into the words of the
// targets is the question itself: it is said, and judged.

/// A setting with different values on two servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingDifference {
    /// Its name.
    pub name: String,
    /// The value on the baseline.
    pub baseline: String,
    /// The value on the target.
    pub target: String,
    /// True if the words of a target ask for it.
    pub is_asked: bool,
}

impl SettingDifference {
    /// True if a commit writes or flushes something else.
    pub(super) fn is_of_durability(&self) -> bool {
        is_of_durability(&self.name)
    }
}

/// The recorded settings that differ, those of durability first. Two servers of rqps's own differ in
/// what their configurations and versions say, so only durability counts there.
pub(super) fn setting_differences(
    baseline: &TargetFacts,
    target: &TargetFacts,
) -> Vec<SettingDifference> {
    let (Some(one), Some(other)) = (&baseline.target, &target.target) else { return Vec::new() };
    if one.dbms.dialect() != other.dbms.dialect() {
        return Vec::new();
    }
    let is_guest = |target: &Target| matches!(target.source, BuildSource::Dsn(_));
    let has_guest = is_guest(one) || is_guest(other);
    let innodb = |target: &Target| target.storage_engine.as_ref().is_none_or(|it| it == "innodb");
    let both_innodb = innodb(one) && innodb(other);
    let settings = [baseline, target].map(|facts| &facts.server_settings);
    // What builds have by default is the question.
    let is_asked = one.config != other.config || is_installed(&one.config);
    let asked_by_name = !has_guest && is_asked;
    let difference = |(name, value): (&String, &String)| {
        let theirs = settings[1].get(name)?;
        let counts = match name.as_str() {
            // Without a binary log it has no effect.
            "sync_binlog" => settings.iter().all(|of| value_is_on(of.get("log_bin"))),
            name if name.starts_with("innodb_") => both_innodb,
            _ => true,
        };
        let counts = counts && (has_guest || is_of_durability(name));
        let (value, theirs) = &match name.as_str() {
            OPTIMIZER_SWITCH => (unlike(value, theirs), unlike(theirs, value)),
            _ => (value.clone(), theirs.clone()),
        };
        (counts && normal(value) != normal(theirs)).then(|| SettingDifference {
            name: name.clone(),
            baseline: value.clone(),
            target: theirs.clone(),
            is_asked: asked_by_name || [baseline, target].iter().any(|facts| asks(facts, name)),
        })
    };
    let mut found: Vec<SettingDifference> = settings[0].iter().filter_map(difference).collect();
    found.sort_by_key(|difference| (!difference.is_of_durability(), difference.name == CONNECTION));
    found
}

/// The switches of a list that another has with another value. What a version does not know it
/// cannot do.
fn unlike(list: &str, other: &str) -> String {
    let known = |list: &str| -> BTreeMap<String, String> {
        let pair = |flag: &str| flag.split_once('=').map(|(name, is)| (name.into(), is.into()));
        list.split(',').filter_map(pair).collect()
    };
    let other = known(other);
    let mut own = known(list);
    own.retain(|name, is| other.get(name).is_some_and(|theirs| theirs != is));
    own.iter().map(|(name, is)| format!("{name}={is}")).collect::<Vec<_>>().join(",")
}

/// True if the words of a target name the setting: by a configuration other than the shipped
/// default that has it.
fn asks(facts: &TargetFacts, name: &str) -> bool {
    let sets = |line: &str| {
        let line = line.trim().to_lowercase().replace('-', "_");
        let set = line.split(['=', ' ']).next().unwrap_or_default();
        set == name || set == format!("skip_{name}")
    };
    let own = facts.configs.iter().filter(|config| config.name != "default");
    own.flat_map(|config| config.text.lines()).any(sets)
}

fn value_is_on(value: Option<&String>) -> bool {
    value.is_some_and(|value| normal(value) == "on")
}

/// One spelling of what servers spell in several.
pub(crate) fn normal(value: &str) -> String {
    let value = value.trim().to_lowercase();
    match value.as_str() {
        "1" | "yes" | "true" => "on".to_owned(),
        "0" | "no" | "false" => "off".to_owned(),
        _ => value,
    }
}

/// Notes on each target of a step that writes why it cannot be compared, if durability differs and
/// nobody asked for that.
pub(super) fn note_settings(targets: &[TargetFacts], step: &mut StepComparison) {
    let writes = matches!(step.group, Group::Write | Group::Load)
        || step.targets.iter().flat_map(|target| &target.samples).any(|sample| {
            let outcome = &sample.record.outcome;
            outcome.writes > 0 || outcome.roles.contains_key("inserts")
        });
    let [baseline, others @ ..] = targets else { return };
    if !writes {
        return;
    }
    for (facts, target) in others.iter().zip(step.targets.iter_mut().skip(1)) {
        let found = setting_differences(baseline, facts);
        let void = found.iter().filter(|it| it.is_of_durability() && !it.is_asked);
        let void: Vec<String> = void
            .map(|it| {
                let SettingDifference { name, baseline: theirs, target: own, .. } = it;
                format!("{name} is {own}, on the baseline {theirs}")
            })
            .collect();
        if !void.is_empty() {
            target.not_comparable.push(format!("durability differs: {}", void.join(", ")));
        }
    }
}

/// `fsync off (a), on (b)` of differences, in their order.
pub(super) fn spell_differences(
    found: &[&SettingDifference],
    baseline: &str,
    target: &str,
) -> String {
    let all = found.iter().map(|it| {
        let SettingDifference { name, baseline: theirs, target: own, .. } = it;
        format!("{name}: {} ({baseline}), {} ({target})", shown(theirs), shown(own))
    });
    all.collect::<Vec<_>>().join("; ")
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "nothing" } else { value }
}

// Steps whose writers did not keep their rate beside the queries. Fewer writes leave more of the
// machine for queries, so their rates and costs are not comparable with those of a server that did
// all its writes (the published reports leave such results out).

/// Notes for each target of a step whether it missed its write rate, and that the step is not
/// comparable where it or the baseline did.
pub(super) fn note_write_rate(
    targets: &[TargetFacts],
    step: &mut StepComparison,
    extensions: &[&Extension],
) {
    for (facts, target) in targets.iter().zip(&mut step.targets) {
        let clients = facts.workloads.first().map_or(0, |workload| workload.clients);
        target.missed_rate = extensions.iter().find_map(|own| (own.missed_rate)(target, clients));
    }
    let Some((baseline, others)) = step.targets.split_first_mut() else { return };
    let of_baseline = baseline.missed_rate.as_ref();
    for target in others {
        let of_baseline = of_baseline.map(|missed| format!("the baseline {}", missed.text()));
        let own = target.missed_rate.as_ref().map(MissedRate::text);
        target.not_comparable.extend(own.into_iter().chain(of_baseline));
    }
}

#[cfg(test)]
mod server_settings_tests {
    use super::*;
    use rqps_model::build::Config;
    use rqps_model::build::{Dbms, Version};

    const GUEST: &str = "mysql://me@db/app";

    fn facts(dsn: Option<&str>, config: (&str, &str), settings: &[(&str, &str)]) -> TargetFacts {
        let source = match dsn {
            Some(dsn) => BuildSource::Dsn(dsn.to_owned()),
            None => BuildSource::Version { version: Version::new("8.0.33"), variant: None },
        };
        let target = Target {
            label: "a".to_owned(),
            dbms: Dbms::Mysql,
            source,
            config: config.0.to_owned(),
            storage_engine: None,
        };
        let (name, text) = (config.0.to_owned(), config.1.to_owned());
        let config = Config { name, text, hash: String::new() };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        TargetFacts {
            target: Some(target),
            configs: vec![config],
            server_settings: settings.iter().map(pair).collect(),
            ..TargetFacts::of("a")
        }
    }

    fn check(one: &TargetFacts, other: &TargetFacts, expected: &[(&str, bool)]) {
        let found = setting_differences(one, other);
        let found: Vec<(&str, bool)> =
            found.iter().map(|it| (it.name.as_str(), it.is_asked)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_guest_that_is_set_up_differently_is_told_unless_somebody_asked() {
        let flush = "innodb_flush_log_at_trx_commit";
        let ours = [(flush, "2"), ("log_bin", "OFF"), ("sync_binlog", "0"), ("sql_mode", "A")];
        let theirs = [(flush, "1"), ("log_bin", "ON"), ("sync_binlog", "1"), ("sql_mode", "B")];
        let default = ("default", "innodb_flush_log_at_trx_commit = 2\nskip_log_bin\n");
        let build = facts(None, default, &ours);
        let guest = facts(Some(GUEST), ("default", ""), &theirs);
        check(&build, &guest, &[(flush, false), ("log_bin", false), ("sql_mode", false)]);
        let named = facts(None, ("mine", default.1), &ours);
        check(&guest, &named, &[(flush, true), ("log_bin", true), ("sql_mode", false)]);
        // Two configurations of builds are the question.
        let other = facts(None, ("binlog", ""), &theirs);
        check(&build, &other, &[(flush, true), ("log_bin", true)]);
        // The same configuration, read differently by two versions.
        let newer = facts(None, default, &theirs);
        check(&build, &newer, &[(flush, false), ("log_bin", false)]);
        // What two builds have by default.
        let [one, other] = [&ours, &theirs].map(|all| facts(None, ("installed", ""), all));
        check(&one, &other, &[(flush, true), ("log_bin", true)]);
    }

    #[test]
    fn what_fills_the_log_and_how_the_optimizer_chooses_is_told_of_guests() {
        let ours = [
            ("innodb_redo_log_capacity", "8589934592"),
            ("innodb_io_capacity", "10000"),
            ("optimizer_switch", "index_merge=on,mrr=on,only_here=on"),
        ];
        let theirs = [
            ("innodb_redo_log_capacity", "100663296"),
            ("innodb_io_capacity", "200"),
            ("optimizer_switch", "index_merge=off,mrr=on,only_there=on"),
        ];
        let build = facts(None, ("default", ""), &ours);
        let guest = facts(Some(GUEST), ("default", ""), &theirs);
        let names = ["innodb_io_capacity", "innodb_redo_log_capacity", "optimizer_switch"];
        check(&build, &guest, &names.map(|name| (name, false)));
        let found = setting_differences(&build, &guest);
        assert_eq!((&*found[2].baseline, &*found[2].target), ("index_merge=on", "index_merge=off"));
        let newer = facts(None, ("default", ""), &theirs);
        check(&build, &newer, &[]);
    }

    #[test]
    fn spellings_and_settings_without_effect_are_no_difference() {
        let one = [("log_bin", "OFF"), ("sync_binlog", "0"), ("innodb_doublewrite", "ON")];
        let other = [("log_bin", "0"), ("sync_binlog", "1"), ("innodb_doublewrite", "1")];
        let of = |settings| facts(Some(GUEST), ("default", ""), settings);
        check(&of(&one), &of(&other), &[]);
        // What one side does not tell is unknown.
        check(&of(&one), &of(&[]), &[]);
    }
}
