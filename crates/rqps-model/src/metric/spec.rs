//! The row of a metric.

use serde::{Deserialize, Serialize};

use crate::digits::Digits;

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Context (load or volume): neither direction is better, so it gets no verdict.
    Neither,
}

/// The class of a metric. Reports select their columns by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Work done per second.
    Rate,
    /// Resources that an operation or a row takes.
    Cost,
    /// Time that one operation takes.
    Latency,
    /// Effects that averages hide: the longest operations, slow seconds.
    Stability,
    /// Delays of writes by the DBMS: number and time.
    Stall,
    /// Space in memory or on disk.
    Size,
    /// Duration of a phase that is not measured by its rate.
    Time,
    /// Quality of answers.
    Quality,
    /// Volume of work inside the DBMS or the client.
    Activity,
    /// Activity of host and disk, as iostat and vmstat show it.
    Host,
    /// A number as others publish it, beside the corrected one.
    Published,
}

/// The row of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// Name in files.
    pub key: &'static str,
    /// Column head, also its name on the command line.
    pub head: &'static str,
    /// Unit of its values; that of the rate is the step's own.
    pub unit: &'static str,
    /// The better direction.
    pub better: Direction,
    /// The class of the metric.
    pub class: Class,
    /// The digits of its values in tables.
    pub digits: Digits,
    /// The benchmark that it belongs to; empty for a metric of all benchmarks.
    pub owner: &'static str,
    /// The meaning in a sentence or two.
    pub meaning: &'static str,
    /// True if every step has it, or has a reason to lack it.
    pub common: bool,
    /// For a cost that may explain the rate, its place among those with an equal change: the more
    /// specific comes first. Latencies are not among them: with a fixed number of clients they are
    /// the rate, seen from the other side.
    pub explains: Option<u8>,
    /// True if the table of verdicts counts it beside the rate.
    pub counted: bool,
    /// True if the overview omits it.
    pub aside: bool,
    /// True for a rate of writers with a target: it stays comparable where a missed target makes
    /// the rest of the step incomparable.
    pub of_writers: bool,
    /// True for a figure of the clients of each host whose sum is that of all clients.
    pub adds_up: bool,
    /// True for counts that depend neither on time nor on the layout of a build.
    pub exact: bool,
    /// Place among the published columns of costs per operation, if it is one of them.
    pub place: Option<u8>,
}
