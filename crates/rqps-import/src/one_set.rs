//! Targets of one import are of one size and one machine, unless somebody asks for ratios across.

use super::error::ImportError;
use super::options::Across;
use super::published::{Published, PublishedRun};
use super::tag;

/// Refuses what would be divided across sizes or machines.
///
/// # Errors
/// Runs whose numbers of rows differ, or are known of some only; runs of different machines that no
/// published file compares.
pub(crate) fn check(published: &Published, across: Across) -> Result<(), ImportError> {
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
    let machine = |run: &PublishedRun| tag::decode(&run.record.manifest.reported).machine;
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
