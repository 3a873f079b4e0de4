//! Ladders and histories over time as documents, flat tables and JSON.

use std::collections::BTreeSet;

use super::document::{
    Axis, Block, Cell, ChangeMark, Chart, Column, Digits, Document, Form, Line, Mark, Placed,
    Point, Section, Series, Table, name_of_row, numbers, words,
};
use super::export::quoted;
use super::form::versioned;
use super::tables;
use rqps_analysis::Comparison;
use rqps_analysis::history::{
    DateHistory, DatePoint, HostChange, Ladder, LadderOptions, LevelChange, Rung, StepDates,
    StepLadder, VersionPoint, ladders,
};
use rqps_model::metric::Metric;
use rqps_model::units::counted;

/// Version of the JSON form; it grows when a reader would have to change.
pub const HISTORY_SCHEMA: u32 = 1;

/// With more steps than this, their charts are folded.
const CHARTS_OPEN: usize = 6;

const OUTLIER: Mark =
    Mark { sign: "*", colour: "#D7D7D7", meaning: "off by itself: its neighbours share a level" };
const CHANGED: Mark = Mark { sign: "!", colour: "#E0C060", meaning: "a new level begins here" };
const STEADY: Mark = Mark { sign: " ", colour: Mark::NO_COLOUR, meaning: "" };

/// The changes along the versions of a report on many targets, by one metric, with a chart for each
/// step: none of few targets, of unknown versions, and of metrics without values.
pub(super) fn of_report(comparison: &Comparison, metric: Metric) -> Vec<Section> {
    if !tables::is_ladder(comparison) {
        return Vec::new();
    }
    let several = by_version(comparison, metric);
    let section = |ladder: &Ladder| {
        let mut section = changes(ladder);
        section.blocks.push(Block::text(
            "rqps divides the versions of each step into levels (docs/history.md). The command \
             rqps history has more options.",
        ));
        let charts = ladder.steps.iter().map(|step| Block::Chart(chart(ladder, step)));
        match ladder.steps.len() {
            0..=CHARTS_OPEN => section.blocks.extend(charts),
            count => {
                let summary = format!("Charts of {count} steps by version");
                section.blocks.push(Block::fold(summary, charts.collect()));
            }
        }
        section
    };
    several.iter().map(section).collect()
}

/// The ladders of at least three known versions.
fn by_version(comparison: &Comparison, metric: Metric) -> Vec<Ladder> {
    let options = LadderOptions { metric, order: None, branches: false };
    // An order of the user's is the only one that can be wrong.
    let mut found = ladders(comparison, &options).unwrap_or_default();
    found.retain(|ladder| ladder.by_version && ladder.rungs.len() > 2);
    found
}

/// A chart of each of these steps by version.
pub(super) fn charts(
    comparison: &Comparison,
    metric: Metric,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Vec<Chart> {
    let of_ladder = |ladder: &Ladder| -> Vec<Chart> {
        let steps = ladder.steps.iter().filter(|step| is_wanted(&step.step));
        steps.map(|step| chart(ladder, step)).collect()
    };
    by_version(comparison, metric).iter().flat_map(of_ladder).collect()
}

/// A step by version: points with intervals, levels as steps, changes as marks.
fn chart(ladder: &Ladder, step: &StepLadder) -> Chart {
    let names: Vec<String> = ladder.rungs.iter().map(|rung| rung.name().to_owned()).collect();
    let title = format!("{}: {} by version of {}", step.step, ladder.metric, ladder.family);
    let y = Axis::linear(format!("{} relative to {}", ladder.metric, names[0]), "").fitted();
    let id = format!("ladder-{}-{}", ladder.metric, step.step);
    let mut chart =
        Chart::new(id, title, Form::Points).axes(Axis::of_categories("version", names), y);
    let mut values = Series::new(&*ladder.family, 1, Line::None);
    let mut levels = Series::new(&*ladder.family, 1, Line::Steps);
    for (place, point) in step.points.iter().enumerate() {
        let Some(point) = point else { continue };
        let x = place as f64;
        let change = step.changes.iter().find(|change| change.at == place);
        let note = match (point.outlier, change) {
            (true, _) => format!("{}: {}", ladder.rungs[place].label, OUTLIER.meaning),
            (false, Some(_)) => format!("{}: {}", ladder.rungs[place].label, CHANGED.meaning),
            (false, None) => ladder.rungs[place].label.clone(),
        };
        values.points.push(Point::at(x, point.ratio).within(point.interval).noted(note));
        levels.points.push(Point::at(x, point.level).noted("level"));
        chart.marks.extend(change.map(|change| ChangeMark {
            at: x,
            label: format!("×{}", digits(ladder).write(change.ratio)),
            series: 0,
        }));
    }
    chart.series = vec![values, levels];
    chart
}

/// The document of ladders: what changed where, and all points.
pub fn history_document(ladders: &[Ladder]) -> Document {
    let labels: Vec<String> = ladders
        .iter()
        .map(|ladder| format!("{} ({} versions)", ladder.family, ladder.rungs.len()))
        .collect();
    let mut sections = Vec::new();
    for ladder in ladders {
        sections.push(changes(ladder));
        sections.push(points(ladder));
    }
    sections.push(how_to_read());
    Document { title: format!("rqps history: {}", labels.join("; ")), sections }
}

fn changes(ladder: &Ladder) -> Section {
    let mut blocks = vec![Block::Paragraph(found(ladder))];
    let of_steps = ladder.steps.iter().flat_map(|step| step.changes.iter().map(move |c| (step, c)));
    let mut all: Vec<(&StepLadder, &LevelChange)> = of_steps.collect();
    // By version, the largest change first: what a release did stands together.
    let size = |change: &LevelChange| change.ratio.ln().abs();
    all.sort_by(|(_, a), (_, b)| a.at.cmp(&b.at).then(size(b).total_cmp(&size(a))));
    let row = |(step, change): &(&StepLadder, &LevelChange)| {
        let ratio = Cell::number(change.ratio, Digits::Fixed(3), "ratio");
        [
            words("since", Cell::text(ladder.rungs[change.at].name())),
            words("after", Cell::text(ladder.rungs[change.after].name())),
            numbers("new / old level", ratio.within(Some(change.interval))),
            name_of_row("step", &*step.step),
        ]
    };
    if let Some(table) = Table::of("", all.iter().map(row)) {
        blocks.extend([Block::List(releases(ladder, &all)), Block::Table(table)]);
    }
    if ladder.chains.len() > 1 {
        blocks.push(Block::Paragraph(along_branches(ladder)));
    }
    if !ladder.broken.is_empty() {
        let labels = ladder.broken.join(", ");
        blocks.push(Block::Paragraph(format!("Left out, all values are 0: {labels}.")));
    }
    if !ladder.by_version {
        let text = "The order is that of the plan or of --order: not every version is known.";
        blocks.push(Block::text(text));
    }
    let heading = format!("Changes of {}: {}", ladder.metric, ladder.family);
    Section::new("changes", heading, blocks)
}

fn found(ladder: &Ladder) -> String {
    let count: usize = ladder.steps.iter().map(|step| step.changes.len()).sum();
    let with = ladder.steps.iter().filter(|step| !step.changes.is_empty()).count();
    let outliers = |step: &StepLadder| step.points.iter().flatten().filter(|p| p.outlier).count();
    let out: usize = ladder.steps.iter().map(outliers).sum();
    let first = ladder.rungs.first().map_or("", |rung| rung.name());
    let last = ladder.rungs.last().map_or("", |rung| rung.name());
    let plural = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    format!(
        "From {first} to {last}: {} in {with} of {}; {}.",
        plural(count, "change"),
        plural(ladder.steps.len(), "step"),
        plural(out, "outlier")
    )
}

fn along_branches(ladder: &Ladder) -> String {
    let name = |at: &usize| ladder.rungs[*at].name();
    let trunk: Vec<&str> = ladder.chains[0].iter().map(name).collect();
    let ends = |chain: &Vec<usize>| match (chain.first(), chain.last()) {
        (Some(first), Some(last)) => format!("{} … {}", name(first), name(last)),
        _ => String::new(),
    };
    let branches: Vec<String> = ladder.chains[1..].iter().map(ends).collect();
    format!(
        "Changes are those along the first versions of the branches ({}) and along the branches \
         {}.",
        trunk.join(", "),
        branches.join(", ")
    )
}

/// A line for each version that changed steps, the oldest first.
fn releases(ladder: &Ladder, changes: &[(&StepLadder, &LevelChange)]) -> Vec<String> {
    let digits = digits(ladder);
    let lines = changes.chunk_by(|(_, a), (_, b)| a.at == b.at).map(|same| {
        let ratios: Vec<f64> = same.iter().map(|(_, change)| change.ratio).collect();
        let range = |of: fn(f64) -> bool| {
            let some: Vec<f64> = ratios.iter().copied().filter(|ratio| of(*ratio)).collect();
            let least = some.iter().copied().fold(f64::INFINITY, f64::min);
            let most = some.iter().copied().fold(0.0, f64::max);
            match some.len() {
                0 => None,
                1 => Some(format!("1 step to {}", digits.write(least))),
                count => {
                    let (least, most) = (digits.write(least), digits.write(most));
                    Some(format!("{count} steps to {least} … {most}"))
                }
            }
        };
        let down = range(|ratio| ratio < 1.0);
        let up = range(|ratio| ratio >= 1.0);
        let parts: Vec<String> = [down, up].into_iter().flatten().collect();
        format!("{}: {}", ladder.rungs[same[0].1.at].name(), parts.join("; "))
    });
    lines.collect()
}

fn points(ladder: &Ladder) -> Section {
    let mut columns = vec![Column::of_row("step")];
    let row = ladder.steps.iter().map(|step| step.step.chars().count()).max().unwrap_or(0);
    let heads = tables::heads(ladder.rungs.iter().map(Rung::name), row);
    columns.extend(heads.names.iter().map(Column::numbers));
    let remarks = ladder.steps.iter().any(|step| !step.remarks.is_empty());
    if remarks {
        columns.push(Column::words("author's remark"));
    }
    let rows = ladder.steps.iter().map(|step| {
        let changed = |at: usize| step.changes.iter().any(|change| change.at == at);
        let cells = step.points.iter().enumerate().map(|(at, point)| match point {
            None => Cell::missing("not measured"),
            Some(point) => point_cell(point, changed(at), digits(ladder)),
        });
        let remark = remarks.then(|| Cell::text(step.remarks.join("; ")));
        std::iter::once(Cell::text(step.step.clone())).chain(cells).chain(remark).collect()
    });
    let table = Table::new("", columns, rows.collect());
    let configs: BTreeSet<&str> = ladder.rungs.iter().map(|rung| rung.config.as_str()).collect();
    let legend = ladder.rungs.iter().zip(&heads.names).map(|(rung, head)| {
        let version = rung.version.iter().map(|version| format!("version {version}"));
        let config = (configs.len() > 1).then(|| format!("config {}", rung.config));
        let facts: Vec<String> = version.chain(config).collect();
        match facts.as_slice() {
            [] => format!("{head}: {}", rung.label),
            facts => format!("{head}: {} ({})", rung.label, facts.join(", ")),
        }
    });
    let told = heads.numbered || configs.len() > 1;
    let legend = told.then(|| Block::List(legend.collect()));
    let heading = format!("{} relative to {}: {}", ladder.metric, heads.names[0], ladder.family);
    let blocks = legend.into_iter().chain([Block::Table(table)]).collect();
    Section::new("ladder", heading, blocks)
}

/// Counts repeat, so their third digit says something.
fn digits(ladder: &Ladder) -> Digits {
    let metric = Metric::ALL.iter().find(|metric| metric.name() == ladder.metric);
    let exact = metric.is_some_and(|metric| metric.spec().exact);
    Digits::Fixed(if exact { 3 } else { 2 })
}

fn point_cell(point: &VersionPoint, changed: bool, digits: Digits) -> Cell {
    let mark = match (point.outlier, changed) {
        (true, _) => OUTLIER,
        (false, true) => CHANGED,
        (false, false) => STEADY,
    };
    // No interval in the cell: thirty narrow columns must fit a screen. CSV and JSON have it.
    Cell::number(point.ratio, digits, "ratio").marked(Some(mark))
}

fn how_to_read() -> Section {
    let lines = [
        "The table shows each version relative to the first, in their order. ! a new level begins; \
         * an outlier: this version alone is off, its neighbours share a level.",
        "rqps divides the versions of a step into levels by optimal partitioning: it minimises the \
         weighted squares around the levels plus 3 ln V for each change, with V versions. The \
         weight of a version is 1 / (s²/n + layout²): s is the scatter of a value, moderated over \
         the steps, n its values.",
        "layout is what another link order of the same code may give: tau / (2 √2). It stands for \
         one build. No count of instructions depends on it: there, .2 % stands in place of tau.",
        "With one value per version, s follows from the differences of neighbouring versions; that \
         is a rough estimate.",
        "[low, high] is the 95 % interval of new / old level. It does not contain that the data \
         chose the place of the change.",
    ];
    Section::how_to_read("reading", lines.map(str::to_owned).to_vec())
}

/// One row for each version of each step, with a head line.
pub fn history_csv(ladders: &[Ladder]) -> String {
    let mut table =
        "family,metric,step,place,label,version,ratio,low,high,n,level,outlier,change\n".to_owned();
    for ladder in ladders {
        for step in &ladder.steps {
            for (at, (rung, point)) in ladder.rungs.iter().zip(&step.points).enumerate() {
                let Some(point) = point else { continue };
                let change = step.changes.iter().find(|change| change.at == at);
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let cells = [
                    quoted(&ladder.family),
                    quoted(&ladder.metric),
                    quoted(&step.step),
                    (at + 1).to_string(),
                    quoted(&rung.label),
                    quoted(rung.version.as_deref().unwrap_or_default()),
                    point.ratio.to_string(),
                    number(point.interval.map(|interval| interval.low)),
                    number(point.interval.map(|interval| interval.high)),
                    point.n.to_string(),
                    point.level.to_string(),
                    u8::from(point.outlier).to_string(),
                    number(change.map(|change| change.ratio)),
                ];
                table.push_str(&cells.join(","));
                table.push('\n');
            }
        }
    }
    table
}

/// The ladders with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn history_json(ladders: &[Ladder]) -> serde_json::Result<String> {
    versioned(HISTORY_SCHEMA, "ladders", ladders)
}

// Histories over time as a document, as a flat table, and as JSON.

/// Version of the JSON form; it grows when a reader would have to change.
pub const DATES_SCHEMA: u32 = 1;

/// The document of histories: changes, and the present level of each step.
pub fn dates_document(histories: &[DateHistory]) -> Document {
    let labels: Vec<&str> = histories.iter().map(|history| history.label.as_str()).collect();
    let mut sections: Vec<Section> = Vec::new();
    for history in histories {
        sections.push(dates_changes(history));
        sections.push(levels(history));
    }
    sections.push(dates_how_to_read());
    Document { title: format!("rqps history by date: {}", labels.join(", ")), sections }
}

fn dates_changes(history: &DateHistory) -> Section {
    let of_steps =
        history.steps.iter().flat_map(|step| step.changes.iter().map(move |it| (step, it)));
    let mut all: Vec<_> = of_steps.collect();
    all.sort_by(|(a, one), (b, other)| {
        let date = |step: &StepDates, at: usize| step.points.get(at).map(|it| it.date.clone());
        date(b, other.at).cmp(&date(a, one.at)).then(a.step.cmp(&b.step))
    });
    let points = history.steps.iter().map(|step| step.points.len()).max().unwrap_or(0);
    let text = format!(
        "{} in {}; up to {}, on the host {}.",
        counted(all.len(), "change"),
        counted(history.steps.len(), "step"),
        counted(points, "result set"),
        history.host
    );
    let rows = all.iter().map(|(step, change)| {
        let (date, set) =
            step.points.get(change.at).map_or(("", ""), |it| (&*it.date, &*it.result_set));
        [
            words("since", Cell::text(date)),
            words("result set", Cell::text(set)),
            numbers("new / old level", Cell::number(change.ratio, Digits::Fixed(3), "ratio")),
            numbers("p", Cell::text(format!("{:.1e}", change.p))),
            name_of_row("step", &*step.step),
        ]
    });
    let mut blocks = vec![Block::Paragraph(text)];
    if !history.host_changes.is_empty() {
        blocks.push(Block::List(history.host_changes.iter().map(host_change).collect()));
    }
    blocks.extend(Table::of("", rows).map(Block::Table));
    let heading = format!("Changes of {}: {}, the newest first", history.metric, history.label);
    Section::new("changes", heading, blocks)
}

/// The levels of a step or a target over time: the first, the present one, and since when.
pub(super) fn level_row(
    name: Placed,
    points: usize,
    [first, last]: [f64; 2],
    digits: Digits,
    (since, tone): (&str, Option<f64>),
) -> [Placed; 6] {
    let ratio = Cell::number(last / first, Digits::Fixed(3), "ratio");
    [
        name,
        numbers("points", Cell::number(points as f64, Digits::Fixed(0), "")),
        numbers("first level", Cell::number(first, digits, "")),
        numbers("present level", Cell::number(last, digits, "")),
        numbers("present / first", ratio.toned(tone)),
        words("since", Cell::text(since)),
    ]
}

fn host_change(change: &HostChange) -> String {
    let HostChange { date, before, after, differs } = change;
    format!("{date}: the host changes from {before} to {after}: {differs}")
}

fn levels(history: &DateHistory) -> Section {
    let rows = history.steps.iter().map(|step| {
        let [first, last] = [step.first_level(), step.present_level()];
        let since = step.changes.last().map_or(0, |change| change.at);
        let since = step.points.get(since).map_or("", |point| point.date.as_str());
        let name = name_of_row("step", &*step.step);
        level_row(name, step.points.len(), [first, last], Digits::Significant(4), (since, None))
    });
    let table = Table::of("", rows).map(Block::Table);
    let heading = format!("Levels of {}: {}", history.metric, history.label);
    let aside = history.steps.iter().flat_map(|step| {
        step.outliers.iter().filter_map(move |at| {
            let DatePoint { date, value, .. } = step.points.get(*at)?;
            Some(format!("{}: {date} sticks out alone ({value:.4}): in no level", step.step))
        })
    });
    let aside: Vec<String> = aside.collect();
    let aside = (!aside.is_empty()).then_some(Block::List(aside));
    Section::new("levels", heading, table.into_iter().chain(aside).collect())
}

fn dates_how_to_read() -> Section {
    let lines = [
        "A point is the geometric mean of all values of a result set. Points of another host are \
         another history, unless --same-host takes all for one.",
        "Changes are found by E-divisive means with Student's t test, as in Hunter and Apache \
         Otava (docs/history.md). A level is the mean of the points between two changes.",
    ];
    Section::how_to_read("reading", lines.map(str::to_owned).to_vec())
}

/// One row for each point of each step, with a head line.
pub fn dates_csv(histories: &[DateHistory]) -> String {
    let mut text = "label,host,metric,step,date,result_set,value,n,change,p\n".to_owned();
    for history in histories {
        for step in &history.steps {
            for (at, point) in step.points.iter().enumerate() {
                let change = step.changes.iter().find(|change| change.at == at);
                let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
                let cells = [
                    quoted(&history.label),
                    quoted(&history.host),
                    quoted(&history.metric),
                    quoted(&step.step),
                    quoted(&point.date),
                    quoted(&point.result_set),
                    point.value.to_string(),
                    point.n.to_string(),
                    number(change.map(|change| change.ratio)),
                    number(change.map(|change| change.p)),
                ];
                text.push_str(&cells.join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// The histories with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn dates_json(histories: &[DateHistory]) -> serde_json::Result<String> {
    versioned(DATES_SCHEMA, "histories", histories)
}
