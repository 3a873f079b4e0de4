//! Importers of published db_bench tables and of db_bench's own output.

pub mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cells::{Kept, decimals_agree, each_second, is_word, number};
use crate::format::{ImportError, ImportFormat, ImportOptions, Named, Notice, NoticeKind, Result};
use crate::published::{
    self, PrintedRatio, Published, StepKind, TableCells, Variants, add_file, annotate, kin,
};
use crate::text::{Leftovers, RATES_MAX, Text, counted, names};
pub use FORMAT as DB_BENCH;
use report::{DbBench, Log, fill, group, tag_of};
use rqps_model::benchmark::RateUnit;
use rqps_model::build::Version;
use rqps_model::metric::Metric;
use rqps_model::run::{Status, StepRecord};

// Importer `dbbench`: published tables of db_bench reports, and db_bench's output.

/// The importer.
pub const FORMAT: ImportFormat = ImportFormat { word: WORD, read };

/// Reads files and folders.
///
/// # Errors
///
/// A damaged file, with its line; a named file of an unknown form; a folder without known files;
/// only ratios; `--labels` that do not fit.
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let published = Published { benchmark: "kv", ..Published::default() };
    let mut taker = Taker {
        published,
        options,
        workloads: workloads_of(paths)?,
        variants: Variants::default(),
        tables: Vec::new(),
        reports: Vec::new(),
        rows: Runs::default(),
        logs: Runs::default(),
        dated: BTreeMap::new(),
        digests: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    for named in paths {
        if named.path.is_dir() {
            taker.take_folder(&named.path)?;
        } else if !taker.take_text(Text::read(&named.path)?, named.label.as_deref())? {
            let why = "it holds no report rows (header `ops_sec mb_sec … test …`), no rates with \
                       step names and no results of db_bench (`… micros/op …`)";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    taker.take_tables()?;
    if taker.published.runs.is_empty() {
        let path = paths.first().map(|named| named.path.clone()).unwrap_or_default();
        let why = "it holds no rates of db_bench; ratios alone are not enough";
        return Err(ImportError::foreign(&path, why));
    }
    let nameless = options.labels.is_empty() && paths.iter().all(|named| named.label.is_none());
    let joined =
        if nameless { published::join_builds(&mut taker.published) } else { BTreeMap::default() };
    taker.check_ratios(&joined);
    taker.note_workloads();
    let mut published = taker.published;
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

/// The workloads in the names of all files with results.
fn workloads_of(paths: &[Named]) -> Result<BTreeSet<&'static str>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for named in paths {
        if named.path.is_dir() {
            files.extend(names(&named.path)?.iter().map(|name| named.path.join(name)));
        } else {
            files.push(named.path.clone())
        }
    }
    let has_results = |path: &PathBuf| {
        path.is_file()
            && Text::read(path).is_ok_and(|text| {
                report::is_report(&text) || report::is_log(&text) || is_rates(&text)
            })
    };
    let named = files.iter().filter_map(|path| Some((path, workload_of(path)?)));
    let mut workloads: BTreeSet<&'static str> = BTreeSet::new();
    for (path, workload) in named {
        if !workloads.contains(workload) && has_results(path) {
            workloads.insert(workload);
        }
    }
    Ok(workloads)
}

impl Taker<'_> {
    /// Says that the names of steps have their workloads.
    fn note_workloads(&mut self) {
        if self.workloads.len() > 1 {
            let names: Vec<String> = self.workloads.iter().map(|it| format!(".{it}")).collect();
            let text = format!(
                "files of several workloads: the names of their steps end in {}",
                names.join(", ")
            );
            self.published.note(names.join(" "), text);
        }
    }

    fn take_folder(&mut self, folder: &Path) -> Result<()> {
        let mut left = Leftovers::default();
        let mut found = false;
        for name in names(folder)? {
            let path = folder.join(&name);
            if path.is_dir() {
                self.left(&path, "a folder: import it separately if it holds results");
                continue;
            }
            found |= left.take(folder, &name, |text| self.take_text(text, None))?;
        }
        if !found {
            let why = "it holds no table and no db_bench output";
            return Err(ImportError::foreign(folder, why));
        }
        self.published.notices.extend(left.notice(folder, "unknown form"));
        Ok(())
    }

    /// False if the text has no known form.
    fn take_text(&mut self, text: Text, label: Option<&str>) -> Result<bool> {
        // It belongs to the log beside it.
        if text.first().starts_with("secs_elapsed") {
            return Ok(true);
        }
        let report = report::is_report(&text);
        let log = !report && report::is_log(&text);
        if !report && !log && !is_rates(&text) {
            return Ok(false);
        }
        if report {
            let table = report::parse_report(&text)?;
            self.take_report(&text, &table)?;
        } else if log {
            let log = report::parse(&text)?;
            self.take_log(&text, &log, label)?;
        } else {
            let rates = parse_rates(&text)?;
            self.tables.push((text, rates));
        }
        Ok(true)
    }
}

// Collects values from db_bench files of all forms.

/// The word of the format in `rqps import`.
pub(super) const WORD: &str = "dbbench";

/// Cells of a row: head, value.
pub(super) type Cells = Vec<(String, String)>;

pub(super) struct Taker<'a> {
    pub(super) published: Published,
    pub(super) options: &'a ImportOptions,
    /// The workloads of all files. If there are several, they are part of the names of steps.
    workloads: BTreeSet<&'static str>,
    /// Conditions that the names of tables of rates tell apart.
    pub(super) variants: Variants,
    /// Tables of rates and ratios, taken after all reports.
    pub(super) tables: Vec<(Text, RatesOnly)>,
    /// Labels of a table's columns, from the report of the same name: file, labels of the rows of a
    /// step.
    pub(super) reports: Vec<(PathBuf, Vec<String>)>,
    pub(super) rows: Runs,
    pub(super) logs: Runs,
    /// Rows by label, step, version and second: file, line, cells.
    dated: BTreeMap<String, (String, usize, Cells)>,
    /// Digest of a log's results, with the log's name and the given label.
    digests: BTreeMap<[u8; 32], (String, Option<String>)>,
    /// Number of repetitions by label and step.
    pub(super) blocks: BTreeMap<(String, String), u32>,
}

impl Taker<'_> {
    pub(super) fn left(&mut self, path: &Path, what: impl Into<String>) {
        self.published.left(path, what);
    }

    /// The name of a step in a file: with its workload, where the files have several.
    pub(super) fn name(&self, file: &Path, step: &str) -> String {
        match workload_of(file).filter(|_| self.workloads.len() > 1) {
            Some(workload) => format!("{step}.{workload}"),
            None => step.to_owned(),
        }
    }

    /// The label and block of a run by its number: a target of its own, or a repetition.
    fn numbered(&self, label: &str, place: usize) -> (String, u32) {
        match (place, self.options.repeats) {
            (0, _) => (label.to_owned(), 1),
            (_, true) => (label.to_owned(), u32::try_from(place + 1).unwrap_or(u32::MAX)),
            (_, false) => (format!("{label}#{}", place + 1), 1),
        }
    }

    fn note_several(&mut self, text: &Text, line: usize, test: &str, label: &str) {
        let said = self.published.notices.iter().any(|notice| {
            notice.kind == NoticeKind::Note && notice.text.contains("--repeats imports")
        });
        if !said {
            let label = label.trim_end_matches("#2");
            let what = format!(
                "{label} has several runs of {test}: each run became a separate target (--labels \
                 or LABEL=FILE name them; --repeats imports them as repetitions)"
            );
            self.published.notices.push(Notice::at(NoticeKind::Note, text.path(), line, what));
        }
    }

    pub(super) fn step(
        &mut self,
        label: &str,
        block: u32,
        version: Option<&str>,
        step: &str,
    ) -> &mut StepRecord {
        let tag = tag_of(label, version);
        let run = self.published.run(label, block, &tag);
        let kind = StepKind { group: group(step), rate: RateUnit::Operations };
        run.step(WORD, step, kind)
    }
}

/// Workloads in names of published files and folders.
const WORKLOADS: [&str; 4] = ["byrx", "byos", "iobuf", "iodir"];

/// The workload of `res.byrx` or `sum.iobuf.8x.txt`.
fn workload_of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.split('.').collect();
    let of = |parts: &[&str]| WORKLOADS.into_iter().find(|workload| parts.contains(workload));
    of(&parts).or_else(|| of(&folder.split('.').collect::<Vec<_>>()))
}

// Assigns rows and outputs of db_bench to runs. One version may have several runs.

/// The runs of each label, with the rows seen of each run.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    of_label: BTreeMap<String, Vec<ParsedRun>>,
}

/// One run of a label: the rows of its tests, and its time.
#[derive(Debug, Default)]
struct ParsedRun {
    tests: BTreeMap<String, String>,
    seconds: Vec<i64>,
}

impl Runs {
    /// The number of the run (from 0) that a row belongs to, and true if the row was seen before,
    /// because several tables contain it. A run has each test once. Among several runs without the
    /// test, the one nearest in time gets the row.
    pub(crate) fn place(
        &mut self,
        label: &str,
        test: &str,
        identity: &str,
        date: Option<&str>,
    ) -> (usize, bool) {
        let runs = self.of_label.entry(label.to_owned()).or_default();
        let same = |run: &ParsedRun| run.tests.get(test).is_some_and(|other| other == identity);
        if let Some(place) = runs.iter().position(same) {
            return (place, true);
        }
        let at = date.and_then(seconds);
        let apart = |run: &ParsedRun| {
            let apart = at.and_then(|at| run.seconds.iter().map(|other| (other - at).abs()).min());
            apart.unwrap_or(i64::MAX)
        };
        let open = runs.iter().enumerate().filter(|(_, run)| !run.tests.contains_key(test));
        let near = open.min_by_key(|(_, run)| apart(run)).map(|(place, _)| place);
        let place = near.unwrap_or_else(|| {
            runs.push(ParsedRun::default());
            runs.len() - 1
        });
        let run = &mut runs[place];
        run.tests.insert(test.to_owned(), identity.to_owned());
        run.seconds.extend(at);
        (place, false)
    }

    /// The number of the first run of a label without any of these tests: a file belongs to one
    /// run.
    fn place_of_file(&mut self, label: &str, tests: &BTreeSet<&str>) -> usize {
        let runs = self.of_label.entry(label.to_owned()).or_default();
        let open = |run: &ParsedRun| tests.iter().all(|test| !run.tests.contains_key(*test));
        let place = runs.iter().position(open).unwrap_or_else(|| {
            runs.push(ParsedRun::default());
            runs.len() - 1
        });
        let names = tests.iter().map(|test| ((*test).to_owned(), String::new()));
        runs[place].tests.extend(names);
        place
    }
}

/// A number that grows with `2025-05-09T01:44:24Z`; months of 31 days suffice.
fn seconds(date: &str) -> Option<i64> {
    let parts: Option<Vec<i64>> = date
        .trim_end_matches('Z')
        .split(['-', 'T', ':'])
        .map(|part| part.parse::<u32>().ok().map(i64::from))
        .collect();
    match parts?.as_slice() {
        [year, month, day, hour, minute, second] => {
            let days = (year * 12 + month) * 31 + day;
            Some(((days * 24 + hour) * 60 + minute) * 60 + second)
        }
        _ => None,
    }
}

// Takes results from db_bench's own output.

/// A smaller share of keys that were found is told.
const FOUND_LEAST: f64 = 0.99;

/// Reads that find nothing are fast and mean nothing; `readmissing` looks for keys that are not
/// there.
fn void_if_nothing_found(record: &mut StepRecord, result: &DbBench) {
    let Some((found, of)) = result.found.filter(|(_, of)| *of > 0) else { return };
    annotate(record, "found", &format!("{found} of {of}"));
    if result.name.contains("missing") {
        return;
    }
    if found == 0 {
        let why = format!("the reads found none of {of} keys: the rate says nothing of reads");
        record.status = Status::Failed(why);
    } else if (found as f64) < FOUND_LEAST * of as f64 {
        record.outcome.notes.push(format!("the reads found {found} of {of} keys"));
    }
}

impl Taker<'_> {
    fn take_log(&mut self, text: &Text, log: &Log, label: Option<&str>) -> Result<()> {
        if self.is_copy(text, log, label)? {
            return Ok(());
        }
        let version = log.version.as_deref();
        let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = |result: &DbBench| self.name(text.path(), &result.name);
        let tests: BTreeSet<String> = log.results.iter().map(name).collect();
        let tests: BTreeSet<&str> = tests.iter().map(String::as_str).collect();
        let own = version.map(|version| format!("{}-{version}", log.product));
        let own = own.unwrap_or(stem);
        let label = match label {
            // Several files with one given label are repetitions.
            Some(label) => label.to_owned(),
            None if self.options.repeats => own,
            None => {
                let place = self.logs.place_of_file(&own, &tests);
                let (label, _) = self.numbered(&own, place);
                if place == 1 {
                    let line = log.results.first().map_or(1, |result| result.line);
                    let test = tests.first().copied().unwrap_or_default();
                    self.note_several(text, line, test, &label);
                }
                label
            }
        };
        let (seconds, beside) = self.seconds_beside(text, log)?;
        for result in &log.results {
            let name = self.name(text.path(), &result.name);
            let block = self.blocks.entry((label.clone(), name.clone())).or_default();
            *block += 1;
            let block = *block;
            let record = self.step(&label, block, version, &name);
            add_file(record, &text.name());
            fill(record, result);
            void_if_nothing_found(record, result);
            record.outcome.notes.extend(log.warnings.iter().cloned());
            if let Some(date) = &log.date {
                record.started.clone_from(date);
            }
            if !seconds.is_empty() {
                record.per_second.clone_from(&seconds);
                add_file(record, &beside);
            }
            let run = &mut self.published.run(&label, block, &tag_of(&label, version)).record;
            run.debug_build.clone_from(&log.debug_build);
            if let Some(date) = &log.date
                && (run.started == "unknown" || *date < run.started)
            {
                run.started.clone_from(date);
            }
            if let Some(command) = &log.command {
                let line = format!("{name}\t{command}\n");
                self.published
                    .run(&label, block, &tag_of(&label, version))
                    .log("commands.txt", &line);
            }
        }
        self.note_log(text, log);
        Ok(())
    }

    /// True for results that were read before under any file name.
    ///
    /// # Errors
    ///
    /// The same results have two given labels.
    fn is_copy(&mut self, text: &Text, log: &Log, label: Option<&str>) -> Result<bool> {
        let (name, label) = (text.name(), label.map(str::to_owned));
        let Some((other, said)) = self.digests.get(&log.digest()) else {
            self.digests.insert(log.digest(), (name, label));
            return Ok(false);
        };
        if let (Some(label), Some(said)) = (&label, said)
            && label != said
        {
            return Err(ImportError::Words(format!(
                "`{name}` as {label} and `{other}` as {said} hold the same results, but a \
                 measurement belongs to one target; leave one out"
            )));
        }
        let what = format!("the same results as in {other}: imported once");
        self.left(text.path(), what);
        Ok(true)
    }

    /// Operations by second from the file beside the log of one benchmark, and its name.
    fn seconds_beside(&mut self, text: &Text, log: &Log) -> Result<(Vec<f64>, String)> {
        let beside = PathBuf::from(format!("{}.r.csv", text.path().display()));
        let name = beside.display().to_string();
        if !beside.is_file() || log.results.len() != 1 {
            return Ok((Vec::new(), name));
        }
        let rows = report::parse_seconds(&Text::read(&beside)?)?;
        if !each_second(&rows) {
            self.left(&beside, "its lines are not one per second");
            return Ok((Vec::new(), name));
        }
        Ok((rows.iter().map(|(_, rate)| *rate).collect(), name))
    }

    fn note_log(&mut self, text: &Text, log: &Log) {
        if let Some((line, _)) = log.passed.first() {
            let names: BTreeSet<&str> = log.passed.iter().map(|(_, name)| name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let what = format!("warm-up runs and work between benchmarks: {}", names.join(", "));
            self.published.notices.push(Notice::at(NoticeKind::Left, text.path(), *line, what));
        }
        let with = log.results.iter().filter(|result| result.stats.uptime_seconds.is_some());
        if log.results.len() > 1 && with.count() > 0 {
            let what = "RocksDB statistics cover the time since the database was opened, not one \
                        benchmark alone";
            self.published.note(text.path(), what);
        }
    }
}

// Reads tables of db_bench rates or ratios: a row per step, a column per version.

/// A table of rates or ratios. Step names are in the last column (TSV) or the first (CSV).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RatesOnly {
    /// Versions of the columns, if there are heads: `test,6.29.5,7.0.4`.
    pub labels: Vec<String>,
    /// Rows: line, step, cells as printed.
    pub rows: Vec<(usize, String, Vec<String>)>,
}

impl RatesOnly {
    /// True if all cells have two decimals.
    pub fn are_ratios(&self) -> bool {
        let mut cells = self.rows.iter().flat_map(|(_, _, cells)| cells);
        cells.all(|cell| cell.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2))
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.rows.iter().map(|(_, _, cells)| cells.len()).max().unwrap_or(0)
    }

    /// The baseline column, with 1.00 in all rows; `None` if it was left out.
    pub fn baseline(&self) -> Option<usize> {
        let is_baseline =
            |column: &usize| self.rows.iter().all(|(_, _, cells)| cells[*column] == "1.00");
        (0..self.width()).find(is_baseline)
    }
}

/// True if the text begins with rates and the name of a step, or with heads.
pub fn is_rates(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line).filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else { return false };
    match heads(first) {
        Some(labels) => lines.next().and_then(split).is_some_and(|row| row.1.len() == labels.len()),
        None => split(first).is_some(),
    }
}

/// Reads `test,6.29.5,7.0.4,` or `6.29.5 TAB 7.0.4 TAB test`.
fn heads(line: &str) -> Option<Vec<String>> {
    let mut cells = cells(line);
    if cells.first().is_some_and(|cell| cell == "test") {
        cells.remove(0);
    } else if cells.pop().is_none_or(|cell| cell != "test") {
        return None;
    }
    let whole = !cells.is_empty() && cells.iter().all(|cell| !cell.is_empty());
    whole.then_some(cells)
}

/// The cells of a line; some tables end lines with a comma or a tab.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim_end().trim_end_matches(',');
    let separator = if line.contains('\t') { '\t' } else { ',' };
    line.split(separator).map(|cell| cell.trim().to_owned()).collect()
}

fn split(line: &str) -> Option<(String, Vec<String>)> {
    let mut cells = cells(line);
    if cells.len() < 2 {
        return None;
    }
    let name = if is_word(&cells[0]) { cells.remove(0) } else { cells.pop()? };
    let named = is_word(&name) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    // An invalid number that is not a word is an error with its position.
    let numbers = cells.iter().all(|cell| !is_word(cell) || cell == "failed");
    (named && numbers && !name.contains(char::is_whitespace)).then_some((name, cells))
}

/// Reads a table. Several columns of one version become `10.2.1`, `10.2.1#2`.
///
/// # Errors
///
/// An invalid line, rows of different widths, a repeated step, an empty table.
pub fn parse_rates(text: &Text) -> Result<RatesOnly> {
    text.at_most(RATES_MAX)?;
    let mut table = RatesOnly::default();
    for (line, row) in text.rows() {
        if table.rows.is_empty()
            && table.labels.is_empty()
            && let Some(labels) = heads(row)
        {
            table.labels = numbered(&labels);
            continue;
        }
        let Some((name, cells)) = split(row) else {
            return Err(text.malformed(line, "expected rates and the name of a step"));
        };
        let first = usize::from(row.trim_start().starts_with(&name));
        for (place, cell) in cells.iter().enumerate().filter(|(_, cell)| *cell != "failed") {
            text.number(line, first + place + 1, "", cell)?;
        }
        let (heads, first) = (table.labels.len(), table.rows.first());
        let width = first.map_or(heads, |(_, _, first)| first.len());
        if width > 0 && width != cells.len() {
            let rates = counted(cells.len(), "rate");
            let why = format!("{rates}, but the lines above have {width}");
            return Err(text.malformed(line, why));
        }
        if table.rows.iter().any(|(_, other, _)| *other == name) {
            return Err(text.malformed(line, format!("`{name}` already has a row")));
        }
        table.rows.push((line, name, cells));
    }
    if table.rows.is_empty() { Err(text.cut_short("the first row of rates")) } else { Ok(table) }
}

fn numbered(labels: &[String]) -> Vec<String> {
    let numbered = labels.iter().enumerate().map(|(place, label)| {
        match labels[..=place].iter().filter(|other| *other == label).count() {
            1 => label.clone(),
            nth => format!("{label}#{nth}"),
        }
    });
    numbered.collect()
}

// Takes tables of rates and ratios, after all reports.

impl Taker<'_> {
    /// Takes rates that no report has; rates in both must agree.
    pub(super) fn take_tables(&mut self) -> Result<()> {
        let tables = std::mem::take(&mut self.tables);
        self.variants = self.variants_of(&tables);
        let mut nameless: Option<String> = None;
        for (text, rates) in tables {
            if rates.are_ratios() {
                self.tables.push((text, rates));
                continue;
            }
            let labels = match self.labels_of(&text, &rates)? {
                Some(labels) => labels,
                None if !self.published.runs.is_empty() => {
                    let other = match &nameless {
                        Some(file) => format!("and {file} was imported as col-1, col-2 …"),
                        None => "unlike those of other files".to_owned(),
                    };
                    let what = format!(
                        "its columns have no versions, {other}: import it separately, or use \
                         --labels"
                    );
                    self.leave_table(&text, &rates, &what);
                    continue;
                }
                None => {
                    let what = "this file has no versions for its columns: targets are col-1, \
                                col-2 … (name them with --labels)";
                    self.published.note(text.path(), what);
                    nameless = Some(text.name());
                    (1..=rates.width()).map(|column| format!("col-{column}")).collect()
                }
            };
            self.take_rates(&text, &rates, &labels);
        }
        Ok(())
    }

    /// Conditions that the names of tables of rates tell apart: those with contradicting rates.
    fn variants_of(&self, tables: &[(Text, RatesOnly)]) -> Variants {
        let rates = tables.iter().filter(|(_, table)| !table.are_ratios());
        let cells = rates.filter_map(|(text, table)| {
            let labels = self.labels_of(text, table).ok()??;
            let mut all = TableCells::new();
            for (_, step, cells) in &table.rows {
                let step = self.name(text.path(), step);
                let row = labels.iter().zip(cells);
                all.extend(row.map(|(label, cell)| ((label.clone(), step.clone()), cell.clone())));
            }
            Some((text.path(), all))
        });
        Variants::find(&cells.collect::<Vec<_>>())
    }

    /// The name of a step in a table of rates, with what the name of the table tells.
    fn name_in_table(&self, text: &Text, step: &str) -> String {
        let name = self.name(text.path(), step) + &self.variants.suffix(text.path());
        match self.variants.clients(text.path()) {
            Some(clients) => format!("{name}.dop{clients}"),
            None => name,
        }
    }

    fn take_rates(&mut self, text: &Text, rates: &RatesOnly, labels: &[String]) {
        let path = text.path();
        for (line, step, cells) in &rates.rows {
            self.published.cells.read(path, cells.len());
            let step = &self.name_in_table(text, step);
            for (label, cell) in labels.iter().zip(cells) {
                let version = Version::new(label.clone());
                let version = (version.numbers().len() > 1).then_some(label.as_str());
                let record = self.step(label, 1, version, step);
                add_file(record, &text.name());
                let Some(value) = number(cell) else {
                    let why = format!("published as {cell} ({}, line {line})", text.name());
                    record.status = Status::Failed(why);
                    self.published.cells.keep(path, Kept::Absent, 1);
                    continue;
                };
                let (before, kept) = published::take(record, Metric::Rate, value);
                self.published.cells.keep(path, kept, 1);
                if !decimals_agree(before, cell) {
                    let what = format!(
                        "{step} of {label}: {cell} here, {before} in an earlier file; imported the \
                         earlier value"
                    );
                    self.published.mismatch(text.path(), *line, what);
                }
            }
        }
    }

    /// Labels of the columns: those given, else those of the heads, else those of the report with
    /// the same name.
    fn labels_of(&self, text: &Text, rates: &RatesOnly) -> Result<Option<Vec<String>>> {
        let (width, asked) = (rates.width(), &self.options.labels);
        if asked.len() == width {
            return Ok(Some(asked.clone()));
        }
        if !rates.labels.is_empty() {
            return Ok(Some(rates.labels.clone()));
        }
        let same = |(path, labels): &&(PathBuf, Vec<String>)| {
            labels.len() == width && kin(path) == kin(text.path())
        };
        if let Some((_, labels)) = self.reports.iter().find(same) {
            return Ok(Some(labels.clone()));
        }
        if asked.is_empty() {
            Ok(None)
        } else {
            let (given, name) = (asked.len(), text.name());
            Err(ImportError::Words(format!(
                "`{name}`: it has {width} columns, but --labels names {given}"
            )))
        }
    }

    /// Checks tables of ratios against the rates, which may stand under the label of the same
    /// build; one column is the baseline.
    pub(super) fn check_ratios(&mut self, joined: &BTreeMap<String, String>) {
        for (text, ratios) in std::mem::take(&mut self.tables) {
            let first = self.published.runs.iter().filter(|run| run.record.key.block == 1);
            let order: Vec<String> = first.map(|run| run.record.key.label.clone()).collect();
            let labels = match self.labels_of(&text, &ratios) {
                Ok(Some(labels)) => labels,
                _ if order.len() == ratios.width() => order,
                _ => {
                    let what = format!(
                        "ratios of {} versions but rates of {}: not checked",
                        ratios.width(),
                        order.len()
                    );
                    self.leave_table(&text, &ratios, &what);
                    continue;
                }
            };
            let Some(baseline) = ratios.baseline() else {
                let what = "ratios to a version without a column: not checked";
                self.leave_table(&text, &ratios, what);
                continue;
            };
            let labels = labels.iter().map(|label| joined.get(label).unwrap_or(label).clone());
            self.check_table(&text, &ratios, &labels.collect::<Vec<_>>(), baseline);
        }
    }

    /// Leaves a table out and counts its cells.
    fn leave_table(&mut self, text: &Text, table: &RatesOnly, why: &str) {
        let cells = table.rows.iter().map(|(_, _, cells)| cells.len()).sum();
        self.published.cells.read(text.path(), cells);
        self.published.cells.leave(text.path(), why, cells);
    }

    fn check_table(&mut self, text: &Text, ratios: &RatesOnly, labels: &[String], baseline: usize) {
        let (mut agree, mut of, mut without) = (0, 0, 0);
        for (line, step, cells) in &ratios.rows {
            let step = &self.name_in_table(text, step);
            let published = &mut self.published;
            for (label, printed) in labels.iter().zip(cells) {
                let rate = |label: &str| published.value(label, step, Metric::Rate);
                let Some((value, of_baseline)) = rate(label).zip(rate(&labels[baseline])) else {
                    without += 1;
                    continue;
                };
                of += 1;
                let line = *line;
                let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
                let what = format_args!("{step} of {label}");
                agree += usize::from(published.follows(&ratio, what));
            }
        }
        self.published.check("relative rates from absolute rates", agree, of);
        let cells = &mut self.published.cells;
        cells.read(text.path(), of + without);
        cells.keep(text.path(), Kept::Compared, of);
        cells.leave(text.path(), "ratios without rates in these files: not checked", without);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::kin;

    #[test]
    fn names_tell_workload_and_kin() {
        assert_eq!(workload_of(Path::new("a/sum.iobuf.8x.txt")), Some("iobuf"));
        assert_eq!(workload_of(Path::new("res.byrx/summary.tsv")), Some("byrx"));
        assert_eq!(workload_of(Path::new("summary.tsv")), None);
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/abs.iobuf.8x.tsv"), of("a/sum.iobuf.8x.txt"));
        assert_eq!(of("a/fmt.byrx.lru.abs0.tsv"), of("a/sum.byrx.lru.txt"));
        assert_ne!(of("a/abs.iobuf.7x.tsv"), of("a/sum.iobuf.8x.txt"));
    }

    #[test]
    fn rows_of_a_version_belong_to_the_run_of_their_time() {
        let mut runs = Runs::default();
        let (lru, hcc) = (Some("2025-05-09T01:44:24Z"), Some("2025-05-01T00:54:23Z"));
        assert_eq!(runs.place("9.9.3", "fillseq", "a", lru), (0, false));
        assert_eq!(runs.place("9.9.3", "fillseq", "b", hcc), (1, false));
        // The second run's row appears alone, then again in another table.
        assert_eq!(runs.place("9.9.3", "overwrite", "c", Some("2025-05-01T02:00:00Z")), (1, false));
        assert_eq!(runs.place("9.9.3", "overwrite", "c", Some("2025-05-01T02:00:00Z")), (1, true));
        assert_eq!(runs.place("9.9.3", "overwrite", "d", None), (0, false));
        assert_eq!(runs.place("9.8.4", "fillseq", "a", lru), (0, false));
    }

    #[test]
    fn a_file_is_of_one_run() {
        let mut runs = Runs::default();
        let of = |tests: &[&'static str]| tests.iter().copied().collect::<BTreeSet<&str>>();
        assert_eq!(runs.place_of_file("x", &of(&["fillseq", "readrandom"])), 0);
        assert_eq!(runs.place_of_file("x", &of(&["overwrite"])), 0);
        assert_eq!(runs.place_of_file("x", &of(&["readrandom"])), 1);
        assert_eq!(seconds("2025-05-09"), None);
    }
}

#[cfg(test)]
mod rates_tests {
    use std::path::Path;

    use super::*;

    fn text(content: &str) -> Text {
        Text::of(Path::new("abs.tsv"), content)
    }

    #[test]
    fn rates_alone_have_names_first_or_last() {
        let tsv = parse_rates(&text("10\t20\treadrandom.t8\n\n1\t2\tfwdrange.t8\n")).unwrap();
        let csv = parse_rates(&text("readrandom.t8,10,20\r\nfwdrange.t8,1,2,\r\n")).unwrap();
        assert_eq!(
            tsv.rows.iter().map(|row| &row.2).collect::<Vec<_>>(),
            csv.rows.iter().map(|row| &row.2).collect::<Vec<_>>()
        );
        assert!(
            parse_rates(&text("1.00\t0.99\ta.t1\n")).unwrap().are_ratios() && !tsv.are_ratios()
        );
    }

    #[test]
    fn heads_name_the_versions() {
        let csv = text("test,6.29.5,10.2.1,10.2.1,\nfillseq.v400,1.00,1.02,0.99\n");
        assert!(is_rates(&csv));
        let table = parse_rates(&csv).unwrap();
        assert_eq!(table.labels, ["6.29.5", "10.2.1", "10.2.1#2"]);
        assert_eq!((table.baseline(), table.rows[0].0), (Some(0), 2));
        let tsv = text("6.29.5\t10.2.1\ttest\n1.03\t1.02\tfillseq.v400\n");
        assert!(is_rates(&tsv));
        assert_eq!(parse_rates(&tsv).unwrap().baseline(), None);
        for other in ["test,a\n", "test,a\nx y,1\n", "a,b,c\n", ""] {
            assert!(!is_rates(&text(other)), "{other}");
        }
    }

    #[test]
    fn faults_name_the_line() {
        let check = |content: &str, expected: &str| {
            let fault = parse_rates(&text(content)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1\t2\ta\n1\tb\n", "line 2: 1 rate, but");
        check("test,a,b\nx,1\n", "line 2: 1 rate, but the lines above have 2");
        check("1\t2\ta\n3\t4\ta\n", "line 2: `a` already has a row");
        check("1\t-2\ta\n", "line 1, column 2: `-2` is below zero");
        check("1\t2\ta\nb,1,inf\n", "line 2, column 3: `inf` is infinite");
        check("1\t1000000000000000000000000\ta\n", "line 1, column 2: `10000");
        check("test,a,b\n", "line 1: the file ends here");
    }
}
