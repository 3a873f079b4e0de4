//! Benchmarks: a sequence of phases on a workload.

use serde::{Deserialize, Serialize};

use crate::client::{ClientShape, ClientWork};
use crate::host::HostsOfClients;
use crate::insert::{InsertShape, InsertWork};
use crate::kv::{KvShape, KvWork};
use crate::lua::{LuaShape, LuaWork};
use crate::pgbench::{PgbenchLoad, PgbenchShape, PgbenchWork};
use crate::script::{Script, StepParameters};
use crate::sql_name::PlainName;
use crate::sql_workload::{ReplayWork, SqlShape};
use crate::vector::{VectorShape, VectorWork};
use crate::ycsb::{OrdersShape, YcsbShape};

/// The scale and the shape of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Number of tables.
    pub tables: u32,
    /// Rows in each table.
    pub rows: u64,
    /// Concurrent connections; the largest of `client_counts` if there are several.
    pub clients: u32,
    /// Client counts that each measured step is run at, one after the other, ascending; empty for
    /// `clients` alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_counts: Vec<u32>,
    /// Hosts of the clients; `None` if they run on the host of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_hosts: Option<HostsOfClients>,
    /// Seconds that a step of the read kind is measured.
    pub read_seconds: f64,
    /// Seconds that a step of the write kind is measured.
    pub write_seconds: f64,
    /// Seconds before each measured window; not counted.
    pub warmup_seconds: f64,
    /// 1.0 waits as long as the published work after loading and writing; 0.0 does not wait at all.
    pub settle_scale: f64,
    /// Closed, or open at a rate.
    pub pace: Pace,
    /// The CPUs of client and server.
    pub placement: Placement,
    /// The state of idle CPUs.
    pub idle: Idle,
    /// Memory for the DBMS's own cache in bytes; `None` sizes it from the data.
    pub cache_bytes: Option<u64>,
    /// Statements of the microbenchmarks as text with literals, none prepared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_statements: bool,
    /// Memory that a server, or the process that loads a library, may take with the page cache of
    /// its files, bytes; `None` for no limit. The Insert Benchmark has its own in its shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<u64>,
    /// Shortest length of a turn in milliseconds, where targets take turns within a step; `None`
    /// for [`Group::turn_ms`] of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_ms: Option<f64>,
    /// The state of a server during the turns of others; `None` for the default of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<BackgroundState>,
    /// Statements of each step whose instructions are counted under valgrind; `None` if rates are
    /// measured. A counted run has one client, and its windows are statements instead of seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_statements: Option<u64>,
    /// Samples of the server's stacks per second of CPU time; `None` without a profiler. The rates
    /// of a profiled run are none of a measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_hertz: Option<u32>,
    /// True if a counted run simulates caches and branches, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated_caches: bool,
    /// The parameters of one benchmark.
    #[serde(default, skip_serializing_if = "BenchmarkParameters::is_sysbench")]
    pub shape: BenchmarkParameters,
}

impl Workload {
    /// The name of the database that a load of the user's asks for.
    pub fn database(&self) -> Option<&PlainName> {
        match &self.shape {
            BenchmarkParameters::Sql(shape) => shape.load.as_ref()?.database.as_ref(),
            _ => None,
        }
    }

    /// Clients of a step: its count in a sweep, else its own number, else that of the workload.
    pub fn clients_of(&self, own: &StepParameters, count: Option<&ClientCount>) -> u32 {
        count.map(|count| count.clients).or(own.clients).unwrap_or(self.clients)
    }

    /// The least of a shape, to be completed: one table of one row, one client, no time; closed
    /// pace, processes placed by the operating system, CPUs kept awake.
    pub fn plain(shape: BenchmarkParameters) -> Workload {
        Workload { tables: 1, rows: 1, clients: 1, shape, ..Workload::default() }
    }

    /// The client counts that steps are measured at, ascending.
    pub fn counts(&self) -> &[u32] {
        match self.client_counts.as_slice() {
            [] => std::slice::from_ref(&self.clients),
            counts => counts,
        }
    }

    /// Measures steps at these client counts, which are distinct and at least one.
    pub fn set_counts(&mut self, mut counts: Vec<u32>) {
        counts.sort_unstable();
        self.clients = counts.last().copied().unwrap_or(self.clients);
        self.client_counts = if counts.len() > 1 { counts } else { Vec::new() };
    }

    /// `2 tables x 1000 rows`; only the number of files where a user's files have the tables.
    pub fn data_text(&self) -> String {
        let count = |number: u64, one: &str| {
            format!("{number} {one}{}", if number == 1 { "" } else { "s" })
        };
        match &self.shape {
            BenchmarkParameters::Sql(shape) => {
                format!("tables of {}", count(shape.files.len() as u64, "file"))
            }
            BenchmarkParameters::Pgbench(shape) if shape.tables.made => {
                format!("pgbench's tables of scale {}", shape.scale)
            }
            BenchmarkParameters::Pgbench(_) => "the user's own tables".to_owned(),
            BenchmarkParameters::Ycsb(_) => count(self.rows, "record"),
            BenchmarkParameters::Lua(_) => "the tables of the scripts".to_owned(),
            BenchmarkParameters::Client(_) => "the data of the program".to_owned(),
            BenchmarkParameters::Orders(shape) => count(u64::from(shape.warehouses), "warehouse"),
            // Imported files do not tell it.
            _ if self.rows == 0 => "unknown rows".to_owned(),
            _ => {
                let tables = count(u64::from(self.tables), "table");
                format!("{tables} x {}", count(self.rows, "row"))
            }
        }
    }

    /// `4 clients`, `1, 4, 16 clients`.
    pub fn clients_text(&self) -> String {
        if self.counts() == [0] {
            return "unknown clients".to_owned();
        }
        let counts: Vec<String> = self.counts().iter().map(u32::to_string).collect();
        let many = if self.counts() == [1] { "" } else { "s" };
        format!("{} client{many}", counts.join(", "))
    }
}

/// The state of a server during the turns of other targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundState {
    /// It runs on: what it does in the background falls into the turns of others.
    Running,
    /// Its processes stand still (SIGSTOP): background work falls into its own turns.
    Stopped,
}

/// The benchmark, with the parameters that no other has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchmarkParameters {
    /// The sysbench microbenchmarks: nothing of their own.
    #[default]
    Sysbench,
    /// The Insert Benchmark.
    Insert(InsertShape),
    /// The RocksDB sequence.
    Kv(KvShape),
    /// Vector search.
    Vector(Box<VectorShape>),
    /// The user's own statements.
    Sql(Box<SqlShape>),
    /// Scripts of pgbench.
    Pgbench(Box<PgbenchShape>),
    /// YCSB.
    Ycsb(YcsbShape),
    /// Scripts for sysbench.
    Lua(Box<LuaShape>),
    /// The order mix.
    Orders(OrdersShape),
    /// A program of the user's.
    Client(Box<ClientShape>),
}

/// The parameters of one benchmark.
pub trait OwnParameters: Clone {
    /// `None` for another benchmark.
    fn of(all: &BenchmarkParameters) -> Option<&Self>;

    /// As [`OwnParameters::of`], to change them.
    fn of_mut(all: &mut BenchmarkParameters) -> Option<&mut Self>;
}

macro_rules! own_parameters {
    ($($benchmark:ident: $shape:ty),*) => {$(
        impl OwnParameters for $shape {
            fn of(all: &BenchmarkParameters) -> Option<&Self> {
                if let BenchmarkParameters::$benchmark(own) = all { Some(own) } else { None }
            }

            fn of_mut(all: &mut BenchmarkParameters) -> Option<&mut Self> {
                if let BenchmarkParameters::$benchmark(own) = all { Some(own) } else { None }
            }
        }
    )*};
}
own_parameters! {
    Insert: InsertShape, Kv: KvShape, Vector: VectorShape, Sql: SqlShape, Pgbench: PgbenchShape,
    Ycsb: YcsbShape, Lua: LuaShape, Orders: OrdersShape, Client: ClientShape
}

impl BenchmarkParameters {
    /// True if a user wrote the statements: the planner should treat them as it does at home.
    pub fn has_own_statements(&self) -> bool {
        matches!(
            self,
            BenchmarkParameters::Sql(_)
                | BenchmarkParameters::Pgbench(_)
                | BenchmarkParameters::Lua(_)
                | BenchmarkParameters::Client(_)
        )
    }

    /// The words of all benchmarks.
    pub const BENCHMARKS: [&str; 10] =
        ["sysbench", "insert", "kv", "vector", "sql", "pgbench", "ycsb", "lua", "orders", "client"];

    /// The word after `--bench`.
    pub fn benchmark(&self) -> &'static str {
        match self {
            BenchmarkParameters::Sysbench => "sysbench",
            BenchmarkParameters::Insert(_) => "insert",
            BenchmarkParameters::Kv(_) => "kv",
            BenchmarkParameters::Vector(_) => "vector",
            BenchmarkParameters::Sql(_) => "sql",
            BenchmarkParameters::Pgbench(_) => "pgbench",
            BenchmarkParameters::Ycsb(_) => "ycsb",
            BenchmarkParameters::Lua(_) => "lua",
            BenchmarkParameters::Orders(_) => "orders",
            BenchmarkParameters::Client(_) => "client",
        }
    }

    /// True for the benchmark without parameters of its own.
    pub fn is_sysbench(&self) -> bool {
        matches!(self, BenchmarkParameters::Sysbench)
    }
}

/// The CPUs of client and server (see docs/measuring.md). Comparing results of different placements
/// raises a caveat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Client i and the server's side of its connection on CPU i mod n.
    Together,
    /// Clients and server on disjoint sets of CPUs.
    Apart,
    /// Nothing pinned.
    #[default]
    Os,
}

/// The state of idle CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// Kept from halting: /dev/cpu_dma_latency at 0 where it exists, idle-class spinners otherwise.
    #[default]
    Awake,
    /// Whatever the operating system does.
    Os,
}

/// Groups of the relative report.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Loading and indexing.
    #[default]
    Load,
    /// Point queries.
    Point,
    /// Range queries and scans.
    Range,
    /// Whatever writes.
    Write,
}

impl Group {
    /// All, in the order of reports.
    pub const ALL: [Group; 4] = [Group::Load, Group::Point, Group::Range, Group::Write];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Group::Load => "load",
            Group::Point => "point",
            Group::Range => "range",
            Group::Write => "write",
        }
    }

    /// Shortest length of a turn, milliseconds, unless something else is asked for: noise of a host
    /// that is slower than that cancels, and changing turns costs less than 1 % of the time. It
    /// costs more where steps write, because the server that waits is stopped.
    pub fn turn_ms(self) -> f64 {
        match self {
            Group::Load | Group::Write => 20.0,
            Group::Point | Group::Range => 10.0,
        }
    }
}

/// How the targets of a step take turns of milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepTurns {
    /// Not at all: the step needs the whole host, or makes processes that nobody could stop.
    #[default]
    None,
    /// Clients that do one short thing after the other, without a schedule, pass a token on.
    Clients,
    /// All processes of a target stand still in the turns of others: work of a fixed size, work in
    /// the background, schedules.
    Processes,
}

impl StepTurns {
    /// `Clients` if that is so, otherwise `Processes`.
    pub fn of_clients(clients: bool) -> StepTurns {
        if clients { StepTurns::Clients } else { StepTurns::Processes }
    }
}

/// The step of a measurement, and its clients if a plan measures each step once per client count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCount {
    /// Name of the step without its count: `point-query`.
    pub step: String,
    /// Concurrent connections.
    pub clients: u32,
}

impl ClientCount {
    /// The name of the step at this count: `point-query.clients=4`.
    pub fn name(&self) -> String {
        format!("{}.clients={}", self.step, self.clients)
    }
}

/// One microbenchmark or phase with its own rate, as data: the driver needs nothing else to carry
/// it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Unique in the benchmark and safe in a file name: `read-only.pre_range=100`, `point-query`.
    pub name: String,
    /// The step and its clients, if the plan measures each step once per client count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_count: Option<ClientCount>,
    /// Group of the report.
    pub group: Group,
    /// False for cache warming: carried out, written down, left out of the comparison.
    pub reported: bool,
    /// The measured window in seconds, without warm-up.
    pub seconds: f64,
    /// Warm-up in seconds before the window.
    pub warmup_seconds: f64,
    /// The operation that the rate counts.
    pub rate: RateUnit,
    /// True parameters where the name does not tell them: "10 ids per statement".
    pub detail: String,
    /// Its parameters as data.
    #[serde(default)]
    pub parameters: StepParameters,
    /// The prerequisite that the step makes for later steps.
    pub makes: Option<Prerequisite>,
    /// The prerequisite that the step needs from earlier steps.
    pub needs: Option<Prerequisite>,
    /// True if the server is to be stopped and started before the step, so that nothing is cached.
    pub restart_before: bool,
    /// How several targets can be measured at once in turns of milliseconds.
    pub turns: StepTurns,
    /// True if no other step needs this one: it changes no data.
    pub only_reads: bool,
    /// The work of the clients.
    pub work: StepBody,
}

impl Step {
    /// A reported step that lasts no time, takes no turns and may write; the rest is for the caller.
    pub fn new(name: &str, group: Group, rate: RateUnit, work: impl Into<StepBody>) -> Step {
        Step {
            name: name.to_owned(),
            client_count: None,
            group,
            reported: true,
            seconds: 0.0,
            warmup_seconds: 0.0,
            rate,
            detail: String::new(),
            parameters: StepParameters::default(),
            makes: None,
            needs: None,
            restart_before: false,
            turns: StepTurns::None,
            only_reads: false,
            work: work.into(),
        }
    }

    /// The work of a benchmark's own loop, if it is that benchmark's.
    pub fn own<W: LoopWork>(&self) -> Option<&W> {
        W::of(&self.work)
    }

    /// True if commands of the user's scripts run around it.
    pub fn runs_commands(&self) -> bool {
        self.own::<LuaWork>()
            .is_some_and(|work| !(work.commands.is_empty() && work.after.is_empty()))
    }

    /// The statements, if the step is a script.
    pub fn script(&self) -> Option<&Script> {
        match &self.work {
            StepBody::Script(script) => Some(script),
            _ => None,
        }
    }
}

/// Work that a benchmark's own loop carries out.
pub trait LoopWork: Clone {
    /// The work of a step, if it is of this kind.
    fn of(body: &StepBody) -> Option<&Self>;
}

/// The kinds of work of loops: each with the name of its benchmark.
macro_rules! loops {
    ($($(#[$doc:meta])* $kind:ident($work:ty), $benchmark:literal;)+) => {
        /// The work of a step's clients.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum StepBody {
            /// Statements over and over.
            Script(Script),
            $($(#[$doc])* $kind(Box<$work>),)+
        }

        impl StepBody {
            /// The benchmark whose loop this is; `None` for a script.
            pub fn benchmark(&self) -> Option<&'static str> {
                match self {
                    StepBody::Script(_) => None,
                    $(StepBody::$kind(_) => Some($benchmark),)+
                }
            }
        }

        $(
            impl LoopWork for $work {
                fn of(body: &StepBody) -> Option<&Self> {
                    match body {
                        StepBody::$kind(work) => Some(work),
                        _ => None,
                    }
                }
            }

            impl From<$work> for StepBody {
                fn from(work: $work) -> StepBody {
                    StepBody::$kind(Box::new(work))
                }
            }
        )+
    };
}

loops! {
    /// Inserts, deletes and queries.
    Insert(InsertWork), "insert";
    /// Operations of a library of keys and values.
    Kv(KvWork), "kv";
    /// Loads, builds and searches of vectors.
    Vector(VectorWork), "vector";
    /// Orders.
    Orders(OrdersShape), "orders";
    /// Scripts of pgbench.
    Pgbench(PgbenchWork), "pgbench";
    /// A script of sysbench.
    Lua(LuaWork), "lua";
    /// A program of the user's.
    Client(ClientWork), "client";
    /// A trace.
    Replay(ReplayWork), "sql";
}

impl From<Script> for StepBody {
    fn from(script: Script) -> StepBody {
        StepBody::Script(script)
    }
}

/// A load that only its benchmark carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadBody {
    /// The tables of pgbench.
    Pgbench(PgbenchLoad),
    /// The commands of a script of sysbench.
    Lua(Box<LuaWork>),
    /// The load of a program of the user's.
    Client(ClientWork),
}

impl LoadBody {
    /// The benchmark.
    pub fn benchmark(&self) -> &'static str {
        match self {
            LoadBody::Pgbench(_) => "pgbench",
            LoadBody::Lua(_) => "lua",
            LoadBody::Client(_) => "client",
        }
    }
}

/// The unit of a step's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Statements per second, BEGIN and COMMIT included, as sysbench counts: qps.
    #[default]
    Queries,
    /// Events per second that came to their end, whatever number of statements each had: tps.
    Transactions,
    /// Rows per second of all clients that the DBMS looked at: table rows × scans per second. Shown
    /// in thousands, Krows/s.
    RowsScanned,
    /// Rows inserted per second: ips.
    RowsInserted,
    /// Operations on keys per second, as db_bench counts: ops/s.
    Operations,
    /// Parts of the base's rate: all that was published of an imported step. No rate per second is
    /// known.
    Relative,
}

impl RateUnit {
    /// The unit in which a step with these counts is told: events that send no statement count
    /// themselves.
    pub fn of_counts(self, events: u64, statements: u64) -> RateUnit {
        match self {
            RateUnit::Queries if statements == 0 && events > 0 => RateUnit::Transactions,
            unit => unit,
        }
    }

    /// The operations of these counts, of rows scanned in thousands; `None` where only ratios are
    /// known.
    pub fn operations(self, events: u64, statements: u64, rows_scanned: u64) -> Option<f64> {
        match self {
            RateUnit::Queries | RateUnit::RowsInserted | RateUnit::Operations => {
                Some(statements as f64)
            }
            RateUnit::Transactions => Some(events as f64),
            RateUnit::RowsScanned => Some(rows_scanned as f64 / 1000.0),
            RateUnit::Relative => None,
        }
    }
}

/// One thing of the sequence that a benchmark is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Run clients and write down what happened.
    Measure(Box<Step>),
    /// Vacuum, checkpoint, flush, wait: not measured.
    Settle,
    /// Start again on a fresh copy of the data as they were loaded: not measured.
    Restore,
}

impl Phase {
    /// The step of a measured phase.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Phase::Measure(step) => Some(step),
            Phase::Settle | Phase::Restore => None,
        }
    }
}

/// The times at which a client sends events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Pace {
    /// After the reply to the one before.
    #[default]
    Closed,
    /// On a seeded Poisson schedule; response time counts from the intended start.
    Open {
        /// Events per second of all clients together.
        events_per_second: f64,
    },
}

/// A prerequisite that one step makes and later ones need: an index needs its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prerequisite {
    /// The filled table.
    Table,
    /// The index on it.
    Index,
}
