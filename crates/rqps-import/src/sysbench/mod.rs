//! Importers of published sysbench tables and of sysbench's own output.

pub mod plain;
pub mod tables;
pub(crate) mod verify;

use std::path::PathBuf;

use super::cells::{Kept, decimals_agree, number, shown};
use super::format::{ImportFormat, ImportOptions, Notice, NoticeKind, Result};
use super::published::{self, Published, StepKind, add_file};
use super::text::Text;
use super::unnamed;
pub use FORMAT as MYTOOLS;
pub use plain::FORMAT as PLAIN;
use rqps_model::benchmark::RateUnit;
use rqps_model::metric::Metric;
use rqps_model::run::{Status, StepRecord};
use tables::{RateCell, counts_rows, group, is_load};
use verify::{Columns, RawStep, Sources};

// Importer `sysbench-mytools`: combines tables of rates and hardware metrics with folders of
// targets, and checks them against each other.

/// The importer of published tables and folders of targets.
pub const FORMAT: ImportFormat = ImportFormat {
    word: "sysbench-mytools",
    read: |paths, options| read(&unnamed(paths)?, options),
};

/// Reads files and folders.
///
/// # Errors
///
/// A damaged file, with its line; no file of this format; ratios without absolute rates;
/// `--clients` has another count than there are columns.
fn read(paths: &[PathBuf], options: &ImportOptions) -> Result<Published> {
    let mut sources = verify::find_sources(paths)?;
    let mut published = Published { benchmark: "sysbench", ..Published::default() };
    published.notices.append(&mut sources.notices);
    sources.count_cells(&mut published.cells);
    verify::name(&mut sources, options, &mut published)?;
    sources.set_apart();
    let raw = verify::read(&sources.raw, &mut published.notices)?;
    raw.iter().for_each(|step| step.count_cells(&mut published.cells));
    let columns = Columns::resolve(&sources, &raw, options)?;
    let mut taker = Taker { published, columns, only_ratios: sources.only_ratios() };
    taker.take_tables(&sources);
    taker.take_met(&sources);
    taker.take_raw(&raw, options);
    taker.take_ratios(&sources, options);
    taker.remark_ratios(&sources);
    let Taker { mut published, columns, .. } = taker;
    if columns.unknown {
        published.note(
            columns.file.clone(),
            "these files have no client counts for their columns: steps are .col1, .col2 … \
                   (name the counts with --clients)"
                .to_owned(),
        );
    }
    let words = columns.variants.words();
    if !words.is_empty() {
        published.note(
            sources.first_file(),
            format!(
                "files of one form disagree: the names of steps end in the words in which the \
                 names of these files or folders differ ({})",
                words.join(", ")
            ),
        );
    }
    verify::verify_tables(&sources, &columns.variants, &mut published);
    published.host = host(&published, &raw);
    Ok(published)
}

/// A published number and its place.
struct Cell<'a> {
    text: &'a Text,
    line: usize,
    printed: &'a str,
    /// Factor from the number to the metric's unit.
    unit: f64,
}

struct Taker {
    published: Published,
    columns: Columns,
    /// True if no file has rates, or none of those that are taken now; ratios are then facts instead
    /// of checks.
    only_ratios: bool,
}

impl Taker {
    fn step(&mut self, target: &str, step: &str) -> &mut StepRecord {
        let tag = published::decode_tag(target);
        let rate = if self.only_ratios {
            RateUnit::Relative
        } else if is_load(step) {
            RateUnit::RowsInserted
        } else if counts_rows(step) {
            RateUnit::RowsScanned
        } else {
            RateUnit::Queries
        };
        let kind = StepKind { group: group(step), rate };
        let run = self.published.run(target, 1, &tag);
        let record = run.step(FORMAT.word, step, kind);
        record.parameters = tables::parameters(step);
        record
    }

    /// Takes a number. If another file gave it before, both must agree within the printed
    /// precision.
    fn put(&mut self, target: &str, step: &str, metric: Metric, cell: &Cell<'_>) {
        let name = cell.text.name();
        let record = self.step(target, step);
        add_file(record, &name);
        let Some(value) = number(cell.printed) else {
            // A mistyped folder gives a column of words.
            let why = match cell.printed {
                "" => "no published value".to_owned(),
                word => format!("published `{}` instead of a number", shown(word)),
            };
            if record.outcome.extra.is_empty() {
                record.status = Status::Failed(format!("{why} ({name}, line {})", cell.line));
            }
            let text = format!("{why} of {target}, which fails these steps");
            self.published.cells.leave(cell.text.path(), text, 1);
            return;
        };
        if record.outcome.extra.is_empty() {
            record.status = Status::Complete;
        }
        let value = value * cell.unit;
        let (before, kept) = published::take(record, metric, value);
        self.published.cells.keep(cell.text.path(), kept, 1);
        if decimals_agree(before / cell.unit, cell.printed) {
            return;
        }
        if counts_rows(step) && metric == Metric::Rate && in_other_unit(before, value) {
            let text = format!(
                "the rate of {step} is {} here and {before} in an earlier file; imported the \
                 earlier value: rows, thousands or millions of rows per second",
                cell.printed
            );
            let notice = Notice::at(NoticeKind::Note, cell.text.path(), cell.line, text);
            self.published.notices.push(notice);
        } else {
            let metric = metric.name();
            let text = format!(
                "{metric} of {step} of {target}: {} here, {before} in an earlier file; imported \
                 the earlier value",
                cell.printed
            );
            self.published.mismatch(cell.text.path(), cell.line, text);
        }
    }

    /// Takes a cell of a table of hardware metrics: as a metric, or as an annotation if no metric
    /// fits.
    fn put_under(&mut self, head: &str, target: &str, step: &str, cell: &Cell<'_>) {
        if let Some(metric) = tables::metric(head) {
            return self.put(target, step, metric, cell);
        }
        let record = self.step(target, step);
        add_file(record, &cell.text.name());
        published::annotate(record, head, cell.printed);
        self.published.cells.keep(cell.text.path(), Kept::Annotation, 1);
        if !tables::is_head(head) {
            self.published.cells.unknown_head(cell.text.path(), head, &tables::HEADS);
        }
    }

    /// Keeps the author's remark on a row, for the targets of the columns that it names, or for
    /// all.
    fn remark(&mut self, text: &Text, targets: &[String], step: &str, words: &str) {
        if words.is_empty() {
            return;
        }
        let named: Vec<&String> = tables::columns_in(words)
            .into_iter()
            .filter_map(|column| targets.get(column.checked_sub(1)?))
            .collect();
        let all = targets.iter().collect();
        for target in if named.is_empty() { all } else { named } {
            published::remark(self.step(target, step), words);
        }
        self.published.cells.keep(text.path(), Kept::Annotation, 1);
    }

    fn take_tables(&mut self, sources: &Sources) {
        for (text, table) in &sources.absolute {
            for row in &table.rows {
                let same = table.rows.iter().filter(|other| other.step == row.step);
                let unit = unit(&tables::step(&row.step), same.flat_map(|row| &row.cells));
                let mut name = String::new();
                for cell in row.cells(&table.targets) {
                    let RateCell { line, target, printed, .. } = cell;
                    name = self.columns.of_cell(text, table, &cell);
                    self.put(target, &name, Metric::Rate, &Cell { text, line, printed, unit });
                }
                self.remark(text, &table.targets, &name, &row.remark);
            }
        }
    }

    /// Takes published ratios without rates; the baseline is 1 by definition.
    fn take_ratios(&mut self, sources: &Sources, options: &ImportOptions) {
        const UNNAMED: &str = "unnamed baseline";
        let tables = if self.only_ratios { &sources.relative } else { &sources.alone };
        let only_ratios = std::mem::replace(&mut self.only_ratios, true);
        for (text, table) in tables {
            let asked = options.labels.first().filter(|_| table.is_blocks());
            let baseline = asked.or(table.baseline.as_ref()).map_or(UNNAMED, String::as_str);
            let has_own = table.targets.iter().any(|own| own == baseline)
                || (table.baseline.is_none() && table.has_ones() && !table.is_blocks());
            for cell in table.cells() {
                let step = self.columns.of_cell(text, table, &cell);
                if !has_own {
                    self.put_baseline(text, baseline, &step);
                }
                let RateCell { line, target, printed, .. } = cell;
                self.put(target, &step, Metric::Rate, &Cell { text, line, printed, unit: 1.0 });
            }
            let what = "only ratios are published here, with two decimals and without rates per \
                        second";
            self.published.note(text.path(), what);
        }
        self.only_ratios = only_ratios;
    }

    fn put_baseline(&mut self, text: &Text, baseline: &str, step: &str) {
        let record = self.step(baseline, step);
        add_file(record, &text.name());
        record.outcome.extra.insert(Metric::Rate, 1.0);
    }

    /// Adds the author's remarks on rows of ratios to their steps.
    fn remark_ratios(&mut self, sources: &Sources) {
        for (text, table) in sources.relative.iter().chain(&sources.alone) {
            for row in table.rows.iter().filter(|row| !row.remark.is_empty()) {
                let short = format!("{}_range=", row.step);
                let whole = self.columns.in_table(text, &row.step);
                let end = whole.strip_prefix(&row.step).unwrap_or_default();
                let names = self.published.runs.iter().flat_map(|run| &run.steps);
                let mut names = names.map(|step| &step.name);
                let name = names.find(|name| {
                    **name == whole || (name.starts_with(&short) && name.ends_with(end))
                });
                match name.cloned() {
                    Some(name) => self.remark(text, &table.targets, &name, &row.remark),
                    None => {
                        let why = "remarks beside rows of ratios whose steps have no rates here";
                        self.published.cells.leave(text.path(), why, 1);
                    }
                }
            }
        }
    }

    fn take_met(&mut self, sources: &Sources) {
        for (text, blocks) in &sources.met {
            for block in blocks {
                let name = self.columns.name_with(&block.name.step, block.name.clients)
                    + &self.columns.variants.suffix(text.path());
                for row in &block.absolute {
                    for (head, printed) in block.heads.iter().zip(&row.cells) {
                        let cell = Cell { text, line: row.line, printed, unit: 1.0 };
                        self.put_under(head, &row.target, &name, &cell);
                    }
                }
            }
        }
    }

    fn take_raw(&mut self, raw: &[RawStep], options: &ImportOptions) {
        for step in raw {
            let name = self.columns.of_raw(step);
            if let Some((text, met)) = &step.met {
                verify::met_of_step(step, options, &mut self.published);
                let blocks = [(&met.io, met.lines[0]), (&met.vm, met.lines[1])];
                for (block, line) in blocks {
                    for (head, printed) in block {
                        let cell = Cell { text, line, printed, unit: 1.0 };
                        self.put_under(head, &step.label, &name, &cell);
                    }
                }
            }
            if let Some((text, rates)) = &step.qps {
                let unit = unit(&step.step, rates.iter());
                for (column, printed) in rates.iter().enumerate() {
                    let end = self.columns.variants.suffix(&step.folder);
                    let name = self.columns.name(&step.step, column) + &end;
                    let cell = Cell { text, line: 1, printed, unit };
                    self.put(&step.label, &name, Metric::Rate, &cell);
                }
            }
            if let Some((text, output)) = &step.output {
                if let Some(printed) = output.qps.as_deref()
                    && !counts_rows(&step.step)
                {
                    self.published.cells.read(text.path(), 1);
                    let cell = Cell { text, line: output.line, printed, unit: 1.0 };
                    self.put(&step.label, &name, Metric::Rate, &cell);
                }
                let record = self.step(&step.label, &name);
                add_file(record, &text.name());
                plain::fill_record(record, output);
                for (kind, what) in plain::remarks(output) {
                    self.published.notices.push(Notice::of(kind, text.path(), what));
                }
                let run = self.published.run(&step.label, 1, &published::decode_tag(&step.label));
                if let Some(line) = plain::command_line(&name, output) {
                    run.log("commands.txt", &line);
                }
                plain::fill_workload(&mut run.record.workload, output, self.columns.same_clients);
            }
            self.take_samples(step, &name, options);
        }
        self.correct(raw, options);
    }

    /// Computes per-operation values from vmstat and iostat if none were published.
    fn take_samples(&mut self, step: &RawStep, name: &str, options: &ImportOptions) {
        let Some(rate) = step.rate().and_then(number).filter(|rate| *rate > 0.0) else { return };
        if let Some((_, mean, _)) = step.device(options.device.as_deref()) {
            let record = self.step(&step.label, name);
            let file = step.io.as_ref().map(|(text, _)| text.name()).unwrap_or_default();
            add_file(record, &file);
            published::put(record, Metric::ReadsPerOp, mean.reads / rate);
            published::put(record, Metric::ReadKbPerOp, mean.read_kb / rate);
            published::put(record, Metric::WriteKbPerOp, mean.write_kb / rate);
        } else if let Some((text, io)) = &step.io {
            let devices: Vec<&str> = io.devices.keys().map(String::as_str).collect();
            let text_of = format!(
                "unknown data device: none or several match the published means; name one of {} \
                 with --device",
                devices.join(", ")
            );
            self.published.left(text.path(), text_of);
        }
        if step.met.is_none()
            && let Some((text, vm)) = &step.vm
            && let Some((mean, _)) = if options.compat { vm.compat_mean() } else { vm.mean() }
        {
            let record = self.step(&step.label, name);
            add_file(record, &text.name());
            published::put(record, Metric::CpuPerOp, (mean.us + mean.sy) / rate);
            published::put(record, Metric::ContextSwitchesPerOp, mean.cs / rate);
        }
    }

    /// Corrects cpu/o and cs/o of a step if each target with these values has its vmstat file, so
    /// that all ratios are comparable.
    fn correct(&mut self, raw: &[RawStep], options: &ImportOptions) {
        let mut mended = 0;
        let mut left = 0;
        for step in raw.iter().filter(|step| step.vm.is_some()) {
            let name = self.columns.of_raw(step);
            let published_by = self.published.runs.iter().filter(|run| {
                let mut steps = run.steps.iter().filter(|record| record.name == name);
                steps.any(|record| record.outcome.extra.contains_key(&Metric::CpuPerOp))
            });
            let sampled = |label: &str| {
                raw.iter().any(|other| {
                    let same = self.columns.of_raw(other) == name;
                    same && other.label == label && other.vm.is_some()
                })
            };
            if options.compat || !published_by.into_iter().all(|run| sampled(&run.record.key.label))
            {
                left += 1;
                continue;
            }
            let Some(rate) = step.rate().and_then(number).filter(|rate| *rate > 0.0) else {
                continue;
            };
            let Some((text, vm)) = &step.vm else { continue };
            let (Some((mean, _)), file) = (vm.mean(), text.name()) else { continue };
            let record = self.step(&step.label, &name);
            add_file(record, &file);
            record.outcome.extra.insert(Metric::CpuPerOp, (mean.us + mean.sy) / rate);
            record.outcome.extra.insert(Metric::ContextSwitchesPerOp, mean.cs / rate);
            mended += 1;
        }
        let file = "cpu/o and cs/o";
        if mended > 0 {
            self.published.note(
                file,
                format!(
                    "computed from vmstat samples for {mended} steps of targets; published values \
                 count repeated headers as samples of zeros and are about 4.5 % lower (--compat \
                 imports those)"
                ),
            );
        }
        if left > 0 && !options.compat {
            self.published.note(
                file,
                format!(
                    "as published for {left} steps of targets with vmstat samples, because other \
                 targets have none; about 4.5 % too low, ratios are not affected"
                ),
            );
        }
    }
}

/// The factor of a step's published rates. Until 2024, scans were published in millions of rows per
/// second with decimals; since then in thousands without decimals.
fn unit<'a>(step: &str, mut cells: impl Iterator<Item = &'a String>) -> f64 {
    let mut decimals = || cells.any(|cell| number(cell).is_some() && cell.contains('.'));
    if counts_rows(step) && decimals() { 1000.0 } else { 1.0 }
}

/// True for the same rate in rows and in thousands or millions of rows: published files of one scan
/// contain both.
fn in_other_unit(a: f64, b: f64) -> bool {
    let (large, small) = (a.max(b), a.min(b).to_string());
    [1e3, 1e6].iter().any(|unit| decimals_agree(large / unit, &small))
}

/// The host according to outputs and tags; the first answer counts.
fn host(published: &Published, raw: &[RawStep]) -> rqps_model::host::Host {
    let machine = published
        .runs
        .iter()
        .find_map(|run| published::decode_tag(&run.record.manifest.reported).machine);
    let printed = raw.iter().find_map(|step| step.output.as_ref()?.1.cpus);
    let kernel = raw.iter().find_map(|step| step.io.as_ref()?.1.kernel.clone());
    let cpus = printed.or(machine.map(|(cores, _)| cores));
    published::host(cpus, machine.map(|(_, gigabytes)| gigabytes), kernel)
}
