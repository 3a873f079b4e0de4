//! The facts of one target in one block: the content of a run folder (docs/results.md). Judgements
//! are computed from them later.

pub use crate::host::{ClientHostRecord, CpuEvents, CpuTime, DiskUsage, HostUsage, Usage};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::benchmark::{ClientCount, Group, RateUnit, Workload};
use crate::build::{self, Config, Manifest, Target};
use crate::counted::{Counted, Profiled};
use crate::gate::{Canary, HostLog};
use crate::host::{Host, Session, Tuning};
use crate::metric::Metric;
use crate::row_digest::{StepAnswers, TableRecord};
use crate::script::StepParameters;
use crate::verdict::LookSchedule;

/// The dimensions of a run. Its folder is named after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// Round, from 1.
    pub block: u32,
    /// From 1; more than 1 for a repeated block.
    pub attempt: u32,
    /// Place of the target in the block's order, from 1.
    pub order: u32,
    /// Label of the target.
    #[serde(deserialize_with = "build::checked_label")]
    pub label: String,
}

impl RunKey {
    /// Name of the run folder: `b01-2-mysql-8.0.33`, `b03r2-1-…` for the second attempt at block 3.
    pub fn folder(&self) -> String {
        let again = if self.attempt > 1 { format!("r{}", self.attempt) } else { String::new() };
        format!("b{:02}{again}-{}-{}", self.block, self.order, self.label)
    }
}

/// The end of a run or a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In progress, or killed.
    #[default]
    Running,
    /// All of it was measured.
    Complete,
    /// It failed; the text names the operation, its object and the error.
    Failed(String),
    /// Stopped by the user.
    Interrupted,
    /// Only for runs: it is complete, but rqps discarded its block because the host was disturbed
    /// (the text explains it). Its steps are facts from which nothing is computed.
    Discarded(String),
}

/// `run.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Version of the format of the run folder: [`FORMAT`].
    pub format: u32,
    /// The key of the run.
    pub key: RunKey,
    /// The measured target.
    pub target: Target,
    /// Its build.
    pub manifest: Manifest,
    /// What makes the running build one for debugging, as it says itself, such as
    /// `debug_assertions = on`; `None` for a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug_build: Option<String>,
    /// The schema or database of its tables, in words, on a server that rqps does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Settings that decide what rates mean, and how clients reach the server: name → value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_settings: BTreeMap<String, String>,
    /// The settings that its DBMS read.
    pub config: Config,
    /// `sysbench`.
    pub benchmark: String,
    /// Scale and shape.
    pub workload: Workload,
    /// Seed of everything random in this run.
    pub seed: u64,
    /// Hash of the plan that asked for it.
    pub plan_hash: String,
    /// Labels of all targets of the plan in its order. The first is the base unless a report is
    /// told otherwise.
    pub targets: Vec<String>,
    /// Hash of `host.json`.
    pub host_fingerprint: String,
    /// Name of the host, where several hosts measure blocks of one plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The sitting of its block, in a plan of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sitting: Option<Sitting>,
    /// Version of rqps.
    pub rqps_version: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC; `None` while running.
    pub finished: Option<String>,
    /// The end of the run.
    pub status: Status,
    /// The load, once per target and result set: seconds and rates. The same in every block,
    /// because blocks restore its snapshot.
    pub load: Option<LoadRecord>,
    /// The looks at the verdicts that the plan of this run has: with `blocks = "auto"` one after
    /// each block, else one at the end. Where the runs of a result set differ, because its plan was
    /// changed and resumed, verdicts pay for each look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<LookSchedule>,
    /// The tables after the load, in the first block of a load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableRecord>,
    /// The answers to the first events of steps at the end of the first block of a load, by number
    /// of the step, where they are not those of its beginning: after a write, where other
    /// statements fail.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers_after: BTreeMap<u32, StepAnswers>,
}

/// One of the sittings of a plan. What was measured in one shares the state of the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sitting {
    /// Its number in the plan, from 1.
    pub number: u32,
    /// RFC 3339, UTC: when rqps was started. A sitting that was resumed has two of these, and time
    /// went by between them.
    pub begun: String,
}

/// The format version that this program writes.
pub const FORMAT: u32 = 1;

/// `steps/NN-NAME.json`: one step of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// Format version.
    pub format: u32,
    /// Place in the sequence, from 1.
    pub index: u32,
    /// Name of the step.
    pub name: String,
    /// The step and its clients, if the plan measured each step once per client count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_count: Option<ClientCount>,
    /// Group of the report.
    pub group: Group,
    /// False for cache warming.
    pub reported: bool,
    /// True parameters where the name does not tell.
    pub detail: String,
    /// Its parameters as data.
    #[serde(default)]
    pub parameters: StepParameters,
    /// The unit of the rate.
    pub rate: RateUnit,
    /// The end of the step.
    pub status: Status,
    /// RFC 3339, UTC: start of the measured window.
    pub started: String,
    /// The counts of the driver.
    pub outcome: Outcome,
    /// Changes of the counters of host and server in the window.
    pub usage: Usage,
    /// Bytes of the data folder after the step.
    pub data_bytes: Option<u64>,
    /// Operations per second in each interval of the window, as the rate counts them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_second: Vec<f64>,
    /// Seconds of the window (from 1) in which the DBMS held writes back, where it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalled: Vec<u32>,
    /// The method of counting its instructions; its times are then meaningless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The method of sampling its stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Profiled>,
    /// The origin of the numbers, if rqps did not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// The answers to its first statements on freshly loaded data, in the first block of a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<StepAnswers>,
}

impl StepRecord {
    /// A reported step that came to its end and of which nothing is known.
    pub fn empty(index: u32, name: &str, group: Group, rate: RateUnit) -> StepRecord {
        StepRecord {
            format: FORMAT,
            index,
            name: name.to_owned(),
            group,
            reported: true,
            rate,
            status: Status::Complete,
            ..StepRecord::default()
        }
    }
}

/// Numbers that somebody else measured and published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The form of the files: a word of `rqps import`.
    pub format: String,
    /// The files that this step was read from.
    pub files: Vec<String>,
    /// Published cells that no metric stands for, as they were printed: head of the column → cell.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The author's remarks beside the row of the step: `-> 10.5.29, col7`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The counts of the driver in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Length of the window in seconds, by the monotonic clock. An event in flight at either cut
    /// counts where it ends; those after the end do not count.
    pub seconds: f64,
    /// Events completed.
    pub events: u64,
    /// Statements completed, BEGIN and COMMIT included.
    pub statements: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed at least one row.
    pub writes: u64,
    /// The rest: BEGIN, COMMIT, and writes that met no row.
    pub others: u64,
    /// Writes that met no row: the no-op share of delete runs.
    pub no_ops: u64,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub affected: u64,
    /// Rows that the DBMS looked at, where the step counts those (scan): table rows × scans.
    pub rows_scanned: u64,
    /// Bytes of replies.
    pub bytes: u64,
    /// Statements that clients carried out besides: in the warm-up, and in flight at the end of the
    /// window. The DBMS's own counters hold them too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside: u64,
    /// Error code → count. Each was retried: the event began again.
    pub errors: BTreeMap<String, u64>,
    /// Event latency in nanoseconds: HdrHistogram V2, base64. Under an open pace, response time
    /// from the intended start.
    pub latency: String,
    /// Under an open pace: time from the actual start, the same form.
    pub service: Option<String>,
    /// Under an open pace: events that were due in the window, and the furthest that any client was
    /// behind, in seconds.
    pub open: Option<OpenOutcome>,
    /// CPU of the driver process in the window.
    pub client_cpu: CpuTime,
    /// Largest share of its CPU that a client thread used, 0 to 1.
    pub client_busiest: f64,
    /// Statement kind → query plan, as text.
    pub plans: BTreeMap<String, String>,
    /// Failures of the driver in words, such as a thread that could not be pinned.
    pub notes: Vec<String>,
    /// Clients that wanted no more events before the end of the window, by number, with the events
    /// that each completed in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stopped: BTreeMap<String, u64>,
    /// The reason for which the step ended before its work was done, such as its time limit. The
    /// counts are those of the window until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Further metrics measured by a benchmark or published with imported results, each in its own
    /// unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<Metric, f64>,
    /// Texts about the step by name: the data set with its hash, settings that the step made,
    /// messages of the server, the statistics of an embedded DBMS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// The counts of each role, if a step has several: `inserts`, `deletes`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Role>,
    /// Columns that only this benchmark has, second by second: what the CSV beside the record tells
    /// too. A last second that is shorter than half of one is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Vec<f64>>,
    /// Role → operations by response time, in the ten classes of the published Insert Benchmark:
    /// up to 256 µs, 1, 4, 16, 64, 256 ms, 1, 4, 16 s, and longer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub buckets: BTreeMap<String, Vec<u64>>,
    /// Work beside the clients in the server's log: checkpoints, vacuum, flushing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_log: Vec<ServerEvent>,
    /// Facts about the turns in the window, if targets took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnFacts>,
    /// Facts about each client host, if clients ran on other hosts than the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHostRecord>,
}

/// Facts about a step whose targets took turns in its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnFacts {
    /// Targets that took turns.
    pub targets: u32,
    /// Shortest length of a turn, milliseconds; the events in flight at its end were finished.
    pub slice_ms: f64,
    /// True if the server's processes stood still (SIGSTOP) while others had their turns.
    pub stopped: bool,
    /// Turns of this target in the window.
    pub turns: u32,
    /// The longest of them, milliseconds.
    pub longest_ms: f64,
    /// From the start of the window to the end of the last turn of this target, seconds; of these,
    /// the outcome's are its own.
    pub wall_seconds: f64,
    /// Of its own seconds, those in which no other target was left to take turns with.
    #[serde(default)]
    pub alone_seconds: f64,
    /// Own seconds and events in each of equal shares of the window, which hold as many turns of
    /// every target; the same shares for all targets. Empty where whole
    /// processes took turns: nobody counts events by turn there.
    pub shares: Vec<(f64, u64)>,
    /// The effect of the turns of other targets on this one; `None` with too few turns to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry_over: Option<CarryOver>,
}

/// Carry-over: a target is slower in a turn after another target's than in its own next turn,
/// because caches and predictors have to learn its work again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarryOver {
    /// Pairs of turns: the first follows a turn of another target, the second follows the first.
    pub pairs: u32,
    /// Mean of ln(rate of the first) - ln(rate of the second): below 0 if others slow it down.
    pub mean_ln: f64,
    /// Standard error of the mean.
    pub error_ln: f64,
}

/// A counter of the DBMS, read before and after a step: a row of `steps/NN-NAME.counters.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The name in the DBMS: `Innodb_pages_written`, `pg_stat_wal.wal_bytes`.
    pub name: String,
    /// Before the clients of the step began.
    pub before: f64,
    /// After they ended.
    pub after: f64,
}

/// One turn of one target in the window of a step: a row of `steps/NN-NAME.turns.csv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Number of the turn among those of all targets, from 0 with the first of the window.
    pub turn: u32,
    /// From the start of the window, milliseconds.
    pub start_ms: f64,
    /// Its length, milliseconds.
    pub ms: f64,
    /// Events completed in it, by all clients.
    pub events: u64,
}

/// Something that the server's log tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerEvent {
    /// Seconds from the start of the window to its end, by the server's clock; before the window
    /// it is negative.
    pub at_seconds: f64,
    /// Seconds that it had taken then, if the log tells.
    pub took_seconds: Option<f64>,
    /// `checkpoint`, `vacuum`, `analyze`, `flush`.
    pub kind: String,
    /// The line without its date.
    pub text: String,
}

/// The counts of one role in the window, over all clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Workers of this kind.
    pub workers: u32,
    /// Operations completed: statements, batches, gets, seeks.
    pub operations: u64,
    /// Rows or keys that they touched.
    pub rows: u64,
    /// Operations per second that were asked for; `None` without a limit.
    pub target_per_second: Option<f64>,
    /// Latency of an operation in nanoseconds: HdrHistogram V2, base64. Response time from the
    /// intended start where there is a target.
    pub latency: String,
    /// With a target: time from the actual start, the same form.
    pub service: Option<String>,
    /// CPU of these workers' threads.
    pub cpu: CpuTime,
    /// Largest share of its CPU that one of them used, 0 to 1.
    pub busiest: f64,
    /// Where it is a class of statements that has verdicts of its own: the time of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The counts of an open pace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenOutcome {
    /// Events whose intended start lies in the window.
    pub due: u64,
    /// The furthest that any client was behind its schedule, seconds.
    pub behind_seconds_max: f64,
}

/// An interval of fewer seconds is what remains of one at the end of a window: as a sample of its
/// own it would weigh as much as a whole second, so no series by the second has it.
pub const SECOND_MIN: f64 = 0.5;

/// One row of `steps/NN-NAME.csv`: one second of a step. Latencies in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// From 1.
    pub second: u32,
    /// Length in seconds: about 1, the last may be shorter.
    pub seconds: f64,
    /// Events.
    pub events: u64,
    /// Statements.
    pub statements: u64,
    /// Errors of all codes.
    pub errors: u64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// Changes of the counters in this second, if they were sampled.
    pub usage: Option<Usage>,
    /// Further columns for some benchmarks. The columns are the same in every second of a step.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

/// Reads the seconds of a step of a run from its CSV. The error is a text for a reader.
pub type ReadSeconds = fn(&Run, &StepRecord) -> Result<Vec<Second>, String>;

/// One run folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The folder, as the reader is to find it: relative to where the report was asked for.
    pub folder: String,
    /// The result set that holds it, named the same way. Blocks of two result sets are never
    /// paired.
    pub result_set: String,
    /// `run.json`.
    pub record: RunRecord,
    /// `steps/*.json` in order. Shared with the samples that are made of them.
    pub steps: Vec<Arc<StepRecord>>,
    /// True if its folder has counters of the DBMS, `steps/*.counters.csv`.
    pub has_counters: bool,
}

impl Run {
    /// True if instructions were counted instead of time.
    pub fn is_counted(&self) -> bool {
        self.record.workload.counted_statements.is_some()
    }

    /// True if a profiler was at work beside it: its rates are none of a measurement.
    pub fn is_profiled(&self) -> bool {
        self.record.workload.profile_hertz.is_some()
    }

    /// The order of its pass: measured runs, counted runs, profiled runs.
    pub fn pass(&self) -> u8 {
        match self {
            run if run.is_profiled() => 2,
            run if run.is_counted() => 1,
            _ => 0,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The content of result folders: the input of the analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataset {
    /// Fingerprint → host.
    pub hosts: BTreeMap<String, Host>,
    /// Settings of the host at the time of each result set, where they were recorded.
    pub tunings: BTreeMap<String, Tuning>,
    /// Runs in the order of the result sets given, and of their keys within each.
    pub runs: Vec<Run>,
    /// [`Run::result_set`] → its `gate.json`; nothing for a set without one.
    pub gates: BTreeMap<String, HostLog>,
}

// Rows, seconds and bytes of a load, and of each of the user's files in it.

/// Rows, seconds and bytes of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// The number of the load, from 1; absent in files of plans with a single load.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub number: u32,
    /// Rows of all tables.
    pub rows: u64,
    /// Seconds from the first CREATE TABLE to the last row.
    pub load_seconds: f64,
    /// Seconds for the secondary indexes.
    pub index_seconds: f64,
    /// Bytes of the data folder after the load and its settling.
    pub data_bytes: Option<u64>,
    /// The user's files that it read, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LoadedFile>,
}

/// A file that was loaded: SQL, a dump, CSV or a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadedFile {
    /// Its name without folders.
    pub file: String,
    /// Its length; of a compressed file, as it is on disk.
    pub bytes: u64,
    /// Rows that it brought by INSERT, REPLACE, COPY or CSV.
    pub rows: u64,
    /// Seconds from its first to its last statement or row.
    pub seconds: f64,
}

impl LoadedFile {
    /// Bytes per second; `None` if no time was spent.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}

fn first() -> u32 {
    1
}

fn is_first(number: &u32) -> bool {
    *number == 1
}

// The report of a measured block, the counterpart of its specification.

/// The format version of written-down blocks and of their reports that this program writes.
pub const BLOCK_FORMAT: u32 = 1;

/// One attempt at a block, as the host tells that measured it. Whether the block counts is decided
/// by who gets the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockReport {
    /// [`BLOCK_FORMAT`].
    pub format: u32,
    /// The id of the block's specification.
    pub id: String,
    /// Host and start of the measurement.
    pub session: Session,
    /// Before the first server was started and after the last stopped. `None` if canaries are off;
    /// the second also if the block was interrupted.
    pub canaries: [Option<Canary>; 2],
    /// Seconds of the block, without loading.
    pub seconds: f64,
    /// The runs that have a folder, in their order. A target that could not be loaded has none.
    pub runs: Vec<BlockRun>,
    /// One line for each run or target that failed.
    pub faults: Vec<String>,
}

/// A run of a block, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRun {
    /// Its folder is named after it.
    pub key: RunKey,
    /// The end of the run.
    pub status: Status,
}
