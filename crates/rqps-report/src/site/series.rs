//! The page of a series: its charts, levels and changes, and the other metrics of its step.

use std::collections::BTreeMap;

use super::{SiteChange, SiteMaterial, day, minute, of_series, set_file, tone};
use crate::chart::{Axis, ChangeMark, Chart, Form, Line, Point, Series};
use crate::document::{Block, Cell, Column, Digits, Document, Section, Table};
use crate::html::{PageFrame, RunLink, id, render_document};
use rqps_analysis::history::{
    DatePoint, FamilyLadder, LabelDates, LevelLine, StepDates, StepSeries,
};
use rqps_model::metric::Metric;

/// From a page of a series to the folder of the site.
const ROOT: &str = "../../";

/// Address of a series in the site. It depends on nothing but the series, so that links to it last.
pub fn series_file(series: &StepSeries) -> String {
    let step = file_name(&series.step);
    format!("series/{}/{step}.{}.html", series.key, file_name(series.metric.spec().key))
}

/// A name as a file name. One that must be altered gets a part of its hash, so that two names never
/// share a file.
fn file_name(raw: &str) -> String {
    let safe = id(raw);
    if safe == raw && raw.len() < 100 {
        return safe;
    }
    let hash = rqps_model::units::short_hash(raw);
    let short: String = safe.chars().take(100).collect();
    format!("{short}-{}", &hash[..6])
}

/// The page of a series.
pub fn series_page(site: &SiteMaterial, series: &StepSeries) -> String {
    let (step, metric) = (&series.step, series.metric);
    let mut sections = Vec::new();
    if !series.dates.is_empty() {
        sections.push(over_time(series));
    }
    if !series.ladders.is_empty() {
        let blocks = series.ladders.iter().flat_map(|ladder| by_version(series, ladder));
        let (id, heading) = ("versions", "By version".to_owned());
        sections.push(Section { id, heading, blocks: blocks.collect() });
    }
    sections.push(changes(series));
    sections.push(siblings(site, series));
    let title = format!("{step}: {}", metric.name());
    let lead = format!("{}; {}", series.condition.benchmark, series.condition.words);
    let links: Vec<RunLink> = sets_of(series)
        .into_iter()
        .map(|(name, date)| RunLink {
            address: format!("{ROOT}{}", set_file(&name)),
            name: format!("{name}, {}", minute(&date)),
            folder: name,
        })
        .collect();
    render_document(&Document { title, sections }, &lead, &links, PageFrame::Site { root: ROOT })
}

/// Result sets of a series with their dates.
fn sets_of(series: &StepSeries) -> BTreeMap<String, String> {
    let points = series.dates.iter().flat_map(|one| &one.dates.points);
    let of_dates = points.map(|point| (point.result_set.clone(), point.date.clone()));
    let since = series.ladders.iter().flat_map(|ladder| &ladder.since);
    of_dates.chain(since.map(|one| (one.result_set.clone(), one.date.clone()))).collect()
}

fn over_time(series: &StepSeries) -> Section {
    let metric = series.metric;
    let mut points: Vec<(&str, &str)> = series
        .dates
        .iter()
        .flat_map(|one| &one.dates.points)
        .map(|point| (point.date.as_str(), point.result_set.as_str()))
        .collect();
    points.sort_unstable();
    points.dedup();
    let places: BTreeMap<&str, usize> =
        points.iter().enumerate().map(|(place, (_, set))| (*set, place)).collect();
    let distinct = points.windows(2).all(|pair| day(pair[0].0) != day(pair[1].0));
    let names =
        points.iter().map(|(date, _)| if distinct { day(date).to_owned() } else { minute(date) });
    let axis = Axis::of_categories("result set", names.collect());
    let title = format!("{}: {} over time", series.step, metric.name());
    let mut chart = Chart::new("time", title, Form::Points)
        .axes(axis, Axis::linear(metric.name(), metric.unit()).fitted());
    for (place, one) in series.dates.iter().enumerate() {
        push_label(&mut chart, place, one, &places);
    }
    let table = Table {
        caption: String::new(),
        columns: vec![
            Column::of_row("target"),
            Column::numbers("points"),
            Column::numbers("first level"),
            Column::numbers("present level"),
            Column::numbers("present / first"),
            Column::words("since"),
        ],
        rows: series.dates.iter().map(|one| level_row(metric, one)).collect(),
    };
    let blocks = vec![Block::Chart(chart), Block::Table(table)];
    Section { id: "dates", heading: "Over time".to_owned(), blocks }
}

fn level_row(metric: Metric, one: &LabelDates) -> Vec<Cell> {
    let [first, last] = [one.dates.first_level(), one.dates.present_level()];
    let since = one.dates.changes.last().map_or(0, |change| change.at);
    let since = one.dates.points.get(since).map_or("", |point| day(&point.date));
    let level = |value| Cell::number(value, metric.digits(), "");
    let ratio = last / first;
    vec![
        Cell::text(&*one.label),
        Cell::number(one.dates.points.len() as f64, Digits::Fixed(0), ""),
        level(first),
        level(last),
        Cell::number(ratio, Digits::Fixed(3), "ratio").toned(tone(metric, ratio)),
        Cell::text(since),
    ]
}

/// Points of a label, its levels as steps, its changes as marks.
fn push_label(chart: &mut Chart, slot: usize, one: &LabelDates, places: &BTreeMap<&str, usize>) {
    let at = |point: &DatePoint| places.get(point.result_set.as_str()).map_or(0, |at| *at) as f64;
    let StepDates { points, changes, .. } = &one.dates;
    for change in changes {
        let Some(point) = points.get(change.at) else { continue };
        let label = format!("×{:.2}", change.ratio);
        chart.marks.push(ChangeMark { at: at(point), label, series: chart.series.len() });
    }
    let mut values = Series::new(&*one.label, slot + 1, Line::None);
    values.points = points
        .iter()
        .map(|point| {
            Point::at(at(point), point.value)
                .noted(format!("{}, n = {}", point.result_set, point.n))
                .from_runs(vec![point.result_set.clone()])
        })
        .collect();
    let mut levels = Series::new(&*one.label, slot + 1, Line::Steps);
    let begins = std::iter::once(0).chain(changes.iter().map(|change| change.at));
    let begins: Vec<usize> = begins.chain([points.len()]).collect();
    for pair in begins.windows(2) {
        let level = one.dates.level(pair[0]..pair[1]);
        levels.points.extend(points.get(pair[0]).map(|it| Point::at(at(it), level).noted("level")));
        if pair[1] == points.len() {
            levels.points.extend(points.last().map(|it| Point::at(at(it), level).noted("level")));
        }
    }
    chart.series.extend([values, levels]);
}

fn by_version(series: &StepSeries, ladder: &FamilyLadder) -> [Block; 2] {
    let metric = series.metric;
    let names: Vec<String> = ladder.rungs.iter().map(|rung| rung.name().to_owned()).collect();
    let title = format!("{}: {} by version of {}", series.step, metric.name(), ladder.family);
    let y = Axis::linear(format!("{} relative to {}", metric.name(), names[0]), "").fitted();
    let mut chart = Chart::new(format!("versions-{}", ladder.family), title, Form::Points)
        .axes(Axis::of_categories("version", names), y);
    let mut values = Series::new(&*ladder.family, 1, Line::None);
    let lines = ladder.level_lines();
    let has_branches = ladder.chains.len() > 1;
    let mut rows = Vec::new();
    for (place, rung) in ladder.rungs.iter().enumerate() {
        let Some(point) = &ladder.step.points[place] else { continue };
        let change = ladder.step.changes.iter().find(|change| change.at == place);
        let note = match (point.outlier, change.is_some()) {
            (true, _) => ", an outlier: its neighbours share a level",
            (false, true) => ", a new level begins",
            (false, false) => "",
        };
        let mut shown = Point::at(place as f64, point.ratio).within(point.interval);
        shown = shown.noted(format!("{}{note}", rung.label));
        if let Some(since) = ladder.since.get(place) {
            shown = shown.from_runs(vec![since.result_set.clone()]);
        }
        values.points.push(shown);
        if let Some(change) = change {
            let label = format!("×{:.2}", change.ratio);
            // Placed after the series of values. The first version of a branch belongs to the first
            // line, the chain of first versions.
            let own = |line: &LevelLine| line.levels.iter().skip(1).any(|it| it.0 == place);
            let series = lines.iter().position(own).map_or(0, |line| line + 1);
            chart.marks.push(ChangeMark { at: place as f64, label, series });
        }
        let ratio = |value| Cell::number(value, Digits::Fixed(3), "ratio");
        let mut row = vec![
            Cell::text(rung.name()),
            Cell::text(&*rung.label),
            ratio(point.ratio).within(point.interval).toned(tone(metric, point.ratio)),
            ratio(point.level),
            Cell::text(note.trim_start_matches(", ")),
        ];
        if has_branches {
            row.insert(1, Cell::text(&*rung.branch));
        }
        rows.push(row);
    }
    let drawn = lines.iter().enumerate().map(|line| levels(line, &ladder.family));
    chart.series = std::iter::once(values).chain(drawn).collect();
    if has_branches {
        chart.notes.push(
            "Changes are those along the first versions of the branches, and along each branch."
                .to_owned(),
        );
    }
    let remarks = &ladder.step.remarks;
    chart.notes.extend(remarks.iter().map(|text| format!("Author's remark: {text}")));
    let mut columns = vec![
        Column::of_row("version"),
        Column::words("target"),
        Column::numbers("relative to the first"),
        Column::numbers("level"),
        Column::words("note"),
    ];
    if has_branches {
        columns.insert(1, Column::words("branch"));
    }
    [Block::Chart(chart), Block::Table(Table { caption: ladder.family.clone(), columns, rows })]
}

/// The levels along one chain of versions as a line.
fn levels((place, line): (usize, &LevelLine), family: &str) -> Series {
    let name = line.branch.as_ref().map_or_else(|| family.to_owned(), |it| format!("branch {it}"));
    let mut levels = Series::new(name, place + 1, Line::Steps);
    let point = |(at, level): &(usize, f64)| Point::at(*at as f64, *level).noted("level");
    levels.points = line.levels.iter().map(point).collect();
    levels
}

fn changes(series: &StepSeries) -> Section {
    let found = of_series(series);
    let rows: Vec<Vec<Cell>> = found.iter().map(change_row).collect();
    let blocks = if rows.is_empty() {
        vec![Block::Paragraph("No change of level was found.".to_owned())]
    } else {
        let columns = vec![
            Column::words("since"),
            Column::words("result set"),
            Column::words("target"),
            Column::words("version"),
            Column::numbers("new / old level"),
            Column::words("evidence"),
        ];
        vec![Block::Table(Table { caption: String::new(), columns, rows })]
    };
    Section { id: "changes", heading: "Changes".to_owned(), blocks }
}

fn change_row(change: &SiteChange<'_>) -> Vec<Cell> {
    let tone = tone(change.series.metric, change.ratio);
    let set = Cell::text(change.result_set);
    vec![
        Cell::text(minute(change.date)),
        set.linked(format!("{ROOT}{}", set_file(change.result_set))),
        Cell::text(change.of),
        Cell::text(change.version.unwrap_or_default()),
        Cell::number(change.ratio, Digits::Fixed(3), "ratio").toned(tone),
        Cell::text(&*change.evidence),
    ]
}

/// The same step by other metrics.
fn siblings(site: &SiteMaterial, series: &StepSeries) -> Section {
    let others =
        site.series.iter().filter(|other| other.step == series.step && other.key == series.key);
    let rows = others.map(|other| {
        let ratios: Vec<String> =
            present(other).into_iter().map(|(name, ratio)| format!("{name} {ratio:.3}")).collect();
        vec![
            Cell::text(other.metric.name()).linked(format!("{ROOT}{}", series_file(other))),
            Cell::text(ratios.join(", ")),
            Cell::text(other.metric.spec().meaning),
        ]
    });
    let columns = vec![
        Column::of_row("metric"),
        Column::words("present / first level"),
        Column::words("meaning"),
    ];
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    Section::new("metrics", "All metrics of this step", vec![Block::Table(table)])
}

/// Names and ratios: for each label over time, its present / first level; for each DBMS by version,
/// the level of its last / first version. The names differ even if a label is the name of a DBMS.
pub(super) fn present(series: &StepSeries) -> Vec<(String, f64)> {
    let dates = series
        .dates
        .iter()
        .map(|one| (one.label.clone(), one.dates.present_level() / one.dates.first_level()));
    let ladders = series.ladders.iter().filter_map(|ladder| {
        let mut levels = ladder.step.points.iter().flatten().map(|point| point.level);
        let first = levels.next()?;
        Some((format!("{} by version", ladder.family), levels.next_back()? / first))
    });
    dates.chain(ladders).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_analysis::history::{
        Condition, PointRun, PointTarget, SeriesOptions, SeriesSet, SetPoints, StepPoints,
        step_series,
    };
    use rqps_model::benchmark::Group;

    #[test]
    fn a_label_and_a_dbms_of_one_name_are_two_rows() {
        let text = str::to_owned;
        let set = |(day, (version, value)): (usize, &(&str, f32))| SeriesSet {
            name: format!("day{day}"),
            points: SetPoints {
                started: format!("2026-01-0{day}T00:00:00Z"),
                targets: vec![PointTarget {
                    label: text("sqlite"),
                    family: text("sqlite"),
                    version: Some(text(version)),
                    config: String::new(),
                    branch: String::new(),
                }],
                conditions: vec![Condition {
                    benchmark: text("sysbench"),
                    workload: text("w"),
                    host: text("h"),
                    words: String::new(),
                }],
                runs: vec![PointRun { target: 0, condition: 0, block: (1, 1) }],
                steps: vec![StepPoints {
                    step: text("scan"),
                    group: Group::Range,
                    metrics: vec![(Metric::Rate, vec![Some(*value)])],
                }],
            },
        };
        let days = [("3.40", 100.0), ("3.41", 100.0), ("3.42", 100.0), ("3.43", 50.0)];
        let sets: Vec<SeriesSet> = days.iter().enumerate().map(set).collect();
        let of = SeriesOptions { max_p: 0.001, layout_sd: 0.0035, branches: false };
        let series = step_series(&sets, &of);
        let found = present(&series[0]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sqlite", "sqlite by version"]);
        assert!((found[1].1 - 0.5).abs() < 0.01, "{found:?}");
    }
}
