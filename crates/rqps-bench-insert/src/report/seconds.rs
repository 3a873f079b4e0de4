//! Longest operations and stalls with their times, and the activity of server and host then.

use crate::analyze::stalls::{self, ROLES, longest_of};
use crate::report::section;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::measurement::Measurement;
use rqps_model::metric::{Class, Metric, MetricSpec};
use rqps_report::chart::{Axis, Chart, Form, Line, Point, STALL, Series, Span};
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
                    Cell::text_or(verdict.map(|verdict| verdict.word(metric)), "not compared"),
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

// Charts of rates and longest response times by second.

/// Most points per series of a chart.
const POINTS_MAX: usize = 600;

/// Charts of rates and longest response times by second: one per step and role, with a line for
/// each run.
pub(super) fn over_time(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        for (role, name) in ROLES {
            let rate = Axis::linear(format!("{role}/s"), "1/s");
            blocks.extend(chart(comparison, step, role, 1.0, rate).map(Block::Chart));
            let longest = Axis::linear(format!("longest {name}"), "ms");
            let column = format!("{role}_max_us");
            blocks.extend(chart(comparison, step, &column, 1e-3, longest).map(Block::Chart));
        }
    }
    (!blocks.is_empty())
        .then(|| section("insert-over-time", "Insert Benchmark: rates over time", blocks))
}

fn chart(
    comparison: &Comparison,
    step: &StepComparison,
    column: &str,
    factor: f64,
    y: Axis,
) -> Option<Chart> {
    let (mut series, mut spans) = (Vec::new(), Vec::new());
    for (slot, target) in step.targets.iter().enumerate() {
        for sample in &target.samples {
            let Some(values) = sample.record.outcome.series.get(column) else { continue };
            spans.extend(marked(sample, column, series.len()));
            let mut line = Series::new(&target.label, slot, Line::Straight);
            line.runs = vec![comparison.runs[sample.run].folder.clone()];
            line.points = thinned(values, factor, column.ends_with("_max_us"));
            series.push(line);
        }
    }
    // One point does not make a line.
    let long = series.iter().any(|line| line.points.len() > 1);
    long.then(|| {
        let title = format!("{}: {} over time", step.name, y.name);
        let chart = Chart::new(format!("insert-{}-{column}", step.name), title, Form::Lines);
        let notes = vec![notes_on(&spans)];
        Chart { series, spans, notes, ..chart.axes(Axis::linear("time in the step", "s"), y) }
    })
}

/// Marks of a run: stalls of the role whose rate is in `column`, and flushing of the server.
fn marked(sample: &Measurement, column: &str, series: usize) -> Vec<Span> {
    let stretches = stalls::stretches(&sample.record, column).into_iter();
    let stalled = stretches.map(|stall| (stall.start as f64, stall.end as f64, STALL));
    stalled
        .chain(stalls::flushing(sample))
        .map(|(from, to, label)| Span { from, to, series: Some(series), label: label.to_owned() })
        .collect()
}

fn notes_on(spans: &[Span]) -> String {
    let stalls = spans.iter().filter(|span| span.label == STALL).count();
    let mut text = "One line per run.".to_owned();
    match stalls {
        0 => {}
        1 => text.push_str(" Red mark: 1 stall."),
        n => text.push_str(&format!(" Red marks: {n} stalls.")),
    }
    if spans.len() > stalls {
        text.push_str(" Marks in the target's colour show checkpoints and flushing.");
    }
    text
}

/// Merges neighbouring seconds if there are too many points: their mean, or the longest.
fn thinned(values: &[f64], factor: f64, longest: bool) -> Vec<Point> {
    let width = values.len().div_ceil(POINTS_MAX).max(1);
    let point = |(place, part): (usize, &[f64])| {
        let y = if longest {
            part.iter().copied().fold(0.0, f64::max)
        } else {
            part.iter().sum::<f64>() / part.len() as f64
        };
        Point::at((place * width) as f64 + part.len() as f64 / 2.0, y * factor)
    };
    values.chunks(width).enumerate().map(point).collect()
}
