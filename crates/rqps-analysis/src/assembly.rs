//! Assembles runs into targets with their facts, and into steps with their measurements.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::comparison::{
    Failure, MetricResult, RunFacts, StepComparison, TargetFacts, TargetResult,
};
use super::extension::Extension;
use super::measurement::Measurement;
use super::metrics::unit_of;
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, Status, StepRecord};
use rqps_stats::summary::median;

/// When rqps was started for a sitting of a result set: more than once if it was resumed.
type Begun<'a> = BTreeMap<(&'a str, u32), BTreeSet<&'a str>>;

pub(super) fn run_facts(dataset: &Dataset) -> Vec<RunFacts> {
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

pub(super) fn target_facts(dataset: &Dataset, labels: &[String]) -> Vec<TargetFacts> {
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
pub(super) struct Head<'a> {
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
pub(super) fn step_heads<'a>(
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

pub(super) fn measured_step(
    dataset: &Dataset,
    labels: &[String],
    head: Head<'_>,
) -> StepComparison {
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
