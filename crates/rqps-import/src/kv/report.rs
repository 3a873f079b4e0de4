//! Reads published db_bench tables with a line of heads, as tabs or aligned text.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Taker;
use crate::cells::{Kept, decimals_agree, number, rfc3339};
use crate::format::Result;
use crate::published::{self, Tag, add_file, untagged};
use crate::text::{METRICS_MAX, Row, Text};
use rqps_bench_kv::analyze::{Stats, stalls, tree};
use rqps_model::benchmark::Group;
use rqps_model::build::{Dbms, Version};
use rqps_model::metric::Metric;
use rqps_model::run::{Status, StepRecord};

/// The rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// Paths above the rows in order; each names the report of one version.
    pub paths: Vec<String>,
    /// Rows in order.
    pub rows: Vec<ReportRow>,
    /// Lines below the rows of a step, with values computed from their rates.
    pub derived: Vec<Derived>,
}

/// A ratio, or a mean and deviation, of the rows above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// Line number, from 1.
    pub line: usize,
    /// The range of its rows: indexes in the table, without the end.
    pub rows: (usize, usize),
    /// Printed cells: the second rate / the first; or mean, deviation, deviation / mean.
    pub cells: Vec<String>,
}

impl Derived {
    /// Recomputes the cells from the rates of its rows; `None` if the formula is unknown.
    pub fn again(&self, table: &ReportTable) -> Option<Vec<f64>> {
        let rows = table.rows.get(self.rows.0..self.rows.1)?;
        let rates: Option<Vec<f64>> =
            rows.iter().map(|row| number(row.cell("ops_sec").unwrap_or(""))).collect();
        let rates = rates.filter(|rates| rates.iter().all(|rate| *rate > 0.0))?;
        match (self.cells.len(), rates.as_slice()) {
            (1, [first, second]) => Some(vec![second / first]),
            (3, [_, ..]) => {
                let n = rates.len() as f64;
                let mean = rates.iter().sum::<f64>() / n;
                // The deviation of these repetitions, not of a population.
                let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
                let deviation = (squares / n).sqrt();
                Some(vec![mean, deviation, deviation / mean])
            }
            _ => None,
        }
    }
}

/// Reads `0.981`, or `mean=616072 TAB stddev=832.9 TAB sdev/mean=0.001` with or without the names.
/// An incomplete row begins with a whole number.
fn derived(line: &str) -> Option<Vec<String>> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let value = |cell: &&str| cell.rsplit_once('=').map_or(*cell, |(_, value)| value).to_owned();
    let values: Vec<String> = cells.iter().map(value).collect();
    let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
    let is_derived = match numbers?.as_slice() {
        [_] => line.contains('.'),
        [mean, deviation, quotient] => {
            line.starts_with("mean=") || (deviation / mean - quotient).abs() <= 0.001
        }
        _ => false,
    };
    is_derived.then_some(values)
}

/// One row: a step of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRow {
    /// Line number, from 1.
    pub line: usize,
    /// Columns and printed cells; a missing cell is empty.
    pub cells: Row,
    /// The step: `readwhilewriting.t24`.
    pub test: String,
    /// True if the row says `failed`.
    pub failed: bool,
}

impl ReportRow {
    /// The cell of a column, if it is not empty.
    pub fn cell(&self, column: &str) -> Option<&str> {
        let found = self.cells.iter().find(|(name, _)| name == column);
        found.map(|(_, cell)| cell.as_str()).filter(|cell| !cell.is_empty())
    }
}

/// True if the text has report rows: a line of heads that begins with `ops_sec`.
pub fn is_report(text: &Text) -> bool {
    text.lines().any(|(_, line)| is_heads(line))
}

fn is_heads(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next() == Some("ops_sec") && words.any(|word| word == "test")
}

/// Most columns of a report; published ones have up to 28.
const HEADS_MAX: usize = 100;

/// A head and its position in the line, in characters.
struct Head {
    name: String,
    span: (usize, usize),
}

/// Reads report rows. The heads repeat before each step; columns are found by name.
///
/// # Errors
///
/// A row before the heads or with a wrong number of cells, an invalid number, a row without a step,
/// a file without rows.
pub fn parse_report(text: &Text) -> Result<ReportTable> {
    text.at_most(METRICS_MAX)?;
    let mut table = ReportTable::default();
    let mut heads: Vec<Head> = Vec::new();
    let mut first = 0;
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if is_heads(row) {
            heads = words(row);
            if heads.len() > HEADS_MAX {
                let count = heads.len();
                let why = format!("{count} columns, but a report can have at most {HEADS_MAX}");
                return Err(text.malformed(line, why));
            }
            first = table.rows.len();
            continue;
        }
        let count = trimmed.split_whitespace().count();
        if heads.is_empty() && count == 1 && trimmed.contains('/') {
            table.paths.push(trimmed.to_owned());
        } else if let Some(cells) = derived(trimmed) {
            table.derived.push(Derived { line, rows: (first, table.rows.len()), cells });
        } else if heads.is_empty() {
            return Err(text.malformed(line, "a row before the header (`ops_sec mb_sec … test …`)"));
        } else {
            let cells = if row.contains('\t') {
                by_tabs(text, line, row, &heads)?
            } else {
                by_place(text, line, row, &heads)?
            };
            table.rows.push(report_row(text, line, cells)?);
        }
    }
    if table.rows.is_empty() { Err(text.cut_short("the first row of a report")) } else { Ok(table) }
}

fn words(line: &str) -> Vec<Head> {
    let mut words: Vec<Head> = Vec::new();
    let mut begin = None;
    let chars = line.chars().chain([' ']).enumerate();
    let mut word = String::new();
    for (at, c) in chars {
        if c.is_whitespace() {
            if let Some(first) = begin.take() {
                words.push(Head { name: std::mem::take(&mut word), span: (first, at) });
            }
        } else {
            begin.get_or_insert(at);
            word.push(c);
        }
    }
    words
}

fn by_tabs(text: &Text, line: usize, row: &str, heads: &[Head]) -> Result<Row> {
    let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
    let heads: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
    text.by_head(line, &heads, &cells)
}

/// Aligned text leaves empty cells out: each word belongs to the nearest head.
fn by_place(text: &Text, line: usize, row: &str, heads: &[Head]) -> Result<Row> {
    let words = words(row);
    let mut cells: Row = heads.iter().map(|head| (head.name.clone(), String::new())).collect();
    if words.len() == heads.len() {
        for (cell, word) in cells.iter_mut().zip(words) {
            cell.1 = word.name;
        }
        return Ok(cells);
    }
    for word in words {
        let apart = |head: &Head| {
            let (a, b) = (head.span, word.span);
            let gap = a.0.max(b.0).saturating_sub(a.1.min(b.1));
            (gap, a.0.abs_diff(b.0).min(a.1.abs_diff(b.1)))
        };
        let near = heads.iter().enumerate().min_by_key(|(_, head)| apart(head));
        let Some((place, _)) = near else { continue };
        if !cells[place].1.is_empty() {
            let why = format!(
                "two cells under `{}`: the line has no tabs and does not align with its header",
                cells[place].0
            );
            return Err(text.malformed(line, why));
        }
        cells[place].1 = word.name;
    }
    // A row holds only existing cells, so that thousands of heads cost nothing.
    cells.retain(|(_, cell)| !cell.is_empty());
    Ok(cells)
}

/// Columns without numbers.
const TEXTS: [&str; 7] = ["lsm_sz", "blob_sz", "test", "date", "version", "job_id", "githash"];

fn report_row(text: &Text, line: usize, cells: Row) -> Result<ReportRow> {
    let mut row = ReportRow { line, cells, test: String::new(), failed: false };
    row.failed = row.cell("ops_sec") == Some("failed");
    let known = known_heads();
    for (place, (name, cell)) in row.cells.iter().enumerate().filter(|_| !row.failed) {
        // The published scripts print -1 for the memory of a server that they did not find.
        let none = cell.is_empty() || cell == "NA" || (name == "rss" && cell == "-1");
        let size = ["lsm_sz", "blob_sz"].contains(&name.as_str());
        // A size is no result: one that cannot be is left out, and not the folder.
        let below_zero = size && cell.strip_prefix('-').is_some_and(|rest| gib(rest).is_some());
        if size && !none && !below_zero && gib(cell).is_none() {
            let why = format!("`{cell}` under `{name}` is not a size (`439GB`)");
            return Err(text.bad_cell(line, place + 1, why));
        }
        // An unknown column may contain anything.
        let is_text = none || TEXTS.contains(&name.as_str()) || !known.contains(&name.as_str());
        if !is_text || name == "ops_sec" {
            text.number(line, place + 1, name, cell)?;
        }
    }
    if row.cell("ops_sec").is_none() {
        return Err(text.malformed(line, "the row has no rate under `ops_sec`"));
    }
    match row.cell("test") {
        Some(test) => row.test = test.to_owned(),
        None => return Err(text.malformed(line, "the row has no name under `test`")),
    }
    Ok(row)
}

// Takes the rows of published report tables.

impl Taker<'_> {
    pub(super) fn take_report(&mut self, text: &Text, table: &ReportTable) -> Result<()> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut labels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &table.rows {
            let place = places.entry(&row.test).or_default();
            let label = self.label(table, row, *place);
            *place += 1;
            let label = self.take_row(text, row, &label)?;
            labels.entry(&row.test).or_default().push(label);
        }
        // Tables of rates have a column per row.
        let mut of_steps = labels.into_values();
        if let Some(first) = of_steps.next().filter(|first| of_steps.all(|other| other == *first)) {
            self.reports.push((text.path().to_owned(), first));
        }
        self.check_derived(text, table);
        Ok(())
    }

    /// Checks the ratios, means and deviations below the rows.
    fn check_derived(&mut self, text: &Text, table: &ReportTable) {
        let (mut agree, mut of, mut unknown) = (0, 0, 0);
        for derived in &table.derived {
            let Some(again) = derived.again(table) else {
                unknown += 1;
                continue;
            };
            for (printed, value) in derived.cells.iter().zip(again) {
                of += 1;
                if decimals_agree(value, printed) {
                    agree += 1;
                    continue;
                }
                let what = format!("published {printed}, but the rates above give {value:.3}");
                self.published.mismatch(text.path(), derived.line, what);
            }
        }
        self.published.check("ratios, means and deviations below rows", agree, of);
        if unknown > 0 {
            let what = format!("unlabelled lines below rows: {unknown}");
            self.left(text.path(), what);
        }
    }

    /// The label of a row: the given one if each row of its test has one, that of the path above
    /// the rows, or its version.
    fn label(&self, table: &ReportTable, row: &ReportRow, place: usize) -> String {
        let rows = table.rows.iter().filter(|other| other.test == row.test).count();
        if let Some(label) = self.options.labels.get(place)
            && self.options.labels.len() == rows
        {
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

    /// Takes a row and returns the label of its run.
    fn take_row(&mut self, text: &Text, row: &ReportRow, label: &str) -> Result<String> {
        self.check_row(text, row, label)?;
        let test = self.name(text.path(), &row.test);
        let version = row.cell("version");
        let cells = ["version", "githash", "date", "ops_sec"];
        let identity = cells.map(|name| row.cell(name).unwrap_or("")).join("|");
        let date = row.cell("date").and_then(|date| rfc3339(date, "%Y-%m-%dT%H:%M:%S"));
        let (place, again) = self.rows.place(label, &test, &identity, date.as_deref());
        let (label, block) = self.numbered(label, place);
        self.published.cells.read(text.path(), row.cells.len());
        if again {
            self.published.cells.keep(text.path(), Kept::Compared, row.cells.len());
            return Ok(label);
        }
        if place == 1 && !self.options.repeats {
            self.note_several(text, row.line, &test, &label);
        }
        let record = self.step(&label, block, version, &test);
        add_file(record, &text.name());
        if let Some(date) = &date {
            record.started.clone_from(date);
        }
        if row.failed {
            let why = format!("published as failed ({}, line {})", text.name(), row.line);
            record.status = Status::Failed(why);
            let why = "rows of steps that failed";
            self.published.cells.leave(text.path(), why, row.cells.len());
            return Ok(label);
        }
        let mut counted = Vec::new();
        for (head, printed) in &row.cells {
            counted.push((head, report_cell(head, printed, version)));
            match counted.last() {
                Some((_, ReportCell::Values(values))) => {
                    values.iter().for_each(|(metric, value)| {
                        published::put(record, *metric, *value);
                    });
                }
                Some((_, ReportCell::Unknown)) => published::annotate(record, head, printed),
                _ => {}
            }
        }
        self.count(text.path(), &counted);
        let tag = tag_of(&label, version);
        let run = self.published.run(&label, block, &tag);
        if let Some(date) = date
            && (run.record.started == "unknown" || date < run.record.started)
        {
            run.record.started = date;
        }
        Ok(label)
    }

    /// Counts the cells of a row by what became of them.
    fn count(&mut self, file: &Path, counted: &[(&String, ReportCell)]) {
        let cells = &mut self.published.cells;
        let known = known_heads();
        for (head, cell) in counted {
            if matches!(cell, ReportCell::Impossible) {
                cells.leave(file, format!("sizes below zero under `{head}`"), 1);
                continue;
            }
            let kept = match cell {
                ReportCell::Values(_) => Kept::Metric,
                ReportCell::Absent | ReportCell::Impossible => Kept::Absent,
                ReportCell::Identity => Kept::Annotation,
                ReportCell::Unknown => {
                    cells.unknown_head(file, head, &known);
                    Kept::Annotation
                }
            };
            cells.keep(file, kept, 1);
        }
    }

    /// Rows with the same step, version and starting second are copies.
    ///
    /// # Errors
    ///
    /// A copy has other numbers; the text has both places.
    fn check_row(&mut self, text: &Text, row: &ReportRow, label: &str) -> Result<()> {
        let Some(date) = row.cell("date") else { return Ok(()) };
        let of = ["version", "githash"].map(|name| row.cell(name).unwrap_or(""));
        let test = self.name(text.path(), &row.test);
        let key = [label, &test, of[0], of[1], date].join("|");
        let Some((other, line, cells)) = self.dated.get(&key) else {
            self.dated.insert(key, (text.name(), row.line, row.cells.clone()));
            return Ok(());
        };
        for (column, (head, printed)) in row.cells.iter().enumerate() {
            let before = cells.iter().find(|(name, _)| name == head);
            if let Some((_, before)) = before.filter(|(_, before)| before != printed) {
                let why = format!(
                    "`{printed}` under `{head}` contradicts `{before}` in {other}, line {line}: \
                     both say they are {} of {} at {date}",
                    row.test, of[0]
                );
                return Err(text.bad_cell(row.line, column + 1, why));
            }
        }
        Ok(())
    }
}

// Reads db_bench's output: a result line per benchmark, percentiles, and RocksDB's statistics.

/// The printed results of one benchmark; `None` for values that were not printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DbBench {
    /// Line number of its result.
    pub line: usize,
    /// Its name: `readwhilewriting`.
    pub name: String,
    /// Microseconds per operation of a thread.
    pub micros_per_op: f64,
    /// Operations per second of all threads.
    pub ops_per_second: f64,
    /// Length in seconds; since RocksDB 7.3.
    pub seconds: Option<f64>,
    /// Operations; since RocksDB 7.3.
    pub operations: Option<u64>,
    /// Keys and values per second, MiB.
    pub mb_per_second: Option<f64>,
    /// Percentiles (per cent, µs): 50, 99, 99.9 and 99.99.
    pub percentiles: Vec<(f64, f64)>,
    /// Largest latency, µs.
    pub max_micros: Option<f64>,
    /// Number of operations in the histogram.
    pub observed: Option<u64>,
    /// Keys that reads found, of how many.
    pub found: Option<(u64, u64)>,
    /// The last printed statistics of the database.
    pub stats: Stats,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The command line, if it is in the first line.
    pub command: Option<String>,
    /// `rocksdb` or `speedb`.
    pub product: String,
    /// Its version.
    pub version: Option<String>,
    /// The date, RFC 3339.
    pub date: Option<String>,
    /// The line that says that the build is one for debugging.
    pub debug_build: Option<String>,
    /// Lines that warn of something, each once.
    pub warnings: Vec<String>,
    /// Benchmarks in order.
    pub results: Vec<DbBench>,
    /// Lines and names of other work: warm-up runs (`fillseq[X3-W1]`), and work between benchmarks
    /// such as flush and compact.
    pub passed: Vec<(usize, String)>,
}

impl Log {
    /// A digest of the results. Two runs never agree in all digits.
    pub fn digest(&self) -> [u8; 32] {
        let measured = |result: &DbBench| DbBench { line: 0, ..result.clone() };
        let results: Vec<DbBench> = self.results.iter().map(measured).collect();
        Sha256::digest(format!("{:?} {results:?}", self.version).as_bytes()).into()
    }
}

/// Names in `--benchmarks` of work on the tree without clients.
const CHORES: [&str; 9] = [
    "flush", "compact", "compact0", "compact1", "compactall", "waitforcompaction", "verify",
    "verifychecksum", "verifyfilechecksums",
];

/// True if the text looks like output of db_bench.
pub fn is_log(text: &Text) -> bool {
    text.lines().any(|(_, line)| is_result(line) || version(line.trim()).is_some())
}

fn is_result(line: &str) -> bool {
    line.contains(" micros/op ") && line.contains("ops/sec")
}

/// The parser's state.
#[derive(Default)]
struct LineRange {
    /// Heads of the compaction table.
    heads: Vec<String>,
    /// True between a result with `Microseconds per write:` and the statistics of the database.
    /// Later histograms of the same form belong to the files of levels.
    histogram: bool,
    /// True between `Warming up benchmark` and `Running benchmark`.
    warming: bool,
    /// Statistics printed while a benchmark ran, before its result.
    running: Option<DbBench>,
}

/// Reads a file. Statistics printed during a benchmark (`--stats_per_interval`) count if none
/// follow its end.
///
/// # Errors
///
/// A result line without its numbers, invalid percentiles, a file without a result.
pub fn parse(text: &Text) -> Result<Log> {
    let mut log = Log::default();
    let mut place = LineRange::default();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if log.command.is_none() && log.results.is_empty() && is_command(trimmed) {
            log.command = Some(trimmed.to_owned());
        } else if is_result(row) {
            let result = result(row).ok_or_else(|| {
                let why = "expected `NAME : X micros/op N ops/sec …`";
                text.malformed(line, why)
            })?;
            place.histogram = true;
            if place.warming || CHORES.contains(&result.name.as_str()) {
                log.passed.push((line, result.name));
            } else {
                let stats = place.running.take().unwrap_or_default().stats;
                log.results.push(DbBench { line, stats, ..result });
            }
        } else if let Some((product, version)) = version(trimmed) {
            (log.product, log.version) = (product, Some(version));
        } else if let Some(date) = trimmed.strip_prefix("Date:") {
            log.date = date_of(date);
        } else if is_debug(trimmed) {
            log.debug_build.get_or_insert_with(|| trimmed.to_owned());
        } else if is_warning(trimmed) {
            if !log.warnings.iter().any(|other| other == trimmed) {
                log.warnings.push(trimmed.to_owned());
            }
        } else if trimmed.starts_with("Warming up benchmark") {
            place.warming = true;
        } else if trimmed.starts_with("Running benchmark for") {
            place.warming = false;
        } else {
            take_statistic_of(text, line, trimmed, &mut place, &mut log)?;
        }
    }
    if log.results.is_empty() {
        let lines = text.lines().map(|(_, line)| line.trim());
        let said = lines.filter(|line| !line.is_empty()).last();
        let expected = "a result of db_bench (`NAME : X micros/op N ops/sec`)";
        let said = said.unwrap_or_default();
        Err(text.cut_short(&format!("{expected}; its last line is `{said}`")))
    } else {
        Ok(log)
    }
}

/// Adds a statistic to the running benchmark, or to the one with the last result.
fn take_statistic_of(
    text: &Text,
    line: usize,
    row: &str,
    place: &mut LineRange,
    log: &mut Log,
) -> Result<()> {
    // A line of progress: `… thread 0: (100000,200000) ops and (…) ops/second in (…) seconds`.
    let runs = row.contains(") ops and (");
    if runs || place.running.is_some() || log.results.is_empty() {
        let before = runs || place.running.is_some();
        let mut running = place.running.take().unwrap_or_default();
        take_statistic(text, line, row, place, &mut running)?;
        let tells = before || running != DbBench::default();
        place.running = tells.then_some(running);
        return Ok(());
    }
    match log.results.last_mut() {
        Some(last) => take_statistic(text, line, row, place, last),
        None => Ok(()),
    }
}

/// True for a line that warns: `WARNING: Snappy compression is not enabled`, `NOTE: …`.
fn is_warning(line: &str) -> bool {
    let word = line.split_once(':').map(|(word, _)| word.to_ascii_lowercase());
    matches!(word.as_deref(), Some("warning" | "note"))
}

/// True for what db_bench says of a build without `NDEBUG` or `-O`.
fn is_debug(line: &str) -> bool {
    line.contains("Assertions are enabled") || line.contains("Optimization is disabled")
}

/// Converts `Thu Nov  9 02:12:37 2023` to RFC 3339. db_bench names no time zone.
fn date_of(date: &str) -> Option<String> {
    rfc3339(date.trim().split_once(' ')?.1, "%b %d %H:%M:%S %Y")
}

/// Reads `(1000 of 1000 found)`.
fn found(words: &[&str]) -> Option<(u64, u64)> {
    let place = words.iter().position(|word| *word == "found)")?;
    let [found, "of", of] = words.get(place.checked_sub(3)?..place)? else { return None };
    Some((found.strip_prefix('(')?.parse().ok()?, of.parse().ok()?))
}

/// True for the command line that scripts write before the output.
fn is_command(line: &str) -> bool {
    line.contains("db_bench") && line.contains("--benchmarks")
}

/// Reads `RocksDB:    version 6.29`, `Speedb: version 2.8.0`.
fn version(line: &str) -> Option<(String, String)> {
    let (product, rest) = line.split_once(':')?;
    let version = rest.trim().strip_prefix("version ")?;
    let product = product.trim().to_lowercase();
    let known = ["rocksdb", "speedb"].contains(&product.as_str());
    let version = version.split_whitespace().next()?;
    let version = version.split_once('(').map_or(version, |(version, _)| version);
    let digit = version.starts_with(|c: char| c.is_ascii_digit());
    (known && digit).then(|| (product, version.to_owned()))
}

/// Reads a result: `name : X micros/op N ops/sec; Y MB/s (a of b found)`; since 7.3 `… N ops/sec S
/// seconds K operations; Y MB/s`.
fn result(row: &str) -> Option<DbBench> {
    // A carriage return ends the progress line before the result.
    let row = row.rsplit('\r').next()?;
    let (name, rest) = row.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().map(|word| word.trim_matches(';')).collect();
    let before = |unit: &str| {
        let place = words.iter().position(|word| *word == unit)?;
        number(words.get(place.checked_sub(1)?)?)
    };
    let name = name.split_whitespace().last()?.to_owned();
    let operations = before("operations").map(|count| count as u64);
    Some(DbBench {
        name,
        micros_per_op: before("micros/op")?,
        ops_per_second: before("ops/sec")?,
        seconds: before("seconds"),
        operations,
        mb_per_second: before("MB/s"),
        found: found(&words),
        ..DbBench::default()
    })
}

fn take_statistic(
    text: &Text,
    line: usize,
    row: &str,
    place: &mut LineRange,
    result: &mut DbBench,
) -> Result<()> {
    let LineRange { heads, histogram, .. } = place;
    if row.starts_with("Microseconds per ") {
        *histogram = true;
    } else if row.starts_with("** ") {
        *histogram = false;
    } else if let Some(rest) = row.strip_prefix("Percentiles:").filter(|_| *histogram) {
        let percentiles = percentiles(rest);
        result.percentiles =
            percentiles.ok_or_else(|| text.malformed(line, "expected `P50: X P75: Y …`"))?;
    } else if *histogram && row.starts_with("Min:") && row.contains("Max:") {
        let max = row.rsplit_once("Max:").and_then(|(_, max)| number(max));
        result.max_micros = Some(max.ok_or_else(|| text.malformed(line, "Max: is not a number"))?);
    } else if let Some(rest) = row.strip_prefix("Count:").filter(|_| *histogram) {
        result.observed = rest.split_whitespace().next().and_then(|count| count.parse().ok());
    } else {
        result.stats.take(row, heads);
    }
    Ok(())
}

/// Reads `P50: 1.22 P75: 1.60 P99: 5.87 P99.9: 8.1 P99.99: 14.0`.
fn percentiles(rest: &str) -> Option<Vec<(f64, f64)>> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let pairs = words.chunks(2).map(|pair| {
        let [name, value] = pair else { return None };
        let which = number(name.strip_prefix('P')?.strip_suffix(':')?)?;
        Some((which, number(value)?))
    });
    pairs.collect()
}

/// Reads the file of seconds beside a log: `secs_elapsed,interval_qps`.
///
/// # Errors
///
/// Another head, a line that is not two numbers.
pub fn parse_seconds(text: &Text) -> Result<Vec<(f64, f64)>> {
    let mut rows = Vec::new();
    for (line, row) in text.lines() {
        if row.trim().is_empty() || (line == 1 && row.starts_with("secs_elapsed")) {
            continue;
        }
        let pair =
            row.split_once(',').and_then(|(time, rate)| Some((number(time)?, number(rate)?)));
        rows.push(pair.ok_or_else(|| text.malformed(line, "expected `seconds,operations/s`"))?);
    }
    Ok(rows)
}

// Converts columns of published db_bench reports, and values of its output, to metrics.

/// From this version on, the published values of the compaction table are those of neighbouring
/// columns.
const SHIFTED_SINCE: [u32; 2] = [10, 3];

pub(crate) fn tag_of(label: &str, version: Option<&str>) -> Tag {
    let speedb = label.to_lowercase().contains("speedb");
    let name = if speedb { "speedb" } else { "rocksdb" };
    let mut tag = untagged(label, Dbms::from_name(name).unwrap_or(Dbms::Other));
    tag.version = version.map(Version::new);
    tag
}

pub(crate) fn group(step: &str) -> Group {
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

/// Columns of a report without numbers, which describe the run.
const IDENTITY: [&str; 5] = ["test", "date", "version", "job_id", "githash"];

/// Columns of a report with metrics: the metric of the head, and the metric for a value with the
/// wrong formula or position.
const COLUMNS: [(&str, Option<Metric>, Option<Metric>); 23] = [
    ("ops_sec", Some(Metric::Rate), None),
    ("mb_sec", Some(Metric::MbPerSecond), None),
    ("lsm_sz", Some(Metric::LsmSize), None),
    ("blob_sz", Some(Metric::BlobSize), None),
    ("c_wgb", Some(Metric::CompactionWritten), None),
    ("w_amp", None, Some(Metric::WriteAmpCompat)),
    ("c_mbps", Some(Metric::CompactionMbPerSecond), None),
    ("c_wsecs", Some(Metric::CompactionWallSeconds), Some(Metric::CompactionWallSecondsCompat)),
    ("c_csecs", Some(Metric::CompactionCpuSeconds), Some(Metric::CompactionCpuSecondsCompat)),
    ("b_rgb", Some(Metric::BlobRead), Some(Metric::BlobReadCompat)),
    ("b_wgb", Some(Metric::BlobWritten), Some(Metric::BlobWrittenCompat)),
    ("usec_op", Some(Metric::MicrosPerOp), None),
    ("p50", None, Some(Metric::P50Compat)),
    ("p99", None, Some(Metric::P99Compat)),
    ("p99.9", None, Some(Metric::P999Compat)),
    ("p99.99", None, Some(Metric::P9999Compat)),
    ("pmax", None, Some(Metric::MaxCompat)),
    ("uptime", Some(Metric::Uptime), None),
    ("stall%", Some(Metric::StallPercent), None),
    ("Nstall", Some(Metric::StallCount), None),
    ("u_cpu", Some(Metric::UserCpu), None),
    ("s_cpu", Some(Metric::SystemCpu), None),
    ("rss", Some(Metric::PeakRss), None),
];

/// The meaning of a cell of a report.
pub(crate) enum ReportCell {
    /// Values of metrics. A value with the wrong formula or position has the `_compat` metric, and
    /// also the plain one if it is right.
    Values(Vec<(Metric, f64)>),
    /// No number: empty, `NA`, or `-1` for a server that was not found.
    Absent,
    /// A size below zero.
    Impossible,
    /// A description of the run.
    Identity,
    /// An unknown column.
    Unknown,
}

/// The meaning of a cell under this head.
pub(crate) fn report_cell(column: &str, cell: &str, version: Option<&str>) -> ReportCell {
    if IDENTITY.contains(&column) {
        return ReportCell::Identity;
    }
    let Some((_, plain, compat)) = COLUMNS.into_iter().find(|(head, _, _)| *head == column) else {
        return if cell.is_empty() { ReportCell::Absent } else { ReportCell::Unknown };
    };
    let value = match column {
        "lsm_sz" | "blob_sz" => gib(cell),
        _ => number(cell),
    };
    let Some(value) = value else {
        let is_below_zero = column.ends_with("_sz") && cell.starts_with('-') && cell.len() > 1;
        return if is_below_zero { ReportCell::Impossible } else { ReportCell::Absent };
    };
    let shifted = version.is_none_or(|version| Version::new(version).at_least(&SHIFTED_SINCE));
    let plain = plain.filter(|_| compat.is_none() || !shifted);
    ReportCell::Values(compat.into_iter().chain(plain).map(|metric| (metric, value)).collect())
}

/// Heads of columns with metrics.
pub(crate) fn known_heads() -> Vec<&'static str> {
    COLUMNS.iter().map(|(head, _, _)| *head).collect()
}

/// Sets the metrics from db_bench's output. Its compaction table has heads, so values are in their
/// columns; the write amplification follows its definition.
pub(crate) fn fill(record: &mut StepRecord, result: &DbBench) {
    let stats = &result.stats;
    let outcome = &mut record.outcome;
    outcome.seconds = result.seconds.unwrap_or(0.0);
    outcome.events = result.operations.or(result.observed).unwrap_or(0);
    outcome.statements = result.operations.unwrap_or(0);
    let percentile =
        |which: f64| result.percentiles.iter().find(|(p, _)| *p == which).map(|(_, value)| *value);
    let values = [
        (Metric::Rate, Some(result.ops_per_second)),
        (Metric::MicrosPerOp, Some(result.micros_per_op)),
        (Metric::MbPerSecond, result.mb_per_second),
        (Metric::P50Compat, percentile(50.0)),
        (Metric::P99Compat, percentile(99.0)),
        (Metric::P999Compat, percentile(99.9)),
        (Metric::P9999Compat, percentile(99.99)),
        (Metric::MaxCompat, result.max_micros),
        (Metric::Uptime, stats.uptime_seconds),
    ];
    let printed = values.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
    // The columns by position are of tables alone.
    let by_position = [
        Metric::CompactionWallSecondsCompat,
        Metric::CompactionCpuSecondsCompat,
        Metric::BlobReadCompat,
        Metric::BlobWrittenCompat,
    ];
    let tree = tree(stats, stats.ingest_gb.unwrap_or(0.0) * f64::from(1 << 30));
    let tree = tree.into_iter().filter(|(metric, _)| !by_position.contains(metric));
    let all = printed.chain(tree).chain(stalls(stats));
    let is_possible = |value: &f64| (0.0..=1e18).contains(value);
    outcome.extra.extend(all.filter(|(_, value)| is_possible(value)));
    // Before RocksDB 8.1 and in its forks, the line has no totals.
    let count = |name: &str| stats.stalls.get(name).map(|count| *count as f64);
    if let Some((delays, stops)) = count("total-delays").zip(count("total-stops")) {
        outcome.extra.insert(Metric::StallCount, delays + stops);
    }
}

/// A size such as `439GB` in GiB: RocksDB's units are powers of two.
pub(crate) fn gib(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number_text, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "KB" => 1.0 / (1024.0 * 1024.0),
        "MB" => 1.0 / 1024.0,
        "GB" => 1.0,
        "TB" => 1024.0,
        "B" | "" => 1.0 / (1024.0 * 1024.0 * 1024.0),
        _ => return None,
    };
    number(number_text).map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn text(content: &str) -> Text {
        Text::of(Path::new("sum.txt"), content)
    }

    const HEADS: &str = "ops_sec\tmb_sec\tlsm_sz\tw_amp\tNstall\ttest\tdate\tversion\tgithash\n";

    #[test]
    fn rows_are_read_by_their_heads() {
        let content = format!(
            "d0/9.8/report.tsv\nd0/9.9/report.tsv\n\n{HEADS}100\t0.5\t20GB\tNA\t\tfillseq.v400\t\
             2025-05-9T01:44:24\t9.8.4\tabc\n{HEADS}failed\t\t\t\t\tfillseq.v400\t\t9.9\t\n1.001\n"
        );
        let table = parse_report(&text(&content)).unwrap();
        assert_eq!(table.paths.len(), 2);
        let derived = Derived { line: 8, rows: (1, 2), cells: vec!["1.001".to_owned()] };
        assert_eq!(table.derived, [derived]);
        let [first, second] = table.rows.as_slice() else { panic!("{table:?}") };
        assert_eq!((first.cell("ops_sec"), first.cell("Nstall")), (Some("100"), None));
        assert_eq!((first.test.as_str(), first.failed), ("fillseq.v400", false));
        assert_eq!((second.cell("version"), second.failed), (Some("9.9"), true));
    }

    #[test]
    fn what_somebody_computed_is_made_again() {
        let row = |rate: &str| format!("{rate}\t1\t1GB\tNA\t\tx.t1\t\t7.9.1\t\n");
        let rates = ["614894", "616638", "616683"].map(row).concat();
        let content = format!(
            "{HEADS}{rates}mean=616072\tstddev=832.9\tsdev/mean=0.001\n\n{HEADS}{}{}0.981\n",
            row("1688761"),
            row("1657437")
        );
        let table = parse_report(&text(&content)).unwrap();
        let [spread, ratio] = table.derived.as_slice() else { panic!("{table:?}") };
        assert_eq!((spread.rows, ratio.rows), ((0, 3), (3, 5)));
        let again = spread.again(&table).unwrap();
        assert!((again[0] - 616_071.667).abs() < 0.001 && (again[1] - 832.94).abs() < 0.01);
        let again = ratio.again(&table).unwrap();
        assert!((again[0] - 0.98145).abs() < 1e-5, "{again:?}");
    }

    #[test]
    fn aligned_text_goes_by_place() {
        let content = "ops_sec  mb_sec  w_amp  Nstall  rss  test         version\n\
                       1101902  441.4   2.0            1.5  fillseq.v4   10.2.1\n\
                          9192    2.5    NA       3    -1  revrange.t1  10.2.1\n";
        let table = parse_report(&text(content)).unwrap();
        assert_eq!(table.rows[0].cell("Nstall"), None);
        assert_eq!(table.rows[0].cell("rss"), Some("1.5"));
        assert_eq!(table.rows[0].test, "fillseq.v4");
        assert_eq!(table.rows[1].cell("Nstall"), Some("3"));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |content: &str, expected: &str| {
            let fault = parse_report(&text(content)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("100\t0.5\t1\t2\ta\n", "line 1: a row before the header");
        check(&format!("{HEADS}100\t0.5\n"), "line 2: 2 cells for 9 columns");
        check(&format!("{HEADS}100\t0.5\t20GB\tNA\n"), "line 2: 4 cells for 9 columns");
        check(&format!("{HEADS}x\t\t\t\t\tfill\t\t\t\n"), "line 2, column 1: `x` under `ops_sec`");
        check(&format!("{HEADS}1\t\t\t\t\t\t\t\t\n"), "line 2: the row has no name under `test`");
        check(HEADS, "line 1: the file ends here");
        check(&format!("{HEADS}1101902\n"), "line 2: the row has no name under `test`");
        let below = format!("{HEADS}-1\t\t\t\t\tx\t\t\t\n");
        check(&below, "line 2, column 1: `-1` under `ops_sec` is below zero");
    }
}

#[cfg(test)]
mod output_tests {
    use std::path::Path;

    use super::*;

    const LOG: &str = "\
/x/db_bench --benchmarks=overwrite,stats --threads=2
Date:       Thu Nov 20 14:00:00 2025
RocksDB:    version 7.8.3
overwrite    :       2.345 micros/op 426439 ops/sec 10.000 seconds 4264390 operations;  170.8 MB/s
Microseconds per write:
Count: 4264390 Average: 2.3450  StdDev: 3.10
Min: 1  Median: 2.1000  Max: 5824
Percentiles: P50: 2.10 P75: 2.60 P99: 5.87 P99.9: 8.10 P99.99: 14.00
------------------------------------------------------
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Write(GB) Comp(sec) CompMergeCPU(sec)
  L0      4/0   61.24 MB   0.4      0.0     0.5      3.21       2.50
 Sum      9/1   1.24 GB   0.0      0.2     1.5      9.21       8.50
Uptime(secs): 10.1 total, 10.1 interval
Flush(GB): cumulative 0.511, interval 0.511
Cumulative compaction: 1.50 GB write, 150.1 MB/s write, 0.20 GB read, 20.0 MB/s read, 9.2 seconds
Write Stall (count): l0-file-count-limit-delays: 3, total-delays: 5, total-stops: 0
Cumulative writes: 4264K writes, 4264K keys, 4M commit groups, 1.0 w/g, ingest: 1.67 GB, 170.8 MB/s
Cumulative stall: 00:00:2.500 H:M:S, 24.8 percent
";

    fn of(text: &str) -> Result<Log> {
        parse(&Text::of(Path::new("b.log"), text))
    }

    #[test]
    fn a_log_is_read_whole() {
        let log = of(LOG).unwrap();
        assert_eq!((log.version.as_deref(), log.results.len()), (Some("7.8.3"), 1));
        let result = &log.results[0];
        assert_eq!((result.name.as_str(), result.ops_per_second), ("overwrite", 426_439.0));
        assert_eq!((result.operations, result.mb_per_second), (Some(4_264_390), Some(170.8)));
        assert_eq!(result.percentiles[2], (99.0, 5.87));
        assert_eq!((result.max_micros, result.observed), (Some(5824.0), Some(4_264_390)));
        let stats = &result.stats;
        let sum = stats.sum.as_ref().unwrap();
        assert_eq!((sum.bytes / f64::from(1 << 30), sum.get("Comp(sec)")), (1.24, Some(9.21)));
        assert_eq!(
            (stats.compaction_written_gb, stats.compaction_mb_per_second),
            (Some(1.5), Some(150.1))
        );
        assert_eq!((stats.ingest_gb, stats.flush_gb), (Some(1.67), Some(0.511)));
        assert_eq!((stats.uptime_seconds, stats.stall_percent), (Some(10.1), Some(24.8)));
        assert_eq!(stats.stalls["l0-file-count-limit-delays"], 3);
    }

    #[test]
    fn lines_that_change_the_meaning_are_kept() {
        let said = "WARNING: Assertions are enabled; benchmarks unnecessarily slow\n\
            WARNING: Snappy compression is not enabled\nNote: keys are few\n\
            WARNING: Snappy compression is not enabled\n";
        let log = of(&format!("{said}{LOG}")).unwrap();
        assert_eq!(log.date.as_deref(), Some("2025-11-20T14:00:00Z"));
        assert!(log.debug_build.unwrap().contains("Assertions are enabled"));
        assert_eq!(
            log.warnings,
            ["WARNING: Snappy compression is not enabled", "Note: keys are few"]
        );
        let check = |date: &str, expected: Option<&str>| {
            assert_eq!(date_of(date).as_deref(), expected, "{date}");
        };
        check(" Thu Nov  9 02:12:37 2023", Some("2023-11-09T02:12:37Z"));
        check("Thu Nov 39 02:12:37 2023", None);
        check("yesterday", None);
    }

    #[test]
    fn the_old_form_has_no_seconds() {
        let old = "fillseq      :       1.234 micros/op 810372 ops/sec;   89.6 MB/s\n\
            readrandom   :       4.9 micros/op 204081 ops/sec; (1000 of 1000 found)\n\
            Stalls(count): 3 level0_slowdown, 1 level0_slowdown_with_compaction, \
            7 memtable_slowdown, interval 0 total count\n";
        let log = of(old).unwrap();
        assert_eq!((log.results[0].seconds, log.results[0].mb_per_second), (None, Some(89.6)));
        assert_eq!(log.results[1].mb_per_second, None);
        assert_eq!((log.results[0].found, log.results[1].found), (None, Some((1000, 1000))));
        let stalls = &log.results[1].stats.stalls;
        assert_eq!(stalls["memtable-limit-delays"], 7);
    }

    const DUMP: &str = "\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Write(GB) Comp(sec) CompMergeCPU(sec)
 Sum      9/1   3.00 GB   0.0      0.2     1.5      9.21       8.50
Uptime(secs): 20.0 total, 10.0 interval
Blob file count: 2, total size: 1.5 GB, garbage size: 0.0 GB, space amp: 1.0
Write Stall (count): l0-file-count-limit-delays: 7, total-delays: 9, interval: 2 total count
** File Read Latency Histogram By Level [default] **
** Level 0 read latency histogram (micros):
Count: 696 Average: 489.8118  StdDev: 222.40
Min: 3  Median: 452.3077  Max: 1896
Percentiles: P50: 452.31 P75: 641.30 P99: 1068.00 P99.9: 1860.80 P99.99: 1896.00
";

    #[test]
    fn histograms_of_files_are_not_those_of_the_benchmark() {
        let log = of(&format!("{LOG}{DUMP}")).unwrap();
        let result = &log.results[0];
        assert_eq!((result.percentiles[2], result.max_micros), ((99.0, 5.87), Some(5824.0)));
        assert_eq!(result.observed, Some(4_264_390));
        // The last statistics are those of the end.
        let stats = &result.stats;
        assert_eq!((stats.uptime_seconds, stats.blob_gb), (Some(20.0), Some(1.5)));
        assert_eq!(stats.stalls["l0-file-count-limit-delays"], 7);
        assert_eq!(stats.stalls.len(), 3);
    }

    #[test]
    fn statistics_while_a_benchmark_runs_are_its_own() {
        let thread = "2023/11/01-12:00:00  ... thread 0: (100,200) ops and (8.1,8.1) ops/second in \
            (0.1,0.2) seconds\n";
        let second = "readrandom : 4.0 micros/op 250000 ops/sec; 1.0 MB/s (9 of 10 found)\n";
        let log = of(&format!("{LOG}{thread}{DUMP}{second}")).unwrap();
        let uptimes: Vec<_> =
            log.results.iter().map(|result| result.stats.uptime_seconds).collect();
        assert_eq!(uptimes, [Some(10.1), Some(20.0)]);
        assert_eq!(log.results[1].percentiles, []);
        // Before the first result as well, with or without a line of a thread.
        let first = of(&format!("{DUMP}{second}")).unwrap();
        assert_eq!(first.results[0].stats.uptime_seconds, Some(20.0));
        assert_eq!(first.results[0].percentiles, []);
    }

    #[test]
    fn warming_and_chores_are_no_results() {
        let result = |name: &str, rate: u32| {
            format!(
                "{name:12} :  2.345 micros/op {rate} ops/sec 1.0 seconds 9 operations; 1 MB/s\n"
            )
        };
        let text = format!(
            "Warming up benchmark by running 1 times\n{}Running benchmark for 2 times\n{}{}\
             readrandom [AVG    2 runs] : 25 (± 10) ops/sec;   1.0 (± 0.1) MB/sec\n\
             waitforcompaction(/x): finished with status (OK)\n{}{DUMP}",
            result("readrandom", 10),
            result("readrandom", 20),
            "... finished 20000 ops             \r".to_owned() + &result("readrandom", 30),
            result("waitforcompaction", 1),
        );
        let log = of(&text).unwrap();
        let rates: Vec<f64> = log.results.iter().map(|result| result.ops_per_second).collect();
        assert_eq!(rates, [20.0, 30.0]);
        let passed: Vec<(usize, &str)> =
            log.passed.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(passed, [(2, "readrandom"), (8, "waitforcompaction")]);
        assert_eq!(log.results[1].stats.uptime_seconds, Some(20.0));
    }

    #[test]
    fn versions_are_those_of_the_product() {
        let of = |product: &str, version: &str| Some((product.to_owned(), version.to_owned()));
        assert_eq!(version("RocksDB:    version 6.29"), of("rocksdb", "6.29"));
        assert_eq!(version("Speedb:     version 2.8.0(8.6.7)"), of("speedb", "2.8.0"));
        assert_eq!(version("LevelDB:    version 1.20"), None);
        assert_eq!(version("Keys:       20 bytes each"), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check(&LOG[..150], "the file ends here, before a result of db_bench");
        let full =
            format!("{}put error: No space left on device\n", &LOG[..LOG.find("over").unwrap()]);
        check(&full, "its last line is");
        check("x : fast micros/op 1 ops/sec\n", "line 1: expected `NAME :");
        check(&LOG.replace("P50: 2.10", "P50: x"), "line 8: expected `P50");
        let rows =
            parse_seconds(&Text::of(Path::new("r"), "secs_elapsed,interval_qps\n1,10\n2,x\n"));
        assert!(rows.unwrap_err().to_string().contains("line 3"), "a rate that is none");
    }

    #[test]
    fn names_tell_the_group() {
        let check = |step: &str, expected: Group| assert_eq!(group(step), expected, "{step}");
        check("fillseq.wal_disabled.v400", Group::Load);
        check("fwdrangewhilewriting.t8", Group::Range);
        check("readwhilewriting.t8", Group::Point);
        check("overwriteandwait.t8.s0", Group::Write);
    }

    #[test]
    fn sizes_are_in_gib() {
        assert_eq!(
            (gib("439GB"), gib("2TB"), gib("512MB")),
            (Some(439.0), Some(2048.0), Some(0.5))
        );
        assert_eq!((gib("x"), gib("1XB")), (None, None));
    }
}
