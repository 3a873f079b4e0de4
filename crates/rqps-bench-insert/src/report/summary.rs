//! Tables of throughput and of insert rates beside queries.

use super::{mark, section, with_heads};
use crate::analyze::metrics::insert_target;
use crate::analyze::rules::{Shade, Throughput, absolute_shades, counts_queries, relative_shade};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetFacts, TargetResult};
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_report::document::{Block, Cell, Digits, Section, Table};

/// Tables of absolute and relative throughput, and of insert rates beside queries.
pub(super) fn summary(comparison: &Comparison) -> Section {
    let rules = "Rates of inserted rows (l steps; indexed rows in l.x) and of queries (q steps): \
                 medians over the blocks, with the published colours. Absolute: the lowest quarter \
                 of a column's span is red (-), the highest green (+), a query rate whose writers \
                 missed their target gray (?). Relative: above 1.05 blue (+), below 0.95 yellow \
                 (-). A target rate of inserts is met if every block reaches 95 % of it; otherwise \
                 the step is not comparable (?), because fewer writes leave more of the machine \
                 for queries: it gets no verdict and no mean includes it. Relative rates come from \
                 the pairs.";
    let mut blocks = vec![Block::Paragraph(rules.to_owned())];
    if comparison.targets.iter().any(|target| {
        let dbms = target.target.as_ref().map(|target| target.dbms.dialect());
        dbms == Some(Dialect::Sqlite)
    }) {
        blocks.push(Block::Paragraph(
            "SQLite allows one writer at a time: inserts and deletes of all clients take turns, \
             and their response time includes the wait. Keys come from the rowid without gaps, its \
             own interface prepares queries, no background work vacuums or purges, and SQLite runs \
             inside the client."
                .to_owned(),
        ));
    }
    blocks.push(Block::Table(absolute_table(comparison)));
    if comparison.targets.len() > 1 {
        blocks.push(Block::Table(relative_table(comparison)));
    }
    blocks.extend(insert_rates(comparison).map(Block::Table));
    section("insert-summary", "Insert Benchmark: summary", blocks)
}

/// Turns columns of cells into rows, each with its target first.
fn by_target(comparison: &Comparison, columns: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    let row = |(index, target): (usize, &TargetFacts)| {
        let cells = columns.iter().map(|column| column[index].clone());
        std::iter::once(Cell::text(&target.label)).chain(cells).collect()
    };
    comparison.targets.iter().enumerate().map(row).collect()
}

/// True if the writers of a target met their rate in a step in all blocks.
fn is_met(step: &StepComparison, target: usize) -> bool {
    step.targets[target].missed_rate.is_none()
}

fn absolute_table(comparison: &Comparison) -> Table {
    let column = |step: &StepComparison| -> Vec<Cell> {
        let rates: Vec<Option<f64>> =
            step.targets.iter().map(|target| target.absolute(Metric::Rate)).collect();
        let known: Vec<Throughput> = rates
            .iter()
            .enumerate()
            .filter_map(|(target, rate)| {
                let meets_sla = counts_queries(step.rate).then(|| is_met(step, target));
                rate.map(|rate| Throughput { rate: rate.round(), meets_sla })
            })
            .collect();
        let mut shades = absolute_shades(&known).into_iter();
        let unit = if counts_queries(step.rate) { "qps" } else { "ips" };
        let cell = |rate: Option<f64>| match rate {
            Some(rate) => {
                Cell::number(rate, Digits::Fixed(0), unit).marked(shades.next().and_then(mark))
            }
            None => Cell::missing("not completed"),
        };
        rates.into_iter().map(cell).collect()
    };
    Table {
        caption: "Throughput".to_owned(),
        columns: with_heads("target", comparison.steps.iter().map(|step| step.name.clone())),
        rows: by_target(comparison, comparison.steps.iter().map(column).collect()),
    }
}

fn relative_table(comparison: &Comparison) -> Table {
    let column = |step: &StepComparison| -> Vec<Cell> {
        let cell = |(place, target): (usize, &TargetResult)| {
            let ratio = match (place, target.absolute(Metric::Rate)) {
                (0, rate) => rate.map(|_| 1.0),
                _ => target.relative(Metric::Rate).map(|relative| relative.ratio),
            };
            match ratio {
                Some(ratio) => {
                    let void = !target.not_comparable.is_empty() || !is_met(step, place);
                    let shade = if void { Shade::Gray } else { relative_shade(ratio) };
                    Cell::number(ratio, Digits::Fixed(2), "ratio").marked(mark(shade))
                }
                None => Cell::missing("not completed on both targets"),
            }
        };
        step.targets.iter().enumerate().map(cell).collect()
    };
    Table {
        caption: format!("Throughput relative to {}", comparison.baseline),
        columns: with_heads("target", comparison.steps.iter().map(|step| step.name.clone())),
        rows: by_target(comparison, comparison.steps.iter().map(column).collect()),
    }
}

/// Table C: rows inserted per second during the queries, and the target rate.
fn insert_rates(comparison: &Comparison) -> Option<Table> {
    let steps: Vec<&StepComparison> =
        comparison.steps.iter().filter(|step| counts_queries(step.rate)).collect();
    if steps.is_empty() {
        return None;
    }
    let column = |step: &&StepComparison| -> Vec<Cell> {
        let cell =
            |(place, target): (usize, &TargetResult)| match target.absolute(Metric::InsertRate) {
                Some(rate) => {
                    let shade = if is_met(step, place) { Shade::Plain } else { Shade::Red };
                    Cell::number(rate, Digits::Fixed(0), "ips").marked(mark(shade))
                }
                None => Cell::missing("not completed"),
            };
        step.targets.iter().enumerate().map(cell).collect()
    };
    let mut rows = by_target(comparison, steps.iter().map(column).collect());
    let wanted = steps.iter().map(|step| {
        let mut targets = 0..comparison.targets.len();
        match targets.find_map(|target| insert_target(comparison, step, target)) {
            Some(wanted) => Cell::number(wanted, Digits::Fixed(0), "ips"),
            None => Cell::missing("no target"),
        }
    });
    rows.push(std::iter::once(Cell::text("target")).chain(wanted).collect());
    Some(Table {
        caption: "Inserts/s during queries".to_owned(),
        columns: with_heads("target", steps.iter().map(|step| step.name.clone())),
        rows,
    })
}
