//! Requests of the lab to a driver process: one line of JSON each.
//!
//! A driver process carries out one request and ends. It also ends when its standard input closes,
//! because then the lab is gone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::confined::ScriptPlaces;
use crate::turns::token::{TurnRequest, TurnRules};
use rqps_model::benchmark::{
    LoadBody, LoopWork, Pace, Placement, RateUnit, Step, StepBody, Workload,
};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::sql_name::{PlainName, TableName};
use rqps_wire::dsn;

/// Version of these messages. Both sides are the same binary, so a difference is a bug or a
/// replaced file.
pub const VERSION: u32 = 1;

/// A line from the lab to a waiting driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverCommand {
    /// Continue.
    GoOn,
    /// Send the time.
    Clock,
    /// Continue at this moment of the driver's monotonic clock, nanoseconds.
    StartAt(u64),
    /// The counters of this target's server before the window have been read. To a driver that
    /// keeps turns, as the next one.
    Sampled(u32),
    /// This target takes no more turns.
    Leave(u32),
    /// Drivers of all hosts have met.
    Met(Met),
}

/// The numbers with which the drivers of all hosts have come to a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Their sum.
    pub sum: u64,
    /// The largest one.
    pub largest: u64,
}

impl Met {
    /// A meeting of this driver alone.
    pub fn alone(number: u64) -> Met {
        Met { sum: number, largest: number }
    }

    /// The same with the number of one more driver.
    pub fn with(self, number: u64) -> Met {
        Met { sum: self.sum + number, largest: self.largest.max(number) }
    }
}

impl fmt::Display for DriverCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverCommand::GoOn => Ok(()),
            DriverCommand::Clock => f.write_str("clock"),
            DriverCommand::StartAt(at) => write!(f, "start {at}"),
            DriverCommand::Sampled(target) => write!(f, "sampled {target}"),
            DriverCommand::Leave(target) => write!(f, "leave {target}"),
            DriverCommand::Met(Met { sum, largest }) => write!(f, "met {sum} {largest}"),
        }
    }
}

impl FromStr for DriverCommand {
    type Err = String;

    fn from_str(line: &str) -> Result<DriverCommand, String> {
        match line.split_once(' ') {
            None if line.is_empty() => return Ok(DriverCommand::GoOn),
            None if line == "clock" => return Ok(DriverCommand::Clock),
            Some(("start", at)) => at.parse().ok().map(DriverCommand::StartAt),
            Some(("sampled", target)) => target.parse().ok().map(DriverCommand::Sampled),
            Some(("leave", target)) => target.parse().ok().map(DriverCommand::Leave),
            Some(("met", numbers)) => met(numbers).map(DriverCommand::Met),
            _ => None,
        }
        .ok_or_else(|| format!("failed to understand `{line}`; only rqps starts drivers"))
    }
}

/// The numbers of a meeting: `SUM LARGEST`.
fn met(numbers: &str) -> Option<Met> {
    let (sum, largest) = numbers.split_once(' ')?;
    Some(Met { sum: sum.parse().ok()?, largest: largest.parse().ok()? })
}

/// The task of one driver process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverRequest {
    /// [`VERSION`].
    pub version: u32,
    /// Dialect of the sessions.
    pub dialect: Dialect,
    /// Address of the server, or path of the library.
    pub endpoint: Endpoint,
    /// User, password and database.
    pub login: Login,
    /// The text of a target that only a program of the user's understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Statements to run after connecting, on each session: `SET …`, `PRAGMA …`.
    pub session_setup: Vec<String>,
    /// On a server that rqps does not run: the comment of each table created there.
    #[serde(default)]
    pub mark: Option<String>,
    /// Seed; each client draws from its own stream.
    pub seed: u64,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table.
    pub rows: u64,
    /// True if the driver sends [`Prepared`](crate::control_channel::DriverEvent::Prepared) and waits
    /// for a line.
    #[serde(default)]
    pub pause: bool,
    /// The work: a load or a step.
    pub task: RequestBody,
    /// If the lab is on another host: this driver's share of the clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<AwayClients>,
    /// The turns with other targets; `None` to measure without a break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnRequest>,
    /// The shared page in which the lab counts how long it has stopped this driver, nanoseconds in
    /// its first number; `None` if it never stops it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standstill: Option<PathBuf>,
    /// Events of the warm-up and of the window, instead of seconds, so that their instructions can
    /// be counted. The driver waits for a line before and after the window. In a load it only says
    /// that counts will follow, so all targets get the same pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_events: Option<u64>,
    /// True to carry out only the first events of a step, and of these only the statements that
    /// read, and to send their answers. Nothing is measured then, and no session can write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// True if the server has to refuse what writes: nobody was asked whether the step may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_reads: bool,
    /// The working folder of a driver that executes code of the user's, which it makes and removes.
    /// `None` is one in /tmp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<PathBuf>,
    /// The places of such code, once the driver has given up rights.
    #[serde(skip)]
    pub places: Option<ScriptPlaces>,
}

/// The clients of a driver on another host than the lab. Such a driver also sends changes of its
/// host's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwayClients {
    /// Number of its first client, from 0.
    pub first: u32,
    /// Clients of all hosts.
    pub of: u32,
}

impl DriverRequest {
    /// True if its statements on a server of others must end with it: those of a load may take
    /// hours. Those that only ask end after a time, on any server.
    pub fn cancels(&self) -> bool {
        let asks = self.asks || matches!(self.task, RequestBody::ReadTables(_));
        asks || (self.mark.is_some() && self.task.is_load())
    }

    /// What no output of code of the user's may hold that this driver executes: the password that it
    /// finds in an address or in the memory of the driver, in the forms in which it may say it.
    pub fn secrets(&self) -> Vec<String> {
        let runs_code = match &self.task {
            RequestBody::LoadOwn(load) => !matches!(load, LoadBody::Pgbench(_)),
            RequestBody::Step(task) => {
                matches!(task.work, StepBody::Lua(_) | StepBody::Client(_))
            }
            _ => false,
        };
        if !runs_code {
            return Vec::new();
        }
        let mut secrets = self.target.as_deref().map(dsn::secrets).unwrap_or_default();
        secrets.push(self.login.password.clone());
        secrets.extend(secrets.clone().iter().map(|secret| dsn::encoded(secret)));
        secrets.retain(|secret| !secret.is_empty());
        secrets
    }

    /// The number, among all clients of the step, of a client (from 0) of this driver.
    pub fn number_of(&self, client: u32) -> u32 {
        self.away.map_or(0, |away| away.first) + client
    }

    /// True for the driver of the first client: on several hosts, it does what is done once.
    pub fn is_first(&self) -> bool {
        self.number_of(0) == 0
    }

    /// Clients of the step on all hosts, if this driver has `own`.
    pub fn all_clients(&self, own: u32) -> u32 {
        self.away.map_or(own, |away| away.of)
    }

    /// Where a script can be read by this process.
    pub fn readable(&self, script: &Path) -> PathBuf {
        self.places.as_ref().map_or_else(|| script.to_owned(), |places| places.readable(script))
    }

    /// True if other hosts carry clients of the step, too, beside the `own` ones of this driver.
    pub fn is_shared(&self, own: u32) -> bool {
        self.all_clients(own) > own
    }

    /// The unit of the step's rate; `None` for a load.
    pub fn rate(&self) -> Option<RateUnit> {
        match &self.task {
            RequestBody::Step(task) => Some(task.rate),
            _ => None,
        }
    }
}

impl DriverRequest {
    /// A request to keep turns, which needs no server.
    pub fn keep_turns(rules: TurnRules) -> DriverRequest {
        DriverRequest::fake(RequestBody::KeepTurns(rules))
    }

    /// A request for one table with one row on the fake DBMS, with statements of a microsecond.
    pub fn fake(task: RequestBody) -> DriverRequest {
        DriverRequest {
            version: VERSION,
            dialect: Dialect::Fake,
            endpoint: Endpoint::Fake { mean_us: 1, real_time: false },
            login: Login::default(),
            target: None,
            session_setup: Vec::new(),
            mark: None,
            seed: 1,
            tables: 1,
            rows: 1,
            pause: false,
            task,
            away: None,
            turns: None,
            standstill: None,
            counted_events: None,
            asks: false,
            only_reads: false,
            scratch: None,
            places: None,
        }
    }
}

/// The kinds of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestBody {
    /// Create and fill the tables, then their indexes.
    Load(LoadRequest),
    /// Create and fill the tables by files of SQL and CSV.
    LoadFiles(FileLoad),
    /// Create and fill tables of different shapes.
    LoadParts(PartLoad),
    /// Create and fill the tables by the benchmark's own load.
    LoadOwn(LoadBody),
    /// Measure a step.
    Step(Box<StepRequest>),
    /// Read what the tables hold.
    ReadTables(TableRead),
    /// Keep the page of turns for drivers on the same host.
    KeepTurns(TurnRules),
}

impl RequestBody {
    /// Whether it fills tables.
    pub fn is_load(&self) -> bool {
        use RequestBody::{Load, LoadFiles, LoadOwn, LoadParts};
        matches!(self, Load(_) | LoadFiles(_) | LoadParts(_) | LoadOwn(_))
    }
}

/// Reading tables whole, up to a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRead {
    /// The tables; `None` for all of the user's.
    pub names: Option<Vec<String>>,
    /// Bytes of a table up to which its rows are read; of a larger one they are only counted.
    pub bytes_most: u64,
}

/// Measuring a step.
///
/// Clients run through warm-up and window without a break. The clock cuts: an event counts in the
/// interval in which it ends, and not at all after the window. If a client ended no event in the
/// window, its event in flight counts over its own time, which enters `Outcome::seconds` as under
/// [`RateUnit::RowsScanned`], and a note says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRequest<B = StepBody> {
    /// Work of the clients.
    pub work: B,
    /// Number of clients.
    pub clients: u32,
    /// Seconds before the window.
    pub warmup_seconds: f64,
    /// Seconds of the window; the expected time of work that ends by itself.
    pub seconds: f64,
    /// Closed, or open with a rate.
    pub pace: Pace,
    /// The unit of the rate. [`RateUnit::RowsScanned`] makes a window of whole events: it begins
    /// when every client has finished its last warm-up event, and every client finishes the event
    /// in flight at its end. `Outcome::seconds` is then Σ events / Σ (events / seconds of the
    /// client), so that events / seconds is the sum of the clients' rates.
    pub rate: RateUnit,
    /// CPU placement of client threads and of the server's side of connections.
    pub placement: Placement,
    /// Root process of the server, if it runs on this host and may be pinned.
    pub server_pid: Option<u32>,
    /// True to record the query plan of each statement of a script before the warm-up.
    pub plans: bool,
    /// Storage engine of the tables, if the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
    /// Folder for data that are slow to make and useful to other requests.
    #[serde(default)]
    pub cache: Option<PathBuf>,
}

impl StepRequest {
    /// The request for a step of a workload, on a server without CPU placement.
    pub fn of(step: &Step, workload: &Workload) -> StepRequest {
        let pace = step.parameters.events_per_second;
        StepRequest {
            work: step.work.clone(),
            clients: workload.clients_of(&step.parameters, step.client_count.as_ref()),
            warmup_seconds: step.warmup_seconds,
            seconds: step.seconds,
            pace: pace.map_or(workload.pace, |rate| Pace::Open { events_per_second: rate }),
            rate: step.rate,
            placement: workload.placement,
            server_pid: None,
            plans: true,
            storage_engine: None,
            cache: None,
        }
    }

    /// The request with the work of a benchmark's own loop.
    ///
    /// # Errors
    ///
    /// The work is a script, or of another benchmark.
    pub fn own<B: LoopWork>(&self) -> Result<StepRequest<B>, String> {
        let of = || self.work.benchmark().unwrap_or("a script");
        let work = B::of(&self.work).cloned();
        Ok(self.with(work.ok_or_else(|| format!("failed to measure: the work is of {}", of()))?))
    }
}

impl<B> StepRequest<B> {
    /// The request with other work.
    pub fn with<C>(&self, work: C) -> StepRequest<C> {
        StepRequest {
            work,
            clients: self.clients,
            warmup_seconds: self.warmup_seconds,
            seconds: self.seconds,
            pace: self.pace,
            rate: self.rate,
            placement: self.placement,
            server_pid: self.server_pid,
            plans: self.plans,
            storage_engine: self.storage_engine.clone(),
            cache: self.cache.clone(),
        }
    }
}

/// A load of equal tables. `{table}` in the SQL is the number of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    /// DROP TABLE IF EXISTS.
    pub drop_sql: String,
    /// CREATE TABLE.
    pub create_sql: String,
    /// Secondary indexes, made after the rows.
    pub index_sql: Vec<String>,
    /// Table name, e.g. `sbtest{table}`.
    pub table: String,
    /// The benchmark that generates the rows.
    pub rows_of: String,
    /// Columns in the order of the rows.
    pub columns: Vec<LoadColumn>,
    /// Tables loaded at the same time.
    pub parallel: u32,
}

/// A load of tables of different shapes. One connection fills a part: its rows in each table, one
/// table after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartLoad {
    /// The benchmark that generates the rows.
    pub rows_of: String,
    /// Parameters of the rows, beside the seed and the number of rows.
    pub shape: serde_json::Value,
    /// SQL before the rows, in order: DROP TABLE IF EXISTS, CREATE TABLE.
    pub setup: Vec<String>,
    /// The tables in the order in which a part is loaded.
    pub tables: Vec<PartTable>,
    /// Number of parts.
    pub parts: u32,
    /// Expected rows of all tables, for the progress.
    pub rows: u64,
    /// Connections that fill parts at the same time.
    pub parallel: u32,
    /// SQL after the rows: the statements of a list in order, the lists at the same time.
    pub finish: Vec<Vec<String>>,
}

/// A table of a load in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTable {
    /// Its name.
    pub name: String,
    /// Columns in the order of the fields.
    pub columns: Vec<String>,
}

/// A load from the user's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLoad {
    /// Statements that drop tables first, where the server is one that rqps does not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// The name of the database, which files may spell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<PlainName>,
    /// Files of SQL, which may be dumps.
    pub schema: Vec<PathBuf>,
    /// Rows of tables.
    pub data: Vec<CsvFile>,
    /// Sessions that load rows at the same time.
    pub sessions: u32,
    /// SQL files to execute after the rows, with their own time.
    pub index: Vec<PathBuf>,
    /// True to gather statistics at the end.
    pub analyze: bool,
}

/// A CSV file with the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvFile {
    /// The file.
    pub path: PathBuf,
    /// The table.
    pub table: TableName,
    /// Columns in the order of the fields; empty if the header names them.
    pub columns: Vec<String>,
    /// Columns with bytes in hexadecimal digits.
    pub hex: Vec<String>,
    /// The unquoted field that stands for NULL.
    pub null: String,
    /// The separator of fields.
    pub delimiter: u8,
    /// The required number of rows.
    pub expect_rows: Option<u64>,
}

/// A column of a generated table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub holds: LoadType,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadType {
    /// A whole number of 32 bits.
    Int,
    /// ASCII of one length.
    Text {
        /// Bytes of each text.
        bytes: u32,
        /// Width of the column, bytes.
        width: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_lab_are_lines() {
        let words = [DriverCommand::GoOn, DriverCommand::Clock, DriverCommand::StartAt(u64::MAX)];
        let more = [DriverCommand::Sampled(0), DriverCommand::Leave(u32::MAX)];
        let met = DriverCommand::Met(Met { sum: u64::MAX, largest: 7 });
        for word in words.into_iter().chain(more).chain([met]) {
            assert_eq!(word.to_string().parse(), Ok(word));
        }
        for line in ["stop", "start", "start soon", "clock 1", "leave", "sampled -1", "met 1"] {
            assert!(line.parse::<DriverCommand>().is_err(), "{line}");
        }
    }
}
