//! Finds the files of a published Insert Benchmark result in folders.

use std::fs;
use std::path::{Path, PathBuf};

use super::client::{self, HistogramRow};
use super::raw::{self, RawInsertStep};
use super::tables::{self, MetricsTable, SummaryKind, SummaryTable};
use crate::cells::Cells;
use crate::format::{ImportError, Notice, NoticeKind};
use crate::text::{Leftovers, Text, names};

/// Steps of the three published sequences; the number of rows identifies the sequence of a table
/// without steps.
const SEQUENCES: [&[&str]; 3] = [
    &["l.i0", "l.x", "l.i1", "q100.1", "q500.1", "q1000.1"],
    &[
        "l.i0", "l.x", "l.i1", "l.i2", "qr100.L1", "qp100.L2", "qr500.L3", "qp500.L4", "qr1000.L5",
        "qp1000.L6",
    ],
    &[
        "l.i0", "l.x", "l.i1", "q100.1", "q100.2", "q200.1", "q200.2", "q400.1", "q400.2",
        "q600.1", "q600.2", "q800.1", "q800.2", "q1000.1", "q1000.2",
    ],
];

/// All files found, by form.
#[derive(Debug, Default)]
pub(crate) struct InsertSources {
    /// Tables of one target with all steps: `o.sum`.
    pub sums: Vec<(Text, MetricsTable)>,
    /// Tables with steps in a column or above the heads.
    pub tables: Vec<(Text, MetricsTable)>,
    /// Tables of one step with all targets: `mrg.STEP`.
    pub merged: Vec<(Text, MetricsTable)>,
    /// Relative tables of one step with all targets: `rel.STEP`.
    pub relative: Vec<(Text, MetricsTable)>,
    /// Response times; step and operation come from the file's name if the rows have none.
    pub histograms: Vec<(Text, Vec<HistogramRow>)>,
    /// Summary tables with colours.
    pub summaries: Vec<(Text, Vec<SummaryTable>)>,
    /// Steps of targets from raw files.
    pub raw: Vec<RawInsertStep>,
    /// Files that were left out.
    pub notices: Vec<Notice>,
}

impl InsertSources {
    /// True if the files have ratios of rates but no rates.
    pub(crate) fn only_ratios(&self) -> bool {
        let rates = self.sums.len() + self.tables.len() + self.merged.len() + self.raw.len();
        let tables = self.summaries.iter().flat_map(|(_, tables)| tables);
        rates == 0 && tables.into_iter().all(|table| table.kind == SummaryKind::Relative)
    }

    /// Counts the cells of all tables; raw files are not tables.
    pub(crate) fn count_cells(&self, cells: &mut Cells) {
        let tables = self.sums.iter().chain(&self.tables).chain(&self.merged);
        for (text, table) in tables.chain(&self.relative) {
            cells.read(text.path(), table.rows.iter().map(|row| row.cells.len()).sum());
            for head in table.rows.iter().flat_map(|row| &row.below_zero) {
                cells.read(text.path(), 1);
                cells.leave(text.path(), format!("sizes below zero under `{head}`"), 1);
            }
        }
        for (text, rows) in &self.histograms {
            cells.read(text.path(), rows.iter().map(|row| row.cells.len() + 1).sum());
        }
        for (text, tables) in &self.summaries {
            let rows = tables.iter().flat_map(|table| &table.rows);
            cells.read(text.path(), rows.map(|(_, _, cells)| cells.len()).sum());
        }
    }

    fn count(&self) -> usize {
        let tables = self.sums.len() + self.tables.len() + self.merged.len() + self.relative.len();
        tables + self.histograms.len() + self.summaries.len() + self.raw.len()
    }
}

/// Searches files and folders.
///
/// # Errors
///
/// A file is unreadable or damaged; a named file has no known form; a folder has no such file; the
/// steps of a table are unknown.
pub(crate) fn find(paths: &[PathBuf], steps: &[String]) -> Result<InsertSources, ImportError> {
    let mut sources = InsertSources::default();
    for path in paths {
        let before = sources.count();
        if path.is_dir() {
            if raw::is_step(path)? {
                // A step named alone belongs to the target of the folder above.
                let above = fs::canonicalize(path).map_err(ImportError::io(path))?;
                let above = above.parent().unwrap_or(Path::new("/"));
                let own = std::slice::from_ref(path);
                sources.raw.extend(raw::read_raw(above, own, &mut sources.notices)?);
            } else if !take_target(path, &mut sources)? {
                take_folder(path, steps, &mut sources)?;
            }
            if sources.count() == before {
                let why = "it holds no rows of metrics (header `ips qps … tag`), no histogram, no \
                           summary, and no step with a client's output (o.ib.dopN.K)";
                return Err(ImportError::foreign(path, why));
            }
        } else if !take_text(Text::read(path)?, steps, &mut sources)? {
            let why = "it holds no rows of metrics (header `ips qps … tag`), no histogram (`256us \
                       1ms …`) and no summary (`abs:NAME …`)";
            return Err(ImportError::foreign(path, why));
        }
    }
    Ok(sources)
}

/// False if the folder has no steps.
fn take_target(folder: &Path, sources: &mut InsertSources) -> Result<bool, ImportError> {
    let steps = raw::steps_of(folder)?;
    sources.raw.extend(raw::read_raw(folder, &steps, &mut sources.notices)?);
    Ok(!steps.is_empty())
}

fn take_folder(
    folder: &Path,
    steps: &[String],
    sources: &mut InsertSources,
) -> Result<(), ImportError> {
    let mut left = Leftovers::default();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            // Folders that the report's scripts make beside the sums.
            let of_report = ["res.", "rt.", "sum."].iter().any(|prefix| name.starts_with(prefix));
            if of_report || raw::is_of_clients(&name) {
                take_folder(&path, steps, sources)?;
            } else if !take_target(&path, sources)? {
                let text = "a folder: import it separately if it holds results".to_owned();
                sources.notices.push(Notice::of(NoticeKind::Left, &path, text));
            }
        } else {
            left.take(folder, &name, |text| take_text(text, steps, sources))?;
        }
    }
    sources.notices.extend(left.notice(folder, "unknown form"));
    Ok(())
}

/// False if the text has no known form.
fn take_text(
    text: Text,
    steps: &[String],
    sources: &mut InsertSources,
) -> Result<bool, ImportError> {
    if client::is_histogram(&text) {
        let mut rows = client::parse_histogram(&text)?;
        let (step, op) = step_and_op(text.path());
        for row in &mut rows {
            row.step = row.step.take().or_else(|| step.clone());
            row.op = row.op.take().or_else(|| op.clone());
        }
        sources.histograms.push((text, rows));
        return Ok(true);
    }
    if tables::is_summary(&text) {
        let tables = tables::parse_summary(&text)?;
        sources.summaries.push((text, tables));
        return Ok(true);
    }
    if !tables::is_metrics(&text) {
        return Ok(false);
    }
    let mut table = tables::parse_metrics(&text)?;
    let name = text.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let by_row = table.rows.iter().all(|row| row.step.is_some());
    if tables::is_relative(&text) {
        set_step(&mut table, name.strip_prefix("rel."));
        sources.relative.push((text, table));
    } else if by_row {
        if name.starts_with("mrg.") {
            sources.merged.push((text, table))
        } else {
            sources.tables.push((text, table))
        }
    } else if name.starts_with("mrg.") {
        set_step(&mut table, name.strip_prefix("mrg."));
        sources.merged.push((text, table));
    } else {
        number_steps(&text, &mut table, steps)?;
        sources.sums.push((text, table));
    }
    Ok(true)
}

/// Sets the step of `mrg.l.i0`, `mrg.q100.1.some`, `mrg.l.x.ips`.
fn set_step(table: &mut MetricsTable, name: Option<&str>) {
    let Some(mut step) = name else { return };
    for suffix in [".some", ".ips", ".qps"] {
        step = step.strip_suffix(suffix).unwrap_or(step);
    }
    for row in &mut table.rows {
        row.step.get_or_insert_with(|| step.to_owned());
    }
}

/// Step and operation of `mrg.l.i0.rt.insert`, `o.rt.t.query`.
fn step_and_op(path: &Path) -> (Option<String>, Option<String>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let op = ["insert", "delete", "query"].into_iter().find(|op| name.contains(&format!(".{op}")));
    let step = name.strip_prefix("mrg.").and_then(|rest| rest.split_once(".rt."));
    (step.map(|(step, _)| step.to_owned()), op.map(str::to_owned))
}

/// Names the rows of a table with one row per step, in the order of a published sequence.
fn number_steps(
    text: &Text,
    table: &mut MetricsTable,
    asked: &[String],
) -> Result<(), ImportError> {
    let rows = table.rows.len();
    let last = table.rows.last().map_or(1, |row| row.line);
    if table.rows.iter().any(|row| row.tag != table.rows[0].tag) {
        let why = "rows of several targets without a step: name the file mrg.STEP";
        return Err(text.malformed(table.rows[0].line, why));
    }
    let known = SEQUENCES.iter().find(|sequence| sequence.len() == rows);
    let steps: Vec<String> = match known {
        _ if asked.len() == rows => asked.to_vec(),
        _ if !asked.is_empty() => {
            let why = format!("{rows} rows, but --steps names {} steps", asked.len());
            return Err(text.malformed(last, why));
        }
        Some(sequence) => sequence.iter().map(|step| (*step).to_owned()).collect(),
        None => {
            let why = format!(
                "{rows} rows: the published sequences have 6, 10 or 15 steps; name these with \
                 --steps l.i0,l.x,…"
            );
            return Err(text.malformed(last, why));
        }
    };
    for (row, step) in table.rows.iter_mut().zip(steps) {
        let queries = row.value("qps").unwrap_or(0.0) > 0.0;
        if queries != step.starts_with('q') && row.cell("qps").is_some() {
            let qps = row.cell("qps").unwrap_or_default();
            let why = format!("this row should be step {step}, and has {qps} queries per second");
            return Err(text.malformed(row.line, why));
        }
        row.step = Some(step);
    }
    Ok(())
}

/// The folder of a file; tables in it belong together.
pub(crate) fn folder_of(text: &Text) -> PathBuf {
    let parent = text.path().parent().unwrap_or(Path::new("."));
    fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned())
}
