//! Blocks of a document as HTML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::RunLink;
use crate::document::{
    Axis, Block, Cell, CellValue, Chart, Column, Digits, Fold, Form, Heat, HeatCell, HeatRow, Line,
    Mark, Point, Ratio, Scale, Series, Table, word,
};
use crate::stacks::Flame;
use rqps_model::escape;
use rqps_model::escape::{attribute, html as text};
use rqps_model::metric::Direction;
use rqps_model::verdict::Verdict;
use rqps_stats::summary::median;

/// Cells with more characters than this may wrap.
const LONG_CELL: usize = 40;

/// Tables with more rows than this exceed a screen.
const TALL_TABLE: usize = 60;

/// Writes blocks and collects the data for scripts.
pub(super) struct Writer {
    /// Folder → index in the list of runs.
    places: BTreeMap<String, usize>,
    /// Ids in use, so that each id is unique.
    ids: BTreeSet<String>,
    /// Script elements with JSON.
    data: String,
    /// Nesting depth of folds at the current position.
    depth: usize,
}

impl Writer {
    pub(super) fn new(runs: &[RunLink]) -> Writer {
        let places = runs.iter().enumerate().map(|(place, run)| (run.folder.clone(), place));
        Writer { places: places.collect(), ids: BTreeSet::new(), data: String::new(), depth: 0 }
    }

    /// The collected script elements.
    pub(super) fn into_data(self) -> String {
        self.data
    }

    pub(super) fn push_blocks(&mut self, html: &mut String, within: &str, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Paragraph(prose) => {
                    let _ = writeln!(html, "<p>{}</p>", text(prose));
                }
                Block::Facts(facts) => push_facts(html, facts),
                Block::Lines(lines) => {
                    let _ = writeln!(html, "<pre>{}</pre>", text(&lines.join("\n")));
                }
                Block::List(points) => {
                    html.push_str("<ul>");
                    for point in points {
                        let _ = write!(html, "<li>{}</li>", text(point));
                    }
                    html.push_str("</ul>\n");
                }
                Block::Table(table) => self.push_table(html, table),
                Block::Chart(chart) => self.push_chart(html, chart),
                Block::Heat(heat) => self.push_heat(html, heat),
                Block::Flame(flame) => self.push_flame(html, flame),
                Block::Fold(fold) => self.push_fold(html, within, fold),
            }
        }
    }

    fn push_fold(&mut self, html: &mut String, within: &str, fold: &Fold) {
        let id = format!("{within}-{}", id(&fold.summary));
        self.push_details(html, &id, &text(&fold.summary), &fold.blocks);
    }

    /// With scripts, the browser keeps folded content as text until someone opens it: layout of
    /// thousands of hidden cells would dominate the load time. Without scripts, the content is
    /// visible.
    pub(super) fn push_details(
        &mut self,
        html: &mut String,
        id: &str,
        summary: &str,
        blocks: &[Block],
    ) {
        let id = self.unique(id);
        // Such an element cannot contain another one.
        let (open, close) =
            if self.depth == 0 { ("<noscript>", "</noscript>") } else { Default::default() };
        let _ = writeln!(
            html,
            "<details id=\"{id}\"><summary>{summary}</summary><div class=\"in\">{open}"
        );
        self.depth += 1;
        self.push_blocks(html, &id, blocks);
        self.depth -= 1;
        let _ = writeln!(html, "{close}</div></details>");
    }

    fn push_chart(&mut self, html: &mut String, chart: &Chart) {
        let id = self.unique(&id(&chart.id));
        let _ = write!(
            html,
            "<figure class=\"chart\" id=\"{id}\" data-json=\"{id}\"><figcaption>{}</figcaption>\
             <div class=\"plot needs-script\" role=\"img\" aria-label=\"{}\"></div>",
            text(&chart.title),
            attribute(&description(chart)),
        );
        for note in &chart.notes {
            let _ = write!(html, "<p class=\"notes\">{}</p>", text(note));
        }
        html.push_str("</figure>\n");
        push_json(&mut self.data, &id, &chart_json(chart, &self.places));
    }

    fn push_heat(&mut self, html: &mut String, heat: &Heat) {
        let id = self.unique("heat");
        let _ = writeln!(
            html,
            "<div class=\"heat\" data-json=\"{id}\"><p>This table needs JavaScript. The steps \
             below have the same numbers.</p></div>"
        );
        push_json(&mut self.data, &id, &heat_json(heat, &self.places));
    }

    fn push_flame(&mut self, html: &mut String, flame: &Flame) {
        let id = self.unique(&id(&flame.title));
        let _ = writeln!(
            html,
            "<figure id=\"{id}\" data-flame=\"{id}\"><figcaption>{}</figcaption>\
             <div class=\"flame needs-script\"></div></figure>",
            text(&flame.title),
        );
        push_json(&mut self.data, &id, &flame_json(flame));
    }

    fn push_table(&mut self, html: &mut String, table: &Table) {
        match table.rows.len() {
            rows if rows > TALL_TABLE => {
                let _ = write!(html, "<div class=\"scroll tall\" style=\"--rows:{rows}\"><table>");
            }
            _ => html.push_str("<div class=\"scroll\"><table>"),
        }
        if !table.caption.is_empty() {
            // The published dashes are for text only.
            let caption = table.caption.trim_start_matches("--- ");
            let _ = write!(html, "<caption>{}</caption>", text(caption));
        }
        html.push_str("<thead><tr>");
        for column in &table.columns {
            let class = match (column.right, column.names_row) {
                (true, _) => " class=\"n\"",
                (_, true) => " class=\"pin\"",
                _ => "",
            };
            let title = match column.legend {
                "" => String::new(),
                legend => format!(" title=\"{}\"", attribute(legend)),
            };
            let head = text(&column.head);
            let _ = write!(html, "<th scope=\"col\"{class}{title}>{head}</th>");
        }
        html.push_str("</tr></thead><tbody>\n");
        for row in &table.rows {
            self.push_row(html, table, row);
        }
        html.push_str("</tbody></table></div>\n");
    }

    /// If all numbers of a row come from the same runs, the row links there (scripts add a button
    /// at its end); otherwise each cell links by itself.
    fn push_row(&self, html: &mut String, table: &Table, row: &[Cell]) {
        let mut sources: Vec<&[String]> =
            row.iter().map(|cell| &*cell.runs).filter(|runs| !runs.is_empty()).collect();
        sources.dedup();
        let shared = if sources.len() == 1 { self.runs(sources[0]) } else { String::new() };
        if shared.is_empty() {
            html.push_str("<tr>")
        } else {
            let _ = write!(html, "<tr data-r=\"{shared}\">");
        }
        for (cell, column) in row.iter().zip(&table.columns) {
            let own = if shared.is_empty() { self.runs(&cell.runs) } else { String::new() };
            push_cell(html, cell, column, &own);
        }
        html.push_str("</tr>\n");
    }

    /// Indexes of folders in the list of runs, separated by blanks.
    fn runs(&self, folders: &[String]) -> String {
        let places = folders.iter().filter_map(|folder| self.places.get(folder));
        places.map(usize::to_string).collect::<Vec<_>>().join(" ")
    }

    fn unique(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        let mut number = 2;
        while !self.ids.insert(id.clone()) {
            id = format!("{wanted}-{number}");
            number += 1;
        }
        id
    }
}

fn push_facts(html: &mut String, facts: &[(String, String)]) {
    html.push_str("<dl>");
    for (name, value) in facts {
        let _ = write!(html, "<dt>{}</dt><dd>{}</dd>", text(name), text(value));
    }
    html.push_str("</dl>\n");
}

fn push_cell(html: &mut String, cell: &Cell, column: &Column, runs: &str) {
    let mut class = String::from(if column.right { "n" } else { "" });
    if let CellValue::Text(words) = &cell.value
        && !column.right
    {
        class.push_str(if words.chars().count() > LONG_CELL { "long" } else { "w" });
    }
    if column.names_row {
        class.push_str(" pin");
    }
    let mut style = String::new();
    if let Some((kind, strength)) = tone(cell) {
        let _ = write!(class, " t {kind}");
        let _ = write!(style, " style=\"--a:{strength}%\"");
    }
    if let Some(mark) = cell.mark {
        let Mark { colour, meaning, .. } = mark;
        let meaning = attribute(meaning);
        let _ = match colour {
            Mark::NO_COLOUR => write!(style, " title=\"{meaning}\""),
            // Published colours are light, so they need dark text even in dark mode.
            _ => write!(style, " style=\"background:{colour};color:#111\" title=\"{meaning}\""),
        };
    }
    let class = if class.is_empty() { class } else { format!(" class=\"{}\"", class.trim()) };
    let runs = if runs.is_empty() { String::new() } else { format!(" data-r=\"{runs}\"") };
    let _ = write!(html, "<td{class}{style}{runs}>");
    if let Some(link) = &cell.link {
        let _ = write!(html, "<a href=\"{}\">", attribute(link));
    }
    match &cell.value {
        CellValue::Text(words) => html.push_str(&text(words)),
        CellValue::Missing(why) => {
            let _ = write!(html, "<span class=\"none\" title=\"{}\">–</span>", attribute(why));
        }
        CellValue::Number(number, digits) => push_number(html, cell, *number, *digits),
    }
    if cell.link.is_some() {
        html.push_str("</a>");
    }
    html.push_str("</td>");
}

fn push_number(html: &mut String, cell: &Cell, number: f64, digits: Digits) {
    html.push_str(&digits.write(number));
    if let Some(mark) = cell.mark.filter(|mark| mark.colour == Mark::NO_COLOUR) {
        html.push_str(&text(mark.sign));
    }
    if let Some(interval) = cell.interval {
        let (low, high) = (digits.write(interval.low), digits.write(interval.high));
        let _ = write!(html, " <span class=\"ci\">[{low}, {high}]</span>");
    }
}

/// Class and strength of the colour of a comparison, in per cent: none if the interval contains 1,
/// full from a factor of 2 on.
fn tone(cell: &Cell) -> Option<(&'static str, u32)> {
    let tone = cell.tone?;
    let open = cell.interval.is_some_and(|interval| interval.low <= 1.0 && interval.high >= 1.0);
    if open || tone.abs() < 0.005 || tone.is_nan() {
        return None;
    }
    let kind = if tone < 0.0 { "worse" } else { "better" };
    let strength = 8.0 + 55.0 * (tone.abs() / std::f64::consts::LN_2).min(1.0);
    Some((kind, strength.round() as u32))
}

// Chart data as compact JSON: columns of numbers instead of objects, six digits.

/// Series with more points than this have reduced precision.
const LOOKED_AT: usize = 20;

/// Folder → index in the list of runs.
type Places = BTreeMap<String, usize>;

/// A script element with JSON.
pub(super) fn push_json(html: &mut String, id: &str, json: &str) {
    let json = in_script(json);
    let _ = writeln!(html, "<script type=\"application/json\" id=\"data-{id}\">{json}</script>");
}

/// Address and name of every run.
pub(super) fn runs(runs: &[RunLink]) -> String {
    list(runs, |run| format!("[{},{}]", quoted(&address(&run.address)), quoted(&run.name)))
}

/// Text alternative of a chart.
pub(super) fn description(chart: &Chart) -> String {
    let points = || chart.series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let finite = || points().filter(|y| y.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let digits = Digits::Significant(4);
    format!(
        "{}. {} series; {} from {} to {} {}. The tables have the numbers.",
        chart.title,
        chart.series.len(),
        chart.y.name,
        digits.write(low),
        digits.write(high),
        chart.y.unit,
    )
}

/// One chart.
fn chart_json(chart: &Chart, places: &Places) -> String {
    let form = match chart.form {
        Form::Forest => "forest",
        Form::Lines => "lines",
        Form::Points => "points",
    };
    let spans = list(&chart.spans, |span| {
        let series = span.series.map_or("null".to_owned(), |series| series.to_string());
        let (from, to, label) = (number(span.from), number(span.to), quoted(&span.label));
        format!("[{from},{to},{series},{label},{}]", span.is_loud())
    });
    let margin = chart.margin.map_or("null".to_owned(), |margin| {
        format!("[{},{}]", number(margin.low), number(margin.high))
    });
    let rules =
        list(&chart.rules, |rule| format!("[{},{}]", number(rule.value), quoted(&rule.label)));
    // Most charts have none.
    let marks = if chart.marks.is_empty() {
        String::new()
    } else {
        format!(
            "\"marks\":{},",
            list(&chart.marks, |mark| {
                format!("[{},{},{}]", number(mark.at), quoted(&mark.label), mark.series)
            })
        )
    };
    format!(
        "{{\"title\":{},\"form\":\"{form}\",\"x\":{},\"y\":{},\"spans\":{spans},\
         \"rules\":{rules},{marks}\"margin\":{margin},\"series\":{}}}",
        quoted(&chart.title),
        axis(&chart.x),
        axis(&chart.y),
        all_series(chart, places),
    )
}

fn all_series(chart: &Chart, places: &Places) -> String {
    let before = |place: usize| place.checked_sub(1).map(|before| &chart.series[before]);
    let all: Vec<(usize, &Series)> = chart.series.iter().enumerate().collect();
    list(&all, |(place, one)| series(one, before(*place), places))
}

/// A flame graph: each frame is its caller + 1 (0 for none), name, times of baseline and target,
/// and the change of its function.
fn flame_json(flame: &Flame) -> String {
    let mut frames = String::from("[");
    for (place, frame) in flame.frames.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let caller = frame.caller.map_or(0, |caller| caller + 1);
        let digits = Digits::Significant(4);
        let (baseline, target) = (digits.write(frame.baseline), digits.write(frame.target));
        let change = Digits::Significant(2).write(frame.change);
        let _ = write!(frames, "{comma}{caller},{},{baseline},{target},{change}", frame.name);
    }
    frames.push(']');
    format!(
        "{{\"title\":{},\"baseline\":{},\"target\":{},\"names\":{},\"frames\":{frames}}}",
        quoted(&flame.title),
        quoted(&flame.baseline),
        quoted(&flame.target),
        list(&flame.names, |name| quoted(name)),
    )
}

fn axis(axis: &Axis) -> String {
    let scale = match axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Doubling => "log2",
        Scale::Tail => "tail",
    };
    format!(
        "{{\"n\":{},\"u\":{},\"s\":\"{scale}\",\"z\":{},\"c\":{}}}",
        quoted(&axis.name),
        quoted(&axis.unit),
        axis.from_zero,
        list(&axis.categories, |name| quoted(name)),
    )
}

/// Omits empty columns, x if it counts from 0, and values equal to those of the previous series
/// (`before`), because runs of one target differ only in their numbers.
fn series(series: &Series, before: Option<&Series>, places: &Places) -> String {
    let line = match series.line {
        Line::None => "none",
        Line::Straight => "straight",
        Line::Steps => "steps",
    };
    let points = &series.points;
    let mut json = String::from("{");
    if before.is_none_or(|before| before.name != series.name) {
        let _ = write!(json, "\"n\":{},", quoted(&series.name));
    }
    if before.is_none_or(|before| (before.slot, before.line) != (series.slot, series.line)) {
        let _ = write!(json, "\"s\":{},\"l\":\"{line}\",", series.slot);
    }
    if let Some((start, step)) = even(points) {
        if (start, step) != (0.0, 1.0) {
            let _ = write!(json, "\"xs\":[{},{}],", number(start), number(step));
        }
    } else {
        let _ = write!(json, "\"x\":{},", list(points, |point| number(point.x)));
    }
    json.push_str(&heights(points));
    if points.iter().any(|point| !point.note.is_empty()) {
        let _ = write!(json, ",\"t\":{}", list(points, |point| quoted(&point.note)));
    }
    if points.iter().any(|point| !point.runs.is_empty()) {
        let _ = write!(json, ",\"r\":{}", list(points, |point| of_runs(&point.runs, places)));
    }
    if !series.runs.is_empty() {
        let _ = write!(json, ",\"R\":{}", of_runs(&series.runs, places));
    }
    json.push('}');
    json
}

/// Values and their intervals. A line with many points has reduced precision: `y` counts units of
/// `k`, and `lo` and `hi` are distances below and above in these units.
fn heights(points: &[Point]) -> String {
    let unit = if points.len() > LOOKED_AT { unit(points) } else { None };
    let has_interval = points.iter().any(|point| point.interval.is_some());
    let ends = |point: &Point| {
        point.interval.map_or((f64::NAN, f64::NAN), |interval| (interval.low, interval.high))
    };
    let Some(unit) = unit else {
        let mut json = format!("\"y\":{}", list(points, |point| number(point.y)));
        if has_interval {
            let low = list(points, |point| number(ends(point).0));
            let high = list(points, |point| number(ends(point).1));
            let _ = write!(json, ",\"lo\":{low},\"hi\":{high}");
        }
        return json;
    };
    let units = |value: f64| rounded(value / unit);
    let ys = list(points, |point| {
        let (value, decimals) = units(point.y);
        written(value, decimals)
    });
    let mut json = format!("\"k\":{},\"y\":{ys}", number(unit));
    if has_interval {
        let apart = |low: f64, high: f64| {
            let ((low, of_low), (high, of_high)) = (units(low), units(high));
            written(high - low, of_low.max(of_high))
        };
        let low = list(points, |point| apart(ends(point).0, point.y));
        let high = list(points, |point| apart(point.y, ends(point).1));
        let _ = write!(json, ",\"lo\":{low},\"hi\":{high}");
    }
    json
}

/// The number of units, with as many decimals as needed: none if an integer is within half a per
/// cent of the value. Much smaller values, such as a second of a stall, keep decimals.
fn rounded(units: f64) -> (f64, usize) {
    let size = units.abs().log10().floor();
    let decimals = if size.is_finite() { (2.0 - size).clamp(0.0, 15.0) as usize } else { 0 };
    let power = 10_f64.powi(decimals as i32);
    ((units * power).round() / power, decimals)
}

/// Removes trailing zeros.
fn written(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match decimals {
        _ if value.is_nan() => "null".to_owned(),
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// A round unit such that the median value has 400 to 1000 units, so that the rounding is invisible
/// in a chart; `None` without such a value, or with an infinite value.
fn unit(points: &[Point]) -> Option<f64> {
    let sizes: Vec<f64> = points
        .iter()
        .flat_map(|point| {
            let interval =
                point.interval.map_or([0.0; 2], |interval| [interval.low, interval.high]);
            [point.y, interval[0], interval[1]]
        })
        .map(f64::abs)
        .filter(|size| *size > 0.0)
        .collect();
    let median = median(&sizes)
        .filter(|median| sizes.iter().all(|size| size.is_finite() && *size < 1e12 * median))?;
    let power = 10_f64.powi(median.log10().floor() as i32);
    let round = [2.0, 5.0, 10.0].into_iter().find(|round| median <= round * power);
    round.map(|round| round * power / 1000.0)
}

/// Start and step of evenly spaced points. Clock deviations of seconds are too small to see. The
/// last interval may be shorter, and then ends slightly early.
fn even(points: &[Point]) -> Option<(f64, f64)> {
    let [first, .., before, last] = points else {
        return points.iter().enumerate().all(|(i, p)| p.x == i as f64).then_some((0.0, 1.0));
    };
    let spaces = (points.len() - 2).max(1) as f64;
    let step = (before.x - first.x) / spaces;
    let off = |(place, point): (usize, &Point)| (first.x + step * place as f64 - point.x).abs();
    let even = points[..points.len() - 1].iter().enumerate().all(|at| off(at) <= 0.05 * step);
    (even && step > 0.0 && off((points.len() - 1, last)) <= 0.5 * step).then_some((first.x, step))
}

fn of_runs(folders: &[String], places: &Places) -> String {
    let known: Vec<usize> =
        folders.iter().filter_map(|folder| places.get(folder).copied()).collect();
    list(&known, usize::to_string)
}

/// The overview: metrics (`n` name, `u` unit, `up` more is better, null if neither direction is)
/// and steps (`n` name, `g` group, `u` unit of the rate, `h` id of its part of the page, `f` file
/// names, `c` targets).
fn heat_json(heat: &Heat, places: &Places) -> String {
    let words = |of_rate: bool| list(&Verdict::ALL, |v| quoted(word(*v, of_rate)));
    let ratios = || heat.steps.iter().flat_map(|step| &step.cells).flat_map(|cell| &cell.ratios);
    let judged = ratios().flatten().any(|ratio| ratio.verdict.is_some());
    format!(
        "{{\"targets\":{},\"judged\":{judged},\"verdicts\":[{},{}],\"metrics\":{},\"steps\":{}}}",
        list(&heat.targets, |label| quoted(label)),
        words(true),
        words(false),
        list(&heat.metrics, |metric| {
            let (name, unit) = (quoted(metric.name), quoted(metric.unit));
            let up = match metric.better {
                Direction::Higher => "true",
                Direction::Lower => "false",
                Direction::Neither => "null",
            };
            format!("{{\"n\":{name},\"u\":{unit},\"up\":{up}}}")
        }),
        list(&heat.steps, |step| heat_row(step, places)),
    )
}

fn heat_row(row: &HeatRow, places: &Places) -> String {
    let mut files: Vec<&str> = Vec::new();
    for sample in row.cells.iter().flat_map(|cell| &cell.samples) {
        if !files.contains(&sample.file.as_str()) {
            files.push(&sample.file);
        }
    }
    format!(
        "{{\"n\":{},\"g\":{},\"u\":{},\"h\":{},\"f\":{},\"c\":{}}}",
        quoted(&row.name),
        quoted(row.group),
        quoted(row.unit),
        quoted(&format!("steps-{}", id(&row.name))),
        list(&files, |file| quoted(file)),
        list(&row.cells, |cell| heat_cell(cell, &files, places)),
    )
}

/// `m` a ratio for each metric, `a` absolute medians, `s` samples, `x` why the cell is empty.
fn heat_cell(cell: &HeatCell, files: &[&str], places: &Places) -> String {
    let samples = list(&cell.samples, |sample| {
        let run = places.get(&sample.folder).copied().unwrap_or(0);
        let file = files.iter().position(|file| *file == sample.file).unwrap_or(0);
        format!("[{run},{file},{}]", list(&sample.values, |value| optional(*value)))
    });
    let ratios: Vec<String> = cell
        .ratios
        .iter()
        .enumerate()
        .map(|(metric, ratio)| heat_ratio(ratio.as_ref(), metric == 0))
        .collect();
    let mut json = format!(
        "{{\"m\":[{}],\"a\":{},\"s\":{samples}",
        ratios.join(","),
        list(&cell.absolute, |value| optional(*value)),
    );
    if !cell.missing.is_empty() {
        let _ = write!(json, ",\"x\":{}", quoted(&cell.missing));
    }
    json.push('}');
    json
}

/// Ratio, low, high, pairs, index of the verdict; for a rate also the evidence of the verdict.
fn heat_ratio(ratio: Option<&Ratio>, with_reason: bool) -> String {
    let Some(ratio) = ratio else { return "null".to_owned() };
    // JSON has no infinity; this number reads back as infinity.
    let value = if ratio.ratio.is_infinite() { "1e999".to_owned() } else { number(ratio.ratio) };
    let low = optional(ratio.interval.map(|interval| interval.low));
    let high = optional(ratio.interval.map(|interval| interval.high));
    let verdict = ratio.verdict.and_then(|verdict| Verdict::ALL.iter().position(|v| *v == verdict));
    let mut json = format!("[{value},{low},{high},{}", ratio.pairs);
    if let Some(verdict) = verdict {
        let _ = write!(json, ",{verdict}");
        if with_reason && !ratio.reason.is_empty() {
            let _ = write!(json, ",{}", quoted(&ratio.reason));
        }
    }
    json.push(']');
    json
}

fn list<T>(items: &[T], write: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(write).collect();
    format!("[{}]", items.join(","))
}

fn optional(value: Option<f64>) -> String {
    value.map_or("null".to_owned(), number)
}

/// Six digits; NaN becomes `null`, infinity `"inf"`.
fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "null".to_owned(),
        _ if value.is_infinite() => "\"inf\"".to_owned(),
        _ => Digits::Significant(6).write(value),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Converts a name to an `id`: characters that are unsafe in an address become `-`.
pub(crate) fn id(raw: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    raw.chars().map(|c| if safe(c) { c } else { '-' }).collect()
}

/// Escapes JSON inside a script element, so that nothing in it looks like the end of the script.
fn in_script(json: &str) -> String {
    escape::json(json).replace('<', "\\u003c")
}

/// Encodes a path as a relative address: everything except slashes and unreserved characters.
pub(super) fn address(path: &str) -> String {
    let mut address = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                address.push(char::from(byte));
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod data_tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(id("read-only.pre_range=100 (x)"), "read-only.pre_range=100--x-");
        assert_eq!(in_script(r#"{"a":"</script>"}"#), r#"{"a":"\u003c/script>"}"#);
        assert_eq!(address("../a b/c#d%é"), "../a%20b/c%23d%25%C3%A9");
    }
}
