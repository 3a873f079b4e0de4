//! Takes numbers from tables and summaries of the Insert Benchmark as metrics of steps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::tables::{
    MetricsRow, Sizes, SummaryCell, SummaryKind, SummaryTable, rows, size_of, split_size,
};
use crate::cells::{Kept, decimals_agree, number};
use crate::format::{ImportOptions, Result};
use crate::published::{self, PrintedRatio, Published, StepKind, add_file, annotate};
use crate::text::Text;
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

/// Columns of published tables.
const COLUMNS: [&str; 26] = [
    "ips", "qps", "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wpi", "wkbpi", "csps", "cpups",
    "cspq", "cpupq", "dbgb1", "dbgb2", "rss", "maxop", "p50", "p99", "rkbps", "wkbps", "ccpupq",
    "vsz", "p90", "dps",
];
/// The label of a baseline that a table of ratios leaves out.
const UNNAMED_BASELINE: &str = "unnamed baseline";
/// Name of the annotation with a cell's colour.
const COLOUR: &str = "colour of the summary";

/// The word of the command line.
pub(super) const WORD: &str = "ibench-mytools";

/// Takes rows, each number once. Contradicting rows are an error.
pub(crate) struct Taker {
    pub published: Published,
    /// The rows of metrics taken, with their files.
    pub rows: Vec<(PathBuf, MetricsRow)>,
    pub sizes: Sizes,
    pub clients: Option<u32>,
    /// True if no file has rates; ratios are then facts instead of checks.
    pub only_ratios: bool,
    /// The origin of each number, by target and step.
    pub places: BTreeMap<(String, String, Metric), TakenNumber>,
}

/// A number taken, as printed.
#[derive(Clone, Debug)]
pub(crate) struct TakenNumber {
    file: String,
    line: usize,
    cell: String,
    factor: f64,
}

/// The position of a number.
struct FilePosition<'a> {
    text: &'a Text,
    line: usize,
    label: &'a str,
    size: Option<&'a str>,
    step: &'a str,
}

impl Taker {
    pub(crate) fn step(&mut self, label: &str, size: Option<&str>, step: &str) -> &mut StepRecord {
        let is_query = step.starts_with('q');
        let group = match step {
            _ if step.starts_with("qp") => Group::Point,
            _ if is_query => Group::Range,
            _ => Group::Load,
        };
        let rate = match is_query {
            _ if self.only_ratios => RateUnit::Relative,
            true => RateUnit::Queries,
            false => RateUnit::RowsInserted,
        };
        let clients = self.clients;
        let run = self.published.run(label, 1, &published::decode_tag(label));
        if let Some(rows) = size.and_then(rows) {
            run.record.workload.rows = rows;
        }
        run.record.workload.clients = clients.unwrap_or(0);
        run.step(WORD, step, StepKind { group, rate })
    }

    /// Takes a number and multiplies it with `factor` to get the metric's unit.
    fn put(
        &mut self,
        place: &FilePosition<'_>,
        metric: Metric,
        printed: &str,
        factor: f64,
    ) -> Result<Kept> {
        let Some(value) = number(printed) else { return Ok(Kept::Absent) };
        let record = self.step(place.label, place.size, place.step);
        add_file(record, &place.text.name());
        let (before, kept) = published::take(record, metric, value * factor);
        let key = (place.label.to_owned(), place.step.to_owned(), metric);
        if kept == Kept::Metric {
            let stands = TakenNumber {
                file: place.text.name(),
                line: place.line,
                cell: printed.to_owned(),
                factor,
            };
            self.places.insert(key, stands);
            return Ok(Kept::Metric);
        }
        let other = self.places.get(&key).cloned();
        let decimals = |text: &str| text.split_once('.').map(|(_, decimals)| decimals.len());
        let agrees = match &other {
            // Neither of them was rounded.
            Some(other) if decimals(&other.cell) == decimals(printed) && other.factor == factor => {
                number(&other.cell) == Some(value)
            }
            _ => decimals_agree(before / factor, printed),
        };
        if agrees {
            return Ok(Kept::Compared);
        }
        let (step, label, before) = (place.step, place.label, before / factor);
        let what = format!("{} of {step} of {label} is {printed} here and {before}", metric.name());
        match other {
            Some(TakenNumber { file, line, .. }) => {
                let why = format!(
                    "{what} in `{file}`, line {line}: one of them is wrong; import only the \
                     correct one"
                );
                Err(place.text.malformed(place.line, why))
            }
            None => {
                let what = format!("{what} as the baseline; imported the baseline's value");
                self.published.mismatch(place.text.path(), place.line, what);
                Ok(Kept::Compared)
            }
        }
    }

    /// Takes a row of metrics.
    ///
    /// # Errors
    ///
    /// Another row contradicts it; a query step has an unknown column and no query rate.
    pub(crate) fn take(&mut self, text: &Text, row: &MetricsRow) -> Result<()> {
        let (path, cells) = (text.path(), row.cells.len());
        let Some(step) = row.step.clone() else {
            self.published.cells.leave(path, "rows without a step", cells);
            return Ok(());
        };
        let (size, label) = match self.sizes.take(&row.tag, path) {
            Ok(taken) => taken,
            Err(why) => {
                self.published.cells.leave(path, why, cells);
                return Ok(());
            }
        };
        self.rows.push((path.to_owned(), row.clone()));
        let is_query = step.starts_with('q');
        let unknown = |head: &str| !COLUMNS.contains(&head);
        let strange = row.cells.iter().map(|(head, _)| head.as_str()).find(|head| unknown(head));
        if let Some(strange) = strange.filter(|_| is_query && row.cell("qps").is_none()) {
            let why = format!(
                "a query step without a column `qps`: is `{strange}` a typo? The rate of {step} \
                 needs `qps`"
            );
            return Err(text.malformed(row.line, why));
        }
        let size = size.as_deref();
        let place = FilePosition { text, line: row.line, label: &label, size, step: &step };
        add_file(self.step(&label, size, &step), &text.name());
        for (head, printed) in &row.cells {
            let mut kept = None;
            for (metric, factor) in metrics(head, is_query) {
                kept.get_or_insert(self.put(&place, *metric, printed, *factor)?);
            }
            let kept = kept.unwrap_or_else(|| {
                // Load steps have no queries; tables print 0.
                if head == "qps" && number(printed) == Some(0.0) {
                    return Kept::Compared;
                }
                annotate(self.step(&label, size, &step), head, printed);
                Kept::Annotation
            });
            self.published.cells.keep(path, kept, 1);
            if unknown(head) {
                self.published.cells.unknown_head(path, head, &COLUMNS);
            }
        }
        // vmstat's share divided by the rate, as cpu/o is defined, is more precise than the printed
        // cpupq.
        let rate = row.value(if is_query { "qps" } else { "ips" }).filter(|rate| *rate > 0.0);
        if let (Some(busy), Some(rate)) = (row.value("cpups"), rate) {
            let record = self.step(&label, size, &step);
            record.outcome.extra.entry(Metric::CpuPerOp).or_insert(busy / rate);
        }
        Ok(())
    }

    /// Takes a row of ratios if there are no rates. Its baseline is the one that tables of ratios
    /// leave out.
    ///
    /// # Errors
    ///
    /// Another row contradicts it.
    pub(crate) fn take_ratios(
        &mut self,
        text: &Text,
        row: &MetricsRow,
        options: &ImportOptions,
    ) -> Result<()> {
        let (path, cells) = (text.path(), row.cells.len());
        let taken = self.sizes.take(&row.tag, path);
        let (step, (size, label)) = match (row.step.clone(), taken) {
            (Some(step), Ok(taken)) => (step, taken),
            (None, _) => {
                self.published.cells.leave(
                    path,
                    "ratios without a step (name the file rel.STEP)",
                    cells,
                );
                return Ok(());
            }
            (_, Err(why)) => {
                self.published.cells.leave(path, why, cells);
                return Ok(());
            }
        };
        let baseline = options.labels.first().map_or(UNNAMED_BASELINE, String::as_str).to_owned();
        self.put_baseline(text, &baseline, size.as_deref(), &step);
        let own = if step.starts_with('q') { "qps" } else { "ips" };
        let size = size.as_deref();
        let place = FilePosition { text, line: row.line, label: &label, size, step: &step };
        for (head, printed) in &row.cells {
            let kept = if head == own && number(printed).is_some() {
                self.put(&place, Metric::Rate, printed, 1.0)?
            } else if printed == "NA" {
                Kept::Absent
            } else {
                annotate(self.step(&label, size, &step), &format!("relative {head}"), printed);
                Kept::Annotation
            };
            self.published.cells.keep(path, kept, 1);
        }
        Ok(())
    }

    fn put_baseline(&mut self, text: &Text, baseline: &str, size: Option<&str>, step: &str) {
        let record = self.step(baseline, size, step);
        add_file(record, &text.name());
        record.outcome.extra.insert(Metric::Rate, 1.0);
    }

    /// Takes summary tables with the colours of their cells.
    ///
    /// # Errors
    ///
    /// A row of metrics contradicts a number.
    pub(crate) fn take_summary(&mut self, text: &Text, table: &SummaryTable) -> Result<()> {
        for (line, target, cells) in &table.rows {
            let size = match table.size() {
                "" => size_of(target, text.path()),
                size => Some(size.to_owned()),
            };
            let taken = self.sizes.label(size, split_size(target).1);
            let (size, label) = match taken {
                Ok(taken) => taken,
                Err(why) => {
                    self.published.cells.leave(text.path(), why, cells.len());
                    continue;
                }
            };
            if table.is_target_row(target) {
                self.target_rates(text, *line, table, cells);
                continue;
            }
            for (step, cell) in table.steps.iter().zip(cells) {
                let size = size.as_deref();
                let place = FilePosition { text, line: *line, label: &label, size, step };
                self.take_summary_cell(&place, table, cell)?;
            }
        }
        Ok(())
    }

    fn take_summary_cell(
        &mut self,
        place: &FilePosition<'_>,
        table: &SummaryTable,
        cell: &SummaryCell,
    ) -> Result<()> {
        let kept = match table.kind {
            SummaryKind::Absolute => self.put(place, Metric::Rate, &cell.printed, 1.0)?,
            SummaryKind::InsertRate => self.put(place, Metric::InsertRate, &cell.printed, 1.0)?,
            SummaryKind::Relative if self.only_ratios => {
                self.put(place, Metric::Rate, &cell.printed, 1.0)?
            }
            SummaryKind::Relative => self.compare(place, table, cell),
        };
        self.published.cells.keep(place.text.path(), kept, 1);
        if let Some(colour) = cell.colour() {
            let name = format!("{COLOUR}, {}", table.kind.words());
            annotate(self.step(place.label, place.size, place.step), &name, colour);
        }
        Ok(())
    }

    /// Checks a ratio of a summary against the rates of its target and of the first row.
    fn compare(
        &mut self,
        place: &FilePosition<'_>,
        table: &SummaryTable,
        cell: &SummaryCell,
    ) -> Kept {
        let rate = |label: &str| self.published.value(label, place.step, Metric::Rate);
        let baseline = table.rows.first().map(|(_, target, _)| target.as_str()).unwrap_or_default();
        let baseline = split_size(baseline).1;
        let baseline = match place.size {
            Some(size) if place.label.starts_with(&format!("{size}.")) => {
                format!("{size}.{baseline}")
            }
            _ => baseline.to_owned(),
        };
        let rates = rate(place.label).zip(rate(&baseline));
        let Some((value, of_baseline)) = rates else {
            let name = "relative rate of the summary";
            annotate(self.step(place.label, place.size, place.step), name, &cell.printed);
            return Kept::Annotation;
        };
        let FilePosition { text, line, step, label, .. } = *place;
        let printed = &cell.printed;
        let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
        let what = format_args!("{step} of {label} relative to {baseline}");
        let agrees = self.published.follows(&ratio, what);
        self.published.check("ratios of summaries from their rates", usize::from(agrees), 1);
        Kept::Compared
    }

    /// Reads the last row of a table of insert rates: the requested rates, those in the names of
    /// the steps times the clients.
    fn target_rates(
        &mut self,
        text: &Text,
        line: usize,
        table: &SummaryTable,
        cells: &[SummaryCell],
    ) {
        for (step, cell) in table.steps.iter().zip(cells) {
            let asked = number(&cell.printed).zip(rate_of_name(step));
            let clients = asked.map(|(target, rate)| target / rate);
            let whole =
                clients.filter(|clients| clients.fract() == 0.0 && (1.0..=1e6).contains(clients));
            let agrees = match (whole, self.clients) {
                (Some(clients), None) => {
                    self.clients = Some(clients as u32);
                    true
                }
                (Some(clients), Some(known)) => clients == f64::from(known),
                (None, _) => false,
            };
            if !agrees {
                let what = format!(
                    "the target of {step} is {}, which does not match a rate of its clients",
                    cell.printed
                );
                self.published.mismatch(text.path(), line, what);
            }
        }
        self.published.cells.keep(text.path(), Kept::Compared, cells.len());
        if let Some(clients) = self.clients {
            for run in &mut self.published.runs {
                run.record.workload.clients = clients;
            }
        }
    }
}

/// Rows per second in a step's name: 100 of `q100.1`, 500 of `qr500.L3`.
fn rate_of_name(step: &str) -> Option<f64> {
    let rest = step.strip_prefix('q')?.trim_start_matches(['r', 'p']);
    let digits = rest.split('.').next()?;
    number(digits).filter(|rate| *rate > 0.0)
}

/// Metrics of a column, and the factors to their units: seconds become milliseconds, gigabytes MiB,
/// KiB per second MiB per second.
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
