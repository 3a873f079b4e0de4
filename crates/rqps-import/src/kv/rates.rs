//! Reads tables of db_bench rates or ratios: a row per step, a column per version.

use crate::ImportError;
use crate::number::is_word;
use crate::text::{RATES_MAX, Text, counted};

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
