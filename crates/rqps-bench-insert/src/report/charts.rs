//! Charts of rates and longest response times by second.

use super::section;
use crate::analyze::stalls::{self, ROLES};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::measurement::Measurement;
use rqps_report::chart::{Axis, Chart, Form, Line, Point, STALL, Series, Span};
use rqps_report::document::{Block, Section};

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
