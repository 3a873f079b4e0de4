//! The overview of a site: changes, series, result sets.

use std::collections::BTreeSet;

use super::change::{headline, tone};
use super::series::{present, series_file};
use super::shape::{SiteMaterial, minute, set_file};
use crate::document::{Block, Cell, Column, Digits, Document, Section, Table};
use crate::html::{PageFrame, render_document};
use rqps_analysis::history::StepSeries;
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
