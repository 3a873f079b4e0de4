//! Client hosts: where clients ran, what they used there, and how well their clocks were known.

use std::collections::BTreeSet;

use super::document::{Block, Cell, Column, Digits, Section, Table};
use rqps_analysis::Comparison;
use rqps_model::client_hosts::HostsOfClients;
use rqps_model::run::ClientHostRecord;

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
    (!rows.is_empty()).then(|| Section {
        id: "client-hosts",
        heading: "Client hosts".to_owned(),
        blocks: vec![
            Block::Paragraph(
                "Clients ran on these hosts, so cpu/o and other counters of the host are those of \
                 the server's host alone. Each value is the largest of all steps and runs, of \
                 either sign."
                    .to_owned(),
            ),
            Block::Table(Table { caption: String::new(), columns, rows }),
        ],
    })
}

fn cells(comparison: &Comparison, host: &str) -> Vec<Cell> {
    let most = |get: &dyn Fn(&ClientHostRecord) -> Option<f64>| {
        largest(records(comparison).filter(|record| record.host == host), get)
    };
    let number = |value: Option<f64>, digits: Digits, unit: &'static str| match value {
        Some(value) => Cell::number(value, digits, unit),
        None => Cell::missing("the steps do not wait for their clients to be ready"),
    };
    let percent = |share: Option<f64>| match share.filter(|share| share.is_finite()) {
        Some(share) => Cell::text(format!("{:.0} %", 100.0 * share)),
        None => Cell::missing("the driver recorded no share"),
    };
    let cpus = match most(&|record| record.cpus.map(f64::from)) {
        Some(cpus) => Cell::number(cpus, Digits::Fixed(0), ""),
        None => Cell::missing("the driver recorded no CPUs"),
    };
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
