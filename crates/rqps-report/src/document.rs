//! The model of a report: sections of paragraphs, facts, lists, charts, and tables with typed
//! cells. Renderers know no databases; each cell knows its unit, digits and runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::stacks::Flame;
use super::timeline;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::measurement::rate_unit;
use rqps_analysis::verdict::Judgement;
use rqps_model::metric::{Direction, Metric};
pub use rqps_model::units::Digits;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;

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

impl Block {
    /// A paragraph.
    pub fn text(prose: impl Into<String>) -> Block {
        Block::Paragraph(prose.into())
    }

    /// A table, with or without a caption.
    pub fn table(caption: impl Into<String>, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Block {
        Block::Table(Table::new(caption, columns, rows))
    }

    /// Blocks behind a line that opens them.
    pub fn fold(summary: impl Into<String>, blocks: Vec<Block>) -> Block {
        Block::Fold(Fold { summary: summary.into(), blocks })
    }
}

impl Table {
    /// Rows have a cell for each column.
    pub fn new(caption: impl Into<String>, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Table {
        Table { caption: caption.into(), columns, rows }
    }

    /// A table whose rows bring their columns along, the same in each; `None` without a row.
    pub fn of<R: IntoIterator<Item = Placed>>(
        caption: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
    ) -> Option<Table> {
        let mut table = Table::new(caption, Vec::new(), Vec::new());
        for row in rows {
            let cells;
            (table.columns, cells) = row.into_iter().unzip();
            table.rows.push(cells);
        }
        (!table.rows.is_empty()).then_some(table)
    }
}

impl Section {
    /// A section under its heading.
    pub fn new(id: &'static str, heading: impl Into<String>, blocks: Vec<Block>) -> Section {
        Section { id, heading: heading.into(), blocks }
    }

    /// A section of a paragraph, if there is something to say, and a table; `None` without a table.
    pub fn of_table(
        id: &'static str,
        heading: impl Into<String>,
        about: impl Into<String>,
        table: Option<Table>,
    ) -> Option<Section> {
        let about = Some(about.into()).filter(|about| !about.is_empty()).map(Block::Paragraph);
        let blocks = |table| about.into_iter().chain([Block::Table(table)]).collect();
        table.map(|table| Section::new(id, heading, blocks(table)))
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

/// A cell with the column that it stands in ([`Table::of`]).
pub type Placed = (Column, Cell);

/// A cell of a text column.
pub fn words(head: impl Into<String>, cell: Cell) -> Placed {
    (Column::words(head), cell)
}

/// A cell of a number column.
pub fn numbers(head: impl Into<String>, cell: Cell) -> Placed {
    (Column::numbers(head), cell)
}

/// The cell that names its row.
pub fn name_of_row(head: impl Into<String>, name: impl Into<String>) -> Placed {
    (Column::of_row(head), Cell::text(name))
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

// Charts and the overview as data.

// Charts as data: axes, series, and points with intervals and their runs. Only the HTML form draws
// them; text and Markdown omit charts, so a table or the run folders must hold the same data.

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Stable name for links and saved images, unique in a document: `rates-point`.
    pub id: String,
    /// Title: a sentence without a full stop.
    pub title: String,
    /// The form of the points.
    pub form: Form,
    /// The x axis. With categories, a point's `x` is the index of its category, from 0.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// Series in legend order. Series with the same name (the runs of a target) share an entry.
    pub series: Vec<Series>,
    /// Marked ranges of x: stalls and server activity.
    pub spans: Vec<Span>,
    /// Marked values of y across the chart: a ratio of 1, a threshold.
    pub rules: Vec<Rule>,
    /// Marked places of x across the chart: changes of level.
    pub marks: Vec<ChangeMark>,
    /// Shaded range of y that counts as no difference.
    pub margin: Option<Interval>,
    /// Note below the chart.
    pub notes: Vec<String>,
}

/// Kind of chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A forest plot: a row for each category and series, with its ratio and interval on a
    /// logarithmic axis. With many series, each category becomes a small panel with the series on
    /// the x axis, such as a series of versions.
    Forest,
    /// Lines over x: time, or the tail of a distribution.
    Lines,
    /// Points, joined if the series says so: recall against rate.
    Points,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Measured quantity: `rate`.
    pub name: String,
    /// Unit: `qps`, `ms`, `s`; empty if there is none.
    pub unit: String,
    /// Scale.
    pub scale: Scale,
    /// True if the axis must start at 0, as for lengths. Not for logarithmic scales.
    pub from_zero: bool,
    /// Complete category names; empty for a number axis.
    pub categories: Vec<String>,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic; values must be above 0.
    Log,
    /// Logarithmic with marks at powers of two, for counts that double.
    Doubling,
    /// A quantile q from 0 to below 1 at log10(1 / (1 − q)), so that 0.9, 0.99 and 0.999 are
    /// equally spaced; shown as percentiles.
    Tail,
}

/// Points of one target, or of one run of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Complete name, as in the legend.
    pub name: String,
    /// Colour index: the same number has the same colour in all charts of a document. By convention
    /// the index of the target in the comparison.
    pub slot: usize,
    /// Line style between points.
    pub line: Line,
    /// Points, in line order.
    pub points: Vec<Point>,
    /// Folders of the runs of all points.
    pub runs: Vec<String>,
}

/// Line style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// No line.
    None,
    /// Straight lines between points.
    Straight,
    /// Steps: each value holds until the next point.
    Steps,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Value, or index of the category.
    pub x: f64,
    /// Value. A non-finite value draws nothing and interrupts the line.
    pub y: f64,
    /// Interval of y.
    pub interval: Option<Interval>,
    /// Note: `SLOWER`, `ef_search = 40`.
    pub note: String,
    /// Folders of its runs, if they differ from those of the series.
    pub runs: Vec<String>,
}

/// A marked range of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Index of its series; `None` for all.
    pub series: Option<usize>,
    /// Label: [`STALL`], or the activity of the server.
    pub label: String,
}

impl Span {
    /// True for a highlighted range: the rate was low or zero.
    pub fn is_loud(&self) -> bool {
        [STALL, HELD_BACK].contains(&self.label.as_str())
    }
}

/// Label of a range with a stall.
pub const STALL: &str = "stall";
/// Label of a range in which the DBMS delayed writes.
pub const HELD_BACK: &str = "writes held back";

/// A marked value of y.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Position.
    pub value: f64,
    /// Label; empty for a plain line.
    pub label: String,
}

/// A marked place of x.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeMark {
    /// Position.
    pub at: f64,
    /// Short label: `×0.93`.
    pub label: String,
    /// Index of its series, whose colour it has.
    pub series: usize,
}

impl Chart {
    /// Creates a chart without series.
    pub fn new(id: impl Into<String>, title: impl Into<String>, form: Form) -> Chart {
        Chart {
            id: id.into(),
            title: title.into(),
            form,
            x: Axis::linear("", ""),
            y: Axis::linear("", ""),
            series: Vec::new(),
            spans: Vec::new(),
            rules: Vec::new(),
            marks: Vec::new(),
            margin: None,
            notes: Vec::new(),
        }
    }

    /// Sets the axes.
    pub fn axes(self, x: Axis, y: Axis) -> Chart {
        Chart { x, y, ..self }
    }
}

impl Axis {
    /// A linear axis from 0.
    pub fn linear(name: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis {
            name: name.into(),
            unit: unit.into(),
            scale: Scale::Linear,
            from_zero: true,
            categories: Vec::new(),
        }
    }

    /// A logarithmic axis.
    pub fn log(name: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, from_zero: false, ..Axis::linear(name, unit) }
    }

    /// A logarithmic axis with marks at powers of two.
    pub fn doubling(name: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { scale: Scale::Doubling, from_zero: false, ..Axis::linear(name, unit) }
    }

    /// An axis of percentiles that spreads the tail.
    pub fn tail() -> Axis {
        Axis { scale: Scale::Tail, ..Axis::linear("percentile", "") }
    }

    /// An axis of categories.
    pub fn of_categories(name: impl Into<String>, categories: Vec<String>) -> Axis {
        Axis { categories, ..Axis::linear(name, "") }
    }

    /// Removes the start at 0: for positions such as recall, never for bars.
    pub fn fitted(self) -> Axis {
        Axis { from_zero: false, ..self }
    }
}

impl Series {
    /// Creates a series without points.
    pub fn new(name: impl Into<String>, slot: usize, line: Line) -> Series {
        Series { name: name.into(), slot, line, points: Vec::new(), runs: Vec::new() }
    }
}

impl Point {
    /// Creates a point without interval.
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    /// Adds an interval.
    pub fn within(self, interval: Option<Interval>) -> Point {
        Point { interval, ..self }
    }

    /// Adds a note.
    pub fn noted(self, note: impl Into<String>) -> Point {
        Point { note: note.into(), ..self }
    }

    /// Adds the folders of its runs.
    pub fn from_runs(self, runs: Vec<String>) -> Point {
        Point { runs, ..self }
    }
}

// The overview: every step of every target relative to the baseline, by the rate or a metric that
// explains it, with the runs behind each number.

/// The overview.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// All labels, the baseline first.
    pub targets: Vec<String>,
    /// Metrics, the rate first.
    pub metrics: Vec<Measure>,
    /// Steps, in the published order.
    pub steps: Vec<HeatRow>,
}

/// A metric of the overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Column head.
    pub name: &'static str,
    /// Unit of absolute values; empty for the step's own unit.
    pub unit: &'static str,
    /// The better direction.
    pub better: Direction,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// Name.
    pub name: String,
    /// Group.
    pub group: &'static str,
    /// Unit of its rate.
    pub unit: &'static str,
    /// One cell per target, the baseline first.
    pub cells: Vec<HeatCell>,
}

/// A step of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// One ratio per metric; `None` without a ratio, and for the baseline.
    pub ratios: Vec<Option<Ratio>>,
    /// Medians over the samples, one per metric.
    pub absolute: Vec<Option<f64>>,
    /// Runs behind the cell.
    pub samples: Vec<HeatSample>,
    /// The reason why the cell is empty; else empty.
    pub missing: String,
}

/// Target / baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// May be infinite.
    pub ratio: f64,
    /// 95 % interval.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// Verdict; `None` if there is none.
    pub verdict: Option<Verdict>,
    /// Evidence of the verdict, as text.
    pub reason: String,
}

/// One run of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatSample {
    /// Run folder.
    pub folder: String,
    /// Name of its files in `steps/`, without the extension: `03-point-query`.
    pub file: String,
    /// One value per metric.
    pub values: Vec<Option<f64>>,
}

/// The overview; `None` if there is no comparison.
pub(super) fn overview(comparison: &Comparison) -> Option<Heat> {
    if comparison.targets.len() < 2 || comparison.steps.is_empty() {
        return None;
    }
    let metrics = shown_metrics(comparison);
    let steps = timeline::by_loss(&comparison.steps).into_iter().map(|step| HeatRow {
        name: step.name.clone(),
        group: step.group.name(),
        unit: rate_unit(step.rate),
        cells: step.targets.iter().map(|target| cell(comparison, target, &metrics)).collect(),
    });
    Some(Heat {
        targets: comparison.targets.iter().map(|target| target.label.clone()).collect(),
        steps: steps.collect(),
        metrics: metrics.into_iter().map(measure).collect(),
    })
}

fn measure(metric: Metric) -> Measure {
    Measure { name: metric.name(), unit: metric.unit(), better: metric.better() }
}

/// The rate, and the metrics of the overview that any target has a ratio of.
fn shown_metrics(comparison: &Comparison) -> Vec<Metric> {
    let wanted = |metric: Metric| !metric.spec().aside;
    let measured = |metric: Metric| {
        let mut targets = comparison.steps.iter().flat_map(|step| step.targets.iter().skip(1));
        targets.any(|target| target.relative(metric).is_some())
    };
    let all = comparison.metrics().into_iter().chain([Metric::Rate]).collect::<BTreeSet<Metric>>();
    let shown = |metric: &Metric| *metric == Metric::Rate || (wanted(*metric) && measured(*metric));
    all.into_iter().filter(shown).collect()
}

fn cell(comparison: &Comparison, target: &TargetResult, metrics: &[Metric]) -> HeatCell {
    let samples = target.samples.iter().map(|sample| HeatSample {
        folder: comparison.runs[sample.run].folder.clone(),
        file: format!("{:02}-{}", sample.record.index, sample.record.name),
        values: metrics.iter().map(|metric| sample.get(*metric)).collect(),
    });
    let missing = match (target.samples.is_empty(), target.failures.is_empty()) {
        (false, _) => "",
        (true, false) => "failed",
        (true, true) => "not measured",
    };
    HeatCell {
        ratios: metrics.iter().map(|metric| ratio(target, *metric)).collect(),
        absolute: metrics.iter().map(|metric| target.absolute(*metric)).collect(),
        samples: samples.collect(),
        missing: missing.to_owned(),
    }
}

fn ratio(target: &TargetResult, metric: Metric) -> Option<Ratio> {
    let judgement = target.judgement(metric);
    target.relative(metric).map(|relative| Ratio {
        ratio: relative.ratio,
        interval: relative.shown_interval(),
        pairs: relative.pairs,
        verdict: judgement.map(|judgement| judgement.verdict),
        reason: judgement.map(reason).unwrap_or_default(),
    })
}

/// The figures of a verdict in one line, then its notes.
fn reason(judgement: &Judgement) -> String {
    let mut parts = Vec::new();
    if let Some(test) = &judgement.test {
        let small = |p: f64| Digits::Significant(2).write(p);
        let mde = Digits::Significant(2).write(100.0 * test.mde);
        parts.push(format!("p(tau) {}", small(test.p_treat)));
        parts.push(format!("q {} over the steps", small(test.q_treat)));
        parts.push(format!("MDE {mde} %"));
    }
    if let Some(pairs) = judgement.pairs_needed {
        parts.push(format!("sample size about {pairs} pairs"));
    }
    parts.extend(judgement.reasons.iter().cloned());
    parts.join("; ")
}

/// The name of a verdict for a metric of the overview.
pub(super) fn word(verdict: Verdict, of_rate: bool) -> &'static str {
    verdict.word(if of_rate { Metric::Rate } else { Metric::CpuPerOp })
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
