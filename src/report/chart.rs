//! Charts as data: axes, series, points with intervals and the runs that they come from.
//! Nothing here draws. The HTML form draws; text and Markdown leave charts out, so whatever a
//! chart shows must be in a table or in run folders too.

use crate::stats::Interval;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Stable name for links and saved images, unique in a document: `rates-point`.
    pub id: String,
    /// What it shows, as a sentence without a full stop.
    pub title: String,
    /// How points are drawn.
    pub form: Form,
    /// Across. With categories, a point's `x` is the place of its category, from 0.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// In the order of the legend. Series of one name (the runs of a target) share an entry.
    pub series: Vec<Series>,
    /// Marked ranges of x: stalls, and what the server did.
    pub spans: Vec<Span>,
    /// Values of y to be marked across the chart: a ratio of 1, a threshold.
    pub rules: Vec<Rule>,
    /// Values of y that count as no difference; shaded.
    pub margin: Option<Interval>,
    /// What must be known to read it, below the chart.
    pub notes: Vec<String>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A forest plot: a row for each category and series, its ratio and interval on a logarithmic
    /// axis. With many series each category becomes a small panel with the series across: a ladder
    /// of versions.
    Forest,
    /// Lines over x: time, or the tail of a distribution.
    Lines,
    /// Marks, joined where the series says so: recall against rate.
    Points,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What is measured: `rate`.
    pub name: String,
    /// `qps`, `ms`, `s`; empty where there is none.
    pub unit: String,
    /// How values are spaced.
    pub scale: Scale,
    /// True if the axis must begin at 0: wherever lengths are compared. Not for [`Scale::Log`].
    pub from_zero: bool,
    /// Names of places, whole; empty for a number axis.
    pub categories: Vec<String>,
}

/// How values are spaced on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; values must be above 0.
    Log,
    /// A quantile q of 0 to below 1 at log10(1 / (1 − q)), so that 0.9, 0.99 and 0.999 are as far
    /// apart; shown as percentiles.
    Tail,
}

/// Points of one target, or of one run of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Whole name, as in the legend.
    pub name: String,
    /// Colour: the same number is the same colour in all charts of a document. By habit the place
    /// of the target in the comparison.
    pub slot: usize,
    /// Whether points are joined.
    pub line: Line,
    /// In the order in which they are joined.
    pub points: Vec<Point>,
    /// Folders of the runs that all its points come from.
    pub runs: Vec<String>,
}

/// How points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Not at all.
    None,
    /// From point to point.
    Straight,
    /// Each value holds until the next point.
    Steps,
}

/// A point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Value, or place of the category.
    pub x: f64,
    /// Value. Not finite: nothing is drawn, and a line is broken.
    pub y: f64,
    /// How sure y is.
    pub interval: Option<Interval>,
    /// What else is to be known of it: `SLOWER`, `ef_search = 40`.
    pub note: String,
    /// Folders of the runs that it comes from, where the series does not say.
    pub runs: Vec<String>,
}

/// A marked range of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// From this x.
    pub from: f64,
    /// To this x.
    pub to: f64,
    /// Place of the series that it belongs to; `None` for all.
    pub series: Option<usize>,
    /// What it is: [`STALL`], or what the server did.
    pub label: String,
}

impl Span {
    /// True if it is to catch the eye: little or nothing was done in it.
    pub fn is_loud(&self) -> bool {
        [STALL, HELD_BACK].contains(&self.label.as_str())
    }
}

/// The label of a span in which hardly anything was done.
pub const STALL: &str = "stall";
/// The label of a span in which the DBMS held writes back.
pub const HELD_BACK: &str = "writes held back";

/// A marked value of y.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Where.
    pub value: f64,
    /// What it is; empty for a plain line.
    pub label: String,
}

impl Chart {
    /// A chart without series.
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
            margin: None,
            notes: Vec::new(),
        }
    }

    /// The same with these axes.
    pub fn axes(self, x: Axis, y: Axis) -> Chart {
        Chart { x, y, ..self }
    }
}

impl Axis {
    /// Evenly spaced and from 0.
    pub fn linear(name: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis {
            name: name.into(),
            unit: unit.into(),
            scale: Scale::Linear,
            from_zero: true,
            categories: Vec::new(),
        }
    }

    /// Spaced by logarithms.
    pub fn log(name: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { scale: Scale::Log, from_zero: false, ..Axis::linear(name, unit) }
    }

    /// Percentiles, the tail spread out.
    pub fn tail() -> Axis {
        Axis { scale: Scale::Tail, ..Axis::linear("percentile", "") }
    }

    /// Names.
    pub fn of_categories(name: impl Into<String>, categories: Vec<String>) -> Axis {
        Axis { categories, ..Axis::linear(name, "") }
    }

    /// The same without the promise to begin at 0: for positions such as recall, never for bars.
    pub fn fitted(self) -> Axis {
        Axis { from_zero: false, ..self }
    }
}

impl Series {
    /// A series without points.
    pub fn new(name: impl Into<String>, slot: usize, line: Line) -> Series {
        Series { name: name.into(), slot, line, points: Vec::new(), runs: Vec::new() }
    }
}

impl Point {
    /// A bare point.
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    /// The same with an interval.
    pub fn within(self, interval: Option<Interval>) -> Point {
        Point { interval, ..self }
    }

    /// The same with a note.
    pub fn noted(self, note: impl Into<String>) -> Point {
        Point { note: note.into(), ..self }
    }

    /// The same with the folders that it comes from.
    pub fn from_runs(self, runs: Vec<String>) -> Point {
        Point { runs, ..self }
    }
}

/// The points that no other point beats in both x and y, more being better in both, by growing x:
/// the Pareto line of recall against rate.
pub fn pareto(points: &[Point]) -> Vec<Point> {
    let mut sorted: Vec<&Point> =
        points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()).collect();
    sorted.sort_by(|a, b| b.x.total_cmp(&a.x).then(b.y.total_cmp(&a.y)));
    let mut best = f64::NEG_INFINITY;
    let mut line: Vec<Point> = Vec::new();
    for point in sorted {
        if point.y > best {
            best = point.y;
            line.push(point.clone());
        }
    }
    line.reverse();
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_pareto(points: &[(f64, f64)], expected: &[(f64, f64)]) {
        let points: Vec<Point> = points.iter().map(|(x, y)| Point::at(*x, *y)).collect();
        let line: Vec<(f64, f64)> = pareto(&points).iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(line, expected);
    }

    #[test]
    fn the_pareto_line_holds_what_is_not_beaten() {
        check_pareto(
            &[(0.9, 100.0), (0.8, 90.0), (0.95, 50.0), (0.99, 10.0), (0.7, 400.0)],
            &[(0.7, 400.0), (0.9, 100.0), (0.95, 50.0), (0.99, 10.0)],
        );
        check_pareto(&[(0.9, 1.0), (0.9, 2.0), (0.5, 2.0)], &[(0.9, 2.0)]);
        check_pareto(&[(f64::NAN, 1.0), (0.5, f64::INFINITY)], &[]);
    }
}
