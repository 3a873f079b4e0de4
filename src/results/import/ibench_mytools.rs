//! `ibench-mytools`: tables of the Insert Benchmark's perf reports and the raw files behind them,
//! put together and checked against each other.

use std::path::{Path, PathBuf};

use super::ibench_raw::RawStep;
use super::ibench_record::{self, Reading};
use super::ibench_sources::{self, Sources, folder_of};
use super::ibench_tables::{MetricsRow, MetricsTable, merged, relative_rows, split_size};
use super::notice::{Notice, NoticeKind};
use super::published::{self, Published, StepKind, add_file};
use super::sysbench_record::decimals_agree;
use super::text::{Text, number};
use super::{Format, ImportError, Options, tag};
use crate::domain::benchmark::{Group, RateUnit};
use crate::domain::metric::Metric;
use crate::domain::run::StepRecord;
use crate::stats::ratio::follows;

/// The log of response times.
const RESPONSE_TIMES: &str = "response-times.tsv";

/// Reads files and folders.
///
/// # Errors
/// As [`ibench_sources::find`]; and where there are ratios, histograms or summaries only.
pub(super) fn read(paths: &[PathBuf], options: &Options) -> Result<Published, ImportError> {
    let mut sources = ibench_sources::find(paths, &options.steps)?;
    let mut published = Published { benchmark: "insert", ..Published::default() };
    published.notices.append(&mut sources.notices);
    let size = one_size(&sources, &mut published);
    let mut taker = Taker { published, size, clients: options.clients.first().copied() };
    let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
    for (text, table) in tables {
        for row in &table.rows {
            taker.take(text, row);
        }
    }
    taker.take_raw(&sources.raw, options);
    if taker.published.runs.is_empty() {
        let path = paths.first().cloned().unwrap_or_default();
        let why = "it holds no absolute metrics: give o.sum or mrg files with it";
        return Err(ImportError::foreign(&path, why));
    }
    taker.take_histograms(&sources);
    let Taker { mut published, .. } = taker;
    check_merged(&sources, &mut published);
    check_relative(&sources, &mut published);
    let machine =
        published.runs.iter().find_map(|run| tag::decode(&run.record.manifest.reported).machine);
    let cpus = options.cpus.or(machine.map(|(cores, _)| cores));
    published.host = published::host(cpus, machine.map(|(_, gigabytes)| gigabytes), None);
    published.summaries = sources
        .summaries
        .into_iter()
        .flat_map(|(text, tables)| {
            tables.into_iter().map(move |table| (text.path().to_owned(), table))
        })
        .collect();
    Ok(published)
}

/// The size whose rows are taken: results of two sizes are two results.
fn one_size(sources: &Sources, published: &mut Published) -> Option<String> {
    let mut first: Option<String> = None;
    let of_tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
    let sizes = of_tables.flat_map(|(text, table)| {
        table.rows.iter().map(move |row| (split_size(&row.tag).0, text.path()))
    });
    let of_raw = sources.raw.iter().map(|raw| (raw.size.as_deref(), raw.folder.as_path()));
    let mut told: Vec<&Path> = Vec::new();
    for (size, path) in sizes.chain(of_raw) {
        let Some(size) = size else { continue };
        let taken = first.get_or_insert_with(|| size.to_owned());
        if taken != size && !told.contains(&path) {
            told.push(path);
            let what = format!(
                "rows of {size}: {taken} was taken; import another size by itself, by the names \
                 of its files"
            );
            published.notices.push(Notice::of(NoticeKind::Left, path, what));
        }
    }
    first
}

struct Taker {
    published: Published,
    size: Option<String>,
    clients: Option<u32>,
}

impl Taker {
    fn is_taken(&self, size: Option<&str>) -> bool {
        size.is_none() || self.size.as_deref() == size
    }

    fn step(&mut self, target: &str, step: &str) -> &mut StepRecord {
        let is_query = step.starts_with('q');
        let group = match step {
            _ if step.starts_with("qp") => Group::Point,
            _ if is_query => Group::Range,
            _ => Group::Load,
        };
        let rate = if is_query { RateUnit::Queries } else { RateUnit::RowsInserted };
        let millions: Option<u64> =
            self.size.as_ref().and_then(|size| size.trim_end_matches('m').parse().ok());
        let clients = self.clients;
        let run = self.published.run(target, 1, &tag::decode(target));
        if let Some(millions) = millions {
            run.record.workload.rows = millions.saturating_mul(1_000_000);
        }
        run.record.workload.clients = clients.unwrap_or(0);
        run.step(Format::IbenchMytools.word(), step, StepKind { group, rate })
    }

    fn take(&mut self, text: &Text, row: &MetricsRow) {
        let (size, target) = split_size(&row.tag);
        let Some(step) = row.step.clone().filter(|_| self.is_taken(size)) else { return };
        self.published.metrics.push((text.path().to_owned(), row.clone()));
        let is_query = step.starts_with('q');
        let record = self.step(target, &step);
        add_file(record, &text.name());
        let mut values: Vec<(Metric, f64, &str, f64)> = Vec::new();
        for (column, cell) in &row.cells {
            let Some(value) = number(cell) else { continue };
            for (metric, factor) in metrics(column, is_query) {
                values.push((*metric, *factor, cell, value));
            }
        }
        let mut differing = Vec::new();
        for (metric, factor, cell, value) in values {
            let before = *record.outcome.extra.entry(metric).or_insert(value * factor);
            if !decimals_agree(before / factor, cell) {
                differing.push(format!(
                    "{} of {step} of {target}: {cell} here, {} in a file read before, which was \
                     taken",
                    metric.name(),
                    before / factor
                ));
            }
        }
        // vmstat's share over the rate: what cpu/o is, and finer than the printed cpupq.
        let rate = row.value(if is_query { "qps" } else { "ips" }).filter(|rate| *rate > 0.0);
        if let (Some(busy), Some(rate)) = (row.value("cpups"), rate) {
            record.outcome.extra.entry(Metric::CpuPerOp).or_insert(busy / rate);
        }
        for what in differing {
            let notice = Notice::at(NoticeKind::Mismatch, text.path(), row.line, what);
            self.published.notices.push(notice);
        }
    }

    /// Steps of one size and one number of clients, after the tables, whose numbers stand.
    fn take_raw(&mut self, raw: &[RawStep], options: &Options) {
        let of_tables = !self.published.runs.is_empty();
        // Either none has the published fault of vmstat's means or all have it: ratios are to be
        // right.
        let corrected = !options.compat && !of_tables && raw.iter().all(|raw| raw.vm.is_some());
        let mut taken: Option<u32> = None;
        let size = self.size.clone();
        let is_taken = |raw: &&RawStep| raw.size.is_none() || raw.size == size;
        for raw in raw.iter().filter(is_taken) {
            let clients = *taken.get_or_insert(raw.clients);
            if clients != raw.clients {
                let what = format!(
                    "{} of {} clients: {clients} were taken; import these by themselves",
                    raw.step, raw.clients
                );
                self.published.notices.push(Notice::of(NoticeKind::Left, &raw.folder, what));
                continue;
            }
            self.clients = Some(clients);
            let machine = tag::decode(&raw.target).machine;
            let cpus = options.cpus.or(machine.map(|(cores, _)| cores));
            let mut record = self.step(&raw.target, &raw.step).clone();
            let reading = Reading { options, cpus, corrected };
            ibench_record::fill(&mut record, raw, reading, &mut self.published);
            *self.step(&raw.target, &raw.step) = record;
        }
        let Some(clients) = taken else { return };
        let mut note = |what: String| {
            let file = "raw files".to_owned();
            let notice = Notice { kind: NoticeKind::Note, file, line: None, text: what };
            self.published.notices.push(notice);
        };
        if clients > 1 {
            note(format!(
                "seconds of {clients} clients are added by each client's own clock, and they did \
                 not start at the same moment"
            ));
        }
        if !corrected && !options.compat && raw.iter().any(|raw| raw.vm.is_some()) {
            note(
                "CPU and context switches are as the published scripts count them, some 4.5 % too \
                 low, because not all of these numbers can be had without that; ratios are not \
                 affected"
                    .to_owned(),
            );
        }
    }

    /// Longest times into the metrics, all rows into the logs of their targets.
    fn take_histograms(&mut self, sources: &Sources) {
        for (text, rows) in &sources.histograms {
            let mut left = 0;
            for row in rows {
                let tag = row.tag.strip_prefix("sum:").or_else(|| row.tag.strip_prefix("pct:"));
                let (size, target) = split_size(tag.unwrap_or(&row.tag));
                let report = row.report.as_deref().and_then(|report| split_report(report));
                let run = self.published.runs.iter().position(|run| run.record.key.label == target);
                let taken = self.is_taken(size) && self.is_taken(report);
                let (Some(place), Some(step), Some(op)) = (run, &row.step, &row.op) else {
                    left += 1;
                    continue;
                };
                if !taken {
                    left += 1;
                    continue;
                }
                let metric = match op.as_str() {
                    "insert" => Metric::InsertMax,
                    "delete" => Metric::DeleteMax,
                    _ => Metric::Max,
                };
                let steps = &mut self.published.runs[place].steps;
                if let Some(record) = steps.iter_mut().find(|record| record.name == *step)
                    && let Some(max) = number(&row.max)
                {
                    add_file(record, &text.name());
                    record.outcome.extra.entry(metric).or_insert(max * 1000.0);
                }
                let line = format!("{step}\t{op}\t{}\t{}\n", row.cells.join("\t"), row.max);
                let run = &mut self.published.runs[place];
                if !run.logs.iter().any(|(name, _)| name == RESPONSE_TIMES) {
                    let heads = super::ibench_histograms::BUCKETS.join("\t");
                    run.log(RESPONSE_TIMES, &format!("step\top\t{heads}\tmax_s\n"));
                }
                run.log(RESPONSE_TIMES, &line);
            }
            if left > 0 {
                let what = format!("{left} rows of response times belong to no target and step");
                self.published.notices.push(Notice::of(NoticeKind::Left, text.path(), what));
            }
        }
    }
}

/// `20m.my` → `20m`.
fn split_report(report: &str) -> Option<&str> {
    split_size(report).0
}

/// Metrics of a column, and what its unit is multiplied with: seconds and gigabytes become
/// milliseconds and MiB, KiB per second MiB.
fn metrics(column: &str, is_query: bool) -> &'static [(Metric, f64)] {
    match (column, is_query) {
        ("ips", false) | ("qps", true) => &[(Metric::Rate, 1.0)],
        ("ips", true) => &[(Metric::InsertRate, 1.0)],
        ("dps", _) => &[(Metric::DeleteRate, 1.0)],
        ("rps", _) => &[(Metric::DiskReadsPerSecond, 1.0)],
        ("rmbps", _) => &[(Metric::DiskReadMbPerSecond, 1.0)],
        ("rkbps", _) => &[(Metric::DiskReadMbPerSecond, 1.0 / 1024.0)],
        ("wps", _) => &[(Metric::DiskWritesPerSecond, 1.0)],
        ("wmbps", _) => &[(Metric::DiskWriteMbPerSecond, 1.0)],
        ("wkbps", _) => &[(Metric::DiskWriteMbPerSecond, 1.0 / 1024.0)],
        ("rpq", _) => &[(Metric::ReadsPerOp, 1.0)],
        ("rkbpq", _) => &[(Metric::ReadKbPerOp, 1.0)],
        ("wpi", _) => &[(Metric::WritesPerInsert, 1.0)],
        ("wkbpi", true) => &[(Metric::WriteKbPerInsert, 1.0)],
        ("wkbpi", false) => &[(Metric::WriteKbPerInsert, 1.0), (Metric::WriteKbPerOp, 1.0)],
        ("csps", _) => &[(Metric::ContextSwitchesPerSecond, 1.0)],
        ("cpups", _) => &[(Metric::CpuBusy, 1.0)],
        ("cspq", _) => &[(Metric::ContextSwitchesPerOp, 1.0)],
        ("cpupq", _) => &[(Metric::HostCpuPerOp, 1.0)],
        ("ccpupq", _) => &[(Metric::ClientCpuPerOp, 1.0)],
        ("dbgb1", _) => &[(Metric::DatabaseSize, 1.0)],
        ("dbgb2", _) => &[(Metric::DataSize, 1024.0)],
        ("rss", _) => &[(Metric::ServerRss, 1024.0)],
        ("maxop", false) => &[(Metric::Max, 1000.0), (Metric::InsertMax, 1000.0)],
        ("maxop", true) => &[(Metric::Max, 1000.0)],
        ("p50", _) => &[(Metric::SecondsP50, 1.0)],
        ("p99", _) => &[(Metric::SecondsP99, 1.0)],
        _ => &[],
    }
}

/// Cells of a row as text.
fn printed(row: &MetricsRow) -> String {
    let cells: Vec<&str> = row.cells.iter().map(|(_, cell)| cell.as_str()).collect();
    format!("{}\t{}", cells.join("\t"), row.tag)
}

/// Merged tables from the sums of the targets, as text.
fn check_merged(sources: &Sources, published: &mut Published) {
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
                let what = format!("`{}` follows from the target's own table", again);
                let notice = Notice::at(NoticeKind::Mismatch, text.path(), row.line, what);
                published.notices.push(notice);
            }
        }
        published.check("rows of merged tables from the targets' own", agree, of);
    }
}

/// Relative tables from the merged ones, cell by cell.
fn check_relative(sources: &Sources, published: &mut Published) {
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
            published.notices.push(Notice::of(NoticeKind::Left, text.path(), what));
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
    for row in &table.rows {
        let same = again.iter().find(|(other, _)| {
            other.tag == row.tag && (other.step == row.step || row.step.is_none())
        });
        let Some((from, line)) = same else {
            let what = format!("{}: no such row in the merged table", row.tag);
            published.notices.push(Notice::at(NoticeKind::Mismatch, text.path(), row.line, what));
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
                    format!("{column} of {}: {cell} is published, {expected} follows", row.tag);
                let notice = Notice::at(NoticeKind::Mismatch, text.path(), row.line, what);
                published.notices.push(notice);
            }
        }
    }
    published.check("cells of relative tables from merged ones", agree, of);
}
