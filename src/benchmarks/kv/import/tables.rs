//! `dbbench`: published tables of db_bench reports and plain output of db_bench.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::benchmarks::kv::import::metrics::{
    ReportCell, fill, group, known_heads, report_cell, tag_of,
};
use crate::benchmarks::kv::import::output::{self, Log};
use crate::benchmarks::kv::import::rates::{self, RatesOnly};
use crate::benchmarks::kv::import::runs::Runs;
use crate::benchmarks::kv::import::table::{self, ReportRow, ReportTable};
use crate::domain::benchmark::RateUnit;
use crate::domain::build::Version;
use crate::domain::metric::Metric;
use crate::domain::run::{Status, StepRecord};
use crate::import::cells::Kept;
use crate::import::notice::{Notice, NoticeKind};
use crate::import::number::{decimals_agree, each_second, number};
use crate::import::published::{self, Published, StepKind, add_file};
use crate::import::text::{Text, names};
use crate::import::{ImportError, ImportFormat, ImportOptions, Named};
use crate::stats::ratio::{follows, printed_ratio};

/// Workloads of the published scripts, as names of files and folders tell them.
const WORKLOADS: [&str; 4] = ["byrx", "byos", "iobuf", "iodir"];

/// Published report tables, and db_bench's own output.
pub const FORMAT: ImportFormat = ImportFormat { word: "dbbench", read };

/// Reads files and folders.
///
/// # Errors
/// A damaged file with its line; a file, named by the user, of none of the forms; a folder without
/// any; ratios alone; `--labels` that do not fit.
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published, ImportError> {
    let published = Published { benchmark: "kv", ..Published::default() };
    let mut taker = Taker {
        published,
        options,
        workload: None,
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
    taker.check_ratios();
    let mut published = taker.published;
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

/// Cells of a row: head, value.
type Cells = Vec<(String, String)>;

struct Taker<'a> {
    published: Published,
    options: &'a ImportOptions,
    /// The workload whose files are taken: results of two are two results.
    workload: Option<&'static str>,
    /// Tables of rates and ratios, which are looked at when all reports are known.
    tables: Vec<(Text, RatesOnly)>,
    /// What reports tell of their tables' columns: file, labels of the rows of a step.
    reports: Vec<(PathBuf, Vec<String>)>,
    rows: Runs,
    logs: Runs,
    /// Rows by label, step, version and second: file, line, cells.
    dated: BTreeMap<String, (String, usize, Cells)>,
    /// Digest of the results of a log, the log's name and the label that was said.
    digests: BTreeMap<[u8; 32], (String, Option<String>)>,
    /// Label and step → how many repetitions.
    blocks: BTreeMap<(String, String), u32>,
}

impl Taker<'_> {
    fn left(&mut self, path: &Path, what: impl Into<String>) {
        self.published.notices.push(Notice::of(NoticeKind::Left, path, what));
    }

    fn take_folder(&mut self, folder: &Path) -> Result<(), ImportError> {
        let mut left = Vec::new();
        let mut found = false;
        for name in names(folder)? {
            let path = folder.join(&name);
            if path.is_dir() {
                self.left(&path, "a folder: import it separately if it holds results");
                continue;
            }
            let taken = match Text::of_folder(&path)? {
                Ok(text) => self.take_text(text, None)?,
                Err(why) => {
                    left.push(format!("{name} ({why})"));
                    continue;
                }
            };
            match taken {
                true => found = true,
                false => left.push(name),
            }
        }
        if !found {
            let why = "it holds no table and no db_bench output";
            return Err(ImportError::foreign(folder, why));
        }
        if !left.is_empty() {
            self.left(folder, format!("unknown form: {}", left.join(", ")));
        }
        Ok(())
    }

    /// `false` if the text is of none of the forms.
    fn take_text(&mut self, text: Text, label: Option<&str>) -> Result<bool, ImportError> {
        // Belongs to the log beside it.
        if text.first().starts_with("secs_elapsed") {
            return Ok(true);
        }
        let report = table::is_report(&text);
        let log = !report && output::is_log(&text);
        if !report && !log && !rates::is_rates(&text) {
            return Ok(false);
        }
        if let Some(workload) = workload_of(text.path()) {
            let taken = *self.workload.get_or_insert(workload);
            if taken != workload {
                let what = format!("{workload}: imported {taken}; import {workload} separately");
                self.left(text.path(), what);
                return Ok(true);
            }
        }
        if report {
            let table = table::parse_report(&text)?;
            self.take_report(&text, &table)?;
        } else if log {
            let log = output::parse(&text)?;
            self.take_log(&text, &log, label)?;
        } else {
            let rates = rates::parse_rates(&text)?;
            self.tables.push((text, rates));
        }
        Ok(true)
    }

    fn take_report(&mut self, text: &Text, table: &ReportTable) -> Result<(), ImportError> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut labels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &table.rows {
            let place = places.entry(&row.test).or_default();
            let label = self.label(table, row, *place);
            *place += 1;
            let label = self.take_row(text, row, &label)?;
            labels.entry(&row.test).or_default().push(label);
        }
        // Tables of rates have one column for each row.
        let mut of_steps = labels.into_values();
        if let Some(first) = of_steps.next().filter(|first| of_steps.all(|other| other == *first)) {
            self.reports.push((text.path().to_owned(), first));
        }
        self.check_derived(text, table);
        Ok(())
    }

    /// Ratios, means and deviations that somebody wrote below the rows.
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
                let notice = Notice::at(NoticeKind::Mismatch, text.path(), derived.line, what);
                self.published.notices.push(notice);
            }
        }
        self.published.check("ratios, means and deviations below rows", agree, of);
        if unknown > 0 {
            let what = format!("unlabelled lines below rows: {unknown}");
            self.left(text.path(), what);
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

    /// Takes a row and returns the label that its run got.
    fn take_row(
        &mut self,
        text: &Text,
        row: &ReportRow,
        label: &str,
    ) -> Result<String, ImportError> {
        self.check_row(text, row, label)?;
        let version = row.cell("version");
        let cells = ["version", "githash", "date", "ops_sec"];
        let identity = cells.map(|name| row.cell(name).unwrap_or("")).join("|");
        let date = row.cell("date").and_then(rfc3339);
        let (place, again) = self.rows.place(label, &row.test, &identity, date.as_deref());
        let (label, block) = self.numbered(label, place);
        self.published.cells.read(text.path(), row.cells.len());
        if again {
            self.published.cells.keep(text.path(), Kept::Compared, row.cells.len());
            return Ok(label);
        }
        if place == 1 && !self.options.repeats {
            self.note_several(text, row.line, &row.test, &label);
        }
        let record = self.step(&label, block, version, &row.test);
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

    /// Records the outcome of the cells of a row.
    fn count(&mut self, file: &Path, counted: &[(&String, ReportCell)]) {
        let cells = &mut self.published.cells;
        let known = known_heads();
        for (head, cell) in counted {
            let kept = match cell {
                ReportCell::Values(_) => Kept::Metric,
                ReportCell::Absent => Kept::Absent,
                ReportCell::Identity => Kept::Annotation,
                ReportCell::Unknown => {
                    cells.unknown_head(file, head, &known);
                    Kept::Annotation
                }
            };
            cells.keep(file, kept, 1);
        }
    }

    /// Rows of one step of one version, begun in one second, are copies of one row.
    ///
    /// # Errors
    /// The same step with other numbers, with both places.
    fn check_row(&mut self, text: &Text, row: &ReportRow, label: &str) -> Result<(), ImportError> {
        let Some(date) = row.cell("date") else { return Ok(()) };
        let of = ["version", "githash"].map(|name| row.cell(name).unwrap_or(""));
        let key = [label, &row.test, of[0], of[1], date].join("|");
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

    /// The label and block of the run at a place: a target of its own, or a repetition.
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

    fn take_log(&mut self, text: &Text, log: &Log, label: Option<&str>) -> Result<(), ImportError> {
        if self.is_copy(text, log, label)? {
            return Ok(());
        }
        let version = log.version.as_deref();
        let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let tests: BTreeSet<&str> = log.results.iter().map(|result| result.name.as_str()).collect();
        let own = version.map(|version| format!("{}-{version}", log.product));
        let own = own.unwrap_or(stem);
        let label = match label {
            // Several files of one label were said to be repetitions.
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
            let block = self.blocks.entry((label.clone(), result.name.clone())).or_default();
            *block += 1;
            let block = *block;
            let record = self.step(&label, block, version, &result.name);
            add_file(record, &text.name());
            fill(record, result);
            if !seconds.is_empty() {
                record.per_second.clone_from(&seconds);
                add_file(record, &beside);
            }
            if let Some(command) = &log.command {
                let line = format!("{}\t{command}\n", result.name);
                self.published
                    .run(&label, block, &tag_of(&label, version))
                    .log("commands.txt", &line);
            }
        }
        self.note_log(text, log);
        Ok(())
    }

    /// True for results that were read before, whatever the file is called: one measurement.
    ///
    /// # Errors
    /// The same results under two labels that were said.
    fn is_copy(
        &mut self,
        text: &Text,
        log: &Log,
        label: Option<&str>,
    ) -> Result<bool, ImportError> {
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

    /// Operations by the second from the file beside a log of one benchmark, and its name.
    fn seconds_beside(
        &mut self,
        text: &Text,
        log: &Log,
    ) -> Result<(Vec<f64>, String), ImportError> {
        let beside = PathBuf::from(format!("{}.r.csv", text.path().display()));
        let name = beside.display().to_string();
        if !beside.is_file() || log.results.len() != 1 {
            return Ok((Vec::new(), name));
        }
        let rows = output::parse_seconds(&Text::read(&beside)?)?;
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
        let with = log.results.iter().filter(|result| result.stats.uptime.is_some());
        if log.results.len() > 1 && with.count() > 0 {
            let what = "RocksDB statistics cover the time since the database was opened, not one \
                        benchmark alone";
            self.published.notices.push(Notice::of(NoticeKind::Note, text.path(), what));
        }
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
        let kind = StepKind { group: group(step), rate: RateUnit::Operations };
        run.step(FORMAT.word, step, kind)
    }

    /// Rates of tables without reports; where there are reports, both must agree.
    fn take_tables(&mut self) -> Result<(), ImportError> {
        let tables = std::mem::take(&mut self.tables);
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
                    let notice = Notice::of(NoticeKind::Note, text.path(), what);
                    self.published.notices.push(notice);
                    nameless = Some(text.name());
                    (1..=rates.width()).map(|column| format!("col-{column}")).collect()
                }
            };
            self.take_rates(&text, &rates, &labels);
        }
        Ok(())
    }

    fn take_rates(&mut self, text: &Text, rates: &RatesOnly, labels: &[String]) {
        let path = text.path();
        for (line, step, cells) in &rates.rows {
            self.published.cells.read(path, cells.len());
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
                let first = !record.outcome.extra.contains_key(&Metric::Rate);
                let before = *record.outcome.extra.entry(Metric::Rate).or_insert(value);
                let kept = if first { Kept::Metric } else { Kept::Compared };
                self.published.cells.keep(path, kept, 1);
                if !decimals_agree(before, cell) {
                    let what = format!(
                        "{step} of {label}: {cell} here, {before} in an earlier file; imported the \
                         earlier value"
                    );
                    let notice = Notice::at(NoticeKind::Mismatch, text.path(), *line, what);
                    self.published.notices.push(notice);
                }
            }
        }
    }

    /// Labels of the columns: as asked, as the heads say, as the report of the same name says.
    fn labels_of(
        &self,
        text: &Text,
        rates: &RatesOnly,
    ) -> Result<Option<Vec<String>>, ImportError> {
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
        match asked.is_empty() {
            true => Ok(None),
            false => {
                let (given, name) = (asked.len(), text.name());
                Err(ImportError::Words(format!(
                    "`{name}`: it has {width} columns, but --labels names {given}"
                )))
            }
        }
    }

    /// Tables of ratios against the rates; one column is the base.
    fn check_ratios(&mut self) {
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
            let Some(base) = ratios.base() else {
                let what = "ratios to a version without a column: not checked";
                self.leave_table(&text, &ratios, what);
                continue;
            };
            self.check_table(&text, &ratios, &labels, base);
        }
    }

    /// Leaves out a whole table, and counts its cells.
    fn leave_table(&mut self, text: &Text, table: &RatesOnly, why: &str) {
        let cells = table.rows.iter().map(|(_, _, cells)| cells.len()).sum();
        self.published.cells.read(text.path(), cells);
        self.published.cells.leave(text.path(), why, cells);
    }

    fn check_table(&mut self, text: &Text, ratios: &RatesOnly, labels: &[String], base: usize) {
        let runs = &self.published.runs;
        let rate = |label: &str, step: &str| {
            let mut runs = runs.iter().filter(|run| run.record.key.block == 1);
            let run = runs.find(|run| run.record.key.label == label)?;
            let record = run.steps.iter().find(|record| record.name == step)?;
            record.outcome.extra.get(&Metric::Rate).copied()
        };
        let (mut agree, mut of, mut without) = (0, 0, 0);
        let mut wrong = Vec::new();
        for (line, step, cells) in &ratios.rows {
            for (label, cell) in labels.iter().zip(cells) {
                let (Some(value), Some(base)) = (rate(label, step), rate(&labels[base], step))
                else {
                    without += 1;
                    continue;
                };
                of += 1;
                if follows(cell, value, base) {
                    agree += 1;
                } else {
                    let again = printed_ratio(value, base);
                    let what = format!(
                        "{step} of {label}: published {cell}, but {value} / {base} gives {again}"
                    );
                    wrong.push(Notice::at(NoticeKind::Mismatch, text.path(), *line, what));
                }
            }
        }
        self.published.notices.append(&mut wrong);
        self.published.check("relative rates from absolute rates", agree, of);
        let cells = &mut self.published.cells;
        cells.read(text.path(), of + without);
        cells.keep(text.path(), Kept::Compared, of);
        cells.leave(text.path(), "ratios without rates in these files: not checked", without);
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

/// What files have in common that the published scripts made of one report: `sum.iobuf.8x.txt`,
/// `abs.iobuf.8x.tsv`, `rel2.iobuf.8x.csv`, `fmt.iobuf.8x.abs0.tsv`.
fn kin(path: &Path) -> (PathBuf, String) {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ends = ["gz", "sdev", "txt", "tsv", "csv", "abs0", "abs1"];
    let mut parts: Vec<&str> = name.split('.').collect();
    while parts.last().is_some_and(|part| ends.contains(part)) {
        parts.pop();
    }
    let kinds = ["sum", "sum2", "summary", "abs", "rel", "rel2", "fmt", "csum", "csum2"];
    if parts.first().is_some_and(|part| kinds.contains(part)) {
        parts.remove(0);
    }
    (folder, parts.join("."))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_workload_kin_and_day() {
        assert_eq!(workload_of(Path::new("a/sum.iobuf.8x.txt")), Some("iobuf"));
        assert_eq!(workload_of(Path::new("res.byrx/summary.tsv")), Some("byrx"));
        assert_eq!(workload_of(Path::new("summary.tsv")), None);
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/abs.iobuf.8x.tsv"), of("a/sum.iobuf.8x.txt"));
        assert_eq!(of("a/fmt.byrx.lru.abs0.tsv"), of("a/sum.byrx.lru.txt"));
        assert_ne!(of("a/abs.iobuf.7x.tsv"), of("a/sum.iobuf.8x.txt"));
        assert_eq!(rfc3339("2025-05-9T01:44:24").as_deref(), Some("2025-05-09T01:44:24Z"));
        assert_eq!((rfc3339("2025-05-9"), rfc3339("x-y-zT00:00:00")), (None, None));
    }
}
