//! Reads published tables of rates: `qps.abs` and `qps.rel` with a legend of columns (TSV and CSV),
//! and the blocks of 2021, one per microbenchmark.

use crate::cells::{self, Fault, Iostat, Kept, Vmstat, is_word, number};
use crate::format::Result;
use crate::published::{PrintedRatio, Published};
use crate::text::{METRICS_MAX, RATES_MAX, Row, Text, counted};
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_model::script::{StepParameters, StepPurpose};

/// A table of rates or ratios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateTable {
    /// The baseline in `Relative to:` of a table of ratios.
    pub baseline: Option<String>,
    /// Targets in the order of columns; empty if the table does not name them, and of blocks.
    pub targets: Vec<String>,
    /// A row per microbenchmark; of blocks, one per microbenchmark and target.
    pub rows: Vec<RateRow>,
}

/// A row of rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateRow {
    /// Line number, from 1.
    pub line: usize,
    /// Label of the microbenchmark: `point-query_range=100`.
    pub step: String,
    /// The target of a row of blocks.
    pub target: Option<String>,
    /// Cells as printed: one per target, in blocks one per number of clients.
    pub cells: Vec<String>,
    /// Column number of the first cell, from 1: the name is last in TSV, first in CSV.
    pub first: usize,
    /// The author's remark after the label: `-> 10.4.8, col4`.
    pub remark: String,
}

/// A cell with all that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateCell<'a> {
    pub line: usize,
    pub step: &'a str,
    pub target: &'a str,
    /// The column of blocks, from 0.
    pub column: usize,
    pub printed: &'a str,
}

impl RateRow {
    /// Its cells.
    pub(super) fn cells<'a>(&'a self, targets: &'a [String]) -> Vec<RateCell<'a>> {
        let cell = |(place, printed): (usize, &'a String)| {
            let (target, column) = match &self.target {
                Some(target) => (target, place),
                None => (targets.get(place)?, 0),
            };
            Some(RateCell { line: self.line, step: &self.step, target, column, printed })
        };
        self.cells.iter().enumerate().filter_map(cell).collect()
    }
}

impl RateTable {
    /// All cells.
    pub(super) fn cells(&self) -> impl Iterator<Item = RateCell<'_>> {
        self.rows.iter().flat_map(|row| row.cells(&self.targets))
    }

    /// True for the blocks of 2021: a row per target, a column per number of clients.
    pub(super) fn is_blocks(&self) -> bool {
        self.rows.first().is_some_and(|row| row.target.is_some())
    }

    /// True for ratios: the head says so, or the first target is 1.00 in all rows. In some
    /// archives, warm-up steps have words. Blocks hold ratios if all have two decimals, unlike
    /// rates except those of a scan.
    pub fn is_relative(&self) -> bool {
        if self.is_blocks() {
            ratios_only(self.rows.iter().filter(|row| row.step != LOAD))
        } else {
            self.baseline.is_some() || self.has_ones()
        }
    }

    /// True if the first target is the baseline of ratios: 1.00 in all rows.
    pub fn has_ones(&self) -> bool {
        let mut first = self.rows.iter().filter_map(|row| row.cells.first());
        let ones = first.clone().filter(|cell| *cell == "1.00").count();
        let baseline = first.all(|cell| cell == "1.00" || cell == "1" || is_word(cell));
        ones > 0 && baseline
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0)
    }

    /// Number of cells, and of remarks beside them.
    pub(super) fn count(&self) -> usize {
        let of_row = |row: &RateRow| row.cells.len() + usize::from(!row.remark.is_empty());
        self.rows.iter().map(of_row).sum()
    }
}

/// True if all cells have the form of ratios.
pub(super) fn ratios_only<'a>(rows: impl Iterator<Item = &'a RateRow>) -> bool {
    let mut cells = rows.flat_map(|row| &row.cells).peekable();
    let ratio = |cell: &String| {
        let decimals = cell.split_once('.').map(|(_, decimals)| decimals.len());
        decimals == Some(2) || cell == "inf" || cell == "1"
    };
    cells.peek().is_some() && cells.all(ratio)
}

/// True if the text begins as a table with a legend.
pub fn is_table(text: &Text) -> bool {
    let first = text.first().trim_start();
    first.starts_with("Relative to:") || legend(first).is_some()
}

/// True if the text begins with blocks of rates.
pub fn is_blocks(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
    let head = lines.next().is_some_and(|line| file_name(line).is_some());
    let of_met = ["---", "cpu/o", "base1 "];
    head && lines.next().is_some_and(|line| !of_met.iter().any(|begin| line.starts_with(begin)))
}

/// Reads `col-1 : DIR` of tables since 2023, or the earlier `db_1 =TAB DIR`.
fn legend(line: &str) -> Option<(usize, &str)> {
    let (name, target) = match line.split_once(" : ") {
        Some((name, target)) => (name.strip_prefix("col-")?, target),
        None => {
            let (name, target) = line.split_once('=')?;
            (name.strip_prefix("db_")?, target)
        }
    };
    let target = target.trim();
    let number = name.trim().parse().ok()?;
    (!target.is_empty()).then_some((number, target))
}

/// Reads a table with a legend.
///
/// # Errors
///
/// A legend with a gap, a row with a wrong number of cells, without a name or without a number, a
/// negative rate, a repeated microbenchmark, a table without rows.
pub fn parse_table(text: &Text) -> Result<RateTable> {
    text.at_most(RATES_MAX)?;
    let mut table = RateTable::default();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || is_heading(trimmed, table.rows.is_empty()) {
            continue;
        }
        if let Some(baseline) = trimmed.strip_prefix("Relative to:") {
            table.baseline = Some(baseline.trim().to_owned());
        } else if let Some((number, target)) = legend(trimmed) {
            if number != table.targets.len() + 1 {
                let why = format!("column {number} follows column {}", table.targets.len());
                return Err(text.malformed(line, why));
            }
            if table.targets.iter().any(|other| other == target) {
                return Err(text.malformed(line, format!("`{target}` has two columns")));
            }
            table.targets.push(target.to_owned());
        } else {
            let row = rate_row(text, line, row, table.targets.len())?;
            push_row(text, row, &mut table)?;
        }
    }
    if table.rows.is_empty() {
        Err(text.cut_short("the first row of rates"))
    } else {
        checked(text, table)
    }
}

/// Refuses cells that are neither a number nor a word: `-1`, `-0`, 10^24, `inf` except for a ratio
/// to zero; and a last row with an incomplete name.
fn checked(text: &Text, table: RateTable) -> Result<RateTable> {
    let relative = table.is_relative();
    for row in &table.rows {
        for (place, cell) in row.cells.iter().enumerate() {
            let head = row.target.as_ref().or(table.targets.get(place)).map_or("", String::as_str);
            check_cell(text, row.line, row.first + place, head, cell, relative)?;
        }
    }
    if table.is_blocks() {
        return Ok(table);
    }
    if let Some((last, others)) = table.rows.split_last() {
        let ranges = others.iter().all(|row| row.step.contains("_range="));
        let cut = ranges && !others.is_empty() && !last.step.contains("_range=");
        if cut && !text.is_whole() && last.line == text.len() {
            let why = format!(
                "the file is truncated within a row name: `{}` has no `_range=`, unlike all others",
                last.step
            );
            return Err(text.malformed(last.line, why));
        }
    }
    Ok(table)
}

/// A mistyped folder gives words in published tables; a step without a number fails.
fn check_cell(
    text: &Text,
    line: usize,
    column: usize,
    head: &str,
    cell: &str,
    relative: bool,
) -> Result<()> {
    match cells::parse_number(cell) {
        Ok(_) | Err(Fault::Word) => Ok(()),
        Err(Fault::Infinite) if relative && cell == "inf" => Ok(()),
        Err(fault) => Err(text.cell_fault(line, column, head, cell, fault)),
    }
}

/// True for heads (`col-1 col-2 …`, or the author's own above the first row), and for the author's
/// headings between rows: `- point queries`, `== WRITES ==`. A name without numbers is none: its row
/// was cut.
fn is_heading(line: &str, first: bool) -> bool {
    if line.starts_with("- ") || line.starts_with('#') {
        return true;
    }
    let is_legend = legend(line).is_some() || line.starts_with("Relative to:");
    if is_legend || line.contains("_range=") {
        return false;
    }
    let mut cells = line.split(['\t', ',']).map(str::trim).filter(|cell| !cell.is_empty());
    let words = cells.clone().all(is_word);
    if cells.any(|cell| cell.starts_with("col-") || cell.starts_with("db_")) {
        return words;
    }
    if line.contains(['\t', ',']) {
        return words && first;
    }
    // Without a separator it is no row, unless it was cut within the first number or the name.
    let decorated = !line.starts_with(char::is_alphanumeric) || line.ends_with(':');
    let is_name = line.contains(|c: char| c.is_lowercase()) && !line.contains(' ');
    is_word(line) && (decorated || !is_name)
}

/// Reads a row; the name is last in TSV, first in CSV.
fn rate_row(text: &Text, line: usize, row: &str, columns: usize) -> Result<RateRow> {
    let separator = if row.contains('\t') { '\t' } else { ',' };
    let row = row.trim_end().trim_end_matches(',');
    let mut cells: Vec<String> = row.split(separator).map(|cell| cell.trim().to_owned()).collect();
    if columns == 0 {
        return Err(text.malformed(line, "a row before the legend (`col-1 : TARGET`)"));
    }
    // Tabs or blanks separate a remark from the name.
    let mut remark = remarks_in(&mut cells, columns, separator);
    if separator == '\t' && cells.len() > columns + 1 && is_word(&cells[columns]) {
        let beside = cells.split_off(columns + 1).join(" ");
        remark = format!("{remark} {beside}").trim().to_owned();
    }
    if cells.len() != columns + 1 {
        let name = if separator == '\t' { cells.last() } else { cells.first() };
        let named = name.is_some_and(|name| is_word(name));
        let values = cells.len() - usize::from(named);
        let (values, columns) = (counted(values, "value"), counted(columns, "column"));
        let why = format!("{values} for {columns}; is the line truncated?");
        return Err(text.malformed(line, why));
    }
    let name = match separator {
        '\t' => cells.pop().unwrap_or_default(),
        _ => cells.remove(0),
    };
    let (step, after) = match name.split_once(char::is_whitespace) {
        Some((step, after)) => (step.to_owned(), after.trim()),
        None => (name, ""),
    };
    if !after.is_empty() {
        remark = format!("{after} {remark}").trim().to_owned();
    }
    if step.is_empty() || !is_word(&step) {
        return Err(text.malformed(line, "the row has no name of a microbenchmark"));
    }
    // In some archives, warm-up steps have words.
    let words = cells.iter().all(|cell| is_word(cell));
    if words && !step.contains(".warm") {
        return Err(text.malformed(line, "the row has no number"));
    }
    let first = if separator == '\t' { 1 } else { 2 };
    Ok(RateRow { line, step, target: None, cells, first, remark })
}

/// Takes remarks beside values off: `0.97 noisy` and `0.97*` are 0.97, with the remarks
/// `col-2: noisy` and `col-2: *`. What may change the number (`12k`, `1,5`) is no remark.
fn remarks_in(cells: &mut [String], columns: usize, separator: char) -> String {
    const MARKS: &[char] = &['*', '~', '?', '!', '(', ')', '[', ']', '<', '>', '=', '#', '^', '†'];
    let is_mark = |c: char| c.is_whitespace() || MARKS.contains(&c);
    let first = usize::from(separator != '\t');
    let mut remarks = Vec::new();
    for (place, cell) in cells.iter_mut().skip(first).take(columns).enumerate() {
        let begin = cell.trim_start_matches(['*', '~']);
        let Some((value, _)) = begin.split_once(is_mark).or(Some((begin, ""))) else { continue };
        let words = cell.replacen(value, "", 1);
        if cells::number(value).is_some() && !words.is_empty() && is_word(&words) {
            remarks.push(format!("col-{}: {}", place + 1, words.trim()));
            *cell = value.to_owned();
        }
    }
    remarks.join("; ")
}

/// The columns that an author's remark names: 7 for `-> 10.5.29, col7`.
pub fn columns_in(remark: &str) -> Vec<usize> {
    let words = remark.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words
        .filter_map(|word| word.strip_prefix("col")?.trim_start_matches('-').parse().ok())
        .collect()
}

/// True if the text begins with rates whose columns have no names: CSV of the published scripts, or
/// TSV without its head.
pub fn is_unnamed(text: &Text) -> bool {
    let first = text.first();
    let columns = columns_of(first);
    columns > 0 && rate_row(text, 1, first, columns).is_ok_and(|row| row.step.contains("_range="))
}

/// The number of cells in a row besides its name.
fn columns_of(row: &str) -> usize {
    let row = row.trim_end().trim_end_matches(',');
    if row.contains('\t') {
        row.split('\t').take_while(|cell| !cell.contains("_range=")).count()
    } else {
        row.split(',').count() - 1
    }
}

/// Reads such a table; its first row has the number of columns.
///
/// # Errors
///
/// As [`parse_table`].
pub fn parse_unnamed(text: &Text) -> Result<RateTable> {
    text.at_most(RATES_MAX)?;
    let mut table = RateTable::default();
    let columns = columns_of(text.first());
    for (line, row) in text.lines() {
        if row.trim().is_empty() || is_heading(row.trim(), false) {
            continue;
        }
        push_row(text, rate_row(text, line, row, columns)?, &mut table)?;
    }
    checked(text, table)
}

fn push_row(text: &Text, row: RateRow, table: &mut RateTable) -> Result<()> {
    if let Some(other) = table.rows.iter().find(|other| other.step == row.step) {
        let why = format!("`{}` already has a row, line {}", row.step, other.line);
        return Err(text.malformed(row.line, why));
    }
    table.rows.push(row);
    Ok(())
}

/// Reads blocks: a file name, lines `v1 TAB v2 … TAB dir`, a blank line.
///
/// # Errors
///
/// A line of values before a head or without a target, a varying number of values in a block, a
/// repeated target, a negative rate, a block without lines, a file without blocks.
pub fn parse_blocks(text: &Text) -> Result<RateTable> {
    text.at_most(RATES_MAX)?;
    let mut rows: Vec<RateRow> = Vec::new();
    // The line and step of the last head, and the number of rows before it.
    let mut head: Option<(usize, String, usize)> = None;
    let mut open = false;
    let is_empty = |head: &Option<(usize, String, usize)>, rows: &[RateRow]| {
        head.as_ref().filter(|(_, _, before)| *before == rows.len()).map(|(line, ..)| *line)
    };
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() {
            open = false;
            continue;
        }
        if let Some(name) = file_name(trimmed) {
            if let Some(line) = is_empty(&head, &rows) {
                return Err(text.malformed(line, "a block without a line of rates"));
            }
            head = Some((line, name.step, rows.len()));
            open = true;
            continue;
        }
        let Some((_, step, before)) = head.as_ref().filter(|_| open) else {
            return Err(text.malformed(line, "expected the file name of a microbenchmark (sb.…)"));
        };
        let row = block_row(text, line, trimmed, step)?;
        let targets = rows.iter().filter_map(|row| row.target.as_deref());
        text.check_label(line, row.target.as_deref().unwrap_or_default(), targets)?;
        let block = &rows[*before..];
        if let Some(first) = block.first().filter(|first| first.cells.len() != row.cells.len()) {
            let rates = counted(row.cells.len(), "rate");
            let why = format!("{rates}, but the line above has {}", first.cells.len());
            return Err(text.malformed(line, why));
        }
        if let Some(target) = row.target.as_ref()
            && block.iter().any(|other| other.target == row.target)
        {
            return Err(text.malformed(line, format!("`{target}` is already in this block")));
        }
        rows.push(row);
    }
    if rows.is_empty() || is_empty(&head, &rows).is_some() {
        return Err(text.cut_short("the rates of the last block"));
    }
    checked(text, RateTable { rows, ..RateTable::default() })
}

/// A line of a block. In some archives, warm-up steps have a word instead of a number.
fn block_row(text: &Text, line: usize, row: &str, step: &str) -> Result<RateRow> {
    let mut cells: Vec<String> = row.split('\t').map(|cell| cell.trim().to_owned()).collect();
    let target = cells.pop().filter(|target| !target.is_empty() && is_word(target));
    if cells.is_empty() || target.is_none() {
        return Err(text.malformed(line, "expected rates, then the target, separated by tabs"));
    }
    let (step, remark) = (step.to_owned(), String::new());
    Ok(RateRow { line, step, target, cells, first: 1, remark })
}

// Parses names of microbenchmarks in published files, and groups them as the reports do.

/// The parts of a file name or head: `sb.met.point-query.pre.range100.pk1.dop40`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// The kind of measurement: `met`, `o`, `r.qps`, `vm`; `prepare.o` for the load.
    pub kind: String,
    /// The step as in labels of tables: `point-query.pre_range=100`; [`LOAD`] for the load.
    pub step: String,
    /// Clients, if the name has them.
    pub clients: Option<u32>,
}

/// The step of loading and indexing.
pub const LOAD: &str = "load";

/// Kinds of measurements, the longest first.
const KINDS: [&str; 30] = [
    "prepare.met", "prepare.vm", "prepare.io", "prepare.ps", "prepare.o", "r.qps", "r.trx",
    "r.rtavg", "r.rtmax", "r.rt95", "time", "espl", "pgid", "perf", "pmp", "pgs", "pgi", "mem",
    "top", "met", "lsh", "lsa", "sei", "vm", "io", "ps", "sz", "es", "ls", "o",
];

/// Parses a name with or without `.gz`. `None` for another form.
pub fn file_name(name: &str) -> Option<FileName> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let rest = name.strip_prefix("sb.")?;
    let (kind, rest) =
        KINDS.iter().find_map(|kind| Some((kind, rest.strip_prefix(kind)?.strip_prefix('.')?)))?;
    let (rest, clients) = match rest.rsplit_once(".dop") {
        Some((rest, clients)) => (rest, Some(clients.parse().ok()?)),
        None => (rest, None),
    };
    let rest = rest.strip_suffix(".pk1").or_else(|| rest.strip_suffix(".pk0")).unwrap_or(rest);
    let (test, range) = rest.rsplit_once(".range")?;
    if test.is_empty() || range.is_empty() || !range.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let step = if kind.starts_with("prepare.") {
        LOAD.to_owned()
    } else {
        format!("{test}_range={range}")
    };
    Some(FileName { kind: (*kind).to_owned(), step, clients })
}

/// The step of a label, which may be the name of a file.
pub(super) fn step(label: &str) -> String {
    file_name(label).map_or_else(|| label.to_owned(), |name| name.step)
}

/// True for the load, under whatever condition.
pub fn is_load(step: &str) -> bool {
    step.strip_prefix(LOAD).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The group of a step by the published rule on the text of its label: point, then write, the rest
/// is range.
pub fn group(step: &str) -> Group {
    if is_load(step) {
        Group::Load
    } else if step.contains("point") {
        Group::Point
    } else if ["delete", "insert", "update", "write"].iter().any(|word| step.contains(word)) {
        Group::Write
    } else {
        Group::Range
    }
}

/// The parameters that follow from the name of a published step.
pub(super) fn parameters(step: &str) -> StepParameters {
    let purpose = if step.contains(".warm") {
        StepPurpose::Warming
    } else if step.contains(".pre") {
        StepPurpose::BeforeWrites
    } else {
        StepPurpose::Result
    };
    StepParameters { purpose, ..StepParameters::default() }
}

/// True for the step whose rate is in thousands of rows per second.
pub fn counts_rows(step: &str) -> bool {
    step == "scan" || step.starts_with("scan.") || step.starts_with("scan_")
}

// Reads published tables of hardware metrics (`o.met`): absolute values and ratios to the first
// target, in a block per microbenchmark.

/// One microbenchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetBlock {
    /// Step and clients, from the name in the head.
    pub name: FileName,
    /// Line number of the head.
    pub line: usize,
    /// Heads of the columns except the last: `cpu/o`, `cs/o`, …, `o/s`.
    pub heads: Vec<String>,
    /// Absolute values: one row per target.
    pub absolute: Vec<MetRow>,
    /// Ratios: one row per target except the first.
    pub relative: Vec<MetRow>,
}

/// A row of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetRow {
    /// Line number, from 1.
    pub line: usize,
    /// The target.
    pub target: String,
    /// Cells as printed.
    pub cells: Vec<String>,
}

/// The start of the line in a table that compares two numbers of clients as targets: it follows the
/// head of a block and names the first target: `base1 sb.met.x.dop1 and base2 sb.met.x.dop48`.
const PAIR: &str = "base1 ";

/// True if the text begins with the head of such a table.
pub fn is_met(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim()).filter(|line| !line.is_empty());
    lines.next().is_some_and(|line| file_name(line).is_some())
        && lines.next().is_some_and(|line| {
            let heads = ["---", "cpu/o", PAIR];
            heads.iter().any(|begin| line.starts_with(begin))
        })
}

/// Heads of columns with metrics.
pub const HEADS: [&str; 6] = ["cpu/o", "cs/o", "r/o", "rKB/o", "wKB/o", "o/s"];

/// The metric of a column, if one has the same unit.
pub fn metric(head: &str) -> Option<Metric> {
    Some(match head {
        "cpu/o" => Metric::CpuPerOp,
        "cs/o" => Metric::ContextSwitchesPerOp,
        "r/o" => Metric::ReadsPerOp,
        "rKB/o" => Metric::ReadKbPerOp,
        "wKB/o" => Metric::WriteKbPerOp,
        "o/s" => Metric::Rate,
        _ => return None,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Absolute,
    Relative,
}

/// Reads all blocks.
///
/// # Errors
///
/// A line outside a block or with a wrong number of cells, an invalid absolute value, a block
/// without values.
pub fn parse_met(text: &Text) -> Result<Vec<MetBlock>> {
    text.at_most(METRICS_MAX)?;
    let mut blocks: Vec<MetBlock> = Vec::new();
    let mut part = Part::Absolute;
    for (line, row) in text.rows() {
        let trimmed = row.trim();
        if let Some(name) = file_name(trimmed) {
            check_whole(text, blocks.last())?;
            let empty = Vec::new;
            blocks.push(MetBlock {
                name,
                line,
                heads: Vec::new(),
                absolute: empty(),
                relative: empty(),
            });
            part = Part::Absolute;
            continue;
        }
        let Some(block) = blocks.last_mut() else {
            return Err(text.malformed(line, "expected the file name of a microbenchmark (sb.…)"));
        };
        match trimmed {
            _ if trimmed.starts_with(PAIR) && block.heads.is_empty() => block.name.clients = None,
            "--- absolute" => part = Part::Absolute,
            _ if trimmed.starts_with("--- relative to first") => part = Part::Relative,
            _ if trimmed.starts_with("---") => {
                return Err(text.malformed(line, format!("`{trimmed}` does not belong to a block")));
            }
            _ => take_line(text, line, trimmed, part, block)?,
        }
    }
    if blocks.is_empty() {
        return Err(text.cut_short("the first block"));
    }
    check_whole(text, blocks.last())?;
    Ok(blocks)
}

fn check_whole(text: &Text, block: Option<&MetBlock>) -> Result<()> {
    match block {
        Some(block) if block.absolute.is_empty() => {
            Err(text.malformed(block.line, "a block without absolute values"))
        }
        _ => Ok(()),
    }
}

fn take_line(text: &Text, line: usize, row: &str, part: Part, block: &mut MetBlock) -> Result<()> {
    // Two tabs separate the first two columns.
    let mut cells: Vec<String> =
        row.split('\t').map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect();
    let last = cells.pop().unwrap_or_default();
    if cells.iter().any(|cell| cell == "o/s") && last == "dbms" {
        if !block.absolute.is_empty() && block.heads != cells {
            return Err(text.malformed(line, "the header differs from that of the values above"));
        }
        block.heads = cells;
        return Ok(());
    }
    if block.heads.is_empty() {
        return Err(text.malformed(line, "values before the header (`cpu/o … dbms`)"));
    }
    text.check_width(line, cells.len(), block.heads.len())?;
    for (place, (head, cell)) in block.heads.iter().zip(&cells).enumerate() {
        // A ratio to zero.
        if part == Part::Absolute || cell != "inf" {
            text.number(line, place + 1, head, cell)?;
        }
    }
    text.check_label(line, &last, block.absolute.iter().map(|row| row.target.as_str()))?;
    let rows = if part == Part::Absolute { &mut block.absolute } else { &mut block.relative };
    if rows.iter().any(|other| other.target == last) {
        return Err(text.malformed(line, format!("`{last}` is already in this block")));
    }
    rows.push(MetRow { line, target: last, cells });
    Ok(())
}

/// Compares ratios with the absolute values of their block.
pub fn check_met(text: &Text, block: &MetBlock, published: &mut Published) {
    let Some(baseline) = block.absolute.first() else { return };
    let cells = block.relative.len() * block.heads.len();
    let mut wrong = 0;
    for relative in &block.relative {
        let (line, target) = (relative.line, &relative.target);
        let Some(absolute) = block.absolute.iter().find(|row| row.target == *target) else {
            let what = format!("`{target}` has a ratio but no absolute values");
            published.mismatch(text.path(), line, what);
            wrong += 1;
            continue;
        };
        for (place, head) in block.heads.iter().enumerate() {
            let values = [&absolute.cells[place], &baseline.cells[place]].map(|cell| number(cell));
            let [Some(value), Some(of_baseline)] = values else { continue };
            let printed = &relative.cells[place];
            let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
            let what = format_args!("{head} of {target} relative to {}", baseline.target);
            wrong += usize::from(!published.follows(&ratio, what));
        }
    }
    published.cells.keep(text.path(), Kept::Compared, cells);
    let agree = cells.saturating_sub(wrong);
    published.check("ratios of hardware metrics from absolute values", agree, cells);
}

// Reads `sb.met` files, which published scripts compute from vmstat, iostat and a rate; and
// computes them again.

/// Cells of an sb.met file by head, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SbMet {
    /// The block of iostat: `samp r/s rMB/s w/s wMB/s r/o rKB/o wKB/o o/s`.
    pub io: Row,
    /// The block of vmstat: `samp cs/s cpu/s cs/o cpu/o`.
    pub vm: Row,
    /// Line numbers of the cells of both blocks, from 1; 0 for a missing block.
    pub lines: [usize; 2],
}

impl SbMet {
    /// A cell as a number.
    pub fn value(&self, head: &str) -> Option<f64> {
        let cells = self.io.iter().skip(1).chain(self.vm.iter().skip(1));
        cells.filter(|(name, _)| name == head).find_map(|(_, cell)| number(cell))
    }

    /// The rate that all values were divided by, as printed.
    pub fn rate(&self) -> Option<&str> {
        self.io.iter().find(|(name, _)| name == "o/s").map(|(_, cell)| cell.as_str())
    }
}

/// Heads of the block of iostat in order.
const IO_HEADS: [&str; 9] =
    ["samp", "r/s", "rMB/s", "w/s", "wMB/s", "r/o", "rKB/o", "wKB/o", "o/s"];
const VM_HEADS: [&str; 5] = ["samp", "cs/s", "cpu/s", "cs/o", "cpu/o"];

/// True for a head of these blocks.
pub fn is_head(head: &str) -> bool {
    IO_HEADS.contains(&head) || VM_HEADS.contains(&head)
}

/// Reads a file: per block a line of heads that begins with `samp`, then a line of cells.
///
/// # Errors
///
/// A line is neither, or the file lacks both blocks.
pub fn parse_sb_met(text: &Text) -> Result<SbMet> {
    let mut met = SbMet::default();
    let mut heads: Option<Vec<&str>> = None;
    for (line, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.is_empty() || (heads.is_none() && cells[0].starts_with("iostat,")) {
            continue;
        }
        match heads.take() {
            None if cells[0] == "samp" => heads = Some(cells),
            None => {
                return Err(text.malformed(line, "expected a header that begins with samp"));
            }
            Some(names) => {
                let of_vmstat = names.contains(&"cs/s");
                met.lines[usize::from(of_vmstat)] = line;
                let block = if of_vmstat { &mut met.vm } else { &mut met.io };
                *block = text.numbers_by_head(line, &names, &cells)?;
            }
        }
    }
    if met.io.is_empty() && met.vm.is_empty() || heads.is_some() {
        return Err(text.cut_short("the numbers of both blocks"));
    }
    Ok(met)
}

/// The block of iostat as the published script prints it, from means, number of lines and the rate
/// as text. `None` unless the rate is positive.
pub fn io_block(mean: &Iostat, lines: usize, rate: &str) -> Option<Row> {
    let ops = number(rate).filter(|ops| *ops > 0.0)?;
    let cells = [
        lines.to_string(),
        format!("{:.1}", mean.reads),
        format!("{:.1}", mean.read_kb / 1024.0),
        format!("{:.1}", mean.writes),
        format!("{:.1}", mean.write_kb / 1024.0),
        format!("{:.3}", mean.reads / ops),
        format!("{:.3}", mean.read_kb / ops),
        format!("{:.3}", mean.write_kb / ops),
        rate.to_owned(),
    ];
    Some(IO_HEADS.iter().map(|head| (*head).to_owned()).zip(cells).collect())
}

/// The block of vmstat as the published script prints it.
pub fn vm_block(mean: &Vmstat, samples: usize, rate: &str) -> Option<Row> {
    let ops = number(rate).filter(|ops| *ops > 0.0)?;
    let cpu = mean.us + mean.sy;
    let cells = [
        samples.to_string(),
        format!("{:.0}", mean.cs),
        format!("{cpu:.1}"),
        format!("{:.3}", mean.cs / ops),
        format!("{:.6}", cpu / ops),
    ];
    Some(VM_HEADS.iter().map(|head| (*head).to_owned()).zip(cells).collect())
}

/// Cells in which two blocks differ: head, published, computed.
pub fn differences(
    published: &[(String, String)],
    again: &[(String, String)],
) -> Vec<(String, String, String)> {
    let find = |head: &str| published.iter().find(|(name, _)| name == head);
    let pairs = again.iter().filter_map(|(head, cell)| Some((head, cell, &find(head)?.1)));
    let differing = pairs.filter(|(_, again, published)| again != published);
    differing
        .map(|(head, again, published)| (head.clone(), published.clone(), again.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn text(text: &str) -> Text {
        Text::of(Path::new("qps"), text)
    }

    const TABLE: &str = "col-1 : x.a.pk1\ncol-2 : x.b.pk1\n\ncol-1\tcol-2\n\
        100\t90\tpoint-query_range=100\n\n7\tinnodb\tscan_range=100\t-> 10.4.8, col2\n";

    #[test]
    fn headings_and_remarks_of_the_author_are_no_values() {
        let text_of = "col-1 : x.a.pk1\ncol-2 : x.b.pk1\n\ncol-1\tcol-2\tpoint queries\n\
            100\t90 noisy disk\tpoint-query_range=100\n- scans\n7\t8\tscan_range=100\n";
        let table = parse_table(&text(text_of)).unwrap();
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].cells, ["100", "90"]);
        assert_eq!(table.rows[0].remark, "col-2: noisy disk");
        assert_eq!(columns_in(&table.rows[0].remark), [2]);
        let text_of = "col-1 : x.a.pk1\ncol-2 : x.b.pk1\n\nPG 15\tPG 16\tmicrobenchmark\nPOINTS\n\
            100*\t~90 (noisy)\tpoint-query_range=100\n--- scans ---\n7\t8?\tscan_range=100\n\
            == writes\nThen writes:\n5\t12k\tinsert_range=100\n";
        let table = parse_table(&text(text_of)).unwrap();
        let cells: Vec<&[String]> = table.rows.iter().map(|row| row.cells.as_slice()).collect();
        assert_eq!(cells, [["100", "90"], ["7", "8"], ["5", "12k"]]);
        assert_eq!(table.rows[0].remark, "col-1: *; col-2: ~ (noisy)");
    }

    #[test]
    fn tables_are_read_by_their_legend() {
        let table = parse_table(&text(TABLE)).unwrap();
        assert_eq!(table.targets, ["x.a.pk1", "x.b.pk1"]);
        assert_eq!(table.rows[0].cells, ["100", "90"]);
        assert_eq!((table.rows[1].step.as_str(), table.rows[1].line), ("scan_range=100", 7));
        assert_eq!(table.rows[1].remark, "-> 10.4.8, col2");
        assert_eq!(parse_table(&text(&TABLE.replace('\n', "\r\n"))).unwrap(), table);
        let csv = "Relative to: x.a\ncol-1 : x.b\n\nscan_range=100,0.90\nhot-points_range=1,1\n";
        let table = parse_table(&text(csv)).unwrap();
        assert_eq!(
            (table.baseline.as_deref(), table.rows[0].step.as_str()),
            (Some("x.a"), "scan_range=100")
        );
        let old =
            "db_1 =\tx.a\ndb_2 =\tx.b\n\ndb_1\tdb_2\n1.00\t1.02\tsb.r.qps.scan.range100.pk1\n";
        assert_eq!(parse_table(&text(old)).unwrap().targets, ["x.a", "x.b"]);
    }

    #[test]
    fn faults_of_tables_name_the_line() {
        let check = |content: &str, expected: &str| {
            let fault = parse_table(&text(content)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check(&TABLE[..TABLE.find("90").unwrap()], "line 5: 1 value for 2 columns");
        check("1\t2\tx_range=1\n", "line 1: a row before the legend");
        check("col-1 : a\ncol-3 : b\n", "line 2: column 3 follows column 1");
        check("col-1 : a\ncol-2 : a\n", "line 2: `a` has two columns");
        check("col-1 : a\n\nx\ty_range=1\n", "line 3: the row has no number");
        check("col-1 : a\n\n1\t2\n", "line 3: the row has no name");
        check("col-1 : a\n", "line 1: the file ends here");
        check("col-1 : a\n\n-1\tx_range=1\n", "line 3, column 1: `-1` under `a` is below zero");
        check("col-1 : a\n\n1\t2\tx_range=1\n", "line 3: 2 values for 1 column");
        check("col-1 : a\n1\tx_range=1\n2\tx_range=1\n", "line 3: `x_range=1` already has a row");
    }

    #[test]
    fn tables_that_somebody_edited_are_read() {
        let edited = "Relative to: a\ncol-1 : b\ncol-2 : c\n\n- point queries\ncol-1\tcol-2\n\
            0.99\t1.08\thot-points\n0.97\t1.01\tscan_range=100\t\t\t-> 10.5, make young\n\
            1.00\t1.26\tread-only_range=10\t\t\n";
        let table = parse_table(&text(edited)).unwrap();
        let steps: Vec<&str> = table.rows.iter().map(|row| row.step.as_str()).collect();
        assert_eq!(steps, ["hot-points", "scan_range=100", "read-only_range=10"]);
        assert_eq!(table.rows[1].remark, "-> 10.5, make young");
        assert_eq!((table.rows[2].line, table.rows[2].remark.as_str()), (9, ""));
        assert!(table.is_relative());
    }

    #[test]
    fn tables_without_names_of_columns_are_read() {
        let csv = "hot-points_range=100,76583,78407\nscan_range=100,5.242,5504,\n";
        assert!(is_unnamed(&text(csv)) && !is_table(&text(csv)));
        let table = parse_unnamed(&text(csv)).unwrap();
        assert_eq!((table.width(), table.is_relative()), (2, false));
        assert_eq!(table.rows[1].cells, ["5.242", "5504"]);
        let tsv = "1.00\t0.98\thot-points_range=100\t-> c\n1\tinf\tscan_range=100\n";
        assert!(is_unnamed(&text(tsv)));
        assert!(parse_unnamed(&text(tsv)).unwrap().is_relative());
        for other in ["date,1,2\n", "1\t2\tname\n", "x_range=1\n", "x_range=1,y\n", ""] {
            assert!(!is_unnamed(&text(other)), "{other}");
        }
        let cut = parse_unnamed(&text("a_range=1,1,2\nb_range=1,1\n")).unwrap_err().to_string();
        assert!(cut.contains("line 2: 1 value for 2 columns"), "{cut}");
    }

    #[test]
    fn a_word_in_a_step_that_warms_leaves_ratios_ratios() {
        let old = "db_1 =\tx.a\ndb_2 =\tx.b\n\ndb_1\tdb_2\nin\tin\tx.warm_range=1\n\
            1.00\t1.02\ta_range=1\n1\tinf\tb_range=1\n";
        assert!(parse_table(&text(old)).unwrap().is_relative());
        assert!(!parse_table(&text(TABLE)).unwrap().is_relative());
    }

    const BLOCKS: &str = "sb.prepare.o.point-query.warm.range100.pk1\n83333\tx.a\n84033\tx.b\n\n\
        sb.r.qps.point-query.pre.range100.pk1\n23662\t47107\tx.a\n24021\t48402\tx.b\n";

    #[test]
    fn blocks_are_read() {
        assert!(is_blocks(&text(BLOCKS)) && !is_table(&text(BLOCKS)) && is_table(&text(TABLE)));
        let blocks = parse_blocks(&text(BLOCKS)).unwrap();
        assert_eq!((blocks.rows.len(), blocks.rows[0].step.as_str()), (4, "load"));
        let row = &blocks.rows[3];
        let (line, target) = (row.line, row.target.as_deref());
        assert_eq!((line, target, &*row.cells.join(" ")), (7, Some("x.b"), "24021 48402"));
        assert!(!blocks.is_relative());
        let ratios = parse_blocks(&text("sb.r.qps.x.range1.pk1\n0.99\t1.00\tx.b\n")).unwrap();
        assert!(ratios.is_relative());
    }

    #[test]
    fn faults_of_blocks_name_the_line() {
        let check = |content: &str, expected: &str| {
            let fault = parse_blocks(&text(content)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1\tx.a\n", "line 1: expected the file name");
        check("sb.r.qps.x.range1.pk1\n1\t2\tx.a\n1\tx.b\n", "line 3: 1 rate, but the line above");
        check("sb.r.qps.x.range1.pk1\n17\n", "line 2: expected rates");
        check("sb.r.qps.x.range1.pk1\n\nsb.r.qps.y.range1.pk1\n1\ta\n", "line 1: a block without");
        check("sb.r.qps.x.range1.pk1\n", "line 1: the file ends here");
        check("sb.r.qps.x.range1.pk1\n1\ta\n2\ta\n", "line 3: `a` is already in this block");
        check("sb.r.qps.x.range1.pk1\n-1\ta\n", "line 2, column 1: `-1` under `a` is below zero");
    }

    #[test]
    fn names_are_taken_apart() {
        let check = |name: &str, kind: &str, step: &str, clients: Option<u32>| {
            let expected = FileName { kind: kind.to_owned(), step: step.to_owned(), clients };
            assert_eq!(file_name(name), Some(expected), "{name}");
        };
        check(
            "sb.met.point-query.pre.range100.pk1.dop40",
            "met",
            "point-query.pre_range=100",
            Some(40),
        );
        check("sb.r.qps.scan.range100.pk1", "r.qps", "scan_range=100", None);
        check("sb.o.read-only.range10000.pk0.dop1.gz", "o", "read-only_range=10000", Some(1));
        check("sb.prepare.o.point-query.warm.range100.pk1", "prepare.o", "load", None);
        for name in ["", "sb.", "sb.met", "sb.met.x", "sb.met.x.range", "sb.o.x.range1.dopx", "x.y"]
        {
            assert_eq!(file_name(name), None, "{name}");
        }
    }

    #[test]
    fn groups_are_those_of_the_scripts() {
        let check = |step: &str, expected: Group| assert_eq!(group(step), expected, "{step}");
        check("hot-points_range=100", Group::Point);
        check("read-only_range=10", Group::Range);
        check("scan.warm_range=100", Group::Range);
        check("read-write_range=10", Group::Write);
        check("update-one_range=100", Group::Write);
        check("load", Group::Load);
    }
}

#[cfg(test)]
mod met_tables_met_tables_tests {
    use std::path::Path;

    use super::*;
    use crate::format::Notice;

    /// The published rows of a scan; its ratios show every convention.
    const MET: &str = "sb.met.scan.range100.pk1.dop1\n--- absolute\n\
        cpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms\n\
        0.222553\t2.534\t0\t0.001\t0.035\t55\tx.my8028\n\
        0.285792\t7.622\t0\t0\t0.041\t43\tx.my8040\n\
        --- relative to first result\n\
        1.28\t\t3.01\t1\t0.00\t1.17\t0.78\tx.my8040\n\n";

    fn of(text: &str) -> Result<Vec<MetBlock>> {
        parse_met(&Text::of(Path::new("o.met"), text))
    }

    fn contradictions(block: &MetBlock) -> Vec<Notice> {
        let mut published = Published::default();
        check_met(&Text::of(Path::new("o.met"), ""), block, &mut published);
        published.notices
    }

    #[test]
    fn ratios_follow_from_the_absolute_values() {
        let blocks = of(MET).unwrap();
        assert_eq!((blocks.len(), blocks[0].name.clients), (1, Some(1)));
        assert_eq!(blocks[0].absolute[1].cells, ["0.285792", "7.622", "0", "0", "0.041", "43"]);
        assert_eq!(contradictions(&blocks[0]), []);
        let wrong = of(&MET.replace("3.01", "3.02")).unwrap();
        let found = contradictions(&wrong[0]);
        assert_eq!((found.len(), found[0].line), (1, Some(7)));
        assert!(found[0].text.contains("cs/o of x.my8040"), "{found:?}");
    }

    #[test]
    fn two_numbers_of_clients_are_two_targets() {
        let pair = "sb.met.scan.range100.pk1.dop1\nbase1 sb.met.scan.range100.pk1.dop1 and base2 \
            sb.met.scan.range100.pk1.dop48\n--- absolute\ncpu/o\t\tcs/o\to/s\tdbms\n\
            0.000716\t0.081\t2922\tpg180_1u\n0.033489\t0.135\t2836\tpg180_48u\n\
            --- relative to first result\n46.77\t\t1.67\t0.97\tpg180_48u\n\n";
        assert!(is_met(&Text::of(Path::new("o.met"), pair)));
        let blocks = of(pair).unwrap();
        assert_eq!((blocks.len(), blocks[0].name.clients), (1, None));
        assert_eq!(blocks[0].absolute[1].target, "pg180_48u");
        assert_eq!(contradictions(&blocks[0]), []);
    }

    #[test]
    fn older_heads_go_by_their_names() {
        let old = "sb.met.x.range1.pk1.dop1\n--- absolute\ncpu/o\t\trKB/o\twKB/o\to/s\tdbms\n\
            0.5\t0.000\t1.0\t10\tx.a\n";
        assert_eq!(of(old).unwrap()[0].heads, ["cpu/o", "rKB/o", "wKB/o", "o/s"]);
    }

    #[test]
    fn faults_name_the_line() {
        let check_met = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check_met("1\t2\n", "line 1: expected the file name");
        check_met(&MET.replace("\t43\t", "\t"), "line 5: 5 cells for 6 columns");
        check_met(
            &MET.replace("7.622", "many"),
            "line 5, column 2: `many` under `cs/o` is not a number",
        );
        check_met(
            &MET.replace("7.622", "nan"),
            "line 5, column 2: `nan` under `cs/o` is not a measured number",
        );
        check_met(
            &MET.replace("7.622", "-7.6"),
            "line 5, column 2: `-7.6` under `cs/o` is below zero",
        );
        check_met(&MET.replace("--- absolute", "--- base1"), "line 2: `--- base1`");
        check_met("sb.met.scan.range100.pk1.dop1\n", "line 1: a block without absolute values");
        let heads = "cpu/o\t\tcs/o\to/s\tdbms\n1.28\t";
        let differs = "line 7: the header differs from that of the values above";
        check_met(&MET.replace("1.28\t", heads), differs);
        check_met("", "line 1: the file ends here");
    }
}

#[cfg(test)]
mod met_tables_sb_met_tests {
    use std::path::Path;

    use super::*;

    const FILE: &str = "iostat, vmstat normalized by operation rate\r\n\
        samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\r\n\
        2\t10.0\t0.1\t4.0\t0.0\t0.020\t0.200\t0.100\t500.00\r\n\
        \r\n\
        samp\tcs/s\tcpu/s\tcs/o\tcpu/o\r\n\
        3\t1000\t25.0\t2.000\t0.050000\r\n";

    #[test]
    fn a_file_is_read_and_made_again() {
        let met = parse_sb_met(&Text::of(Path::new("sb.met.x"), FILE)).unwrap();
        assert_eq!(met.rate(), Some("500.00"));
        assert_eq!(met.value("cpu/o"), Some(0.05));
        let io = Iostat {
            reads: 10.0,
            read_kb: 100.0,
            writes: 4.0,
            write_kb: 50.0,
            ..Iostat::default()
        };
        let vm = Vmstat { cs: 1000.0, us: 20.0, sy: 5.0, ..Vmstat::default() };
        assert_eq!(io_block(&io, 2, "500.00").unwrap().len(), 9);
        let again = io_block(&io, 2, "500.00").unwrap();
        assert_eq!(differences(&met.io, &again), [] as [(String, String, String); 0]);
        assert_eq!(vm_block(&vm, 3, "500.00").unwrap(), met.vm);
        let other = Vmstat { cs: 1100.0, ..vm };
        let differing = differences(&met.vm, &vm_block(&other, 3, "500.00").unwrap());
        let heads: Vec<&str> = differing.iter().map(|(head, _, _)| head.as_str()).collect();
        assert_eq!(heads, ["cs/s", "cs/o"]);
        assert_eq!(vm_block(&vm, 3, "0"), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault =
                parse_sb_met(&Text::of(Path::new("sb.met.x"), text)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("samp\tr/s\n1\n", "line 2: 1 cell for 2 columns");
        check("samp\tr/s\n1\tx\n", "line 2, column 2: `x` under `r/s` is not a number");
        check("nothing\n", "line 1: expected a header");
        check("samp\tr/s\n", "line 1: the file ends here");
        check("", "line 1: the file ends here");
    }
}
