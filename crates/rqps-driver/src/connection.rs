//! A client's connection to any DBMS. An enum, not a trait: the loop pays one predictable branch
//! per statement.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::answers::{AnswerKeeper, Wanted, only_read};
use crate::attempt::Call;
use crate::fake::Fake;
use crate::request::{DriverRequest, RequestBody};
use crate::{behind, loaders};
use rqps_embed::sqlite::{self, Sqlite, SqliteError, Statement};
use rqps_host::tree;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_wire::Canceller;
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;
use rqps_wire::{Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// Time limit for connecting and for logging in.
const CONNECT: Duration = Duration::from_secs(20);

/// Codes of servers that take no more sessions: of MySQL and MariaDB, of Postgres.
const FULL: [&str; 3] = ["1040", "1203", "53300"];

/// Milliseconds that SQLite waits for a lock before it reports SQLITE_BUSY. `PRAGMA busy_timeout`
/// in the session setup changes it.
const SQLITE_BUSY_MS: u32 = 5_000;

/// Queries for the operating system's id of this connection's thread: MySQL since 5.7, MariaDB.
const SERVING_THREAD: [&str; 2] = [
    "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()",
    "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()",
];

/// A connection.
pub enum Connection {
    /// A server that speaks Postgres.
    Postgres(PostgresClient),
    /// A server that speaks MySQL.
    Mysql(MysqlClient),
    /// SQLite in this process.
    Sqlite(sqlite::SqliteConnection),
    /// The fake DBMS.
    Fake(Box<Fake>),
    /// One of the others that only reads, and keeps the answers.
    Recorded(Box<AnswerKeeper>),
}

/// Opens connections to an endpoint. Clients share its library, which is loaded once.
#[derive(Clone)]
pub struct Connector {
    endpoint: Endpoint,
    login: Login,
    dialect: Dialect,
    setup: Vec<String>,
    mark: Option<String>,
    cancels: bool,
    seed: u64,
    sqlite: Option<Arc<Sqlite>>,
    /// True if sessions only read.
    asks: bool,
    /// The texts of a step, if the server refuses what writes.
    only_reads: Option<Arc<str>>,
}

impl Connector {
    /// Loads the endpoint's library, if it has one. The error is a complete message.
    pub fn new(request: &DriverRequest) -> Result<Connector, String> {
        let sqlite = match &request.endpoint {
            Endpoint::File { library: None, .. } => Some(Sqlite::compiled_in()),
            Endpoint::File { library: Some(path), .. } => {
                Some(Sqlite::load(path).map_err(|error| format!("failed to {error}"))?)
            }
            Endpoint::Server(_) | Endpoint::Fake { .. } => None,
        };
        Ok(Connector {
            endpoint: request.endpoint.clone(),
            login: request.login.clone(),
            dialect: request.dialect,
            setup: request.session_setup.clone(),
            mark: request.mark.clone(),
            cancels: request.cancels(),
            seed: request.seed,
            sqlite: sqlite.map(Arc::new),
            asks: request.asks,
            only_reads: only_reads(request),
        })
    }

    /// Adds statements to run after connecting.
    pub fn also(&self, setup: Vec<String>) -> Connector {
        let mut connector = self.clone();
        connector.setup.extend(setup);
        connector
    }

    /// The dialect of the target.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The comment of tables that rqps creates on a server that it does not run.
    pub(super) fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }

    /// Opens and sets up the session of client `client` (from 0). The error is a complete message.
    pub fn open(&self, client: u32) -> Result<Connection, String> {
        let mut session = match &self.endpoint {
            Endpoint::Server(address) => self.connect(address)?,
            Endpoint::File { path, .. } => self.open_file(path)?,
            Endpoint::Fake { mean_us, .. } => {
                Connection::Fake(Box::new(Fake::new(self.seed, client, *mean_us)))
            }
        };
        for sql in &self.setup {
            session
                .simple(sql)
                .map_err(|error| format!("failed to set up a session with {sql:?}: {error}"))?;
        }
        // After all that the user's own statements of the session set.
        if let Some(texts) = &self.only_reads {
            refuse_writes(&mut session)?;
            // Events begin when all clients are ready, so one of them is enough.
            if client == 0 {
                behind::check(&mut session, self.dialect, texts).map_err(|why| {
                    let hint = hint_to_ask(self.dialect);
                    format!("failed to see that a step only reads: {why}\n{hint}")
                })?;
            }
        }
        if self.asks {
            let is_guest = self.mark.is_some();
            // Behind a pooler, what a session sets outlives it and falls to others.
            if !is_guest {
                only_read(&mut session, self.dialect);
            }
            let mut keeper = AnswerKeeper::over(session, self.dialect, is_guest);
            keeper.begin_event().map_err(|error| {
                format!("failed to begin a transaction that only reads: {error}")
            })?;
            session = Connection::Recorded(Box::new(keeper));
        }
        Ok(session)
    }

    /// Ends the session of that number on a server that rqps runs, whatever it is doing. The error
    /// is a complete message.
    pub(super) fn end_session(&self, id: u32) -> Result<(), String> {
        let sql = match self.dialect {
            // Between rqps and a server of somebody else, a proxy may have numbers of its own.
            _ if self.mark.is_some() => return Ok(()),
            Dialect::Postgres => format!("SELECT pg_terminate_backend({id})"),
            Dialect::Mysql => format!("KILL {id}"),
            Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => return Ok(()),
        };
        let ended = self.open(0)?.simple(&sql);
        ended.map(drop).map_err(|error| format!("failed to end a session with {sql:?}: {error}"))
    }

    fn connect(&self, address: &Address) -> Result<Connection, String> {
        let session = match self.dialect {
            Dialect::Mysql => {
                MysqlClient::connect(address, &self.login, CONNECT).map(Connection::Mysql)
            }
            _ => PostgresClient::connect(address, &self.login, CONNECT).map(Connection::Postgres),
        };
        let mut session = session.map_err(|error| not_connected(&error))?;
        if self.cancels {
            let canceller = match &mut session {
                Connection::Postgres(client) => {
                    Some(Canceller::of_postgres(client, address, &self.login))
                }
                Connection::Mysql(client) => Canceller::of_mysql(client, address, &self.login),
                _ => None,
            };
            canceller.into_iter().for_each(loaders::remember);
        }
        Ok(session)
    }

    fn open_file(&self, path: &Path) -> Result<Connection, String> {
        let sqlite = self.sqlite.as_ref().ok_or("failed to open a file: no loaded library")?;
        sqlite::SqliteConnection::open(sqlite, path, SQLITE_BUSY_MS)
            .map(Connection::Sqlite)
            .map_err(|error| format!("failed to open the database {}: {error}", path.display()))
    }
}

/// The texts of a step that nobody was asked about.
fn only_reads(request: &DriverRequest) -> Option<Arc<str>> {
    match &request.task {
        RequestBody::Step(task) if request.only_reads => Some(behind::texts_of(&task.work).into()),
        _ => None,
    }
}

/// Has the server refuse what writes, for as long as the session lasts. The error is a complete
/// message.
fn refuse_writes(session: &mut Connection) -> Result<(), String> {
    let (own, set, hint) = match session {
        Connection::Postgres(_) => (
            "SELECT pg_catalog.pg_backend_pid()",
            "SET default_transaction_read_only = on",
            hint_to_ask(Dialect::Postgres),
        ),
        _ => (
            "SELECT CONNECTION_ID()",
            "SET SESSION TRANSACTION READ ONLY",
            hint_to_ask(Dialect::Mysql),
        ),
    };
    let fault = |why: &dyn std::fmt::Display| {
        format!("failed to have the server refuse what writes: {why}\n{hint}")
    };
    let rows = session.rows(own).map_err(|error| fault(&error))?;
    let number = rows.into_iter().flatten().flatten().next().and_then(|id| id.parse::<u64>().ok());
    // It would hand the setting on to statements of others.
    if number.map(|number| number as u32) != session.connection_id() {
        return Err(fault(&"a pooler stands before it"));
    }
    session.simple(set).map_err(|error| fault(&error))?;
    // In another character set than that of the login, which a server may prefer, a part of a letter
    // may be a backslash.
    let is_mysql = matches!(session, Connection::Mysql(_));
    let names = is_mysql.then(|| session.simple("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci"));
    names.transpose().map(drop).map_err(|error| fault(&error))
}

/// The hint for a step that only reads, as far as its words tell.
fn hint_to_ask(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "hint: if the step may write, let it say so, and rqps asks: init = \
             [\"SET default_transaction_read_only = off\"] in [[step]], or BEGIN READ WRITE in a \
             script of pgbench"
        }
        _ => {
            "hint: if the step may write, let it say so, and rqps asks: init = \
             [\"SET SESSION TRANSACTION READ WRITE\"] in [[step]]"
        }
    }
}

/// The error of a statement that fails, in words.
pub(super) fn failed_statement(kind: &str, error: &WireError) -> String {
    let hint = match error.code() {
        Some("25006") => hint_to_ask(Dialect::Postgres),
        Some("1792") => hint_to_ask(Dialect::Mysql),
        _ => return format!("failed to execute {kind}: {error}"),
    };
    format!("failed to execute {kind}: {error}\n{hint}")
}

/// The error of a session that was not opened, in words.
fn not_connected(error: &WireError) -> String {
    match error.code() {
        Some(code) if FULL.contains(&code) => format!(
            "failed to connect: {error}\nhint: raise max_connections of the server, or measure \
             with fewer --clients"
        ),
        Some(_) => format!("failed to connect: {error}"),
        None => format!("failed to {error}"),
    }
}

impl Connection {
    /// Prepares one statement.
    pub fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError> {
        match self {
            Connection::Postgres(client) => client.prepare(sql, types),
            Connection::Mysql(client) => client.prepare(sql, types),
            Connection::Sqlite(connection) => {
                Ok(Prepared(connection.prepare(sql).map_err(refused)?.index()))
            }
            Connection::Fake(fake) => Ok(fake.prepare(sql)),
            Connection::Recorded(recorded) => recorded.prepare(sql, types),
        }
    }

    /// Executes a prepared statement and reads its whole reply.
    #[inline]
    pub fn execute(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
    ) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.execute(statement, values),
            Connection::Mysql(client) => client.execute(statement, values),
            Connection::Sqlite(connection) => connection
                .execute(Statement::from_index(statement.0), values.iter().map(sqlite_value))
                .map(reply)
                .map_err(refused),
            Connection::Fake(fake) => fake.execute(statement, values),
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Prepared(statement), values, Wanted::Nothing)
            }
        }
    }

    /// Executes a prepared statement; its rows, as text, replace those in `rows`.
    pub fn execute_rows(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.execute_rows(statement, values, rows),
            Connection::Mysql(client) => client.execute_rows(statement, values, rows),
            Connection::Sqlite(connection) => {
                rows.clear();
                let statement = Statement::from_index(statement.0);
                let values = values.iter().map(sqlite_value);
                let executed = connection.execute_rows(statement, values, &mut keep_in(rows));
                executed.map(reply).map_err(refused)
            }
            Connection::Fake(fake) => {
                rows.clear();
                fake.execute(statement, values)
            }
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Prepared(statement), values, Wanted::Rows(rows))
            }
        }
    }

    /// Executes a prepared statement that returns one column of whole numbers, which replace the
    /// content of `ids`.
    #[inline]
    pub fn execute_ids(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        ids: &mut Vec<u32>,
    ) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.execute_ids(statement, values, ids),
            Connection::Mysql(client) => client.execute_ids(statement, values, ids),
            Connection::Sqlite(_) | Connection::Fake(_) | Connection::Recorded(_) => {
                Err(WireError::Protocol("this connection has no vector search".to_owned()))
            }
        }
    }

    /// True if a backslash escapes the next character of a literal.
    pub fn escapes_backslash(&self) -> bool {
        match self {
            Connection::Recorded(recorded) => recorded.inner().escapes_backslash(),
            Connection::Mysql(client) => client.escapes_backslash(),
            Connection::Postgres(client) => client.escapes_backslash(),
            Connection::Sqlite(_) | Connection::Fake(_) => false,
        }
    }

    /// Notices and warnings of the server: on Postgres since the last call, on MySQL of the last
    /// statement.
    pub fn take_warnings(&mut self) -> Vec<String> {
        match self {
            Connection::Postgres(client) => client.take_notices(),
            Connection::Mysql(client) if client.warnings() > 0 => {
                let count = client.warnings();
                let rows = match client.rows("SHOW WARNINGS") {
                    Ok(rows) => rows,
                    Err(err) => {
                        return vec![format!("{count} warnings that cannot be read: {err}")];
                    }
                };
                let text = |row: Vec<Option<String>>| match <[_; 3]>::try_from(row).ok()? {
                    [Some(level), Some(code), Some(text)] => {
                        Some(format!("{level} {code}: {text}"))
                    }
                    _ => None,
                };
                rows.into_iter().filter_map(text).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The id in the protocol of the server's side: on Postgres, the process of the backend.
    pub fn connection_id(&self) -> Option<u32> {
        match self {
            Connection::Postgres(client) => Some(client.connection_id()),
            Connection::Mysql(client) => Some(client.connection_id()),
            Connection::Recorded(recorded) => recorded.inner().connection_id(),
            Connection::Sqlite(_) | Connection::Fake(_) => None,
        }
    }

    /// The operating system's id of the MySQL or MariaDB thread of this connection; `None` on other
    /// DBMSs and on versions that do not tell.
    pub fn serving_thread(&mut self) -> Option<u32> {
        let Connection::Mysql(client) = self else { return None };
        SERVING_THREAD.iter().find_map(|sql| {
            let rows = client.rows(sql).ok()?;
            rows.first()?.first()?.as_ref()?.parse().ok()
        })
    }

    /// From now on, pauses before each statement until the server waits for it. `thread` is the one
    /// of this connection; Postgres reports its own process.
    pub fn set_lull(&mut self, thread: Option<u32>) {
        match self {
            Connection::Postgres(client) => {
                let process = client.connection_id();
                client.set_pause(wait_until_server_sleeps(Some(process)));
            }
            Connection::Mysql(client) => client.set_pause(wait_until_server_sleeps(thread)),
            Connection::Sqlite(_) | Connection::Fake(_) | Connection::Recorded(_) => {}
        }
    }

    /// Sends `count` small statements, one at a time. The error is a complete message.
    pub fn ping(&mut self, count: u32) -> Result<(), String> {
        for _ in 0..count {
            self.simple("SELECT 1").map_err(|error| format!("failed to ping: {error}"))?;
        }
        Ok(())
    }

    /// True if the open transaction failed, so that its COMMIT will undo it.
    pub(super) fn is_in_failed_transaction(&self) -> bool {
        matches!(self, Connection::Postgres(client) if client.has_failed())
    }

    /// True if a transaction is open, whose rows would be lost with the session.
    pub(super) fn has_open_transaction(&mut self) -> bool {
        match self {
            Connection::Postgres(client) => client.is_in_transaction(),
            Connection::Mysql(client) => client.is_in_transaction(),
            // It does not begin a transaction within another.
            Connection::Sqlite(_) => {
                self.simple("BEGIN").and_then(|_| self.simple("ROLLBACK")).is_err()
            }
            Connection::Fake(_) | Connection::Recorded(_) => false,
        }
    }

    /// From now on, the server refuses a text that holds several statements.
    pub(super) fn one_statement_each(&mut self) -> Result<(), WireError> {
        match self {
            Connection::Postgres(client) => client.one_statement_each(),
            Connection::Mysql(client) => client.one_statement_each()?,
            Connection::Sqlite(_) | Connection::Fake(_) | Connection::Recorded(_) => {}
        }
        Ok(())
    }

    /// Executes one text.
    pub fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.simple(sql),
            Connection::Mysql(client) => client.simple(sql),
            Connection::Sqlite(connection) => connection.simple(sql).map(reply).map_err(refused),
            Connection::Fake(fake) => fake.simple(sql),
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Simple(sql), &[], Wanted::Nothing)
            }
        }
    }

    /// Executes one statement of a file; on MySQL it may hold bytes of other encodings.
    pub fn simple_bytes(&mut self, sql: &[u8]) -> Result<Reply, WireError> {
        match self {
            Connection::Mysql(client) => client.simple_bytes(sql),
            _ => match std::str::from_utf8(sql) {
                Ok(sql) => self.simple(sql),
                Err(_) => Err(WireError::Protocol("the statement is not UTF-8".to_owned())),
            },
        }
    }

    /// Executes one text; its rows, as text, replace those in `rows`.
    pub fn simple_rows(&mut self, sql: &str, rows: &mut RowTexts) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.simple_rows(sql, rows),
            Connection::Mysql(client) => client.simple_rows(sql, rows),
            Connection::Sqlite(connection) => {
                rows.clear();
                let executed = connection.simple_rows(sql, &mut keep_in(rows));
                executed.map(reply).map_err(refused)
            }
            Connection::Fake(fake) => {
                rows.clear();
                fake.simple(sql)
            }
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Simple(sql), &[], Wanted::Rows(rows))
            }
        }
    }

    /// SQLSTATE of the last error; `None` where the error's code is the SQLSTATE.
    pub fn sql_state(&self) -> Option<&str> {
        match self {
            Connection::Mysql(client) => Some(client.sql_state()),
            Connection::Recorded(recorded) => recorded.inner().sql_state(),
            Connection::Postgres(_) | Connection::Sqlite(_) | Connection::Fake(_) => None,
        }
    }

    /// Executes a text once more for the work that it does, which only SQLite tells.
    pub fn work(&mut self, sql: &str, values: &[Value<'_>]) -> BTreeMap<String, u64> {
        let Connection::Sqlite(connection) = self else { return BTreeMap::new() };
        let work = connection.work(sql, values.iter().map(sqlite_value)).unwrap_or_default();
        work.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// Executes one text and returns its rows as text. Not for measured statements.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, WireError> {
        match self {
            Connection::Postgres(client) => client.rows(sql),
            Connection::Mysql(client) => client.rows(sql),
            Connection::Sqlite(connection) => connection.rows(sql).map_err(refused),
            Connection::Fake(_) => Ok(vec![vec![Some(sql.to_owned())]]),
            Connection::Recorded(_) => {
                let mut rows = RowTexts::default();
                self.simple_rows(sql, &mut rows)?;
                Ok(rows.into_texts())
            }
        }
    }
}

/// Receives SQLite's values one by one, each with the number of values in its row.
fn keep_in(rows: &mut RowTexts) -> impl FnMut(Option<&[u8]>, usize) {
    let mut left = 0;
    move |value, columns| {
        rows.push(value);
        left = if left == 0 { columns } else { left } - 1;
        if left == 0 {
            rows.end_row();
        }
    }
}

impl Connection {
    /// Runs `COPY … FROM STDIN`: `fill` appends data and returns false after the last.
    pub fn copy_in(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        match self {
            Connection::Postgres(client) => client.copy_in(sql, fill),
            _ => Err(WireError::Protocol(format!("only Postgres understands {sql}"))),
        }
    }
}

impl Connection {
    /// Runs `LOAD DATA LOCAL INFILE …`: `fill` appends rows and returns false after the last. A
    /// server that does not allow it refuses before the first row.
    pub fn load_local(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        match self {
            Connection::Mysql(client) => client.load_local(sql, fill),
            _ => Err(WireError::Protocol(format!("only MySQL understands {sql}"))),
        }
    }
}

fn sqlite_value<'a>(value: &Value<'a>) -> sqlite::SqliteValue<'a> {
    match value {
        Value::Null => sqlite::SqliteValue::Null,
        Value::Int(int) => sqlite::SqliteValue::Int(*int),
        Value::Text(text) | Value::Bytes(text) => sqlite::SqliteValue::Text(text),
    }
}

fn reply(executed: sqlite::Executed) -> Reply {
    Reply {
        rows: executed.rows,
        affected: executed.changed,
        bytes: executed.bytes,
        result_set: executed.result_set,
    }
}

/// An error of SQLite as one of the protocols: a refusal by the database keeps the session.
#[cold]
pub(super) fn refused(error: SqliteError) -> WireError {
    match error {
        SqliteError::Refused { code, message } => {
            WireError::Server { code: code.to_string(), message }
        }
        other => WireError::Protocol(other.to_string()),
    }
}

/// Time between two looks at the server. Under valgrind, a server often needs less time from its
/// reply until it waits again.
const LOOK: Duration = Duration::from_micros(100);

/// Length of the pause if the server's thread is unknown.
const UNSEEN: Duration = Duration::from_millis(1);

/// Longest pause: afterwards the client sends its statement even if the thread still works.
const LONGEST: Duration = Duration::from_secs(1);

/// A pause until the server's process or thread sleeps.
fn wait_until_server_sleeps(server: Option<u32>) -> Box<dyn FnMut() + Send> {
    let Some(server) = server else { return Box::new(|| thread::sleep(UNSEEN)) };
    Box::new(move || {
        let end = Instant::now() + LONGEST;
        loop {
            thread::sleep(LOOK);
            // If the process has ended, the statement fails and reports it.
            let works = tree::stat_of(server).is_ok_and(|stat| stat.state != 'S');
            if !works || Instant::now() > end {
                return;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_pause_lasts_until_the_server_sleeps() {
        let mut command = Command::new("sh");
        // Works until its input ends, then sleeps.
        command.args(["-c", "echo; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; read line"]);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        wait_until_server_sleeps(Some(server.id()))();
        let cpu = tree::stat_of(server.id()).map(|stat| (stat.state, stat.user + stat.system));
        drop(server.stdin.take());
        server.wait().unwrap();
        let (state, ticks) = cpu.unwrap();
        assert!(state == 'S' && ticks > 0, "{state} after {ticks} ticks");
    }

    #[test]
    fn nobody_waits_for_a_server_that_has_gone() {
        let mut server = Command::new("true").spawn().unwrap();
        server.wait().unwrap();
        wait_until_server_sleeps(Some(server.id()))();
        wait_until_server_sleeps(None)();
    }

    #[test]
    fn a_full_server_is_answered_with_what_to_change() {
        let said = |code: &str, message: &str| {
            let (code, message) = (code.to_owned(), message.to_owned());
            not_connected(&WireError::Server { code, message })
        };
        for code in FULL {
            let text = said(code, "Too many connections");
            assert!(text.starts_with("failed to connect: "), "{text}");
            assert!(text.contains("Too many connections") && text.contains("--clients"), "{text}");
        }
        assert!(!said("28P01", "wrong password").contains("hint"));
    }
}
