//! What rqps asks of a server that answers SQL, its own or somebody else's.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::control::{DbmsError, Interrupt};
use rqps_model::build::{REDO_LOG, recorded};
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_wire::WireError;
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;

/// Takes a text about what goes on.
pub(crate) type Tell<'a> = dyn FnMut(&str) + 'a;
/// Names of files and their texts.
pub(crate) type StatusFiles = Vec<(String, String)>;

/// The statements of one kind of servers.
pub(crate) trait ServerCalls: Sync {
    /// Answers the version, in one row.
    fn version_query(&self) -> &'static str;
    /// What makes the server a build for debugging.
    fn debug_build(&self, session: &mut dyn ControlConnection)
    -> Result<Option<String>, WireError>;
    /// Brings the tables to rest. Only the settings of rqps's own servers may be changed for that.
    fn settle(
        &self,
        server: &SqlServer,
        load: &SettleLoad,
        progress: &mut Tell<'_>,
    ) -> Result<(), DbmsError>;
    /// Settings and statistics, as files.
    fn status(&self, session: &mut dyn ControlConnection) -> Result<StatusFiles, WireError>;
    /// Counters that only grow; if `quiet`, after all clients have handed theirs in.
    fn counters(
        &self,
        session: &mut dyn ControlConnection,
        quiet: bool,
    ) -> Result<BTreeMap<String, f64>, WireError>;
    /// The root process, if the server is on this host.
    fn pid(&self, session: &mut dyn ControlConnection) -> Option<u32>;
    /// Beginnings of the names that its process may have.
    fn processes(&self) -> &'static [&'static str];
    /// True if the place of rqps's tables on somebody else's server is a database, not a schema.
    fn place_is_database(&self) -> bool;
}

/// A server that answers SQL.
pub struct SqlServer {
    pub(crate) calls: &'static dyn ServerCalls,
    pub(crate) dialect: Dialect,
    pub(crate) connect: Connect,
    /// As errors name it.
    pub(crate) name: String,
    pub(crate) interrupt: Interrupt,
    /// True if rqps started it.
    pub(crate) is_own: bool,
    pub(crate) compatible: Option<&'static CompatibleServer>,
}

impl SqlServer {
    pub(crate) fn doing(&self, what: &str) -> String {
        format!("{what} {}", self.name)
    }

    pub(crate) fn session(&self, what: &str) -> Result<Box<dyn ControlConnection>, DbmsError> {
        (self.connect)().map_err(DbmsError::sql(self.doing(what)))
    }

    /// Asks on a session of its own.
    pub(crate) fn ask<T>(
        &self,
        what: &str,
        question: impl FnOnce(&mut dyn ControlConnection) -> Result<T, WireError>,
    ) -> Result<T, DbmsError> {
        question(&mut *self.session(what)?).map_err(DbmsError::sql(self.doing(what)))
    }

    pub(crate) fn version(&self) -> Result<String, DbmsError> {
        let query = self.calls.version_query();
        let version = self.ask("ask the version of", |session| one_value(session, query))?;
        let version = version.unwrap_or_default();
        Ok(self.compatible.map_or_else(|| version.clone(), |server| server.reported(&version)))
    }

    pub(crate) fn debug_build(&self) -> Result<Option<String>, DbmsError> {
        match self.compatible {
            Some(_) => Ok(None),
            None => self.ask("ask the assertions of", |session| self.calls.debug_build(session)),
        }
    }

    /// Postgres tells it; MySQL does not.
    pub(crate) fn compiler(&self) -> Option<String> {
        let all = self.ask("ask the compiler of", |session| one_value(session, "SELECT version()"));
        compiled_by(&all.ok()??).map(str::to_owned)
    }

    pub(crate) fn settings(&self) -> Result<BTreeMap<String, String>, DbmsError> {
        self.ask("ask the settings of", |session| server_settings(session, self.dialect))
    }

    pub(crate) fn status(&self) -> Result<StatusFiles, DbmsError> {
        self.ask("read the status of", |session| {
            match (self.calls.status(session), self.compatible) {
                (Err(error @ WireError::Server { .. }), Some(server)) => {
                    let text = format!("{} does not tell its status: {error}\n", server.name);
                    Ok(vec![("status.txt".to_owned(), text)])
                }
                (files, _) => files,
            }
        })
    }

    pub(crate) fn counters(&self, quiet: bool) -> Result<BTreeMap<String, f64>, String> {
        let mut session =
            self.session("read the counters of").map_err(|error| error.to_string())?;
        self.calls.counters(&mut *session, quiet).map_err(|error| error.to_string())
    }
}

// The settings of a running server that a run records.

/// Name → value in the server's own words, as this session has it. Settings that the version or
/// the product lacks are absent.
pub(crate) fn server_settings(
    session: &mut dyn ControlConnection,
    dialect: Dialect,
) -> Result<BTreeMap<String, String>, WireError> {
    let all = match dialect {
        Dialect::Postgres => session.rows("SHOW ALL"),
        Dialect::Mysql => session.rows("SHOW VARIABLES"),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => Ok(Vec::new()),
    };
    let all = match all {
        // A compatible server need not have the statement.
        Err(WireError::Server { .. }) => Vec::new(),
        all => all?,
    };
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        Some((cells.next()??.to_lowercase(), cells.next()??))
    };
    let mut all: BTreeMap<String, String> = all.into_iter().filter_map(pair).collect();
    if let (None, Some(bytes)) = (all.get(REDO_LOG), redo_bytes(&all)) {
        all.insert(REDO_LOG.to_owned(), bytes.to_string());
    }
    all.retain(|name, _| recorded(dialect).any(|known| known == name));
    Ok(all)
}

/// The bytes of a redo log that has files of one size; MariaDB has one.
fn redo_bytes(all: &BTreeMap<String, String>) -> Option<u64> {
    let number = |name: &str| all.get(name)?.parse::<u64>().ok();
    number("innodb_log_file_size")?.checked_mul(number("innodb_log_files_in_group").unwrap_or(1))
}

/// Bytes of the name of a compiler: a server may say anything.
const COMPILER_MOST: usize = 200;

/// `gcc (Debian 12.2.0-14) 12.2.0`, of what `version()` says.
fn compiled_by(version: &str) -> Option<&str> {
    let said = version.split_once("compiled by ")?.1.split(", ").next();
    said.filter(|said| said.len() <= COMPILER_MOST)
}

// Sessions of the control plane with a server, and what their rows become.

/// One row of text columns.
pub type ControlRow = Vec<Option<String>>;

/// A session of the control plane.
pub trait ControlConnection: Send {
    /// Rows of a query as text.
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError>;
    /// A statement whose rows do not matter.
    fn run(&mut self, sql: &str) -> Result<(), WireError>;
    /// Has the server look for what a statement without values names. Nothing of it is carried out,
    /// nor planned: a planner calls functions behind views.
    fn look_at(&mut self, _sql: &str) -> Result<(), WireError> {
        Ok(())
    }
    /// True if the session is encrypted.
    fn is_encrypted(&self) -> bool {
        false
    }
}

/// Rows of name and value whose value is a number.
pub(super) fn numbers(rows: Vec<ControlRow>) -> BTreeMap<String, f64> {
    let number = |row: ControlRow| {
        let mut cells = row.into_iter().flatten();
        let (name, value) = (cells.next()?, cells.next()?.parse::<f64>().ok()?);
        value.is_finite().then_some((name, value))
    };
    rows.into_iter().filter_map(number).collect()
}

/// The first column of the first row.
pub(super) fn one_value(
    session: &mut dyn ControlConnection,
    sql: &str,
) -> Result<Option<String>, WireError> {
    Ok(session.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
}

impl ControlConnection for PostgresClient {
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
        self.set_answer_limit(Some(ANSWER));
        let rows = PostgresClient::rows(self, sql);
        self.set_answer_limit(None);
        rows
    }

    fn look_at(&mut self, sql: &str) -> Result<(), WireError> {
        self.prepare(sql, &[]).map(drop)
    }

    fn is_encrypted(&self) -> bool {
        PostgresClient::is_encrypted(self)
    }

    fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.simple(sql).map(|_| ())
    }
}

impl ControlConnection for MysqlClient {
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
        self.set_answer_limit(Some(ANSWER));
        let rows = MysqlClient::rows(self, sql);
        self.set_answer_limit(None);
        rows
    }

    fn look_at(&mut self, sql: &str) -> Result<(), WireError> {
        self.prepare(sql, &[]).map(drop)
    }

    fn is_encrypted(&self) -> bool {
        MysqlClient::is_encrypted(self)
    }

    fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.simple(sql).map(|_| ())
    }
}

/// Connects a session of the control plane. Its statements may take as long as they take.
pub(super) fn connect(
    dialect: Dialect,
    address: &Address,
    login: &Login,
) -> Result<Box<dyn ControlConnection>, WireError> {
    Ok(match dialect {
        Dialect::Postgres => Box::new(PostgresClient::connect(address, login, CONNECT)?),
        Dialect::Mysql => Box::new(MysqlClient::connect(address, login, CONNECT)?),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
            return Err(WireError::Protocol(format!("{dialect:?} has no server to connect to")));
        }
    })
}

/// Time limit for connecting a session of the control plane.
const CONNECT: Duration = Duration::from_secs(30);

/// Time limit of an answer with rows: catalogues of many tables take minutes.
const ANSWER: Duration = Duration::from_secs(600);

/// Opens a session.
type Connect = Arc<dyn Fn() -> Result<Box<dyn ControlConnection>, WireError> + Send + Sync>;

/// What opens sessions with this login, each with these first statements.
pub(super) fn connector(
    dialect: Dialect,
    address: Address,
    login: Login,
    setup: Vec<String>,
) -> Connect {
    Arc::new(move || {
        let mut session = connect(dialect, &address, &login)?;
        setup.iter().try_for_each(|sql| session.run(sql))?;
        Ok(session)
    })
}

/// Connects and asks for one row, each within `timeout`.
pub(super) fn first_query(
    dialect: Dialect,
    address: &Address,
    login: &Login,
    timeout: Duration,
) -> Result<(), WireError> {
    const QUERY: &str = "SELECT 1";
    match dialect {
        Dialect::Postgres => {
            let mut client = PostgresClient::connect(address, login, timeout)?;
            client.set_read_timeout(Some(timeout))?;
            client.simple(QUERY)?;
        }
        Dialect::Mysql => {
            let mut client = MysqlClient::connect(address, login, timeout)?;
            client.set_read_timeout(Some(timeout))?;
            client.simple(QUERY)?;
        }
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {}
    }
    Ok(())
}

/// Rows as tab-separated lines under a heading; NULL as `\N`.
pub(super) fn table(heading: &str, rows: &[ControlRow]) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| match cell {
                Some(cell) => cell.replace(['\t', '\n'], " "),
                None => "\\N".to_owned(),
            })
            .collect();
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}

// Rest between writing and measuring: maintenance by the DBMS, then a wait that grows with the
// data.

/// Sessions that do maintenance at the same time.
const PARALLEL: usize = 16;

/// Time between two checks for Ctrl-C.
const NAP: Duration = Duration::from_millis(100);

/// The data that were written.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleLoad {
    /// Number of tables.
    pub tables: u32,
    /// Rows of all tables together.
    pub rows_total: u64,
    /// Name of a table; `{table}` is its number, from 1: `sbtest{table}`.
    pub table: String,
    /// Factor on the published wait: 1 for the published shapes, less for quick presets, 0 for
    /// maintenance alone.
    pub scale: f64,
}

impl SettleLoad {
    /// The shortest time of settling: scale × min(1200, 60 + rows / 1e6) seconds including
    /// maintenance, as in the published sysbench runs.
    pub fn wait(&self) -> Duration {
        let seconds = (60.0 + self.rows_total as f64 / 1e6).min(1200.0) * self.scale;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }

    /// The tables by name.
    pub(super) fn names(&self) -> Vec<String> {
        if self.table.is_empty() {
            return Vec::new();
        }
        (1..=self.tables).map(|table| self.table.replace("{table}", &table.to_string())).collect()
    }
}

/// Runs `statement(table)` for all tables, several at a time, each on a session of its own. Returns
/// when all are done, with the first error.
pub(super) fn on_all_tables(
    server: &SqlServer,
    load: &SettleLoad,
    statement: impl Fn(&str) -> String + Clone + Send + 'static,
) -> Result<(), DbmsError> {
    let tables = load.names();
    let threads = tables.len().min(PARALLEL);
    let (tell, done) = mpsc::channel();
    for first in 0..threads {
        let mine: Vec<String> = tables.iter().skip(first).step_by(threads).cloned().collect();
        let (tell, connect, statement) = (tell.clone(), server.connect.clone(), statement.clone());
        // Not joined: after Ctrl-C nobody waits for a long statement, the server is stopped.
        thread::spawn(move || {
            let work = || {
                let mut session = connect().map_err(|error| ("connect".to_owned(), error))?;
                mine.iter()
                    .map(|table| statement(table))
                    .try_for_each(|sql| session.run(&sql).map_err(|error| (sql, error)))
            };
            let _ = tell.send(work());
        });
    }
    drop(tell);
    let mut open = threads;
    while open > 0 {
        server.interrupt.check()?;
        match done.recv_timeout(NAP) {
            Ok(Ok(())) => open -= 1,
            Ok(Err((what, source))) => {
                let doing = format!("{}: {what}", server.doing("settle"));
                return Err(DbmsError::Sql { doing, source });
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

/// Sleeps until `end`, or until `quiet` says that nothing is left to wait for. Tells `progress`
/// each second how long it still takes.
pub(super) fn rest(
    end: Instant,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&str),
    quiet: &mut dyn FnMut() -> bool,
) -> Result<(), DbmsError> {
    let mut told = None;
    loop {
        interrupt.check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let seconds = left.as_secs();
        if told != Some(seconds) {
            if quiet() {
                return Ok(());
            }
            progress(&format!("at rest, {} s left", seconds + 1));
            told = Some(seconds);
        }
        thread::sleep(left.min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rows_total: u64, scale: f64) -> SettleLoad {
        SettleLoad { tables: 2, rows_total, table: "sbtest{table}".to_owned(), scale }
    }

    #[test]
    fn the_wait_is_the_published_one_times_scale() {
        let check = |rows, scale, seconds| {
            assert_eq!(load(rows, scale).wait(), Duration::from_secs(seconds), "{rows} {scale}");
        };
        check(50_000_000, 1.0, 110);
        check(80_000_000, 0.5, 70);
        check(5_000_000_000, 1.0, 1200);
        check(0, 0.1, 6);
        check(50_000_000, 0.0, 0);
        check(50_000_000, -1.0, 0);
    }

    #[test]
    fn postgres_tells_its_compiler() {
        let said = "PostgreSQL 15.14 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) \
                    12.2.0, 64-bit";
        assert_eq!(compiled_by(said), Some("gcc (Debian 12.2.0-14) 12.2.0"));
        assert_eq!(compiled_by("8.0.33"), None);
        assert_eq!(compiled_by(&format!("x compiled by {}", "g".repeat(1 << 20))), None);
    }

    #[test]
    fn tables_are_numbered_from_one() {
        assert_eq!(load(0, 1.0).names(), ["sbtest1", "sbtest2"]);
    }

    #[test]
    fn rest_ends_early_when_all_is_quiet_and_at_once_when_interrupted() {
        let far = Instant::now() + Duration::from_secs(3600);
        let interrupt = Interrupt::default();
        let mut asked = 0;
        let mut quiet = || {
            asked += 1;
            asked == 2
        };
        rest(far, &interrupt, &mut |_| {}, &mut quiet).unwrap();
        assert_eq!(asked, 2);
        interrupt.0.store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = rest(far, &interrupt, &mut |_| {}, &mut || false);
        assert!(matches!(stopped, Err(DbmsError::Interrupted)));
    }
}
