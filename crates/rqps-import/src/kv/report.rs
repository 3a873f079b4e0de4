//! Reads published db_bench tables with a line of heads, as tabs or aligned text.

use std::collections::BTreeMap;
use std::path::Path;

use super::Taker;
use super::output::{ReportCell, gib, known_heads, report_cell, tag_of};
use crate::cells::{Kept, decimals_agree, number, rfc3339};
use crate::format::ImportError;
use crate::published::{self, add_file};
use crate::text::{METRICS_MAX, Row, Text};
use rqps_model::run::Status;

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
pub fn parse_report(text: &Text) -> Result<ReportTable, ImportError> {
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

fn by_tabs(text: &Text, line: usize, row: &str, heads: &[Head]) -> Result<Row, ImportError> {
    let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
    let heads: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
    text.by_head(line, &heads, &cells)
}

/// Aligned text leaves empty cells out: each word belongs to the nearest head.
fn by_place(text: &Text, line: usize, row: &str, heads: &[Head]) -> Result<Row, ImportError> {
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

fn report_row(text: &Text, line: usize, cells: Row) -> Result<ReportRow, ImportError> {
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
    pub(super) fn take_report(
        &mut self,
        text: &Text,
        table: &ReportTable,
    ) -> Result<(), ImportError> {
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
    fn take_row(
        &mut self,
        text: &Text,
        row: &ReportRow,
        label: &str,
    ) -> Result<String, ImportError> {
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
    fn check_row(&mut self, text: &Text, row: &ReportRow, label: &str) -> Result<(), ImportError> {
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
