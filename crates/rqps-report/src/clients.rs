//! Clients: their hosts, and steps at several numbers of clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{
    Axis, Block, Cell, Chart, Column, Digits, Form, Line, Point, Section, Series, Table,
};
use super::tables::{absolute, judged};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::measurement::rate_unit;
use rqps_model::host::HostsOfClients;
use rqps_model::metric::Metric;
use rqps_model::run::ClientHostRecord;

// Client hosts: where clients ran, what they used there, and how well their clocks were known.

/// All that was recorded of client hosts, step by step.
fn records(comparison: &Comparison) -> impl Iterator<Item = &ClientHostRecord> {
    let targets = comparison.steps.iter().flat_map(|step| &step.targets);
    let samples = targets.flat_map(|target| &target.samples);
    samples.flat_map(|sample| &sample.record.outcome.client_hosts)
}

/// The value with the largest magnitude.
fn largest<'a>(
    records: impl Iterator<Item = &'a ClientHostRecord>,
    get: impl Fn(&ClientHostRecord) -> Option<f64>,
) -> Option<f64> {
    records.filter_map(get).reduce(|a, b| if b.abs() > a.abs() { b } else { a })
}

/// The client hosts in a few words for the head of a report.
pub(super) fn line(comparison: &Comparison, clients: &HostsOfClients) -> String {
    let hosts = match (clients.hosts.is_empty(), records(comparison).next()) {
        _ if clients.nodes.is_some() => nodes(comparison, clients.count()),
        (false, _) => clients.hosts.join(", "),
        (true, Some(record)) => format!("{} (the host of rqps)", record.host),
        (true, None) => "the host of rqps".to_owned(),
    };
    let mut targets = comparison.steps.iter().flat_map(|step| &step.targets);
    let takes_turns = targets
        .any(|target| target.samples.iter().any(|sample| sample.record.outcome.turns.is_some()));
    let how = if takes_turns {
        "drivers pass turns on there, and waiting servers run on"
    } else {
        "whole steps alternate"
    };
    let mut line = format!("{hosts} by TCP; {how}");
    if let Some(bound) = largest(records(comparison), |record| record.clock_bound_ms) {
        line.push_str(&format!("; clocks known to within {bound:.2} ms"));
    }
    let apart = largest(records(comparison), |record| record.start_ms);
    if let Some(apart) = apart.filter(|_| clients.count() > 1) {
        line.push_str(&format!("; windows began up to {apart:.2} ms apart"));
    }
    line
}

/// Nodes of Slurm that carried clients.
fn nodes(comparison: &Comparison, of_block: usize) -> String {
    let names: BTreeSet<&str> = records(comparison).map(|record| record.host.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    format!("{} for each block, nodes of Slurm: {}", of_block, names.join(", "))
}

/// A row for each client host: the largest values of all steps; `None` without client hosts.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let mut names: Vec<&str> = Vec::new();
    for record in records(comparison) {
        if !names.contains(&record.host.as_str()) {
            names.push(&record.host);
        }
    }
    let rows: Vec<Vec<Cell>> = names.iter().map(|name| cells(comparison, name)).collect();
    let columns = vec![
        Column::words("host"),
        Column::numbers("clients").with_legend("clients on this host"),
        Column::numbers("cpus").with_legend("logical CPUs"),
        Column::numbers("busiest")
            .with_legend("share of a CPU that the busiest client thread used"),
        Column::numbers("host_busy").with_legend("share of all its CPUs that were busy"),
        Column::numbers("clock_offset_ms")
            .with_legend("offset of its wall clock from the server's: positive is ahead"),
        Column::numbers("clock_bound_ms").with_legend("largest possible error of that offset"),
        Column::numbers("start_ms")
            .with_legend("delay of its window after the first window of the step"),
    ];
    let about = "Clients ran on these hosts, so cpu/o and other counters of the host are those of the \
                 server's host alone. Each value is the largest of all steps and runs, of either sign.";
    let table = (!rows.is_empty()).then(|| Table::new("", columns, rows));
    Section::of_table("client-hosts", "Client hosts", about, table)
}

fn cells(comparison: &Comparison, host: &str) -> Vec<Cell> {
    let most = |get: &dyn Fn(&ClientHostRecord) -> Option<f64>| {
        largest(records(comparison).filter(|record| record.host == host), get)
    };
    let number = |value: Option<f64>, digits: Digits, unit: &'static str| {
        Cell::number_or(value, digits, unit, "the steps do not wait for their clients to be ready")
    };
    let percent = |share: Option<f64>| {
        let share = share.filter(|share| share.is_finite());
        let text = share.map(|share| format!("{:.0} %", 100.0 * share));
        Cell::text_or(text, "the driver recorded no share")
    };
    let cpus = most(&|record| record.cpus.map(f64::from));
    let cpus = Cell::number_or(cpus, Digits::Fixed(0), "", "the driver recorded no CPUs");
    vec![
        Cell::text(host.to_owned()),
        number(most(&|record| Some(f64::from(record.clients))), Digits::Fixed(0), ""),
        cpus,
        percent(most(&|record| Some(record.busiest))),
        percent(most(&|record| record.host_busy)),
        number(most(&|record| record.clock_ahead_ms), Digits::Fixed(3), "ms"),
        number(most(&|record| record.clock_bound_ms), Digits::Fixed(3), "ms"),
        number(most(&|record| record.start_ms), Digits::Fixed(3), "ms"),
    ]
}

// Scaling of steps over client counts: a table and charts for each step that was measured at
// several.

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
pub(super) fn scaling_section(comparison: &Comparison) -> Option<Section> {
    let families: Vec<_> =
        families(comparison).into_iter().filter(|(_, counts)| counts.len() > 1).collect();
    let folds = families.len() > OPEN_MAX;
    let mut blocks = vec![Block::text(EXPLAINED)];
    for (name, counts) in &families {
        let caption = if folds { String::new() } else { (*name).to_owned() };
        let mut own = vec![Block::Table(Table { caption, ..table(comparison, counts) })];
        own.extend(charts(comparison, name, counts).into_iter().map(Block::Chart));
        if folds { blocks.push(Block::fold((*name).to_owned(), own)) } else { blocks.extend(own) }
    }
    (!families.is_empty()).then(|| Section::new("scaling", "Scaling over client counts", blocks))
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
    Table::new("", columns, rows)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_behind_counts_as_much_as_one_ahead() {
        let of = |ahead: Option<f64>| ClientHostRecord {
            clock_ahead_ms: ahead,
            ..ClientHostRecord::default()
        };
        let check = |ahead: &[Option<f64>], expected| {
            let records: Vec<ClientHostRecord> = ahead.iter().copied().map(of).collect();
            let found = largest(records.iter(), |record| record.clock_ahead_ms);
            assert_eq!(found, expected, "{ahead:?}");
        };
        check(&[Some(0.2), Some(-3.0), Some(1.0)], Some(-3.0));
        check(&[Some(-0.1), Some(0.4)], Some(0.4));
        check(&[None, Some(-2.0)], Some(-2.0));
        check(&[None], None);
    }
}
