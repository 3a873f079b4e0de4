//! Metrics that no other section shows.

use std::collections::BTreeSet;

use super::document::{Block, Cell, Column, Section, Table};
use super::tables::absolute;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_model::metric::{Direction, Metric};

/// Metrics with values that none of `sections` shows: what they are, and a row for each step and
/// target.
pub(super) fn section(comparison: &Comparison, sections: &[Section]) -> Option<Section> {
    let mut shown = BTreeSet::new();
    sections.iter().for_each(|section| add_shown(&section.blocks, &mut shown));
    let is_left = |metric: &Metric| !shown.contains(metric);
    let metrics: Vec<Metric> = with_values(comparison).into_iter().filter(is_left).collect();
    (!metrics.is_empty()).then(|| Section {
        id: "other-metrics",
        heading: "Other metrics".to_owned(),
        blocks: vec![Block::Table(meanings(&metrics)), Block::Table(values(comparison, &metrics))],
    })
}

/// Adds the metrics that tables have a column for. Charts and the overview do not count: not every
/// form can draw them.
fn add_shown(blocks: &[Block], shown: &mut BTreeSet<Metric>) {
    for block in blocks {
        match block {
            Block::Table(table) => shown.extend(table.columns.iter().filter_map(|it| it.metric)),
            Block::Fold(fold) => add_shown(&fold.blocks, shown),
            _ => {}
        }
    }
}

/// The metrics that any target has a value of.
fn with_values(comparison: &Comparison) -> BTreeSet<Metric> {
    let of_target = |target: &TargetResult| -> Vec<Metric> {
        let metrics = target.metrics.keys().copied();
        metrics.filter(|metric| target.absolute(*metric).is_some()).collect()
    };
    let targets = comparison.measured_steps().flat_map(|step| &step.targets);
    targets.flat_map(of_target).collect()
}

fn meanings(metrics: &[Metric]) -> Table {
    let better = |metric: &Metric| match metric.better() {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
        Direction::Neither => "-",
    };
    let row = |metric: &Metric| {
        [metric.name(), metric.unit(), better(metric), metric.spec().meaning]
            .map(Cell::text)
            .to_vec()
    };
    Table {
        caption: "Units and meanings".to_owned(),
        columns: ["metric", "unit", "better", "meaning"].map(Column::words).to_vec(),
        rows: metrics.iter().map(row).collect(),
    }
}

/// Medians over the runs.
fn values(comparison: &Comparison, metrics: &[Metric]) -> Table {
    let mut columns: Vec<Column> = metrics.iter().map(|metric| Column::of(*metric)).collect();
    columns.extend([Column::words("target"), Column::words("step")]);
    let mut rows = Vec::new();
    for step in comparison.measured_steps() {
        for target in &step.targets {
            if metrics.iter().all(|metric| target.absolute(*metric).is_none()) {
                continue;
            }
            let cell = |metric: &Metric| absolute(target, *metric, metric.digits(), metric.unit());
            let mut cells: Vec<Cell> = metrics.iter().map(cell).collect();
            cells.extend([&target.label, &step.name].map(Cell::text));
            rows.push(cells);
        }
    }
    Table { caption: "Medians over the runs".to_owned(), columns, rows }
}
