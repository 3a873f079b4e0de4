//! Longest operations and stalls with their times, and the activity of server and host then.

use super::section;
use crate::analyze::stalls::{self, ROLES, longest_of};
use rqps_analysis::Comparison;
use rqps_analysis::measurement::Measurement;
use rqps_model::metric::{Class, Metric, MetricSpec};
use rqps_report::document::{Block, Cell, Column, Digits, Section, Table};
use rqps_report::tables;

/// Most stalls in a table; of a server that stalls all the time, their number says enough.
const STALLS_MAX: usize = 40;

/// Longest operations and stalls with their times, and the activity of server and host then.
pub(super) fn variance(comparison: &Comparison) -> Section {
    let text = "Averages hide stalls. The longest insert is a separate metric (max_insert_ms, with \
                interval and verdict), which shows a jump even where the average is flat. A stall \
                is a second below a tenth of the median second's rate. Server activity comes from \
                its log and counters, from the start of the longest operation; host activity \
                appears where a second exceeds twice the median second.";
    let mut blocks = vec![Block::Paragraph(text.to_owned())];
    blocks.extend(judged_table(comparison).map(Block::Table));
    blocks.push(Block::Table(longest_table(comparison)));
    let (stalls, left_out) = stall_table(comparison);
    let none = || Block::Paragraph("No stall of a whole second.".to_owned());
    blocks.push(stalls.map_or_else(none, Block::Table));
    if left_out > 0 {
        blocks.push(Block::Paragraph(format!("Stalls not shown: {left_out}.")));
    }
    section("insert-variance", "Insert Benchmark: stalls and longest operations", blocks)
}

/// Verdicts on stability: on the longest insert in every step, and on other stability metrics if
/// they differ. `None` without a comparison.
fn judged_table(comparison: &Comparison) -> Option<Table> {
    let own = |spec: &MetricSpec| spec.owner == "insert" && spec.class == Class::Stability;
    let metrics: Vec<Metric> = Metric::which(own).collect();
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for target in step.targets.iter().skip(1) {
            for metric in metrics.iter().copied() {
                let Some(relative) = target.relative(metric) else { continue };
                let verdict = relative.judgement.as_ref().map(|judgement| judgement.verdict);
                let differs = verdict.is_some_and(|it| it.is_worse() || it.is_better());
                if metric != Metric::InsertMax && !differs {
                    continue;
                }
                rows.push(vec![
                    Cell::text(&step.name),
                    Cell::text(&target.label),
                    Cell::text(metric.name()),
                    tables::absolute(&step.targets[0], metric, metric.digits(), metric.unit()),
                    tables::absolute(target, metric, metric.digits(), metric.unit()),
                    tables::judged(target, metric, Digits::Ratio),
                    match verdict {
                        Some(verdict) => Cell::text(verdict.word(metric)),
                        None => Cell::missing("not compared"),
                    },
                ]);
            }
        }
    }
    let columns = vec![
        Column::words("step"),
        Column::words("target"),
        Column::words("metric"),
        Column::numbers(comparison.baseline.clone()),
        Column::numbers("absolute"),
        Column::numbers("relative"),
        Column::words("verdict"),
    ];
    let caption = "Longest inserts and differing stability metrics: medians over the blocks";
    (!rows.is_empty()).then(|| Table { caption: caption.to_owned(), columns, rows })
}

fn longest_table(comparison: &Comparison) -> Table {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for (target, of_target) in step.targets.iter().enumerate() {
            for (role, name) in ROLES {
                let of_sample = |sample: &&Measurement| {
                    let second = stalls::longest(sample, role).map(|(second, _)| second);
                    (longest_of(sample, role), second)
                };
                let has = |sample: &&Measurement| sample.record.outcome.roles.contains_key(role);
                let samples = of_target.samples.iter().filter(has);
                let Some(worst) = samples.max_by(|a, b| of_sample(a).0.total_cmp(&of_sample(b).0))
                else {
                    continue;
                };
                let (seconds, second) = of_sample(&worst);
                let run = &comparison.runs[worst.run].folder;
                let activity = second.map_or_else(String::new, |second| {
                    let begun = stalls::begun(second, 1e3 * seconds);
                    stalls::activity(worst, begun, second as f64 + 1.0)
                });
                // A step of less than half a second has no seconds.
                let at = second.map_or_else(String::new, |second| format!(" + {} s", second + 1));
                rows.push(vec![
                    Cell::text(&step.name),
                    Cell::text(&comparison.targets[target].label),
                    Cell::text(name),
                    Cell::number(seconds, Digits::Fixed(3), "s").from_runs(vec![run.clone()]),
                    Cell::text(format!("{}{at}", worst.record.started)),
                    Cell::text(activity),
                ]);
            }
        }
    }
    let columns = vec![
        Column::words("step"),
        Column::words("target"),
        Column::words("what"),
        Column::numbers("longest s"),
        Column::words("ended"),
        Column::words("server and host activity"),
    ];
    Table { caption: "Longest operations of all blocks".to_owned(), columns, rows }
}

/// The table of stalls, and the number of stalls left out of it.
fn stall_table(comparison: &Comparison) -> (Option<Table>, usize) {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for (target, of_target) in step.targets.iter().enumerate() {
            for sample in &of_target.samples {
                let run = &comparison.runs[sample.run];
                rows.extend(stalls::stalls(sample).into_iter().map(|stall| {
                    vec![
                        Cell::text(&step.name),
                        Cell::text(&comparison.targets[target].label),
                        Cell::text(run.key.folder()).from_runs(vec![run.folder.clone()]),
                        Cell::text(format!("{} + {} s", sample.record.started, stall.from)),
                        Cell::number(stall.seconds as f64, Digits::Fixed(0), "s"),
                        Cell::text(stall.role),
                        Cell::number(stall.longest_ms, Digits::Fixed(1), "ms"),
                        Cell::text(stall.activity),
                    ]
                }));
            }
        }
    }
    let left_out = rows.len().saturating_sub(STALLS_MAX);
    rows.truncate(STALLS_MAX);
    let columns = vec![
        Column::words("step"),
        Column::words("target"),
        Column::words("run"),
        Column::words("from second"),
        Column::numbers("seconds"),
        Column::words("what"),
        Column::numbers("longest ms"),
        Column::words("server and host activity"),
    ];
    let caption = "Stalls".to_owned();
    let any = !rows.is_empty();
    (any.then_some(Table { caption, columns, rows }), left_out)
}
