//! Reads the tables of the Insert Benchmark's perf reports: a row of metrics per target and step
//! (`o.sum`, `mrg`, metrics tables), or of ratios to a baseline (`rel`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::histograms::{HistogramRow, is_histogram, parse_histogram};
use crate::cells::{Cells, Fault, is_word, number, parse_number, shown};
use crate::format::{ImportError, ImportOptions, Notice, NoticeKind, Result};
use crate::text::{Leftovers, METRICS_MAX, Row, Text, names};
use rqps_stats::summary::printed_ratio;

/// The rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsTable {
    /// Its rows in order.
    pub rows: Vec<MetricsRow>,
}

/// A row of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsRow {
    /// Line number, from 1.
    pub line: usize,
    /// Group number; `-` lines separate groups.
    pub group: usize,
    /// The step, if a column or a line above the heads tells it.
    pub step: Option<String>,
    /// Columns and printed cells, without step and tag.
    pub cells: Row,
    /// The target.
    pub tag: String,
    /// Heads of sizes below zero, which are left out.
    pub below_zero: Vec<String>,
}

/// Columns of sizes.
const SIZES: [&str; 4] = ["dbgb1", "dbgb2", "rss", "vsz"];

impl MetricsRow {
    /// A cell as printed.
    pub fn cell(&self, column: &str) -> Option<&str> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, cell)| cell.as_str())
    }

    /// A cell as a number; `None` for `NA`.
    pub fn value(&self, column: &str) -> Option<f64> {
        self.cell(column).and_then(number)
    }
}

/// True for a line of heads: it contains `ips` and ends with `tag`.
fn is_heads(cells: &[&str]) -> bool {
    cells.contains(&"ips") && cells.last() == Some(&"tag")
}

/// True if the text has rows of metrics.
pub fn is_metrics(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line).filter(|line| !line.trim().is_empty());
    let heads = |line: &str| is_heads(&line.split_whitespace().collect::<Vec<_>>());
    lines.by_ref().take(2).any(heads)
}

/// Reads a file. Columns are found by their names, so older tables with other columns are accepted.
/// Tabs or blanks separate cells.
///
/// # Errors
///
/// A row before the heads or with a wrong number of cells, a cell that is neither a number nor
/// `NA`; heads with a repeated column; a file without rows.
pub fn parse_metrics(text: &Text) -> Result<MetricsTable> {
    text.at_most(METRICS_MAX)?;
    let mut table = MetricsTable::default();
    let mut heads: Vec<String> = Vec::new();
    let (mut group, mut step) = (0, None);
    let ratios = is_relative(text);
    for (line, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        match cells.as_slice() {
            [] => {}
            ["-"] => group += 1,
            _ if is_heads(&cells) => {
                heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
                let twice = heads.iter().enumerate().find(|(at, head)| heads[..*at].contains(head));
                if let Some((_, head)) = twice {
                    return Err(text.malformed(line, format!("two columns have the name `{head}`")));
                }
            }
            [one] if is_word(one) => {
                step = Some((*one).to_owned());
                group += 1;
            }
            _ => {
                let row = metrics_row(text, line, &heads, &cells, ratios)?;
                text.check_label(line, &row.tag, table.rows.iter().map(|row| row.tag.as_str()))?;
                let step = row.step.clone().or_else(|| step.clone());
                table.rows.push(MetricsRow { group, step, ..row });
            }
        }
    }
    if table.rows.is_empty() { Err(text.cut_short("the first row of metrics")) } else { Ok(table) }
}

/// True for a table of ratios: by the name of the file, or because its first column has two
/// decimals, unlike insert rates.
pub fn is_relative(text: &Text) -> bool {
    let name = text.path().file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("rel.") {
        return true;
    }
    let mut place = None;
    let mut ratios = 0;
    for (_, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if is_heads(&cells) {
            place = cells.iter().position(|head| *head == "ips");
        } else if let Some(cell) = place.and_then(|place| cells.get(place))
            && cells.len() > 1
        {
            let decimals = cell.split_once('.').map(|(_, decimals)| decimals.len());
            if decimals != Some(2) && !["1", "NA", "inf"].contains(cell) {
                return false;
            }
            ratios += 1;
        }
    }
    ratios > 0
}

fn metrics_row(
    text: &Text,
    line: usize,
    heads: &[String],
    cells: &[&str],
    ratios: bool,
) -> Result<MetricsRow> {
    if heads.is_empty() {
        return Err(text.malformed(line, "a row before the header (`ips qps … tag`)"));
    }
    text.check_width(line, cells.len(), heads.len())?;
    let mut row = MetricsRow {
        line,
        group: 0,
        step: None,
        cells: Vec::new(),
        tag: String::new(),
        below_zero: Vec::new(),
    };
    for (place, (head, cell)) in heads.iter().zip(cells).enumerate() {
        match head.as_str() {
            "step" => row.step = Some((*cell).to_owned()),
            "tag" => row.tag = (*cell).to_owned(),
            _ => {
                // A size is no result: one that cannot be is left out, and not the folder.
                if SIZES.contains(&head.as_str()) && parse_number(cell) == Err(Fault::BelowZero) {
                    row.below_zero.push(head.clone());
                    continue;
                }
                // Tables of ratios print `inf` if only the baseline is zero.
                if *cell != "NA" && (*cell != "inf" || !ratios) {
                    text.number(line, place + 1, head, cell)?;
                }
                row.cells.push((head.clone(), (*cell).to_owned()));
            }
        }
    }
    Ok(row)
}

/// Splits the size off a tag: `20m.my5649.cy8` is `my5649.cy8` with 20 million rows.
pub fn split_size(tag: &str) -> (Option<&str>, &str) {
    match tag.split_once('.') {
        Some((size, rest))
            if size.ends_with('m')
                && size.len() > 1
                && size[..size.len() - 1].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (Some(size), rest)
        }
        _ => (None, tag),
    }
}

/// The row of a merged table: rates as whole numbers, the tag without its size.
pub fn merged(row: &MetricsRow) -> String {
    let cell = |(column, cell): &(String, String)| match column.as_str() {
        "ips" | "qps" | "rps" => match number(cell) {
            Some(number) => format!("{number:.0}"),
            None => cell.clone(),
        },
        _ => cell.clone(),
    };
    let mut cells: Vec<String> = row.cells.iter().map(cell).collect();
    cells.push(split_size(&row.tag).1.to_owned());
    cells.join("\t")
}

/// The row of a relative table: each cell divided by that of the baseline; `NA` if either is.
pub fn relative(row: &MetricsRow, baseline: &MetricsRow) -> String {
    let ratio = |(column, cell): &(String, String)| match (number(cell), baseline.value(column)) {
        (Some(value), Some(of_baseline)) => printed_ratio(value, of_baseline),
        _ => "NA".to_owned(),
    };
    let mut cells: Vec<String> = row.cells.iter().map(ratio).collect();
    cells.push(row.tag.clone());
    cells.join("\t")
}

/// The relative table of a merged one: the first row of each group is the baseline and is left out.
pub fn relative_rows(table: &MetricsTable) -> Vec<(&MetricsRow, String)> {
    let mut rows = Vec::new();
    let mut baseline: Option<&MetricsRow> = None;
    for row in &table.rows {
        match baseline {
            Some(first) if first.group == row.group => rows.push((row, relative(row, first))),
            _ => baseline = Some(row),
        }
    }
    rows
}

// Reads the summary tables of perf reports with the colour of each cell, as text: `value:class`.

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryTable {
    /// The kind of table.
    pub kind: SummaryKind,
    /// The report: `20m.my`.
    pub name: String,
    /// Steps in the order of the columns.
    pub steps: Vec<String>,
    /// Rows: line, target, cells.
    pub rows: Vec<(usize, String, Vec<SummaryCell>)>,
}

/// The three kinds of summary tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// Rates of all steps.
    Absolute,
    /// Rates relative to the first target.
    Relative,
    /// Insert rates of query steps.
    InsertRate,
}

impl SummaryKind {
    /// The kind of its numbers in words.
    pub fn words(self) -> &'static str {
        match self {
            SummaryKind::Absolute => "rate",
            SummaryKind::Relative => "ratio",
            SummaryKind::InsertRate => "insert rate",
        }
    }
}

impl SummaryTable {
    /// The size at the start of the name: `20m` of `20m.my`; empty if there is none.
    pub fn size(&self) -> &str {
        split_size(&format!("{}.", self.name)).0.map_or("", |size| &self.name[..size.len()])
    }

    /// True for the row of target rates below a table of insert rates.
    pub fn is_target_row(&self, target: &str) -> bool {
        self.kind == SummaryKind::InsertRate && target == "target"
    }
}

impl SummaryCell {
    /// The name of its colour, if it has one. Gray and yellow share a letter.
    pub fn colour(&self) -> Option<&'static str> {
        match self.class {
            'g' => Some("green"),
            'r' => Some("red"),
            'y' => Some("gray or yellow"),
            'b' => Some("blue"),
            _ => None,
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryCell {
    /// The number as printed.
    pub printed: String,
    /// `g` green, `r` red, `y` gray (or yellow in a relative table), `b` blue, `-` none.
    pub class: char,
}

/// True if the text begins with the head of such a table.
pub fn is_summary(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim());
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| head(line).is_some())
}

/// Reads `abs:20m.my TAB l.i0 TAB …`.
fn head(line: &str) -> Option<(SummaryKind, &str, Vec<String>)> {
    let mut cells = line.split('\t').map(str::trim);
    let (kind, name) = cells.next()?.split_once(':')?;
    let kind = match kind {
        "abs" => SummaryKind::Absolute,
        "rel" => SummaryKind::Relative,
        "ins" | "ips" | "sla" | "iput" => SummaryKind::InsertRate,
        _ => return None,
    };
    let steps: Vec<String> = cells.map(str::to_owned).collect();
    (!steps.is_empty()).then_some((kind, name, steps))
}

/// Reads all tables of a file; lines with `#` are comments.
///
/// # Errors
///
/// A row before a head or with a wrong number of cells, a cell without a number and class, a table
/// without rows.
pub fn parse_summary(text: &Text) -> Result<Vec<SummaryTable>> {
    let mut tables: Vec<SummaryTable> = Vec::new();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Some((kind, name, steps)) = head(trimmed) {
            tables.push(SummaryTable { kind, name: name.to_owned(), steps, rows: Vec::new() });
            continue;
        }
        let Some(table) = tables.last_mut() else {
            return Err(text.malformed(line, "a row before the header of a table (`abs:NAME …`)"));
        };
        let mut cells = trimmed.split('\t').map(str::trim);
        let target = cells.next().unwrap_or_default().to_owned();
        let mut row = Vec::new();
        for cell in cells {
            let (printed, class) = cell.rsplit_once(':').unwrap_or((cell, "-"));
            let mut classes = class.chars();
            let place = row.len();
            let step = table.steps.get(place).map_or("", String::as_str);
            text.number(line, place + 2, step, printed)?;
            match (classes.next(), classes.next()) {
                (Some(class), None) if "gryb-".contains(class) => {
                    row.push(SummaryCell { printed: printed.to_owned(), class });
                }
                _ => {
                    let why = format!("`{}` has no class (g, r, y, b or -)", shown(cell));
                    return Err(text.bad_cell(line, place + 2, why));
                }
            }
        }
        text.check_width(line, row.len(), table.steps.len())?;
        table.rows.push((line, target, row));
    }
    match tables.last() {
        Some(table) if !table.rows.is_empty() => Ok(tables),
        _ => Err(text.cut_short("the rows of the last table")),
    }
}

// Chooses the data size of published Insert Benchmark results: results of two sizes are separate.

/// The sizes of all rows, and the chosen ones.
#[derive(Debug, Default)]
pub(crate) struct Sizes {
    /// Targets by size.
    targets: BTreeMap<String, BTreeSet<String>>,
    /// Chosen sizes; empty if no size is known.
    taken: BTreeSet<String>,
}

impl Sizes {
    /// Finds sizes in tags and names of files and folders, and chooses among them.
    ///
    /// # Errors
    ///
    /// The named files have different sizes, and ratios across sizes were not requested; the
    /// requested size does not exist.
    pub(crate) fn resolve(
        sources: &InsertSources,
        named: usize,
        options: &ImportOptions,
    ) -> Result<Sizes> {
        let mut sizes = Sizes::default();
        let mut files: Vec<(String, String)> = Vec::new();
        let mut add = |size: Option<String>, target: &str, path: &Path| {
            let Some(size) = size else { return };
            sizes.targets.entry(size.clone()).or_default().insert(target.to_owned());
            if !files.iter().any(|(known, _)| *known == size) {
                files.push((size, path.display().to_string()));
            }
        };
        let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
        for (text, table) in tables.chain(&sources.relative) {
            for row in &table.rows {
                add(size_of(&row.tag, text.path()), split_size(&row.tag).1, text.path());
            }
        }
        let of_tables = tables_have_sizes(sources);
        if !of_tables {
            for (text, tables) in &sources.summaries {
                for table in tables {
                    for (_, target, _) in &table.rows {
                        add(size_of(&table.name, text.path()), target, text.path());
                    }
                }
            }
        }
        let all: BTreeSet<String> = files.iter().map(|(size, _)| size.clone()).collect();
        sizes.taken = match (&options.size, files.as_slice()) {
            (Some(size), _) if !all.is_empty() && !all.contains(size) => {
                let all = all.into_iter().collect::<Vec<_>>().join(", ");
                let why = format!("--size {size}: sizes in these files: {all}");
                return Err(ImportError::Words(why));
            }
            (Some(size), _) => BTreeSet::from([size.clone()]),
            (None, _) if options.across.sizes => all,
            (None, [(first, a), (second, b), ..]) if named > 1 => {
                return Err(ImportError::Words(format!(
                    "`{a}` has {first} and `{b}` has {second} rows: results of different sizes \
                     belong in separate imports. Import each separately, choose one with --size \
                     {first}, or compare them with --across sizes"
                )));
            }
            (None, [(first, _), ..]) => BTreeSet::from([first.clone()]),
            (None, []) => BTreeSet::new(),
        };
        Ok(sizes)
    }

    /// The size of a row and the label of its target; the error is the reason for leaving the row
    /// out.
    pub(crate) fn take(&self, tag: &str, path: &Path) -> Result<(Option<String>, String), String> {
        let target = split_size(tag).1;
        self.label(size_of(tag, path), target)
    }

    /// The label of a target with a known size.
    pub(crate) fn label(
        &self,
        size: Option<String>,
        target: &str,
    ) -> Result<(Option<String>, String), String> {
        let size = size.or_else(|| {
            // Merged tables omit the size; their targets have one size.
            let mut with = self.targets.iter().filter(|(_, targets)| targets.contains(target));
            let first = with.next()?.0.clone();
            with.next().is_none().then_some(first)
        });
        match &size {
            Some(size) if !self.taken.is_empty() && !self.taken.contains(size) => {
                let taken: Vec<&str> = self.taken.iter().map(String::as_str).collect();
                let taken = taken.join(", ");
                Err(format!(
                    "rows of {size}; this import uses {taken} (--size {size} imports these)"
                ))
            }
            Some(size) if self.taken.len() > 1 => {
                Ok((Some(size.clone()), format!("{size}.{target}")))
            }
            _ => Ok((size, target.to_owned())),
        }
    }
}

/// True if a table of metrics tells its size. A summary covers several reports, so
/// its sizes count only if nothing else tells one.
fn tables_have_sizes(sources: &InsertSources) -> bool {
    let tables = sources.sums.iter().chain(&sources.tables).chain(&sources.merged);
    let mut tables = tables.chain(&sources.relative);
    tables
        .any(|(text, table)| table.rows.iter().any(|row| size_of(&row.tag, text.path()).is_some()))
}

/// `20m` of the tag `20m.my5649.cy8`, the file `24_03_17.30m.metrics.tsv` or its folders.
pub(crate) fn size_of(tag: &str, path: &Path) -> Option<String> {
    if let (Some(size), _) = split_size(tag) {
        return Some(size.to_owned());
    }
    // Higher folders are unrelated to the results.
    let near = path.components().rev().take(3);
    let names = near.map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.into_iter().find_map(|name| {
        let mut parts = name.split(['.', '_', '-']);
        parts.find(|part| split_size(&format!("{part}.")).0.is_some()).map(str::to_owned)
    })
}

/// The number of rows for a size: `20m` is 20 million.
pub(crate) fn rows(size: &str) -> Option<u64> {
    size.strip_suffix('m')?.parse::<u64>().ok()?.checked_mul(1_000_000)
}

// Finds the files of a published Insert Benchmark result in folders.

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
    /// Files that were left out.
    pub notices: Vec<Notice>,
}

impl InsertSources {
    /// True if the files have ratios of rates but no rates.
    pub(crate) fn only_ratios(&self) -> bool {
        let rates = self.sums.len() + self.tables.len() + self.merged.len();
        let tables = self.summaries.iter().flat_map(|(_, tables)| tables);
        rates == 0 && tables.into_iter().all(|table| table.kind == SummaryKind::Relative)
    }

    /// Counts the cells of all tables.
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
        tables + self.histograms.len() + self.summaries.len()
    }
}

/// Searches files and folders.
///
/// # Errors
///
/// A file is unreadable or damaged; a named file has no known form; a folder has no such file; the
/// steps of a table are unknown.
pub(crate) fn find(paths: &[PathBuf], steps: &[String]) -> Result<InsertSources> {
    let mut sources = InsertSources::default();
    for path in paths {
        let before = sources.count();
        if path.is_dir() {
            take_folder(path, steps, &mut sources)?;
            if sources.count() == before {
                let why = "it holds no rows of metrics (header `ips qps … tag`), no histogram and \
                           no summary";
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

fn take_folder(folder: &Path, steps: &[String], sources: &mut InsertSources) -> Result<()> {
    let mut left = Leftovers::default();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            // Folders that the report's scripts make beside the sums.
            let of_report = ["res.", "rt.", "sum."].iter().any(|prefix| name.starts_with(prefix));
            if of_report {
                take_folder(&path, steps, sources)?;
            } else {
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
fn take_text(text: Text, steps: &[String], sources: &mut InsertSources) -> Result<bool> {
    if is_histogram(&text) {
        let mut rows = parse_histogram(&text)?;
        let (step, op) = step_and_op(text.path());
        for row in &mut rows {
            row.step = row.step.take().or_else(|| step.clone());
            row.op = row.op.take().or_else(|| op.clone());
        }
        sources.histograms.push((text, rows));
        return Ok(true);
    }
    if is_summary(&text) {
        let tables = parse_summary(&text)?;
        sources.summaries.push((text, tables));
        return Ok(true);
    }
    if !is_metrics(&text) {
        return Ok(false);
    }
    let mut table = parse_metrics(&text)?;
    let name = text.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let by_row = table.rows.iter().all(|row| row.step.is_some());
    if is_relative(&text) {
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
fn number_steps(text: &Text, table: &mut MetricsTable, asked: &[String]) -> Result<()> {
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

#[cfg(test)]
mod tables_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<MetricsTable> {
        parse_metrics(&Text::of(Path::new("o.sum"), text))
    }

    const SUM: &str = "ips\tqps\trps\trpq\tmaxop\tp50\ttag\n\
        122699\t0\t1238.5\t0.009\t0.098\tNA\t20m.my5649.cy8\n\
        76923\t0\t0.0\t0.000\t0.045\tNA\t20m.my8027.cy8\n";

    #[test]
    fn rows_are_merged_and_divided() {
        let table = of(SUM).unwrap();
        assert_eq!(merged(&table.rows[0]), "122699\t0\t1238\t0.009\t0.098\tNA\tmy5649.cy8");
        let relative = relative_rows(&table);
        assert_eq!(relative.len(), 1);
        assert_eq!(relative[0].1, "0.63\t1\t0.00\t0.00\t0.46\tNA\t20m.my8027.cy8");
        let groups = of(&SUM.replace("\n76923", "\n-\n76923")).unwrap();
        assert_eq!(relative_rows(&groups), []);
        assert_eq!(of(&SUM.replace('\n', "\r\n\r\n")).unwrap().rows.len(), 2);
    }

    #[test]
    fn steps_come_from_a_column_or_a_line() {
        let column = "step\tips\ttag\nl.i0\t1\ta\n";
        assert_eq!(of(column).unwrap().rows[0].step.as_deref(), Some("l.i0"));
        let lines = "\nl.i0\nips\ttag\n1\ta\n2\tb\n\nl.x\nips\ttag\n3\ta\n";
        let table = of(lines).unwrap();
        let steps: Vec<_> = table.rows.iter().map(|row| row.step.as_deref().unwrap()).collect();
        assert_eq!(steps, ["l.i0", "l.i0", "l.x"]);
        assert_eq!(relative_rows(&table).len(), 1);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1\t2\ta\n", "line 1: a row before the header");
        check(&SUM.replace("\t0.045", ""), "line 3: 6 cells for 7 columns");
        check(
            &SUM.replace("0.045", "slow"),
            "line 3, column 5: `slow` under `maxop` is not a number",
        );
        check("ips\tips\ttag\n", "line 1: two columns have the name `ips`");
        check("ips\ttag\n", "line 1: the file ends here");
        check(
            &SUM.replace("0.045", "-0.045"),
            "line 3, column 5: `-0.045` under `maxop` is below zero",
        );
        for bad in ["inf", "-0", "1e24", "nan"] {
            check(&SUM.replace("0.045", bad), &format!("line 3, column 5: `{bad}` under `maxop`"));
        }
        let cut = SUM.trim_end().strip_suffix("8027.cy8").unwrap();
        check(&format!("{SUM}{}", cut.lines().last().unwrap()), "line 4: the file is truncated");
        check(&format!("{SUM}10582"), "line 4: 1 cell for 7 columns; is the line truncated?");
    }

    #[test]
    fn sizes_are_split_from_tags() {
        assert_eq!(split_size("20m.my5649.cy8"), (Some("20m"), "my5649.cy8"));
        assert_eq!(split_size("my5649.cy8"), (None, "my5649.cy8"));
        assert_eq!(split_size("m.x"), (None, "m.x"));
        assert_eq!(split_size("ém.x"), (None, "ém.x"));
    }
}

#[cfg(test)]
mod summary_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<Vec<SummaryTable>> {
        parse_summary(&Text::of(Path::new("summary.txt"), text))
    }

    #[test]
    fn tables_are_read() {
        let text = "# as published\nabs:20m.my\tl.i0\tq100.1\nmy1\t122699:g\t6737:y\n\
            rel:20m.my\tl.i0\nmy1\t1.00\n";
        let tables = of(text).unwrap();
        assert_eq!((tables.len(), tables[1].kind), (2, SummaryKind::Relative));
        let cell = SummaryCell { printed: "6737".to_owned(), class: 'y' };
        assert_eq!(
            tables[0].rows[0],
            (
                3,
                "my1".to_owned(),
                vec![SummaryCell { printed: "122699".to_owned(), class: 'g' }, cell,]
            )
        );
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("my1\t1:g\n", "line 1: a row before the header");
        check("abs:x\tl.i0\nmy1\t1:q\n", "line 2, column 2: `1:q` has no class");
        check("abs:x\tl.i0\nmy1\t1:g\t2:g\n", "line 2: 2 cells for 1 column");
        check("abs:x\tl.i0\n", "line 1: the file ends here");
    }
}

#[cfg(test)]
mod sizes_tests {
    use super::*;

    #[test]
    fn sizes_are_told_by_tags_and_names() {
        let check = |tag: &str, path: &str, expected: Option<&str>| {
            assert_eq!(size_of(tag, Path::new(path)).as_deref(), expected, "{tag} {path}");
        };
        check("20m.my1", "500m/x", Some("20m"));
        check("my1", "a/24_03_17.30m.bee.inno.metrics.tsv", Some("30m"));
        check("my1", "2021-01.20m/res.pg/mrg.l.i0", Some("20m"));
        check("my1", "20m/a/b/mrg.l.i0", None);
        check("my1", "mem/mrg.l.i0", None);
        assert_eq!((rows("20m"), rows("99999999999999999m")), (Some(20_000_000), None));
    }
}
