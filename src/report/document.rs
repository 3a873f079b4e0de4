//! The one model of a report: sections of paragraphs, facts, lists, charts, and tables with typed
//! cells.
//! Renderers know no databases; what is in a cell knows its unit, its digits and its runs.

use std::sync::Arc;

use super::chart::Chart;
use super::heat::Heat;
use crate::stats::Interval;

/// A whole report.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What was compared, in one line.
    pub title: String,
    /// In the order of reading.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Stable name for links: `rates`.
    pub id: &'static str,
    /// Head; empty for none.
    pub heading: String,
    /// In the order of reading.
    pub blocks: Vec<Block>,
}

/// What a section is made of.
#[allow(clippy::large_enum_variant, reason = "a document has few blocks, and each is made once")]
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Prose, to be wrapped.
    Paragraph(String),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
    /// Lines that stay as they are.
    Lines(Vec<String>),
    /// Points, each to be wrapped.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A chart. Forms that cannot draw leave it out: what it shows is in a table or in run folders
    /// too.
    Chart(Chart),
    /// All steps and targets at a glance. Only forms with colours show it; the rate tables hold the
    /// same.
    Heat(Heat),
    /// Detail that a reader may pass over; forms that can, show it closed.
    Fold(Fold),
}

/// Blocks under a head of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// What is inside, in one line.
    pub summary: String,
    /// In the order of reading.
    pub blocks: Vec<Block>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Above it; empty for none.
    pub caption: String,
    /// Left to right.
    pub columns: Vec<Column>,
    /// Top to bottom; each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its head.
    pub head: String,
    /// True for numbers.
    pub right: bool,
    /// Unit and formula, where the head alone does not tell; else empty.
    pub legend: &'static str,
    /// It says of what the other cells of its row are, and stays in sight beside them.
    pub names_row: bool,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What it shows.
    pub value: Value,
    /// `qps`, `ms`, `ratio`; empty where there is none.
    pub unit: &'static str,
    /// How sure the value is.
    pub interval: Option<Interval>,
    /// Folders of the runs that it comes from. Shared: hundreds of cells come from the same ones.
    pub runs: Arc<[String]>,
    /// How far it is from the base, as ln(ratio) turned so that more is better: the colour, where
    /// there are colours. `None` for what is no comparison.
    pub tone: Option<f64>,
    /// A published colour, where the field's reports have one.
    pub mark: Option<Mark>,
}

/// A colour with a sign for forms without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// After the number in plain text.
    pub sign: &'static str,
    /// As CSS writes it.
    pub colour: &'static str,
    /// What it stands for.
    pub meaning: &'static str,
}

/// What a cell shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A number, and how it is to be written.
    Number(f64, Digits),
    /// Nothing, and why.
    Missing(String),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// That many after the point.
    Fixed(usize),
    /// At most that many significant ones, without trailing zeros.
    Significant(usize),
    /// Two after the point as the field writes ratios: a 1 that stands for 0/0 is `1`, x/0 `inf`.
    Ratio,
}

impl Column {
    /// A column of words.
    pub fn words(head: impl Into<String>) -> Column {
        Column { head: head.into(), right: false, legend: "", names_row: false }
    }

    /// A column of numbers.
    pub fn numbers(head: impl Into<String>) -> Column {
        Column { right: true, ..Column::words(head) }
    }

    /// With what stands behind its numbers.
    #[must_use]
    pub fn told(self, legend: &'static str) -> Column {
        Column { legend, ..self }
    }

    /// A column of words that names the row.
    pub fn of_row(head: impl Into<String>) -> Column {
        Column { names_row: true, ..Column::words(head) }
    }
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell {
            value: Value::Text(text.into()),
            unit: "",
            interval: None,
            runs: Arc::default(),
            tone: None,
            mark: None,
        }
    }

    /// A number.
    pub fn number(number: f64, digits: Digits, unit: &'static str) -> Cell {
        Cell {
            value: Value::Number(number, digits),
            unit,
            interval: None,
            runs: Arc::default(),
            tone: None,
            mark: None,
        }
    }

    /// Nothing, and why.
    pub fn missing(why: impl Into<String>) -> Cell {
        Cell {
            value: Value::Missing(why.into()),
            unit: "",
            interval: None,
            runs: Arc::default(),
            tone: None,
            mark: None,
        }
    }

    /// The same with an interval.
    pub fn within(self, interval: Option<Interval>) -> Cell {
        Cell { interval, ..self }
    }

    /// The same with a published colour.
    pub fn marked(self, mark: Option<Mark>) -> Cell {
        Cell { mark, ..self }
    }

    /// The same with the folders that it comes from.
    pub fn from_runs(self, runs: impl Into<Arc<[String]>>) -> Cell {
        Cell { runs: runs.into(), ..self }
    }

    /// The same with its distance from the base.
    pub fn toned(self, tone: Option<f64>) -> Cell {
        Cell { tone, ..self }
    }

    /// As plain text: `0.688 [0.671, 0.705]`, `-` where there is nothing.
    pub fn plain(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Missing(_) => "-".to_owned(),
            Value::Number(number, digits) => {
                let sign = self.mark.map(|mark| mark.sign).unwrap_or_default();
                let text = format!("{}{sign}", digits.write(*number));
                match self.interval {
                    Some(interval) => {
                        let (low, high) = (digits.write(interval.low), digits.write(interval.high));
                        format!("{text} [{low}, {high}]")
                    }
                    None => text,
                }
            }
        }
    }
}

impl Digits {
    /// The number as text.
    pub fn write(self, number: f64) -> String {
        match self {
            _ if number.is_infinite() => "inf".to_owned(),
            Digits::Fixed(digits) => format!("{number:.digits$}"),
            Digits::Ratio => format!("{number:.2}"),
            Digits::Significant(digits) => significant(number, digits),
        }
    }
}

/// As C's `%.Ng`: N significant digits, no trailing zeros, exponents only far from 1.
fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // Rounding to N digits may carry into the next power of ten: ask the rounded number.
    let rounded = format!("{number:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -5 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs());
    }
    let after_point = (digits as i32 - 1 - exponent).max(0) as usize;
    trim_zeros(&format!("{number:.after_point$}")).to_owned()
}

fn trim_zeros(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(digits: Digits, number: f64, expected: &str) {
        assert_eq!(digits.write(number), expected);
    }

    #[test]
    fn numbers_are_written_as_the_field_writes_them() {
        check(Digits::Fixed(2), 0.685, "0.69");
        check(Digits::Fixed(0), 24515.4, "24515");
        check(Digits::Ratio, f64::INFINITY, "inf");
        // printf("%.6g")
        check(Digits::Significant(6), 0.0, "0");
        check(Digits::Significant(6), 0.402, "0.402");
        check(Digits::Significant(6), 1234567.0, "1.23457e+06");
        check(Digits::Significant(6), 999999.7, "1e+06");
        check(Digits::Significant(6), 123456.4, "123456");
        check(Digits::Significant(3), 0.00012345, "0.000123");
        check(Digits::Significant(3), 0.0000012345, "1.23e-06");
    }

    #[test]
    fn a_cell_shows_its_interval() {
        let interval = Some(Interval { low: 0.671, high: 0.705 });
        let cell = Cell::number(0.688, Digits::Fixed(3), "ratio").within(interval);
        assert_eq!(cell.plain(), "0.688 [0.671, 0.705]");
        assert_eq!(Cell::missing("because").plain(), "-");
    }
}
