//! Reads tables of db_bench rates or ratios: a row per step, a column per version.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Taker;
use crate::cells::{Kept, decimals_agree, is_word, number};
use crate::format::ImportError;
use crate::published::{self, PrintedRatio, add_file};
use crate::tag::{TableCells, Variants, kin};
use crate::text::{RATES_MAX, Text, counted};
use rqps_model::build::Version;
use rqps_model::metric::Metric;
use rqps_model::run::Status;

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
pub fn parse_rates(text: &Text) -> Result<RatesOnly, ImportError> {
    text.at_most(RATES_MAX)?;
    let mut table = RatesOnly::default();
    for (line, row) in text.lines() {
        if row.trim().is_empty() {
            continue;
        }
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
    pub(super) fn take_tables(&mut self) -> Result<(), ImportError> {
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
