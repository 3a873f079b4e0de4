//! Scaling of steps over client counts: a table and charts for each step that was measured at
//! several.

use std::sync::Arc;

use super::chart::{Axis, Chart, Form, Line, Point, Series};
use super::document::{Block, Cell, Column, Digits, Fold, Section, Table};
use super::tables::{absolute, judged};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::metrics::rate_unit;
use rqps_model::metric::Metric;

/// Up to this many steps are shown open.
const OPEN_MAX: usize = 3;

const EXPLAINED: &str = "Each step ran once per client count. `per client` is the rate divided by \
                         the clients, `scale` the rate divided by that of the same target with \
                         the fewest clients. Values are medians over the runs; rQPS and verdict \
                         compare each target with the baseline at the same count.";

/// One step at one client count.
struct Counted<'a> {
    clients: u32,
    step: &'a StepComparison,
}

/// A table and charts for each step; `None` if no step was measured at several client counts.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let families: Vec<_> =
        families(comparison).into_iter().filter(|(_, counts)| counts.len() > 1).collect();
    let folds = families.len() > OPEN_MAX;
    let mut blocks = vec![Block::Paragraph(EXPLAINED.to_owned())];
    for (name, counts) in &families {
        let caption = if folds { String::new() } else { (*name).to_owned() };
        let mut own = vec![Block::Table(Table { caption, ..table(comparison, counts) })];
        own.extend(charts(comparison, name, counts).into_iter().map(Block::Chart));
        if folds {
            blocks.push(Block::Fold(Fold { summary: (*name).to_owned(), blocks: own }))
        } else {
            blocks.extend(own)
        }
    }
    (!families.is_empty()).then(|| Section {
        id: "scaling",
        heading: "Scaling over client counts".to_owned(),
        blocks,
    })
}

/// Steps by their names without counts, in the order of the comparison.
fn families(comparison: &Comparison) -> Vec<(&str, Vec<Counted<'_>>)> {
    let mut families: Vec<(&str, Vec<Counted<'_>>)> = Vec::new();
    for step in &comparison.steps {
        let Some(count) = &step.client_count else { continue };
        let counted = Counted { clients: count.clients, step };
        match families.iter_mut().find(|(name, _)| *name == count.step) {
            Some((_, counts)) => counts.push(counted),
            None => families.push((&count.step, vec![counted])),
        }
    }
    families.iter_mut().for_each(|(_, counts)| counts.sort_by_key(|counted| counted.clients));
    families
}

fn table(comparison: &Comparison, counts: &[Counted<'_>]) -> Table {
    let unit = counts.first().map_or("", |counted| rate_unit(counted.step.rate));
    let columns = vec![
        Column::numbers("clients"),
        Column::numbers(unit),
        Column::numbers("per client").with_legend("rate / clients"),
        Column::numbers("scale").with_legend("rate / rate of this target with the fewest clients"),
        Column::of(Metric::ServerCpuPerOp),
        Column::of(Metric::P99),
        Column::numbers("rQPS"),
        Column::words("verdict"),
        Column::words("target"),
    ];
    let of_target = |place: usize| {
        let fewest = counts.iter().find_map(|counted| rate(counted, place));
        counts
            .iter()
            .filter(move |counted| counted.step.targets[place].was_carried_out())
            .map(move |counted| row(counted, place, fewest))
    };
    let rows = (0..comparison.targets.len()).flat_map(of_target).collect();
    Table { caption: String::new(), columns, rows }
}

fn row(counted: &Counted<'_>, place: usize, fewest: Option<f64>) -> Vec<Cell> {
    let target = &counted.step.targets[place];
    let derived = |number: Option<f64>, digits: Digits| match number {
        Some(number) => Cell::number(number, digits, "").from_runs(Arc::clone(&target.folders)),
        None => Cell::missing("no rate"),
    };
    let rate = rate(counted, place);
    let scale = rate.zip(fewest).filter(|(_, fewest)| *fewest > 0.0);
    let verdict = target.judgement(Metric::Rate);
    vec![
        Cell::number(f64::from(counted.clients), Digits::Fixed(0), ""),
        absolute(target, Metric::Rate, Digits::Fixed(0), ""),
        derived(rate.map(|rate| rate / f64::from(counted.clients)), Digits::Fixed(0)),
        derived(scale.map(|(rate, fewest)| rate / fewest), Digits::Fixed(2)),
        absolute(target, Metric::ServerCpuPerOp, Digits::Fixed(2), ""),
        absolute(target, Metric::P99, Metric::P99.digits(), "ms"),
        match place {
            0 => Cell::text("baseline"),
            _ => judged(target, Metric::Rate, Digits::Fixed(3)),
        },
        Cell::text(verdict.map_or("", |judgement| judgement.verdict.name())),
        Cell::text(target.label.clone()),
    ]
}

fn rate(counted: &Counted<'_>, place: usize) -> Option<f64> {
    counted.step.targets[place].absolute(Metric::Rate)
}

/// Rate, rate per client, server CPU per operation and 99th percentile against clients, as far as
/// they were measured.
fn charts(comparison: &Comparison, name: &str, counts: &[Counted<'_>]) -> Vec<Chart> {
    let unit = counts.first().map_or("", |counted| rate_unit(counted.step.rate));
    let of = |metric: Metric| move |target: &TargetResult, _: f64| target.absolute(metric);
    let chart = |id: &str, y: Axis, value: &dyn Fn(&TargetResult, f64) -> Option<f64>| {
        chart(comparison, counts, &format!("{name}-{id}"), (name, y), value)
    };
    let per_client = |target: &TargetResult, clients: f64| {
        target.absolute(Metric::Rate).map(|rate| rate / clients)
    };
    [
        chart("rate", Axis::linear("rate", unit), &of(Metric::Rate)),
        chart("per-client", Axis::linear("rate per client", unit), &per_client),
        chart(
            "server-cpu",
            Axis::linear("server CPU per operation", Metric::ServerCpuPerOp.unit()),
            &of(Metric::ServerCpuPerOp),
        ),
        chart("p99", Axis::linear("99th percentile", "ms"), &of(Metric::P99)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One value of all targets against clients; `None` if no target has two points.
fn chart(
    comparison: &Comparison,
    counts: &[Counted<'_>],
    id: &str,
    (name, y): (&str, Axis),
    value: &dyn Fn(&TargetResult, f64) -> Option<f64>,
) -> Option<Chart> {
    let title = format!("{name}: {} against clients", y.name);
    let mut chart = Chart::new(format!("scaling-{id}"), title, Form::Points)
        .axes(Axis::doubling("clients", ""), y);
    for (place, facts) in comparison.targets.iter().enumerate() {
        let points = counts.iter().filter_map(|counted| {
            let target = &counted.step.targets[place];
            let clients = f64::from(counted.clients);
            let point = Point::at(clients, value(target, clients)?);
            Some(point.from_runs(target.folders.to_vec()))
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            let series = Series::new(facts.label.clone(), place, Line::Straight);
            chart.series.push(Series { points, ..series });
        }
    }
    chart.series.iter().any(|series| series.points.len() > 1).then_some(chart)
}
