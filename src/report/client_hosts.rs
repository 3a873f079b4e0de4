//! Client hosts: where clients ran, what they used there, and how well their clocks were known.

use super::document::{Block, Cell, Column, Digits, Section, Table};
use crate::analyze::Comparison;
use crate::domain::client_hosts::HostsOfClients;
use crate::domain::run::ClientHostRecord;

/// All that was recorded of client hosts, step by step.
fn records(comparison: &Comparison) -> impl Iterator<Item = &ClientHostRecord> {
    let targets = comparison.steps.iter().flat_map(|step| &step.targets);
    let samples = targets.flat_map(|target| &target.samples);
    samples.flat_map(|sample| &sample.record.outcome.client_hosts)
}

fn largest<'a>(
    records: impl Iterator<Item = &'a ClientHostRecord>,
    get: impl Fn(&ClientHostRecord) -> Option<f64>,
) -> Option<f64> {
    records.filter_map(get).reduce(f64::max)
}

/// The client hosts in a few words for the head of a report.
pub(super) fn line(comparison: &Comparison, clients: &HostsOfClients) -> String {
    let mut line = format!(
        "{} by TCP; whole steps alternate, because turns need clients and servers on one host",
        clients.hosts.join(", ")
    );
    if let Some(bound) = largest(records(comparison), |record| record.clock_bound_ms) {
        line.push_str(&format!("; clocks known to within {bound:.2} ms"));
    }
    let apart = largest(records(comparison), |record| record.start_ms);
    if let Some(apart) = apart.filter(|_| clients.hosts.len() > 1) {
        line.push_str(&format!("; windows began up to {apart:.2} ms apart"));
    }
    line
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
        Column::numbers("clients").told("largest number of its clients"),
        Column::numbers("cpus").told("logical CPUs"),
        Column::numbers("busiest").told("largest share of a CPU that a client's thread used"),
        Column::numbers("host_busy").told("largest share of the time of all its CPUs in use"),
        Column::numbers("clock_ahead_ms").told("furthest that its wall clock was ahead"),
        Column::numbers("clock_bound_ms").told("largest error of the offset of its clock"),
        Column::numbers("start_ms").told("its window began so long after the first one, at most"),
    ];
    (!rows.is_empty()).then(|| Section {
        id: "client-hosts",
        heading: "Client hosts".to_owned(),
        blocks: vec![
            Block::Paragraph(
                "Clients ran on these hosts, so cpu/o and other counters of the host are those of \
                 the server's host alone. Each value is the largest of all steps and runs."
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
    let percent =
        |share: Option<f64>| Cell::text(format!("{:.0} %", 100.0 * share.unwrap_or_default()));
    vec![
        Cell::text(host.to_owned()),
        number(most(&|record| Some(f64::from(record.clients))), Digits::Fixed(0), ""),
        number(most(&|record| Some(f64::from(record.cpus))), Digits::Fixed(0), ""),
        percent(most(&|record| Some(record.busiest))),
        percent(most(&|record| Some(record.host_busy))),
        number(most(&|record| record.clock_ahead_ms), Digits::Fixed(3), "ms"),
        number(most(&|record| record.clock_bound_ms), Digits::Fixed(3), "ms"),
        number(most(&|record| record.start_ms), Digits::Fixed(3), "ms"),
    ]
}
