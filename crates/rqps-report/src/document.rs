//! The model of a report: sections of paragraphs, facts, lists, charts, and tables with typed
//! cells. Renderers know no databases; each cell knows its unit, digits and runs.

use std::sync::Arc;

use super::chart::{Chart, Heat};
use super::stacks::Flame;
use rqps_model::metric::Metric;
use rqps_stats::Interval;

pub use rqps_model::units::Digits;

/// A complete report.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Title: the comparison in one line.
    pub title: String,
    /// Sections in reading order.
    pub sections: Vec<Section>,
}

/// A part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Stable name for links: `rates`.
    pub id: &'static str,
    /// Heading; empty for none.
    pub heading: String,
    /// Blocks in reading order.
    pub blocks: Vec<Block>,
}

/// An element of a section.
#[allow(clippy::large_enum_variant, reason = "a document has few blocks, and each is made once")]
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text that renderers wrap.
    Paragraph(String),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// Lines that renderers do not wrap.
    Lines(Vec<String>),
    /// List items that renderers wrap.
    List(Vec<String>),
    /// A table.
    Table(Table),
    /// A chart. Forms that cannot draw omit it, so a table or the run folders must hold the same
    /// data.
    Chart(Chart),
    /// Overview of all steps and targets. Only forms with colours show it; the rate tables hold the
    /// same data.
    Heat(Heat),
    /// Call stacks of two targets. Only forms that can draw show it; a table has the functions.
    Flame(Flame),
    /// Optional detail; forms that can fold show it closed.
    Fold(Fold),
}

/// A foldable group of blocks with a heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// Summary of its content in one line.
    pub summary: String,
    /// Blocks in reading order.
    pub blocks: Vec<Block>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Caption above the table; empty for none.
    pub caption: String,
    /// Columns from left to right.
    pub columns: Vec<Column>,
    /// Rows from top to bottom; each has one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Head.
    pub head: String,
    /// True for numbers.
    pub right: bool,
    /// Unit and formula, if the head does not show them; else empty.
    pub legend: &'static str,
    /// True for the column that names the row and stays visible when the table scrolls.
    pub names_row: bool,
    /// The metric whose values it shows; `None` for other columns.
    pub metric: Option<Metric>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Content.
    pub value: CellValue,
    /// Unit: `qps`, `ms`, `ratio`; empty if there is none.
    pub unit: &'static str,
    /// Interval of the value.
    pub interval: Option<Interval>,
    /// Folders of the runs behind the value. Shared, because hundreds of cells have the same runs.
    pub runs: Arc<[String]>,
    /// Distance from the baseline as ln(ratio), with the sign turned so that more is better. It
    /// selects the colour. `None` if the cell is no comparison.
    pub tone: Option<f64>,
    /// Colour of published reports, if there is one.
    pub mark: Option<Mark>,
    /// Relative address of a page about it, in forms that have links.
    pub link: Option<String>,
}

/// A colour, with a sign for forms without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Sign after the number in plain text.
    pub sign: &'static str,
    /// CSS colour, or [`Mark::NO_COLOUR`].
    pub colour: &'static str,
    /// Meaning.
    pub meaning: &'static str,
}

/// Content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// Text.
    Text(String),
    /// A number and its format.
    Number(f64, Digits),
    /// A missing value and the reason.
    Missing(String),
}

impl Mark {
    /// The colour of a mark that has only a sign, which all forms show then.
    pub const NO_COLOUR: &'static str = "inherit";
}

impl Section {
    /// A section under its heading.
    pub fn new(id: &'static str, heading: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id, heading: heading.into(), blocks }
    }

    /// What a reader must know of the other sections.
    pub fn how_to_read(id: &'static str, rules: Vec<String>) -> Section {
        Section::new(id, "How to read this", vec![Block::List(rules)])
    }
}

impl Column {
    /// A text column.
    pub fn words(head: impl Into<String>) -> Column {
        Column { head: head.into(), right: false, legend: "", names_row: false, metric: None }
    }

    /// A number column.
    pub fn numbers(head: impl Into<String>) -> Column {
        Column { right: true, ..Column::words(head) }
    }

    /// A column of the values of a metric, under its head.
    pub fn of(metric: Metric) -> Column {
        Column::numbers(metric.name()).showing(metric)
    }

    /// Adds the metric that it shows under another head.
    #[must_use]
    pub fn showing(self, metric: Metric) -> Column {
        Column { metric: Some(metric), ..self }
    }

    /// Adds a legend: unit and formula of its numbers.
    #[must_use]
    pub fn with_legend(self, legend: &'static str) -> Column {
        Column { legend, ..self }
    }

    /// A text column that names the row.
    pub fn of_row(head: impl Into<String>) -> Column {
        Column { names_row: true, ..Column::words(head) }
    }
}

impl Cell {
    /// A text cell.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::of(CellValue::Text(text.into()))
    }

    /// A number cell.
    pub fn number(number: f64, digits: Digits, unit: &'static str) -> Cell {
        Cell { unit, ..Cell::of(CellValue::Number(number, digits)) }
    }

    /// A number, or the reason why it is missing.
    pub fn number_or(
        value: Option<f64>,
        digits: Digits,
        unit: &'static str,
        why: impl Into<String>,
    ) -> Cell {
        value.map_or_else(|| Cell::missing(why), |value| Cell::number(value, digits, unit))
    }

    /// Text, or the reason why it is missing.
    pub fn text_or(text: Option<impl Into<String>>, why: impl Into<String>) -> Cell {
        text.map_or_else(|| Cell::missing(why), Cell::text)
    }

    /// A probability, or the reason why it is missing.
    pub fn probability(p: Option<f64>, why: &str) -> Cell {
        match p {
            Some(p) if p < 0.0001 => Cell::text("<0.0001"),
            p => Cell::number_or(p, Digits::Fixed(4), "probability", why),
        }
    }

    /// A missing value and the reason.
    pub fn missing(why: impl Into<String>) -> Cell {
        Cell::of(CellValue::Missing(why.into()))
    }

    fn of(value: CellValue) -> Cell {
        Cell {
            value,
            unit: "",
            interval: None,
            runs: Arc::default(),
            tone: None,
            mark: None,
            link: None,
        }
    }

    /// Adds an interval.
    pub fn within(self, interval: Option<Interval>) -> Cell {
        Cell { interval, ..self }
    }

    /// Adds a published colour.
    pub fn marked(self, mark: Option<Mark>) -> Cell {
        Cell { mark, ..self }
    }

    /// Adds the address of a page about it.
    pub fn linked(self, address: impl Into<String>) -> Cell {
        Cell { link: Some(address.into()), ..self }
    }

    /// Adds the folders of its runs.
    pub fn from_runs(self, runs: impl Into<Arc<[String]>>) -> Cell {
        Cell { runs: runs.into(), ..self }
    }

    /// Adds the distance from the baseline.
    pub fn toned(self, tone: Option<f64>) -> Cell {
        Cell { tone, ..self }
    }

    /// Plain text: `0.688 [0.671, 0.705]`, `-` for a missing value.
    pub fn plain(&self) -> String {
        match &self.value {
            CellValue::Text(text) => text.clone(),
            CellValue::Missing(_) => "-".to_owned(),
            CellValue::Number(number, digits) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_its_interval() {
        let interval = Some(Interval { low: 0.671, high: 0.705 });
        let cell = Cell::number(0.688, Digits::Fixed(3), "ratio").within(interval);
        assert_eq!(cell.plain(), "0.688 [0.671, 0.705]");
        assert_eq!(Cell::missing("because").plain(), "-");
    }
}
