//! The same numbers under two labels are one build: a report names it by its folder, and a table
//! of rates by its version.

use std::collections::{BTreeMap, BTreeSet};

use super::format::{Across, ImportError};
use super::published::{Published, PublishedRun, add_file, annotate};
use super::tag;
use rqps_model::benchmark::RateUnit;
use rqps_model::metric::Metric;
use rqps_model::run::{Status, StepRecord};

/// Digits that the shared rates of two labels must have, so that they are not equal by chance.
const DIGITS_LEAST: usize = 6;

/// Joins labels with the same rates in all steps that both have. The first label stays: the others
/// lead to it.
pub(crate) fn join_builds(published: &mut Published) -> BTreeMap<String, String> {
    let mut labels: Vec<String> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label) {
            labels.push(run.record.key.label.clone());
        }
    }
    let mut kept: Vec<String> = Vec::new();
    let mut joined = BTreeMap::new();
    for label in labels {
        let same = kept.iter().find_map(|first| Some((first, shared(published, first, &label)?)));
        let Some((first, steps)) = same else {
            kept.push(label);
            continue;
        };
        let first = first.clone();
        let text = format!(
            "its rates are those of {first} in all {steps} steps that both have: one build, \
             imported as {first}"
        );
        published.note(&label, text);
        move_into(published, &label, &first);
        joined.insert(label, first);
    }
    joined
}

fn of_label<'a>(
    published: &'a Published,
    label: &'a str,
) -> impl Iterator<Item = &'a PublishedRun> {
    published.runs.iter().filter(move |run| run.record.key.label == label)
}

/// The steps that two labels share, if all their rates are the same and one has each block of the
/// other.
fn shared(published: &Published, first: &str, second: &str) -> Option<usize> {
    let (mut steps, mut digits) = (0, 0);
    for run in of_label(published, second) {
        let block = run.record.key.block;
        let twin = of_label(published, first).find(|other| other.record.key.block == block)?;
        for step in &run.steps {
            let other = twin.steps.iter().find(|other| other.name == step.name);
            let Some((a, b)) = other.and_then(rate).zip(rate(step)) else { continue };
            if !is_same(a, b) || other.is_some_and(|other| differ(other, step)) {
                return None;
            }
            steps += 1;
            digits += digits_of(b);
        }
    }
    (digits >= DIGITS_LEAST).then_some(steps)
}

/// True if both tell something that is not the same.
fn differ(a: &StepRecord, b: &StepRecord) -> bool {
    let (a_values, b_values) = (&a.outcome.extra, &b.outcome.extra);
    let mut values = a_values.iter().filter_map(|(of, a)| Some((*a, *b_values.get(of)?)));
    let said = a.imported.as_ref().zip(b.imported.as_ref());
    let differs_in_words = said.is_some_and(|(a, b)| {
        let mut heads = a.annotations.iter();
        heads.any(|(head, a)| b.annotations.get(head).is_some_and(|b| a != b))
    });
    differs_in_words || values.any(|(a, b)| !is_same(a, b))
}

/// A rate; ratios of two decimals are often equal.
fn rate(step: &StepRecord) -> Option<f64> {
    let rate = step.outcome.extra.get(&Metric::Rate).copied();
    rate.filter(|rate| *rate > 0.0 && step.rate != RateUnit::Relative)
}

/// True for one number, which one of the two tables may have printed without decimals.
fn is_same(a: f64, b: f64) -> bool {
    let rounded = (a.fract() == 0.0) != (b.fract() == 0.0) && (a - b).abs() < 1.0;
    a == b || (rounded && a.min(b) >= 100.0)
}

fn digits_of(rate: f64) -> usize {
    let text = rate.to_string();
    let digits = text.trim_matches('0').bytes().filter(u8::is_ascii_digit);
    digits.count()
}

fn move_into(published: &mut Published, from: &str, to: &str) {
    let (moved, kept): (Vec<PublishedRun>, Vec<PublishedRun>) = std::mem::take(&mut published.runs)
        .into_iter()
        .partition(|run| run.record.key.label == from);
    published.runs = kept;
    for run in moved {
        let block = run.record.key.block;
        let twin = published
            .runs
            .iter_mut()
            .find(|other| other.record.key.label == to && other.record.key.block == block);
        let Some(twin) = twin else { continue };
        for step in run.steps {
            match twin.steps.iter_mut().find(|other| other.name == step.name) {
                Some(other) => add(other, step),
                None => twin.steps.push(step),
            }
        }
        for (name, text) in run.logs {
            twin.log(&name, &text);
        }
    }
}

/// Adds what the record of a copy has besides.
fn add(step: &mut StepRecord, copy: StepRecord) {
    if let (Status::Failed(_), Status::Complete) = (&step.status, &copy.status) {
        step.status = Status::Complete;
    }
    for (metric, value) in &copy.outcome.extra {
        step.outcome.extra.entry(*metric).or_insert(*value);
    }
    let Some(imported) = copy.imported else { return };
    let files: BTreeSet<&String> = imported.files.iter().collect();
    files.into_iter().for_each(|file| add_file(step, file));
    imported.annotations.iter().for_each(|(head, printed)| annotate(step, head, printed));
    imported.remarks.iter().for_each(|words| super::published::remark(step, words));
}

// Targets of one import are of one size and one machine, unless somebody asks for ratios across.

/// Refuses what would be divided across sizes or machines.
///
/// # Errors
/// Runs whose numbers of rows differ, or are known of some only; runs of different machines that no
/// published file compares.
pub(crate) fn check_one_set(published: &Published, across: Across) -> Result<(), ImportError> {
    if !across.sizes {
        one_size(published)?;
    }
    if !across.hosts {
        one_host(published)?;
    }
    Ok(())
}

/// A file that a run was read from, for the message.
fn file(run: &PublishedRun) -> &str {
    let imported = run.steps.iter().filter_map(|step| step.imported.as_ref());
    imported.flat_map(|imported| &imported.files).next().map_or("?", String::as_str)
}

fn one_size(published: &Published) -> Result<(), ImportError> {
    let rows = |run: &PublishedRun| run.record.workload.rows;
    let of_insert = published.benchmark == "insert";
    let Some(first) = published.runs.iter().find(|run| rows(run) > 0) else { return Ok(()) };
    let other = published.runs.iter().find(|run| {
        // Tables of sysbench never tell their rows; those of the Insert Benchmark do.
        rows(run) != rows(first) && (rows(run) > 0 || of_insert)
    });
    let Some(other) = other else { return Ok(()) };
    let spelled = match rows(other) {
        0 => "unknown size".to_owned(),
        rows => format!("{rows} rows"),
    };
    Err(ImportError::Words(format!(
        "`{}` has {} rows and `{}` has {spelled}: results of different sizes belong in separate \
         imports. Import each separately, or compare them with --across sizes",
        file(first),
        rows(first),
        file(other)
    )))
}

fn one_host(published: &Published) -> Result<(), ImportError> {
    let machine = |run: &PublishedRun| tag::decode_tag(&run.record.manifest.reported).machine;
    let known = || published.runs.iter().filter(|run| machine(run).is_some());
    let Some(first) = known().next() else { return Ok(()) };
    let Some(other) = known().find(|run| machine(run) != machine(first)) else { return Ok(()) };
    // The author of a table that has both compared them on purpose.
    let has = |run: &PublishedRun, name: &str| {
        let imported = run.steps.iter().filter_map(|step| step.imported.as_ref());
        imported.flat_map(|imported| &imported.files).any(|file| file == name)
    };
    let imported = first.steps.iter().filter_map(|step| step.imported.as_ref());
    let mut files = imported.flat_map(|imported| &imported.files);
    if files.any(|file| known().all(|run| has(run, file))) {
        return Ok(());
    }
    let spelled = |run: &PublishedRun| {
        machine(run).map_or_else(String::new, |(cores, memory)| format!("c{cores}r{memory}"))
    };
    Err(ImportError::Words(format!(
        "`{}` comes from machine {} and `{}` from machine {}: a ratio between two machines says \
         nothing about the builds. Import each separately, or compare them with --across hosts",
        file(first),
        spelled(first),
        file(other),
        spelled(other)
    )))
}
