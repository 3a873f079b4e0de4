//! Importers of published Insert Benchmark tables.

pub mod histograms;
pub mod tables;
pub(crate) mod taker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cells::{Kept, decimals_agree, number};
use super::format::{ImportError, ImportFormat, ImportOptions, Notice, NoticeKind, Result};
use super::published::{self, Check, Published, PublishedRun, add_file};
use super::text::Text;
use super::unnamed;
pub use FORMAT as MYTOOLS;
use histograms::HistogramRow;
use rqps_bench_insert::analyze::rules::{self as rules, Shade, Throughput};
use rqps_model::metric::Metric;
use rqps_stats::summary::follows;
use tables::{
    InsertSources, MetricsRow, MetricsTable, Sizes, SummaryKind, SummaryTable, folder_of, merged,
    relative_rows, size_of, split_size,
};
use taker::{Taker, WORD};

// Importer `ibench-mytools`: combines the tables of the Insert Benchmark's perf reports, and
// checks them against each other.

/// The importer of published tables.
pub const FORMAT: ImportFormat =
    ImportFormat { word: WORD, read: |paths, options| read(&unnamed(paths)?, options) };

/// The log of response times.
const RESPONSE_TIMES: &str = "response-times.tsv";

/// Reads files and folders.
///
/// # Errors
///
/// [`sources::find`] fails, or the files contain only ratios, histograms or summaries.
fn read(paths: &[PathBuf], options: &ImportOptions) -> Result<Published> {
    let mut sources = tables::find(paths, &options.steps)?;
    let mut published = Published { benchmark: "insert", ..Published::default() };
    published.notices.append(&mut sources.notices);
    sources.count_cells(&mut published.cells);
    let sizes = Sizes::resolve(&sources, paths.len(), options)?;
    let mut taker = Taker {
        published,
        rows: Vec::new(),
        sizes,
        clients: options.clients.first().copied(),
        only_ratios: sources.only_ratios(),
        places: BTreeMap::new(),
    };
    let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
    for (text, table) in tables {
        for row in &table.rows {
            taker.take(text, row)?;
        }
    }
    for (text, tables) in &sources.summaries {
        for table in tables {
            taker.take_summary(text, table)?;
        }
    }
    if taker.only_ratios {
        for (text, table) in &sources.relative {
            for row in &table.rows {
                taker.take_ratios(text, row, options)?;
            }
            let what = "only ratios are published here, without rates per second";
            taker.published.note(text.path(), what);
        }
    }
    if taker.published.runs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let why = "it holds no metrics: add o.sum or mrg files";
        return Err(ImportError::foreign(&path, why));
    }
    taker.take_histograms(&sources);
    let Taker { mut published, rows, .. } = taker;
    check_merged(&sources, &mut published);
    if !sources.only_ratios() {
        check_relative(&sources, &mut published);
    }
    let machine = published
        .runs
        .iter()
        .find_map(|run| published::decode_tag(&run.record.manifest.reported).machine);
    let cpus = options.cpus.or(machine.map(|(cores, _)| cores));
    published.host = published::host(cpus, machine.map(|(_, gigabytes)| gigabytes), None);
    let of_file = |(text, tables): (Text, Vec<SummaryTable>)| {
        tables.into_iter().map(move |table| (text.path().to_owned(), table))
    };
    let summaries: Vec<_> = sources.summaries.into_iter().flat_map(of_file).collect();
    check(&mut published, &rows, &summaries, options);
    Ok(published)
}

impl Taker {
    /// Puts longest times into the metrics, and all rows into the logs of their targets.
    fn take_histograms(&mut self, sources: &InsertSources) {
        for (text, rows) in &sources.histograms {
            for row in rows {
                self.take_response_times(text, row);
            }
        }
    }

    fn take_response_times(&mut self, text: &Text, row: &HistogramRow) {
        let cells = row.cells.len() + 1;
        let tag = row.tag.strip_prefix("sum:").or_else(|| row.tag.strip_prefix("pct:"));
        let (size, target) = split_size(tag.unwrap_or(&row.tag));
        let report = row.report.as_deref().and_then(|report| split_size(report).0);
        let size = size.or(report).map(str::to_owned).or_else(|| size_of("", text.path()));
        let label = match self.sizes.label(size, target) {
            Ok((_, label)) => label,
            Err(why) => return self.published.cells.leave(text.path(), why, cells),
        };
        let run = self.published.runs.iter().position(|run| run.record.key.label == label);
        let (Some(place), Some(step), Some(op)) = (run, &row.step, &row.op) else {
            let why = "response times without a target and step in these files";
            return self.published.cells.leave(text.path(), why, cells);
        };
        let metric = match op.as_str() {
            "insert" => Metric::InsertMax,
            "delete" => Metric::DeleteMax,
            _ => Metric::Max,
        };
        let mut kept = Kept::Annotation;
        let steps = &mut self.published.runs[place].steps;
        if let Some(record) = steps.iter_mut().find(|record| record.name == *step)
            && let Some(max) = number(&row.max)
        {
            add_file(record, &text.name());
            let before;
            (before, kept) = published::take(record, metric, max * 1000.0);
            if !decimals_agree(before / 1000.0, &row.max) {
                let what = format!(
                    "longest {op} of {step} of {label}: {} s here, {} s in an earlier file; \
                     imported the earlier value",
                    row.max,
                    before / 1000.0
                );
                self.published.mismatch(text.path(), row.line, what);
            }
        }
        self.published.cells.keep(text.path(), kept, 1);
        self.published.cells.keep(text.path(), Kept::Annotation, row.cells.len());
        let line = format!("{step}\t{op}\t{}\t{}\n", row.cells.join("\t"), row.max);
        let run = &mut self.published.runs[place];
        if !run.logs.iter().any(|(name, _)| name == RESPONSE_TIMES) {
            let heads = histograms::BUCKETS.join("\t");
            run.log(RESPONSE_TIMES, &format!("step\top\t{heads}\tmax_s\n"));
        }
        run.log(RESPONSE_TIMES, &line);
    }
}

/// The cells of a row as text.
fn printed(row: &MetricsRow) -> String {
    let cells: Vec<&str> = row.cells.iter().map(|(_, cell)| cell.as_str()).collect();
    format!("{}\t{}", cells.join("\t"), row.tag)
}

/// Checks merged tables, as text, against the sums of the targets.
fn check_merged(sources: &InsertSources, published: &mut Published) {
    for (text, table) in &sources.merged {
        let (mut agree, mut of) = (0, 0);
        for row in &table.rows {
            let rows = sources.sums.iter().flat_map(|(_, sum)| &sum.rows);
            let mut same =
                rows.filter(|other| split_size(&other.tag).1 == row.tag && other.step == row.step);
            let Some(sum) = same.next() else { continue };
            of += 1;
            let again = merged(sum);
            if again == printed(row) {
                agree += 1;
            } else {
                let what = format!("the target's own table gives `{again}`");
                published.mismatch(text.path(), row.line, what);
            }
        }
        published.check("rows of merged tables from the targets' tables", agree, of);
    }
}

/// Checks relative tables against the merged ones, cell by cell.
fn check_relative(sources: &InsertSources, published: &mut Published) {
    for (text, table) in &sources.relative {
        let file = |text: &Text| {
            text.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
        };
        let own = file(text);
        let of_name = own.strip_prefix("rel.").unwrap_or(&own);
        let merged = sources.merged.iter().find(|(other, _)| {
            file(other).strip_prefix("mrg.") == Some(of_name) && folder_of(other) == folder_of(text)
        });
        let Some((_, merged)) = merged else {
            let what = "ratios without their merged table: not checked";
            let cells = table.rows.iter().map(|row| row.cells.len()).sum();
            published.cells.leave(text.path(), what, cells);
            continue;
        };
        check_relative_table(text, table, merged, published);
    }
}

fn check_relative_table(
    text: &Text,
    table: &MetricsTable,
    merged: &MetricsTable,
    published: &mut Published,
) {
    let again = relative_rows(merged);
    let (mut agree, mut of) = (0, 0);
    let cells = table.rows.iter().map(|row| row.cells.len()).sum();
    published.cells.keep(text.path(), Kept::Compared, cells);
    for row in &table.rows {
        let same = again.iter().find(|(other, _)| {
            other.tag == row.tag && (other.step == row.step || row.step.is_none())
        });
        let Some((from, line)) = same else {
            let what = format!("{}: no such row in the merged table", row.tag);
            published.mismatch(text.path(), row.line, what);
            continue;
        };
        let base = merged.rows.iter().find(|base| base.group == from.group);
        for ((column, cell), expected) in row.cells.iter().zip(line.split('\t')) {
            of += 1;
            let values = (from.value(column), base.and_then(|base| base.value(column)));
            let tie = matches!(values, (Some(v), Some(b)) if follows(cell, v, b));
            if cell == expected || tie {
                agree += 1;
            } else {
                let what =
                    format!("{column} of {}: published {cell}, recomputed {expected}", row.tag);
                published.mismatch(text.path(), row.line, what);
            }
        }
    }
    published.check("cells of relative tables from merged tables", agree, of);
}

// Checks imported Insert Benchmark tables against the rules of its reports.

/// Adds the number of checks and the mismatches to the messages.
pub(super) fn check(
    published: &mut Published,
    rows: &[(PathBuf, MetricsRow)],
    summaries: &[(PathBuf, SummaryTable)],
    options: &ImportOptions,
) {
    if !rows.is_empty() {
        check_identities(rows, options.cpus, published);
    }
    note_missed_targets(published);
    for (path, table) in summaries {
        let known = published.runs.iter().map(|run| run.record.workload.clients);
        let clients = options.clients.first().copied().or(known.filter(|n| *n > 0).max());
        check_colours(path, table, clients.unwrap_or(1), published);
    }
}

/// Checks the identities between columns of a row.
fn check_identities(
    metrics: &[(PathBuf, MetricsRow)],
    cpus: Option<u32>,
    published: &mut Published,
) {
    let is_query = |row: &MetricsRow| row.step.as_deref().is_some_and(rules::is_query_step);
    let cells = metrics.iter().filter_map(|(_, row)| {
        let rate = row.cell(if is_query(row) { "qps" } else { "ips" })?;
        Some((row.cell("cpups")?, rate, row.cell("cpupq")?))
    });
    let cpus = cpus.or_else(|| rules::cpus_of_rows(cells));
    let mut agree = 0;
    for (path, row) in metrics {
        let broken = rules::broken_identities(is_query(row), cpus, |column| row.cell(column));
        agree += usize::from(broken.is_empty());
        for what in broken {
            published.mismatch(path, row.line, what);
        }
    }
    let with = match cpus {
        Some(cpus) => format!(" on {cpus} CPUs"),
        None => ", except cpupq: the number of CPUs is unknown (--cpus)".to_owned(),
    };
    let what = format!("columns recomputed from other columns{with}");
    published.checks.push(Check { what, agree, of: metrics.len() });
}

/// Notes query steps that did not reach 95 % of their insert rate.
fn note_missed_targets(published: &mut Published) {
    let mut missed = Vec::new();
    // 0 means that the clients are unknown.
    let clients = |run: &PublishedRun| run.record.workload.clients;
    for run in published.runs.iter().filter(|run| clients(run) > 0) {
        for step in &run.steps {
            let target = rules::target_rate(&step.name, clients(run));
            let achieved = step.outcome.extra.get(&Metric::InsertRate);
            if let (Some(target), Some(achieved)) = (target, achieved)
                && !rules::meets_sla(*achieved, target)
            {
                let text = format!(
                    "{} inserted {achieved} rows/s of {target}: its query rate is not comparable",
                    step.name
                );
                missed.push(Notice::of(NoticeKind::Note, &run.record.key.label, text));
            }
        }
    }
    published.notices.append(&mut missed);
}

/// Checks numbers and colours of a summary table.
fn check_colours(path: &Path, table: &SummaryTable, clients: u32, published: &mut Published) {
    let classes = |by_2021: bool| -> Vec<Vec<Shade>> {
        (0..table.steps.len())
            .map(|column| shades(table, column, clients, by_2021, published))
            .collect()
    };
    let wrong = |shades: &[Vec<Shade>]| -> Vec<(usize, String)> {
        let mut wrong = Vec::new();
        for (place, (line, target, cells)) in table.rows.iter().enumerate() {
            // A target rate has the gray of its row.
            if table.is_target_row(target) {
                continue;
            }
            for (column, cell) in cells.iter().enumerate() {
                let expected = letter(shades[column][place]);
                if cell.class != expected {
                    let step = &table.steps[column];
                    let what = format!(
                        "{step} of {target}: the published colour is {}, the rules give {expected}",
                        cell.class
                    );
                    wrong.push((*line, what));
                }
            }
        }
        wrong
    };
    let (now, then) = (wrong(&classes(false)), wrong(&classes(true)));
    let (rule, wrong) = if then.len() < now.len() {
        ("by the rule of November 2021, which counted every target as missed", then)
    } else {
        ("by the rules of rqps reports", now)
    };
    let rows = table.rows.iter().filter(|(_, target, _)| !table.is_target_row(target));
    let of = rows.count() * table.steps.len();
    let what = format!("colours of {} {rule}", table.name);
    published.checks.push(Check { what, agree: of - wrong.len(), of });
    let notices =
        wrong.into_iter().map(|(line, what)| Notice::at(NoticeKind::Mismatch, path, line, what));
    published.notices.extend(notices);
}

fn shades(
    table: &SummaryTable,
    column: usize,
    clients: u32,
    by_2021: bool,
    published: &Published,
) -> Vec<Shade> {
    let step = &table.steps[column];
    let target = rules::target_rate(step, clients);
    let values = table
        .rows
        .iter()
        .map(|(_, label, cells)| (label, cells[column].printed.parse::<f64>().unwrap_or(f64::NAN)));
    match table.kind {
        SummaryKind::Relative => values.map(|(_, ratio)| rules::relative_shade(ratio)).collect(),
        SummaryKind::InsertRate => values
            .map(|(_, rate)| target.map_or(Shade::Plain, |t| rules::insert_rate_shade(rate, t)))
            .collect(),
        SummaryKind::Absolute => {
            let cells: Vec<Throughput> = values
                .map(|(label, rate)| {
                    let meets_sla = target.map(|target| {
                        let achieved = published.value(label, step, Metric::InsertRate);
                        achieved.is_none_or(|achieved| rules::meets_sla(achieved, target))
                    });
                    Throughput { rate, meets_sla }
                })
                .collect();
            if by_2021 {
                rules::absolute_shades_2021(&cells)
            } else {
                rules::absolute_shades(&cells)
            }
        }
    }
}

/// The letter of a colour in summary files.
fn letter(shade: Shade) -> char {
    match shade {
        Shade::Plain => '-',
        Shade::Red => 'r',
        Shade::Gray | Shade::Yellow => 'y',
        Shade::Green => 'g',
        Shade::Blue => 'b',
    }
}
