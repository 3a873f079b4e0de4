//! Charts of a report as one SVG file, for posts and papers: no script, no outside font.

use std::fmt::Write;

use super::document::{Axis, Block, Chart, Digits, Form, Line, Point, Scale, Series};
use super::timeline::{self, SecondsOf};
use super::{clients, facts, history};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_model::benchmark::Group;
use rqps_model::escape::xml;
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;

/// What a plot shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// The relative rate of each step with its interval, the largest loss first.
    Forest,
    /// Each step by version, with its levels and changes.
    Ladder,
    /// Each step over time, by percentile and over client counts.
    Lines,
}

/// The charts of a kind. `steps` names those to show; none names all.
pub fn charts(
    comparison: &Comparison,
    dataset: &Dataset,
    seconds: &SecondsOf,
    kind: PlotKind,
    steps: &[String],
) -> Vec<Chart> {
    let is_wanted = |name: &str| steps.is_empty() || steps.iter().any(|step| step == name);
    let wanted = || comparison.steps.iter().filter(|step| is_wanted(&step.name));
    match kind {
        PlotKind::Forest => {
            // Loads are set-up unless somebody names them.
            let shown = |step: &&StepComparison| !steps.is_empty() || step.group != Group::Load;
            let chart = timeline::forest(comparison, wanted().filter(shown).collect());
            let lead = facts::brief(comparison).join(" · ");
            let with_lead = |mut chart: Chart| {
                chart.notes.push(lead);
                chart
            };
            chart.map(with_lead).into_iter().collect()
        }
        PlotKind::Ladder => history::charts(comparison, Metric::Rate, &is_wanted),
        PlotKind::Lines => {
            let of_step = |step: &StepComparison| {
                timeline::charts(comparison, dataset, step, seconds).into_iter()
            };
            let scaling = clients::scaling_section(comparison).into_iter();
            let scaling =
                scaling.flat_map(|section| section.blocks).filter_map(|block| match block {
                    Block::Chart(chart) if steps.is_empty() => Some(chart),
                    _ => None,
                });
            wanted().flat_map(of_step).chain(scaling).collect()
        }
    }
}

/// Okabe and Ito's colours, which people with any colour vision tell apart
/// (<https://jfly.uni-koeln.de/color/>).
const COLOURS: [&str; 8] =
    ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C7A00"];
const WIDTH: f64 = 960.0;
const ROW: f64 = 18.0;
/// Height of the area of a chart with a y axis.
const AREA: f64 = 280.0;
/// Width of a character in a wide font.
const CHARACTER: f64 = 7.4;
/// Most characters of a name or note that is drawn; the whole is in its tooltip.
const NAME_MOST: usize = 44;

/// Lines of at most so many points have dots.
const DOTS_MOST: usize = 12;
/// An interval is drawn up to so many times the largest ratio, and likewise below the smallest.
const WIDEST: f64 = 4.0;

/// Draws the charts below each other. All text is escaped.
pub fn svg(charts: &[Chart]) -> String {
    let mut canvas = Canvas::default();
    for chart in charts {
        canvas.text(12.0, canvas.y + 20.0, "start", "title", &chart.title);
        canvas.y += 30.0;
        match chart.form {
            Form::Forest => canvas.forest(chart),
            Form::Lines | Form::Points => canvas.area(chart),
        }
        for note in &chart.notes {
            canvas.text(12.0, canvas.y + 14.0, "start", "note", note);
            canvas.y += 16.0;
        }
        canvas.y += 14.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\">\n<style>text {{ font: 12px sans-serif; fill: #222 \
         }} .title {{ font-weight: bold; font-size: 14px }} .note {{ fill: #555; font-size: 11px }} \
         polyline {{ fill: none; stroke-width: 1.5 }}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{shapes}</svg>\n",
        height = canvas.y,
        shapes = canvas.shapes,
    )
}

/// What is drawn so far; `y` is its lower end.
#[derive(Default)]
struct Canvas {
    shapes: String,
    y: f64,
}

impl Canvas {
    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let short = match text.char_indices().nth(NAME_MOST) {
            Some((end, _)) if class == "name" => format!("{}…", &text[..end]),
            _ => text.to_owned(),
        };
        let _ = writeln!(
            self.shapes,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
            xml(&short)
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.shapes,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
             stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    fn block(&mut self, x: (f64, f64), y: (f64, f64), colour: &str) {
        let (left, width) = (x.0.min(x.1), (x.1 - x.0).abs().max(1.0));
        let (top, height) = (y.0.min(y.1), (y.1 - y.0).abs());
        let _ = writeln!(
            self.shapes,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\"/>"
        );
    }

    /// A point with its note as a tooltip.
    fn dot(&mut self, x: f64, y: f64, colour: &str, note: &str) {
        self.marked_dot(x, y, colour, colour, note);
    }

    fn marked_dot(&mut self, x: f64, y: f64, colour: &str, fill: &str, note: &str) {
        let _ = writeln!(
            self.shapes,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" stroke=\"{colour}\" \
             fill=\"{fill}\"><title>{}</title></circle>",
            xml(note)
        );
    }

    /// Names of series with their colours.
    fn legend(&mut self, series: &[Series]) {
        let mut x = 12.0;
        let mut seen = Vec::new();
        for one in series.iter().filter(|one| !one.points.is_empty()) {
            if seen.contains(&&one.name) {
                continue;
            }
            seen.push(&one.name);
            let width = 24.0 + CHARACTER * one.name.chars().count().min(NAME_MOST) as f64;
            if x + width > WIDTH {
                (x, self.y) = (12.0, self.y + ROW);
            }
            self.block((x, x + 10.0), (self.y + 4.0, self.y + 14.0), colour(one));
            self.text(x + 14.0, self.y + 13.0, "start", "name", &one.name);
            x += width;
        }
        self.y += ROW + 6.0;
    }

    /// A row for each category and series that has a point there.
    fn forest(&mut self, chart: &Chart) {
        self.legend(&chart.series);
        let names = chart.x.categories.iter().map(|name| name.chars().count());
        let left = 24.0 + CHARACTER * names.max().unwrap_or(0).min(NAME_MOST) as f64;
        let points = chart.series.iter().flat_map(|one| &one.points);
        let label = |point: &Point| format!("{} {}", written_ratio(point), point.note);
        let widest = points.clone().map(|point| label(point).chars().count()).max().unwrap_or(0);
        let right = WIDTH - 16.0 - CHARACTER * widest.min(NAME_MOST) as f64;
        let ratios = points.clone().map(|point| point.y).filter(|y| y.is_finite() && *y > 0.0);
        let (low, high) =
            ratios.fold((1.0_f64, 1.0_f64), |(low, high), y| (low.min(y), high.max(y)));
        // An interval of almost any ratio leaves room for the others.
        let shown = points.clone().flat_map(ends);
        let range =
            Range::of(&chart.y, shown.map(|y| y.clamp(low / WIDEST, high * WIDEST)).chain([1.0]));
        let at = |y: f64| left + range.share(y) * (right - left);
        let rows: f64 = points.filter(|point| point.y.is_finite()).count() as f64;
        let (top, bottom) = (self.y, self.y + rows * ROW + 6.0);
        if let Some(margin) = chart.margin {
            self.block((at(margin.low), at(margin.high)), (top, bottom), "#E4E4E4");
        }
        for tick in range.ticks() {
            self.line((at(tick), top), (at(tick), bottom), "#E4E4E4", 1.0);
            self.text(at(tick), bottom + 14.0, "middle", "note", &written(&chart.y, tick));
        }
        for rule in &chart.rules {
            self.line((at(rule.value), top), (at(rule.value), bottom), "#777", 1.0);
        }
        let mut y = top;
        for (place, name) in chart.x.categories.iter().enumerate() {
            let mut is_first = true;
            for one in &chart.series {
                let here = |point: &&Point| point.x == place as f64 && point.y.is_finite();
                let Some(point) = one.points.iter().find(here) else { continue };
                y += ROW;
                if std::mem::take(&mut is_first) {
                    self.text(left - 8.0, y, "end", "name", name);
                }
                if let Some(interval) = point.interval {
                    let y = y - 4.0;
                    self.line((at(interval.low), y), (at(interval.high), y), colour(one), 1.5);
                }
                self.dot(at(point.y), y - 4.0, colour(one), &format!("{name} {}", one.name));
                let ratio = written_ratio(point);
                self.text(
                    right + 8.0,
                    y,
                    "start",
                    "name",
                    format!("{ratio} {}", point.note).trim(),
                );
            }
        }
        self.text(at(1.0) - 8.0, bottom + 28.0, "end", "note", "← slower");
        self.text(at(1.0) + 8.0, bottom + 28.0, "start", "note", "faster →");
        self.y = bottom + 36.0;
    }

    /// An area with two axes.
    fn area(&mut self, chart: &Chart) {
        self.legend(&chart.series);
        let (left, right, top) = (84.0, WIDTH - 20.0, self.y + 14.0);
        let bottom = top + AREA;
        let points = || chart.series.iter().flat_map(|one| &one.points);
        let columns = match chart.x.categories.len() {
            0 => Range::of(&chart.x, points().map(|point| point.x)),
            count => Range { low: -0.5, high: count as f64 - 0.5, scale: Scale::Linear },
        };
        let rows = Range::of(&chart.y, points().flat_map(ends));
        let x = |value: f64| left + columns.share(value) * (right - left);
        let y = |value: f64| bottom - rows.share(value) * AREA;
        for span in &chart.spans {
            let shade = if span.is_loud() { "#F3C9B5" } else { "#E4E4E4" };
            self.block((x(span.from), x(span.to)), (top, bottom), shade);
        }
        for tick in rows.ticks() {
            self.line((left, y(tick)), (right, y(tick)), "#E4E4E4", 1.0);
            self.text(left - 6.0, y(tick) + 4.0, "end", "note", &written(&chart.y, tick));
        }
        self.text(left - 6.0, top - 6.0, "start", "note", &axis_name(&chart.y));
        self.line((left, bottom), (right, bottom), "#777", 1.0);
        // Names of categories that would overlap are left out.
        let name_width = chart.x.categories.iter().map(|name| name.chars().count()).max();
        let fit = name_width.map_or(1.0, |most| (right - left) / (CHARACTER * (most + 2) as f64));
        let every = (chart.x.categories.len() as f64 / fit.max(1.0)).ceil().max(1.0) as usize;
        for (place, name) in chart.x.categories.iter().enumerate().step_by(every) {
            self.text(x(place as f64), bottom + 14.0, "middle", "note", name);
        }
        if chart.x.categories.is_empty() {
            for tick in columns.ticks() {
                self.text(x(tick), bottom + 14.0, "middle", "note", &written(&chart.x, tick));
            }
        }
        self.text(right, bottom + 28.0, "end", "note", &axis_name(&chart.x));
        for rule in &chart.rules {
            self.line((left, y(rule.value)), (right, y(rule.value)), "#777", 1.0);
            self.text(right, y(rule.value) - 3.0, "end", "note", &rule.label);
        }
        for mark in &chart.marks {
            let colour = chart.series.get(mark.series).map_or(COLOURS[0], colour);
            self.line((x(mark.at), top), (x(mark.at), bottom), colour, 0.7);
            self.text(x(mark.at) + 3.0, top + 10.0, "start", "note", &mark.label);
        }
        for one in &chart.series {
            // A value that is not finite interrupts the line.
            for run in one.points.split(|point| !point.x.is_finite() || !point.y.is_finite()) {
                self.joined(one, run, &x, &y);
            }
        }
        self.y = bottom + 36.0;
    }

    fn joined(
        &mut self,
        series: &Series,
        points: &[Point],
        x: &dyn Fn(f64) -> f64,
        y: &dyn Fn(f64) -> f64,
    ) {
        let mut corners: Vec<(f64, f64)> = Vec::new();
        for point in points {
            let here = (x(point.x), y(point.y));
            if let (Line::Steps, Some(last)) = (series.line, corners.last().copied()) {
                corners.push((here.0, last.1));
            }
            corners.push(here);
            if let Some(interval) = point.interval {
                let (low, high) = (y(interval.low), y(interval.high));
                self.line((here.0, low), (here.0, high), colour(series), 0.7);
            }
            // So few points are no line: each is a second.
            if series.line == Line::None || points.len() <= DOTS_MOST {
                self.dot(here.0, here.1, colour(series), &point.note);
            }
        }
        if series.line != Line::None {
            let corners: Vec<String> =
                corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                self.shapes,
                "<polyline points=\"{}\" stroke=\"{}\"/>",
                corners.join(" "),
                colour(series)
            );
        }
    }
}

fn colour(series: &Series) -> &'static str {
    COLOURS[series.slot % COLOURS.len()]
}

/// A point and the ends of its interval.
fn ends(point: &Point) -> Vec<f64> {
    let interval = point.interval.map(|interval| [interval.low, interval.high]);
    interval.into_iter().flatten().chain([point.y]).collect()
}

fn axis_name(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.name.clone() } else { format!("{}, {}", axis.name, axis.unit) }
}

fn written_ratio(point: &Point) -> String {
    let digits = Digits::Fixed(3);
    let interval = point.interval.map(|interval| {
        format!(" [{}, {}]", digits.write(interval.low), digits.write(interval.high))
    });
    format!("{}{}", digits.write(point.y), interval.unwrap_or_default())
}

/// A value at an axis.
fn written(axis: &Axis, value: f64) -> String {
    match axis.scale {
        Scale::Tail => format!("p{}", Digits::Significant(6).write(100.0 * value)),
        // The nearest number of four digits, without an exponent.
        _ => format!("{value:.3e}").parse::<f64>().unwrap_or(value).to_string(),
    }
}

/// The values from one end of an axis to the other.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Range {
    /// The range of all values that the scale can show, with some room; never empty.
    fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Range {
        let scale = axis.scale;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in values.map(|value| scaled(scale, value)).filter(|place| place.is_finite()) {
            (low, high) = (low.min(place), high.max(place));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if scale == Scale::Linear && axis.from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let room = ((high - low) * 0.04).max(high.abs() * 1e-3).max(1e-9);
        let starts_at_zero = axis.from_zero && low == 0.0;
        Range { low: if starts_at_zero { low } else { low - room }, high: high + room, scale }
    }

    /// Where a value lies, from 0 to 1; what lies outside is at the nearer end.
    fn share(self, value: f64) -> f64 {
        let place = scaled(self.scale, value);
        let share = (place - self.low) / (self.high - self.low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// Round values at which the axis is marked.
    fn ticks(self) -> Vec<f64> {
        let inside = |value: &f64| (self.low..=self.high).contains(&scaled(self.scale, *value));
        match self.scale {
            Scale::Tail => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999]
                .into_iter()
                .filter(inside)
                .collect(),
            Scale::Doubling => {
                (0..40).map(|power| f64::from(power).exp2()).filter(inside).collect()
            }
            Scale::Log if self.high - self.low > 1.0 => {
                let decades = self.low.floor() as i32..=self.high.ceil() as i32;
                let of = |power: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power));
                decades.flat_map(of).filter(inside).collect()
            }
            // A narrow logarithmic axis is nearly linear.
            Scale::Log => round_values(10f64.powf(self.low), 10f64.powf(self.high)),
            Scale::Linear => round_values(self.low, self.high),
        }
    }
}

/// Where a value lies on a scale; not finite for what the scale cannot show.
fn scaled(scale: Scale, value: f64) -> f64 {
    match scale {
        Scale::Linear => value,
        Scale::Log | Scale::Doubling => value.log10(),
        Scale::Tail => -(1.0 - value).log10(),
    }
}

/// Four to ten multiples of 1, 2 or 5 times a power of ten.
fn round_values(low: f64, high: f64) -> Vec<f64> {
    let raw = (high - low) / 6.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power);
    let step = step.into_iter().find(|step| *step >= raw).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    (first..=(high / step).floor() as i64).take(12).map(|count| count as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_stats::Interval;

    fn numbers(text: &str, from: &str) -> Vec<f64> {
        let parts = text.split(from).skip(1);
        parts.map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
    }

    fn forest(name: &str) -> Chart {
        let mut chart = Chart::new("x", "A < B", Form::Forest).axes(
            Axis::of_categories("step", vec![name.to_owned(), "empty".to_owned()]),
            Axis::log("rQPS", ""),
        );
        let mut series = Series::new("b", 1, Line::None);
        let interval = Some(Interval { low: 0.25, high: 1.0 });
        series.points.push(Point::at(0.0, 0.5).within(interval).noted("SLOWER"));
        series.points.push(Point::at(1.0, f64::INFINITY));
        chart.series = vec![series];
        chart
    }

    #[test]
    fn a_forest_has_a_row_for_each_finite_ratio_at_its_place() {
        let svg = svg(&[forest("point-query")]);
        assert!(svg.contains("0.500 [0.250, 1.000] SLOWER"), "{svg}");
        let dots = numbers(&svg, "cx=\"");
        assert_eq!(dots.len(), 1);
        // On a logarithmic axis the ratio lies in the middle of its interval.
        let line = svg.lines().find(|line| line.contains("stroke=\"#0072B2\"")).unwrap();
        let ends = [numbers(line, "x1=\"")[0], numbers(line, "x2=\"")[0]];
        assert!((dots[0] - (ends[0] + ends[1]) / 2.0).abs() < 0.11, "{dots:?} {ends:?}");
    }

    #[test]
    fn names_are_text_and_never_markup() {
        let svg = svg(&[forest("<script>alert(1)</script>&\u{1b}")]);
        assert!(svg.contains("A &lt; B") && svg.contains("&lt;script"), "{svg}");
        assert!(!svg.contains("<script") && !svg.contains('\u{1b}'), "{svg}");
    }

    #[test]
    fn a_value_that_is_not_finite_interrupts_a_line() {
        let mut chart = Chart::new("x", "t", Form::Lines);
        let mut series = Series::new("a", 0, Line::Straight);
        series.points = [1.0, 2.0, f64::NAN, 4.0, 5.0]
            .map(|y| Point::at(if y > 0.0 { y } else { 3.0 }, y))
            .into();
        chart.series = vec![series];
        assert_eq!(svg(&[chart]).matches("<polyline").count(), 2);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(round_values(0.0, 10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let range = |low: f64, high: f64, scale| Range { low, high, scale };
        assert_eq!(range(-1.0, 1.0, Scale::Log).ticks(), [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
        assert_eq!(range(0.0, 2.0, Scale::Doubling).ticks().len(), 7);
        assert_eq!(range(0.5, 3.1, Scale::Tail).ticks(), [0.9, 0.99, 0.999]);
    }
}
