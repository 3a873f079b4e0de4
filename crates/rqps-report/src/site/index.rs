//! The overview of a site: changes, series, result sets.

use std::collections::BTreeSet;

use serde_json::json;

use super::change::{headline, of_series, tone};
use super::series::{present, series_file};
use crate::document::{Block, Cell, Column, Digits, Document, Section, Table};
use crate::html::{PageFrame, id, render_document};
use rqps_analysis::history::StepSeries;
use rqps_model::escape;
use rqps_model::metric::Metric;
use rqps_model::units::counted;

/// More changes are in the feed's pages, not in the overview.
const CHANGES_MAX: usize = 200;

/// The overview.
pub fn index_page(site: &SiteMaterial) -> String {
    let mut sections = vec![changes(site)];
    if !site.series.is_empty() {
        sections.push(all_series(site));
    }
    sections.push(sets(site));
    if !site.left_out.is_empty() {
        sections.push(left_out(site));
    }
    let document = Document { title: site.title.to_owned(), sections };
    let newest = site.sets.last().map(|set| minute(&set.started)).filter(|it| !it.is_empty());
    let newest = newest.map(|minute| format!("; the newest is of {minute}")).unwrap_or_default();
    let sets = counted(site.sets.len(), "result set");
    let lead = format!("{sets}, {} series{newest}", site.series.len());
    render_document(&document, &lead, &[], PageFrame::Site { root: "" })
}

fn changes(site: &SiteMaterial) -> Section {
    let found = headline(site);
    let names: Vec<&str> = site.headline.iter().map(|metric| metric.name()).collect();
    let mut text = match found.len() {
        0 => format!("No change of {} was found.", names.join(", ")),
        1 => format!("1 change of {}.", names.join(", ")),
        count => format!("{count} changes of {}, the newest first.", names.join(", ")),
    };
    if found.len() > CHANGES_MAX {
        text.push_str(&format!(" The newest {CHANGES_MAX} are here."));
    }
    let rows = found.iter().take(CHANGES_MAX).map(|change| {
        let tone = tone(change.series.metric, change.ratio);
        let series = series_file(change.series);
        vec![
            Cell::text(minute(change.date)),
            Cell::text(&*change.series.step).linked(series),
            Cell::text(change.series.metric.name()),
            Cell::text(change.of),
            Cell::text(change.version.unwrap_or_default()),
            Cell::number(change.ratio, Digits::Fixed(3), "ratio").toned(tone),
            Cell::text(&*change.evidence),
            Cell::text(change.result_set).linked(set_file(change.result_set)),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut blocks = vec![Block::Paragraph(text)];
    if !rows.is_empty() {
        let columns = vec![
            Column::words("since"),
            Column::of_row("step"),
            Column::words("metric"),
            Column::words("target"),
            Column::words("version"),
            Column::numbers("new / old level"),
            Column::words("evidence"),
            Column::words("result set"),
        ];
        blocks.push(Block::Table(Table { caption: String::new(), columns, rows }));
    }
    Section { id: "changes", heading: "Changes".to_owned(), blocks }
}

fn all_series(site: &SiteMaterial) -> Section {
    let text = "Each number is the present level / the first level of a target over time, or the \
                last version / the first one. It leads to the charts.";
    let mut blocks = vec![Block::Paragraph(text.to_owned())];
    for same in site.series.chunk_by(|a, b| a.key == b.key) {
        blocks.extend(of_condition(same));
    }
    Section { id: "series", heading: "Series".to_owned(), blocks }
}

/// Series of one condition: a row for each step and label, a column for each metric.
fn of_condition(same: &[StepSeries]) -> [Block; 2] {
    let metrics: BTreeSet<Metric> = same.iter().map(|one| one.metric).collect();
    let mut columns = vec![Column::of_row("step"), Column::words("target")];
    columns.extend(metrics.iter().map(|metric| Column::of(*metric)));
    let mut rows = Vec::new();
    for step in same.chunk_by(|a, b| a.step == b.step && a.group == b.group) {
        let names: BTreeSet<String> = step.iter().flat_map(present).map(|(name, _)| name).collect();
        for name in names {
            let mut row = vec![Cell::text(&*step[0].step), Cell::text(&*name)];
            row.extend(metrics.iter().map(|metric| metric_cell(step, &name, *metric)));
            rows.push(row);
        }
    }
    let condition = &same[0].condition;
    let text = format!("{}; {}", condition.benchmark, condition.words);
    [Block::Paragraph(text), Block::Table(Table { caption: String::new(), columns, rows })]
}

fn metric_cell(step: &[StepSeries], name: &str, metric: Metric) -> Cell {
    let Some(series) = step.iter().find(|one| one.metric == metric) else {
        return Cell::missing("fewer than two result sets have values");
    };
    match present(series).into_iter().find(|(other, _)| *other == name) {
        Some((_, ratio)) => Cell::number(ratio, Digits::Fixed(3), "ratio")
            .toned(tone(metric, ratio))
            .linked(series_file(series)),
        None => Cell::missing("fewer than two result sets have values"),
    }
}

fn sets(site: &SiteMaterial) -> Section {
    let columns = vec![
        Column::words("began"),
        Column::of_row("result set"),
        Column::words("comparison"),
        Column::words("verdict"),
    ];
    let rows = site.sets.iter().rev().map(|set| {
        vec![
            Cell::text(minute(&set.started)),
            Cell::text(&*set.name).linked(set_file(&set.name)),
            Cell::text(&*set.title),
            Cell::text(&*set.verdict),
        ]
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    Section { id: "sets", heading: "Result sets".to_owned(), blocks: vec![Block::Table(table)] }
}

fn left_out(site: &SiteMaterial) -> Section {
    let lines = site.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
    let blocks = vec![Block::List(lines.collect())];
    Section { id: "left-out", heading: "Folders that cannot be read".to_owned(), blocks }
}

/// Version of `index.json`; it grows when a reader would have to change.
pub const SITE_SCHEMA: u32 = 1;

/// Result sets and series with their pages and changes.
///
/// # Errors
/// A number that JSON cannot write.
pub fn index_json(site: &SiteMaterial) -> serde_json::Result<String> {
    let sets = site.sets.iter().map(|set| {
        json!({ "name": set.name, "started": set.started, "title": set.title,
            "verdict": set.verdict, "page": set_file(&set.name) })
    });
    let series = site.series.iter().map(|series| {
        let changes = of_series(series).into_iter().map(|change| {
            json!({ "date": change.date, "result_set": change.result_set, "of": change.of,
                "version": change.version, "ratio": change.ratio, "evidence": change.evidence })
        });
        let levels = present(series)
            .into_iter()
            .map(|(name, ratio)| json!({ "of": name, "present_to_first": ratio }));
        json!({ "page": series_file(series), "benchmark": series.condition.benchmark,
            "workload": series.condition.workload, "host": series.condition.host,
            "step": series.step, "metric": series.metric.name(),
            "levels": levels.collect::<Vec<_>>(), "changes": changes.collect::<Vec<_>>() })
    });
    let mut text = serde_json::to_string(&json!({
        "schema": SITE_SCHEMA,
        "title": site.title,
        "sets": sets.collect::<Vec<_>>(),
        "series": series.collect::<Vec<_>>(),
    }))?;
    text.push('\n');
    Ok(escape::json(&text).into_owned())
}

/// Input of the pages that show several result sets.
#[derive(Clone, Copy, Debug)]
pub struct SiteMaterial<'a> {
    /// Title of the site.
    pub title: &'a str,
    /// The published address, with a slash at the end; `None` if unknown.
    pub address: Option<&'a str>,
    /// Its result sets, the oldest first.
    pub sets: &'a [SiteSet],
    /// Its series, in the order of the overview.
    pub series: &'a [StepSeries],
    /// Metrics whose changes the overview and the feed list.
    pub headline: &'a [Metric],
    /// Result sets that could not be read, and why.
    pub left_out: &'a [(String, String)],
}

/// A result set of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSet {
    /// Its name, unique in the site.
    pub name: String,
    /// Start of its first run, RFC 3339.
    pub started: String,
    /// Title of its report.
    pub title: String,
    /// First paragraph of its report.
    pub verdict: String,
}

/// Address of the report of a result set in the site.
pub fn set_file(name: &str) -> String {
    format!("sets/{}.html", id(name))
}

/// Address of the values of a result set in the site.
pub fn data_file(name: &str) -> String {
    format!("data/{}.json", id(name))
}

/// The day of a time of RFC 3339.
pub(super) fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Day, hour and minute of a time of RFC 3339.
pub(super) fn minute(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}
