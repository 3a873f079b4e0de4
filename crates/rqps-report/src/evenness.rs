//! Rate stability over the seconds of a run: spread, stalls, drift.

use super::document::{Block, Cell, Column, Digits, Section, Table};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_stats::stability::{Evenness, Stability};
use rqps_stats::summary::median;

/// A row for each step and target; empty if no record has intervals of 5 s or more.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let heads = ["cv", "p1", "p5", "stall_s", "longest_s", "warm_s", "drift"];
    let mut columns: Vec<Column> = heads.into_iter().map(Column::numbers).collect();
    columns.push(Column::words("target"));
    columns.push(Column::words("step"));
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for target in &step.targets {
            let Some(mut cells) = cells(target) else { continue };
            cells.push(Cell::text(target.label.clone()));
            cells.push(Cell::text(step.name.clone()));
            rows.push(cells);
        }
    }
    let explained = "Statistics of the rates of single seconds: cv is standard deviation / mean; \
                     p1 and p5 are percentiles / median; stall_s counts seconds below a tenth of \
                     the median, longest_s the longest series of them; warm_s is the start of the \
                     steady state (MSER-5, windows from 20 s); drift is the Theil-Sen slope times \
                     the window (windows from 60 s). Medians over the runs; stalls of the worst \
                     run.";
    (!rows.is_empty()).then(|| Section {
        id: "evenness",
        heading: "Rate stability".to_owned(),
        blocks: vec![
            Block::Paragraph(explained.to_owned()),
            Block::Table(Table { caption: String::new(), columns, rows }),
        ],
    })
}

fn cells(target: &TargetResult) -> Option<Vec<Cell>> {
    let courses: Vec<Stability> =
        target.samples.iter().filter_map(|sample| sample.stability).collect();
    let evenness: Vec<Evenness> = courses.iter().filter_map(|course| course.evenness).collect();
    if evenness.is_empty() {
        return None;
    }
    let middle = |get: fn(&Evenness) -> f64| {
        let numbers: Vec<f64> = evenness.iter().map(get).collect();
        match median(&numbers) {
            Some(number) => Cell::number(number, Digits::Fixed(3), "ratio"),
            None => Cell::missing("the window is too short"),
        }
    };
    let most = |get: fn(&Evenness) -> usize| {
        let most = evenness.iter().map(get).max().unwrap_or(0);
        Cell::number(most as f64, Digits::Fixed(0), "s")
    };
    let cuts = courses.iter().filter_map(|course| course.warm_up);
    let cuts: Vec<f64> = cuts.map(|cut| cut.seconds as f64).collect();
    let drifts: Vec<f64> =
        courses.iter().filter_map(|course| course.trend).map(|trend| trend.change).collect();
    Some(vec![
        middle(|evenness| evenness.cv),
        middle(|evenness| evenness.p1),
        middle(|evenness| evenness.p5),
        most(|evenness| evenness.stall_seconds),
        most(|evenness| evenness.longest_stall),
        match median(&cuts) {
            Some(seconds) => Cell::number(seconds, Digits::Fixed(0), "s"),
            None => Cell::missing("the window is shorter than 20 s"),
        },
        match median(&drifts) {
            Some(share) => Cell::text(format!("{:+.1} %", 100.0 * share)),
            None => Cell::missing("the window is shorter than 60 s"),
        },
    ])
}
