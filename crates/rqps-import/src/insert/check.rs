//! Checks imported Insert Benchmark tables against the rules of its reports.

use std::path::{Path, PathBuf};

use crate::insert::summary::{SummaryKind, SummaryTable};
use crate::insert::tables::MetricsRow;
use crate::notice::{Notice, NoticeKind};
use crate::{Check, ImportOptions, Published, PublishedRun};
use rqps_bench_insert::analyze::rules::{self as rules, Shade, Throughput};
use rqps_model::metric::Metric;

/// Adds the number of checks and the mismatches to the messages.
pub(super) fn check(
    published: &mut Published,
    rows: &[(PathBuf, MetricsRow)],
    summaries: &[(PathBuf, SummaryTable)],
    options: &ImportOptions,
) {
    if !rows.is_empty() {
        check_identities(rows, options.cpus, published);
    }
    note_missed_targets(published);
    for (path, table) in summaries {
        let known = published.runs.iter().map(|run| run.record.workload.clients);
        let clients = options.clients.first().copied().or(known.filter(|n| *n > 0).max());
        check_colours(path, table, clients.unwrap_or(1), published);
    }
}

/// Checks the identities between columns of a row.
fn check_identities(
    metrics: &[(PathBuf, MetricsRow)],
    cpus: Option<u32>,
    published: &mut Published,
) {
    let is_query = |row: &MetricsRow| row.step.as_deref().is_some_and(rules::is_query_step);
    let cells = metrics.iter().filter_map(|(_, row)| {
        let rate = row.cell(if is_query(row) { "qps" } else { "ips" })?;
        Some((row.cell("cpups")?, rate, row.cell("cpupq")?))
    });
    let cpus = cpus.or_else(|| rules::cpus_of_rows(cells));
    let mut agree = 0;
    for (path, row) in metrics {
        let broken = rules::broken_identities(is_query(row), cpus, |column| row.cell(column));
        agree += usize::from(broken.is_empty());
        for what in broken {
            published.mismatch(path, row.line, what);
        }
    }
    let with = match cpus {
        Some(cpus) => format!(" on {cpus} CPUs"),
        None => ", except cpupq: the number of CPUs is unknown (--cpus)".to_owned(),
    };
    let what = format!("columns recomputed from other columns{with}");
    published.checks.push(Check { what, agree, of: metrics.len() });
}

/// Notes query steps that did not reach 95 % of their insert rate.
fn note_missed_targets(published: &mut Published) {
    let mut missed = Vec::new();
    // 0 means that the clients are unknown.
    let clients = |run: &PublishedRun| run.record.workload.clients;
    for run in published.runs.iter().filter(|run| clients(run) > 0) {
        for step in &run.steps {
            let target = rules::target_rate(&step.name, clients(run));
            let achieved = step.outcome.extra.get(&Metric::InsertRate);
            if let (Some(target), Some(achieved)) = (target, achieved)
                && !rules::meets_sla(*achieved, target)
            {
                let text = format!(
                    "{} inserted {achieved} rows/s of {target}: its query rate is not comparable",
                    step.name
                );
                let file = run.record.key.label.clone();
                missed.push(Notice { kind: NoticeKind::Note, file, line: None, text });
            }
        }
    }
    published.notices.append(&mut missed);
}

/// Checks numbers and colours of a summary table.
fn check_colours(path: &Path, table: &SummaryTable, clients: u32, published: &mut Published) {
    let classes = |by_2021: bool| -> Vec<Vec<Shade>> {
        (0..table.steps.len())
            .map(|column| shades(table, column, clients, by_2021, published))
            .collect()
    };
    let wrong = |shades: &[Vec<Shade>]| -> Vec<(usize, String)> {
        let mut wrong = Vec::new();
        for (place, (line, target, cells)) in table.rows.iter().enumerate() {
            // A target rate has the gray of its row.
            if table.is_target_row(target) {
                continue;
            }
            for (column, cell) in cells.iter().enumerate() {
                let expected = letter(shades[column][place]);
                if cell.class != expected {
                    let step = &table.steps[column];
                    let what = format!(
                        "{step} of {target}: the published colour is {}, the rules give {expected}",
                        cell.class
                    );
                    wrong.push((*line, what));
                }
            }
        }
        wrong
    };
    let (now, then) = (wrong(&classes(false)), wrong(&classes(true)));
    let (rule, wrong) = if then.len() < now.len() {
        ("by the rule of November 2021, which counted every target as missed", then)
    } else {
        ("by the rules of rqps reports", now)
    };
    let rows = table.rows.iter().filter(|(_, target, _)| !table.is_target_row(target));
    let of = rows.count() * table.steps.len();
    let what = format!("colours of {} {rule}", table.name);
    published.checks.push(Check { what, agree: of - wrong.len(), of });
    let notices =
        wrong.into_iter().map(|(line, what)| Notice::at(NoticeKind::Mismatch, path, line, what));
    published.notices.extend(notices);
}

fn shades(
    table: &SummaryTable,
    column: usize,
    clients: u32,
    by_2021: bool,
    published: &Published,
) -> Vec<Shade> {
    let step = &table.steps[column];
    let target = rules::target_rate(step, clients);
    let values = table
        .rows
        .iter()
        .map(|(_, label, cells)| (label, cells[column].printed.parse::<f64>().unwrap_or(f64::NAN)));
    match table.kind {
        SummaryKind::Relative => values.map(|(_, ratio)| rules::relative_shade(ratio)).collect(),
        SummaryKind::InsertRate => values
            .map(|(_, rate)| target.map_or(Shade::Plain, |t| rules::insert_rate_shade(rate, t)))
            .collect(),
        SummaryKind::Absolute => {
            let cells: Vec<Throughput> = values
                .map(|(label, rate)| {
                    let meets_sla = target.map(|target| {
                        let achieved = published.value(label, step, Metric::InsertRate);
                        achieved.is_none_or(|achieved| rules::meets_sla(achieved, target))
                    });
                    Throughput { rate, meets_sla }
                })
                .collect();
            if by_2021 {
                rules::absolute_shades_2021(&cells)
            } else {
                rules::absolute_shades(&cells)
            }
        }
    }
}

/// The letter of a colour in summary files.
fn letter(shade: Shade) -> char {
    match shade {
        Shade::Plain => '-',
        Shade::Red => 'r',
        Shade::Gray | Shade::Yellow => 'y',
        Shade::Green => 'g',
        Shade::Blue => 'b',
    }
}
