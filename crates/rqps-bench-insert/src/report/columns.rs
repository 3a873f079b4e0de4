//! The columns of the published perf reports.

use super::section;
use crate::analyze::columns::{COLUMNS, ColumnSpec, median_columns, relative_columns};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetFacts};
use rqps_report::document::{Block, Cell, Column, Digits, Section, Table};

/// The metrics rows of each step, absolute and relative to the baseline.
pub(super) fn metrics(comparison: &Comparison) -> Section {
    let words = "The columns of the published perf reports: medians over the blocks. The rate is \
                 ips in l steps and qps in q steps; an operation (op) is an inserted row or a \
                 query accordingly. The efficiency tables have server_cpu_us/o, intervals and \
                 verdicts.";
    let mut blocks = vec![Block::Paragraph(words.to_owned()), Block::Table(legend())];
    for step in &comparison.steps {
        let rows: Vec<[Option<f64>; 20]> = (0..comparison.targets.len())
            .map(|target| median_columns(comparison, step, target))
            .collect();
        blocks.push(Block::Table(metrics_table(comparison, step, &rows)));
        if comparison.targets.len() > 1 {
            blocks.push(Block::Table(metrics_relative(comparison, step)));
        }
    }
    section("insert-metrics", "Insert Benchmark: metrics", blocks)
}

/// Unit and formula of each column.
fn legend() -> Table {
    let row = |spec: ColumnSpec| [spec.head, spec.unit, spec.legend].map(Cell::text).to_vec();
    Table {
        caption: "Units and formulas".to_owned(),
        columns: vec![Column::of_row("column"), Column::words("unit"), Column::words("what")],
        rows: COLUMNS.into_iter().map(row).collect(),
    }
}

fn metric_columns() -> Vec<Column> {
    let column =
        |spec: ColumnSpec| Column::numbers(spec.head).with_legend(spec.legend).showing(spec.metric);
    let mut columns: Vec<Column> = COLUMNS.into_iter().map(column).collect();
    columns.push(Column::of_row("tag"));
    columns
}

fn metrics_table(
    comparison: &Comparison,
    step: &StepComparison,
    rows: &[[Option<f64>; 20]],
) -> Table {
    let row = |(target, values): (&TargetFacts, &[Option<f64>; 20])| {
        let cells = values.iter().zip(COLUMNS).map(|(value, spec)| match value {
            Some(value) => Cell::number(*value, Digits::Fixed(spec.digits), ""),
            None => Cell::missing("not measured"),
        });
        cells.chain([Cell::text(&target.label)]).collect()
    };
    Table {
        caption: step.name.clone(),
        columns: metric_columns(),
        rows: comparison.targets.iter().zip(rows).map(row).collect(),
    }
}

/// Ratios over pairs, as everywhere in the report. Published convention: 0/0 is 1, x/0 is inf.
fn metrics_relative(comparison: &Comparison, step: &StepComparison) -> Table {
    let cell = |ratio: Option<f64>| match ratio {
        Some(ratio) => Cell::number(ratio, Digits::Ratio, "ratio"),
        None => Cell::missing("not measured on both targets"),
    };
    let row = |(place, target): (usize, &TargetFacts)| {
        let cells = relative_columns(comparison, step, place).into_iter().map(cell);
        cells.chain([Cell::text(&target.label)]).collect()
    };
    Table {
        caption: format!("{} relative to {}", step.name, comparison.baseline),
        columns: metric_columns(),
        rows: comparison.targets.iter().enumerate().skip(1).map(row).collect(),
    }
}
