//! What the lab and the driver process say to each other: one JSON value a line, jobs in, messages
//! out.
//!
//! A driver process carries out one job and ends. It ends too when its standard input closes: then
//! the lab is gone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::domain::benchmark::{Pace, Placement, RateUnit};
use crate::domain::build::Dialect;
use crate::domain::endpoint::{Endpoint, Login};
use crate::domain::insert::InsertWork;
use crate::domain::kv::KvWork;
use crate::domain::run::{Outcome, Turn};
use crate::domain::script::Script;
use crate::domain::vector::VectorWork;
use crate::driver::ring::TurnRequest;

/// Version of these messages; both sides are the same binary, so a difference is a bug or an
/// exchanged file.
pub const VERSION: u32 = 1;

/// What one driver process is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverRequest {
    /// [`VERSION`].
    pub version: u32,
    /// What the sessions speak.
    pub dialect: Dialect,
    /// Where they connect.
    pub endpoint: Endpoint,
    /// As whom.
    pub login: Login,
    /// Statements after connecting, per session: `SET …`, `PRAGMA …`.
    pub session_setup: Vec<String>,
    /// On a server that rqps does not run: the comment of every table that is made there.
    #[serde(default)]
    pub mark: Option<String>,
    /// Seed; client i draws from a stream of its own.
    pub seed: u64,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table.
    pub rows: u64,
    /// True if the driver says [`DriverEvent::Prepared`] and waits for a line.
    #[serde(default)]
    pub pause: bool,
    /// What to do.
    pub task: RequestBody,
    /// How to take turns with other targets; `None` to measure without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnRequest>,
}

#[cfg(test)]
impl DriverRequest {
    /// A job on one table of one row of the fake DBMS, whose statements sleep for a microsecond.
    pub(crate) fn fake(task: RequestBody) -> DriverRequest {
        DriverRequest {
            version: VERSION,
            dialect: Dialect::Fake,
            endpoint: Endpoint::Fake { mean_us: 1, real_time: false },
            login: Login::default(),
            session_setup: Vec::new(),
            mark: None,
            seed: 1,
            tables: 1,
            rows: 1,
            pause: false,
            task,
            turns: None,
        }
    }
}

/// Kinds of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestBody {
    /// Create and fill the tables, then their indexes.
    Load(LoadRequest),
    /// Run clients and measure.
    Measure(Box<ScriptRequest>),
    /// A step of the Insert Benchmark.
    Insert(Box<StepRequest<InsertWork>>),
    /// A step of the RocksDB sequence.
    Kv(Box<StepRequest<KvWork>>),
    /// A point of vector search.
    Vector(Box<StepRequest<VectorWork>>),
}

/// Measuring what is no script: its own loops, the same messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRequest<W> {
    /// What the clients do.
    pub work: W,
    /// Number of clients.
    pub clients: u32,
    /// Seconds before the window.
    pub warmup_seconds: f64,
    /// The window, or how long the work is expected to take where it ends by itself.
    pub seconds: f64,
    /// Closed or open.
    pub pace: Pace,
    /// Where threads and the server's side of connections run.
    pub placement: Placement,
    /// Root process of the server, if it runs on this host and may be pinned.
    pub server_pid: Option<u32>,
    /// Storage engine of the tables, where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
    /// Folder for data that take long to make and that other jobs use too.
    #[serde(default)]
    pub cache: Option<PathBuf>,
}

/// Loading, all tables alike. `{table}` in the SQL is the table's number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    /// DROP TABLE IF EXISTS.
    pub drop_sql: String,
    /// CREATE TABLE.
    pub create_sql: String,
    /// After the rows: the secondary index.
    pub index_sql: Vec<String>,
    /// Table name, e.g. `sbtest{table}`.
    pub table: String,
    /// Columns in the order of the generator: `id, k, c, pad`, of types INTEGER (32 bits), INTEGER,
    /// and two texts.
    pub columns: String,
    /// Tables loaded at the same time.
    pub parallel: u32,
}

/// Measuring.
///
/// Clients run through warm-up and window without a stop; the clock cuts: an event counts in the
/// interval in which it ends, and one that ends after the window does not count. If a client ended
/// no event in the window, the one that was in flight counts over its own time, which enters
/// `Outcome::seconds` as [`RateUnit::RowsScanned`] explains, and a note says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptRequest {
    /// What each client does.
    pub script: Script,
    /// Number of clients.
    pub clients: u32,
    /// Seconds before the window.
    pub warmup_seconds: f64,
    /// The window.
    pub seconds: f64,
    /// Closed or open.
    pub pace: Pace,
    /// What the rate counts. [`RateUnit::RowsScanned`] makes the window one of whole events: it
    /// begins when every client has finished its last warm-up event, every client finishes the
    /// event in flight at its end, and `Outcome::seconds` is Σ events / Σ (events / seconds
    /// of the client), so that events / seconds is the sum of the clients' rates.
    pub rate: RateUnit,
    /// Where threads and the server's side of connections run.
    pub placement: Placement,
    /// Root process of the server, if it runs on this host and may be pinned.
    pub server_pid: Option<u32>,
    /// True to ask for the query plan of every statement kind before the warm-up.
    pub plans: bool,
}

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
    /// Loading is over.
    Loaded {
        /// Rows.
        rows: u64,
        /// Seconds for tables and rows.
        load_seconds: f64,
        /// Seconds for indexes.
        index_seconds: f64,
    },
    /// All clients are connected and prepared. Said where the job asks for it: the driver waits for
    /// a line before it goes on, so that counters of the server are read before the first event.
    Prepared,
    /// All clients are connected and prepared; the warm-up begins.
    Warming,
    /// The window begins now.
    WindowStart,
    /// A second of the window has ended.
    Interval(Interval),
    /// The window has ended, but the work has not: counters that are read now belong to it.
    WindowEnd,
    /// Work beside the window goes on.
    Waiting {
        /// For what.
        what: String,
    },
    /// The turns of the window, where targets took turns.
    Turns(Vec<Turn>),
    /// The window has ended: all that was counted.
    Measured(Box<Outcome>),
    /// The job cannot go on.
    Failed {
        /// What was done, to what, what went wrong.
        fault: String,
    },
}

/// One second as the driver saw it. Latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
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
}
