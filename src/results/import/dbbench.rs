//! `dbbench`: published tables of db_bench reports and plain output of db_bench.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dbbench_output::{self, DbBench, Log};
use super::dbbench_table::{self, RatesOnly, ReportRow, ReportTable, gib};
use super::mytools_sources::names;
use super::notice::{Notice, NoticeKind};
use super::published::{self, Published, StepKind, add_file, untagged};
use super::tag::Tag;
use super::text::{Text, number};
use super::{Format, ImportError, Named, Options};
use crate::domain::benchmark::{Group, RateUnit};
use crate::domain::build::{Dbms, Version};
use crate::domain::metric::Metric;
use crate::domain::run::{Status, StepRecord};
use crate::stats::ratio::follows;

/// From this version on, the published columns of the compaction table are those beside the named
/// ones.
const SHIFTED_SINCE: [u32; 2] = [10, 3];

/// Workloads of the published scripts, as names of files and folders tell them.
const WORKLOADS: [&str; 4] = ["byrx", "byos", "iobuf", "iodir"];

/// Reads files and folders.
///
/// # Errors
/// A damaged file with its line; a file, named by the user, of none of the forms; a folder without
/// any; ratios alone; `--labels` that do not fit.
pub(super) fn read(paths: &[Named], options: &Options) -> Result<Published, ImportError> {
    let published = Published { benchmark: "kv", ..Published::default() };
    let mut taker =
        Taker { published, options, workload: None, ratios: Vec::new(), seen: Seen::new() };
    for named in paths {
        if named.path.is_dir() {
            taker.take_folder(&named.path)?;
        } else if !taker.take_file(&named.path, named.label.as_deref())? {
            let why = "it holds neither rows of a report (heads `ops_sec mb_sec … test …`), nor \
                       rates with names of steps, nor results of db_bench (`… micros/op …`)";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    if taker.published.runs.is_empty() {
        let path = paths.first().map(|named| named.path.clone()).unwrap_or_default();
        let why = "it holds no rates of db_bench; ratios alone are not enough";
        return Err(ImportError::foreign(&path, why));
    }
    taker.check_ratios();
    let mut published = taker.published;
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

/// Step and label → what tells one measurement from another.
type Seen = BTreeMap<(String, String), Vec<String>>;

struct Taker<'a> {
    published: Published,
    options: &'a Options,
    /// The workload whose files are taken: results of two are two results.
    workload: Option<&'static str>,
    ratios: Vec<(Text, RatesOnly)>,
    seen: Seen,
}

impl Taker<'_> {
    fn take_folder(&mut self, folder: &Path) -> Result<(), ImportError> {
        let mut left = Vec::new();
        let mut found = false;
        for name in names(folder)? {
            let path = folder.join(&name);
            if path.is_dir() {
                let text = "a folder: import it by itself if it holds results".to_owned();
                self.published.notices.push(Notice::of(NoticeKind::Left, &path, text));
            } else if self.take_file(&path, None)? {
                found = true;
            } else {
                left.push(name);
            }
        }
        if !found {
            let why = "it holds no table and no output of db_bench";
            return Err(ImportError::foreign(folder, why));
        }
        if !left.is_empty() {
            let text = format!("of none of the forms: {}", left.join(", "));
            self.published.notices.push(Notice::of(NoticeKind::Left, folder, text));
        }
        Ok(())
    }

    /// `false` if the file is of none of the forms.
    fn take_file(&mut self, path: &Path, label: Option<&str>) -> Result<bool, ImportError> {
        let text = match Text::read(path) {
            Ok(text) => text,
            Err(ImportError::Malformed { .. }) if label.is_none() => return Ok(false),
            Err(fault) => return Err(fault),
        };
        // Belongs to the log beside it.
        if text.first().starts_with("secs_elapsed") {
            return Ok(true);
        }
        let report = dbbench_table::is_report(&text);
        let log = !report && dbbench_output::is_log(&text);
        if !report && !log && !dbbench_table::is_rates(&text) {
            return Ok(false);
        }
        if let Some(workload) = workload_of(path) {
            let taken = *self.workload.get_or_insert(workload);
            if taken != workload {
                let what = format!("{workload}: {taken} was taken; import {workload} by itself");
                self.published.notices.push(Notice::of(NoticeKind::Left, path, what));
                return Ok(true);
            }
        }
        if report {
            let table = dbbench_table::parse_report(&text)?;
            self.take_report(&text, &table);
        } else if log {
            let log = dbbench_output::parse(&text)?;
            self.take_log(&text, &log, label)?;
        } else {
            let rates = dbbench_table::parse_rates(&text)?;
            match rates.are_ratios() {
                true => self.ratios.push((text, rates)),
                false => self.take_rates(&text, &rates)?,
            }
        }
        Ok(true)
    }

    fn take_report(&mut self, text: &Text, table: &ReportTable) {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &table.rows {
            let place = places.entry(&row.test).or_default();
            let label = self.label(table, row, *place);
            *place += 1;
            self.take_row(text, row, &label);
        }
        if !table.derived.is_empty() {
            let what = format!(
                "{} lines of ratios or deviations that somebody computed",
                table.derived.len()
            );
            let line = table.derived.first().copied().unwrap_or(1);
            self.published.notices.push(Notice::at(NoticeKind::Left, text.path(), line, what));
        }
    }

    /// The label of a row: as asked, by the path above the rows, by its version.
    fn label(&self, table: &ReportTable, row: &ReportRow, place: usize) -> String {
        if let Some(label) = self.options.labels.get(place) {
            return label.clone();
        }
        if let Some(path) = table.paths.get(place) {
            let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
            let last = parts.next().unwrap_or(path);
            let label = if last.starts_with("report") { parts.next() } else { Some(last) };
            return label.unwrap_or(path).to_owned();
        }
        row.cell("version").unwrap_or("unknown").to_owned()
    }

    fn take_row(&mut self, text: &Text, row: &ReportRow, label: &str) {
        let version = row.cell("version");
        let identity = format!(
            "{}|{}|{}|{}",
            version.unwrap_or(""),
            row.cell("githash").unwrap_or(""),
            row.cell("date").unwrap_or(""),
            row.cell("ops_sec").unwrap_or("")
        );
        let seen = self.seen.entry((row.test.clone(), label.to_owned())).or_default();
        if seen.contains(&identity) {
            // The same row stands in several tables.
            return;
        }
        seen.push(identity);
        let nth = seen.len();
        let (label, block) = match (nth, self.options.repeats) {
            (1, _) => (label.to_owned(), 1),
            (nth, true) => (label.to_owned(), u32::try_from(nth).unwrap_or(u32::MAX)),
            (nth, false) => (format!("{label}#{nth}"), 1),
        };
        if nth == 2 && !self.options.repeats {
            let what = format!(
                "{} has several rows of {label}: each became a target of its own (--labels names \
                 them; --repeats takes them for repetitions)",
                row.test
            );
            let first = !self.published.notices.iter().any(|notice| {
                notice.file == text.name() && notice.text.contains("--repeats takes")
            });
            if first {
                let notice = Notice::at(NoticeKind::Note, text.path(), row.line, what);
                self.published.notices.push(notice);
            }
        }
        let date = row.cell("date").and_then(rfc3339);
        let record = self.step(&label, block, version, &row.test);
        add_file(record, &text.name());
        if let Some(date) = &date {
            record.started.clone_from(date);
        }
        if row.failed {
            let why = format!("published as failed ({}, line {})", text.name(), row.line);
            record.status = Status::Failed(why);
            return;
        }
        for (metric, value) in report_values(row, version) {
            published::put(record, metric, value);
        }
        let tag = tag_of(&label, version);
        let run = self.published.run(&label, block, &tag);
        if let Some(date) = date
            && (run.record.started == "unknown" || date < run.record.started)
        {
            run.record.started = date;
        }
    }

    fn take_rates(&mut self, text: &Text, rates: &RatesOnly) -> Result<(), ImportError> {
        let labels = self.labels_of_columns(text, rates)?;
        for (line, step, cells) in &rates.rows {
            for (label, cell) in labels.iter().zip(cells) {
                let version = Version::new(label.clone());
                let version = (version.numbers().len() > 1).then_some(label.as_str());
                let record = self.step(label, 1, version, step);
                add_file(record, &text.name());
                match number(cell) {
                    Some(value) => {
                        published::put(record, Metric::Rate, value);
                    }
                    None => {
                        let why = format!("published as {cell} ({}, line {line})", text.name());
                        record.status = Status::Failed(why);
                    }
                }
            }
        }
        Ok(())
    }

    fn labels_of_columns(
        &mut self,
        text: &Text,
        rates: &RatesOnly,
    ) -> Result<Vec<String>, ImportError> {
        let width = rates.width();
        if self.options.labels.len() == width {
            return Ok(self.options.labels.clone());
        }
        if !self.options.labels.is_empty() {
            let given = self.options.labels.len();
            let name = text.name();
            return Err(ImportError::Words(format!(
                "`{name}`: it has {width} columns, and --labels names {given}"
            )));
        }
        let what = "versions of the columns are not in this file: targets are named col-1, col-2 \
                    … (say them with --labels)";
        self.published.notices.push(Notice::of(NoticeKind::Note, text.path(), what));
        Ok((1..=width).map(|column| format!("col-{column}")).collect())
    }

    fn take_log(&mut self, text: &Text, log: &Log, label: Option<&str>) -> Result<(), ImportError> {
        let version = log.version.as_deref();
        let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let label = label.map(str::to_owned);
        let label = label.or_else(|| version.map(|version| format!("rocksdb-{version}")));
        let label = label.unwrap_or(stem);
        let beside = PathBuf::from(format!("{}.r.csv", text.path().display()));
        let seconds = match beside.is_file() && log.results.len() == 1 {
            true => dbbench_output::parse_seconds(&Text::read(&beside)?)?,
            false => Vec::new(),
        };
        for result in &log.results {
            let seen = self.seen.entry((result.name.clone(), label.clone())).or_default();
            seen.push(format!("{}:{}", text.name(), result.line));
            let block = u32::try_from(seen.len()).unwrap_or(u32::MAX);
            let record = self.step(&label, block, version, &result.name);
            add_file(record, &text.name());
            fill(record, result, version);
            if !seconds.is_empty() {
                record.per_second = seconds.iter().map(|(_, rate)| *rate).collect();
                add_file(record, &beside.display().to_string());
            }
            if let Some(command) = &log.command {
                let line = format!("{}\t{command}\n", result.name);
                self.published
                    .run(&label, block, &tag_of(&label, version))
                    .log("commands.txt", &line);
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        label: &str,
        block: u32,
        version: Option<&str>,
        step: &str,
    ) -> &mut StepRecord {
        let tag = tag_of(label, version);
        let run = self.published.run(label, block, &tag);
        let kind = StepKind { group: group(step), rate: RateUnit::Queries };
        run.step(Format::Dbbench.word(), step, kind)
    }

    /// Tables of ratios against the rates: the first column is the base.
    fn check_ratios(&mut self) {
        for (text, ratios) in std::mem::take(&mut self.ratios) {
            let runs: Vec<_> =
                self.published.runs.iter().filter(|run| run.record.key.block == 1).collect();
            if runs.len() != ratios.width() {
                let what = format!(
                    "ratios of {} versions, and there are rates of {}: not checked",
                    ratios.width(),
                    runs.len()
                );
                self.published.notices.push(Notice::of(NoticeKind::Left, text.path(), what));
                continue;
            }
            let rate = |column: usize, step: &str| {
                let record = runs[column].steps.iter().find(|record| record.name == step)?;
                record.outcome.extra.get(&Metric::Rate).copied()
            };
            let (mut agree, mut of, mut wrong) = (0, 0, Vec::new());
            for (line, step, cells) in &ratios.rows {
                for (column, cell) in cells.iter().enumerate() {
                    let (Some(value), Some(base)) = (rate(column, step), rate(0, step)) else {
                        continue;
                    };
                    of += 1;
                    if follows(cell, value, base) {
                        agree += 1;
                    } else {
                        let label = &runs[column].record.key.label;
                        let what = format!(
                            "{step} of {label}: {cell} is published, {value} / {base} gives {:.2}",
                            value / base
                        );
                        wrong.push(Notice::at(NoticeKind::Mismatch, text.path(), *line, what));
                    }
                }
            }
            self.published.notices.append(&mut wrong);
            self.published.check("relative rates from absolute ones", agree, of);
        }
    }
}

/// `res.byrx`, `sum.iobuf.8x.txt` → the workload.
fn workload_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.split('.').collect();
    let of = |parts: &[&str]| WORKLOADS.into_iter().find(|workload| parts.contains(workload));
    of(&parts).or_else(|| of(&folder.split('.').collect::<Vec<_>>()))
}

fn tag_of(label: &str, version: Option<&str>) -> Tag {
    let speedb = label.to_lowercase().contains("speedb");
    let name = if speedb { "speedb" } else { "rocksdb" };
    let mut tag = untagged(label, Dbms::from_name(name).unwrap_or(Dbms::Other));
    tag.version = version.map(Version::new);
    tag
}

fn group(step: &str) -> Group {
    if step.starts_with("fill") {
        Group::Load
    } else if step.starts_with("overwrite") || step.starts_with("update") {
        Group::Write
    } else if step.contains("range") || step.contains("seek") || step.starts_with("readseq") {
        Group::Range
    } else {
        Group::Point
    }
}

/// `2025-05-9T01:44:24`, whose day has one digit or two.
fn rfc3339(date: &str) -> Option<String> {
    let (day, time) = date.split_once('T')?;
    let mut parts = day.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let number = |text: &str| text.parse::<u32>().ok();
    let (year, month, day) = (number(year)?, number(month)?, number(day)?);
    let whole = time.len() == 8 && time.bytes().all(|b| b.is_ascii_digit() || b == b':');
    whole.then(|| format!("{year:04}-{month:02}-{day:02}T{time}Z"))
}

/// Metrics of the columns of a report. Those that are wrong by their formula or position go under
/// their `_compat` names, and under the plain ones as well where they are right.
fn report_values(row: &ReportRow, version: Option<&str>) -> Vec<(Metric, f64)> {
    let shifted = version.is_none_or(|version| Version::new(version).at_least(&SHIFTED_SINCE));
    let mut values = Vec::new();
    for (column, cell) in &row.cells {
        let value = match column.as_str() {
            "lsm_sz" | "blob_sz" => gib(cell),
            _ => number(cell),
        };
        let Some(value) = value else { continue };
        let (plain, compat) = match column.as_str() {
            "ops_sec" => (Some(Metric::Rate), None),
            "mb_sec" => (Some(Metric::MbPerSecond), None),
            "lsm_sz" => (Some(Metric::LsmSize), None),
            "blob_sz" => (Some(Metric::BlobSize), None),
            "c_wgb" => (Some(Metric::CompactionWritten), None),
            "w_amp" => (None, Some(Metric::WriteAmpCompat)),
            "c_mbps" => (Some(Metric::CompactionMbPerSecond), None),
            "c_wsecs" => {
                (Some(Metric::CompactionWallSeconds), Some(Metric::CompactionWallSecondsCompat))
            }
            "c_csecs" => {
                (Some(Metric::CompactionCpuSeconds), Some(Metric::CompactionCpuSecondsCompat))
            }
            "b_rgb" => (Some(Metric::BlobRead), Some(Metric::BlobReadCompat)),
            "b_wgb" => (Some(Metric::BlobWritten), Some(Metric::BlobWrittenCompat)),
            "usec_op" => (Some(Metric::MicrosPerOp), None),
            "p50" => (None, Some(Metric::P50Compat)),
            "p99" => (None, Some(Metric::P99Compat)),
            "p99.9" => (None, Some(Metric::P999Compat)),
            "p99.99" => (None, Some(Metric::P9999Compat)),
            "pmax" => (None, Some(Metric::MaxCompat)),
            "uptime" => (Some(Metric::Uptime), None),
            "stall%" => (Some(Metric::StallPercent), None),
            "Nstall" => (Some(Metric::StallCount), None),
            "u_cpu" => (Some(Metric::UserCpu), None),
            "s_cpu" => (Some(Metric::SystemCpu), None),
            "rss" => (Some(Metric::PeakRss), None),
            _ => (None, None),
        };
        values.extend(compat.map(|metric| (metric, value)));
        if compat.is_none() || !shifted {
            values.extend(plain.map(|metric| (metric, value)));
        }
    }
    values
}

/// What a plain log tells. Columns of the compaction table go by their names, so nothing is
/// shifted; the write amplification is that of its definition.
fn fill(record: &mut StepRecord, result: &DbBench, version: Option<&str>) {
    let stats = &result.stats;
    let outcome = &mut record.outcome;
    outcome.seconds = result.seconds.unwrap_or(0.0);
    outcome.events = result.operations.or(result.observed).unwrap_or(0);
    outcome.statements = result.operations.unwrap_or(0);
    let sum = |name: &str| {
        let found = stats.sum.iter().find(|(head, _)| head == name);
        found.and_then(|(_, cell)| if name == "Size" { gib(cell) } else { number(cell) })
    };
    let percentile =
        |which: f64| result.percentiles.iter().find(|(p, _)| *p == which).map(|(_, value)| *value);
    let ratio = |written: Option<f64>| match (written, stats.ingest_gib) {
        (Some(written), Some(ingest)) if ingest > 0.0 => Some(written / ingest),
        _ => None,
    };
    let with_flush = stats.compaction_gib.zip(stats.flush_gib).map(|(all, flush)| all + flush);
    let stall = |name: &str| {
        let found = stats.stalls.iter().find(|(cause, _)| cause == name);
        found.map(|(_, count)| *count as f64)
    };
    let old_form = version.is_some_and(|version| !Version::new(version).at_least(&[8, 1]));
    let published_stalls = match old_form && !stats.stalls.is_empty() {
        true => {
            let counted = stats.stalls.iter().filter(|(cause, _)| !cause.starts_with("cf-"));
            Some(counted.map(|(_, count)| *count as f64).sum())
        }
        false => stall("total-delays").zip(stall("total-stops")).map(|(a, b)| a + b),
    };
    let values = [
        (Metric::Rate, Some(result.ops_per_second)),
        (Metric::MicrosPerOp, Some(result.micros_per_op)),
        (Metric::MbPerSecond, result.mb_per_second),
        (Metric::LsmSize, sum("Size")),
        (Metric::CompactionWritten, stats.compaction_gib),
        (Metric::WriteAmp, ratio(stats.compaction_gib)),
        (Metric::WriteAmpCompat, ratio(with_flush)),
        (Metric::CompactionMbPerSecond, stats.compaction_mb_per_second),
        (Metric::CompactionWallSeconds, sum("Comp(sec)")),
        (Metric::CompactionCpuSeconds, sum("CompMergeCPU(sec)")),
        (Metric::BlobRead, sum("Rblob(GB)")),
        (Metric::BlobWritten, sum("Wblob(GB)")),
        (Metric::P50Compat, percentile(50.0)),
        (Metric::P99Compat, percentile(99.0)),
        (Metric::P999Compat, percentile(99.9)),
        (Metric::P9999Compat, percentile(99.99)),
        (Metric::MaxCompat, result.max_micros),
        (Metric::Uptime, stats.uptime),
        (Metric::StallPercent, stats.stall_percent),
        (Metric::StallCount, published_stalls),
        (Metric::StallL0Delays, stall("l0-file-count-limit-delays")),
        (Metric::StallL0Stops, stall("l0-file-count-limit-stops")),
        (Metric::StallMemtableDelays, stall("memtable-limit-delays")),
        (Metric::StallMemtableStops, stall("memtable-limit-stops")),
        (Metric::StallPendingDelays, stall("pending-compaction-bytes-delays")),
        (Metric::StallPendingStops, stall("pending-compaction-bytes-stops")),
    ];
    for (metric, value) in values {
        if let Some(value) = value {
            outcome.extra.insert(metric, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_workload_group_and_day() {
        assert_eq!(workload_of(Path::new("a/sum.iobuf.8x.txt")), Some("iobuf"));
        assert_eq!(workload_of(Path::new("res.byrx/summary.tsv")), Some("byrx"));
        assert_eq!(workload_of(Path::new("summary.tsv")), None);
        let check = |step: &str, expected: Group| assert_eq!(group(step), expected, "{step}");
        check("fillseq.wal_disabled.v400", Group::Load);
        check("fwdrangewhilewriting.t8", Group::Range);
        check("readwhilewriting.t8", Group::Point);
        check("overwriteandwait.t8.s0", Group::Write);
        assert_eq!(rfc3339("2025-05-9T01:44:24").as_deref(), Some("2025-05-09T01:44:24Z"));
        assert_eq!((rfc3339("2025-05-9"), rfc3339("x-y-zT00:00:00")), (None, None));
    }
}
