//! Answers of a driver process: one event as a line of JSON, until its request is carried out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::run::{CpuTime, HostUsage, Outcome, Turn};

/// What the driver says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverEvent {
    /// Loading: rows so far.
    Loading {
        /// Rows done.
        rows: u64,
        /// Rows in all.
        of: u64,
    },
    /// Loading: rows are in, indexes are being made.
    Indexing {
        /// Indexes done.
        done: u32,
        /// Indexes in all.
        of: u32,
    },
    /// Something about the load that its user should know.
    Note(String),
    /// Loading is over.
    Loaded {
        /// Rows.
        rows: u64,
        /// Seconds for tables and rows.
        load_seconds: f64,
        /// Seconds for indexes.
        index_seconds: f64,
        /// CPU of the driver process.
        client_cpu: CpuTime,
    },
    /// All clients are connected and prepared. Said where the job asks for it: the driver waits for
    /// a line before it goes on, so that counters of the server are read before the first event.
    Prepared,
    /// All clients are connected and prepared; the warm-up begins.
    Warming,
    /// The answer to [`LabWord::Clock`](crate::driver::request::LabWord).
    Clock {
        /// The host's monotonic clock, nanoseconds.
        monotonic_ns: u64,
        /// Its wall clock, nanoseconds since 1970.
        unix_ns: u64,
    },
    /// The window begins now.
    WindowStart {
        /// Where exactly, on the host's monotonic clock, nanoseconds.
        at_ns: u64,
    },
    /// A second of the window has ended.
    Interval(StepInterval),
    /// The window has ended, but the work has not: counters that are read now belong to it.
    WindowEnd,
    /// Work beside the window goes on.
    Waiting {
        /// For what.
        what: String,
    },
    /// The warm-up of a counted step has ended: the driver waits for a line before the first event
    /// that counts.
    BeforeCount {
        /// The process or thread of the server that serves the client; `None` if it is not known,
        /// or if the DBMS is a library in the driver.
        serving: Option<u32>,
    },
    /// The last event that counts has ended: the driver waits for a line before it does anything
    /// else.
    AfterCount,
    /// The turns of the window, where targets took turns.
    Turns(Vec<Turn>),
    /// Changes of the counters of the driver's host in the window, or why they are unknown. Only if
    /// the lab is on another host.
    HostUsage(Result<HostUsage, String>),
    /// The window has ended: all that was counted.
    Measured(Box<Outcome>),
    /// The job cannot go on.
    Failed {
        /// The action, its object and the error.
        fault: String,
    },
}

/// One second as the driver saw it. Latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepInterval {
    /// From 1.
    pub second: u32,
    /// Its length in seconds.
    pub seconds: f64,
    /// Events.
    pub events: u64,
    /// Statements; outside of scripts, operations as the step's rate counts them.
    pub statements: u64,
    /// Errors.
    pub errors: u64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// What only some benchmarks count: column of the step's CSV → value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// The latencies themselves, nanoseconds: HdrHistogram V2, base64. Only where several hosts
    /// share the clients of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
}
