//! The work of a client per event, and the sum of its statements.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::answers::Wanted;
use crate::connection::{Connection, Connector, refused};
use crate::request::StepRequest;
use crate::worker_pool::{Ready, Spent, WorkerHandle, WorkerSpec};
use rqps_wire::postgres::{PostgresClient, TextCall};
use rqps_wire::{LastRows, Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// The work that a client repeats.
pub trait ClientEvent {
    /// Attempts one event. `tally` counts the statements done even if a later one fails.
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError>;

    /// The action after an error with this code, where it differs from that of the dialect.
    fn after_error(&self, _code: &str) -> Option<AfterError> {
        None
    }

    /// Gives up the failed event: the next attempt is at another one.
    fn give_up(&mut self) {}

    /// Nanoseconds that a closed pace waits before the next event: they count for nothing.
    fn wait_ns(&mut self) -> u64 {
        0
    }

    /// The last event counts in the window and took this number of nanoseconds.
    fn recorded(&mut self, _latency_ns: u64) {}

    /// Errors that the client itself counted since the last call.
    #[inline]
    fn own_errors(&mut self) -> u64 {
        0
    }

    /// Cleans up after the last event. The error is a complete message.
    fn finish(&mut self, _session: &mut Connection) -> Result<(), String> {
        Ok(())
    }

    /// Set once the client carries out no more events. The last call of `attempt` ran no event then:
    /// it does not count.
    #[inline]
    fn stopped(&self) -> Option<ClientStop> {
        None
    }

    /// True if the statements are within BEGIN and COMMIT.
    fn is_transaction(&self) -> bool {
        false
    }
}

/// The reason for which a client stops before the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStop {
    /// It wants no more: the others go on, and it waits for them.
    Alone,
    /// All clients together have done as many as the step asks for: its window ends.
    Together,
}

/// The action after an error that does not end the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// The event begins again.
    Repeat,
    /// The event ends, and does not count.
    GiveUp,
    /// The step fails, although the dialect would try again.
    Fail,
}

/// The sum of the statements of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements of any kind.
    pub statements: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Statements that are neither, including those of transactions.
    pub others: u64,
    /// Statements that could have changed a row and changed none.
    pub no_ops: u64,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// Bytes of the values returned.
    pub bytes: u64,
}

/// A failed statement.
pub struct StatementError {
    /// The kind of statement, `BEGIN` or `COMMIT`.
    pub kind: String,
    /// The error of the server, or of the connection.
    pub error: WireError,
}

impl Tally {
    /// Counts a reply as sysbench does: a result set is a read, a changed row a write, the rest
    /// other.
    #[inline]
    pub fn count(&mut self, reply: Reply) {
        self.statements += 1;
        self.rows += reply.rows;
        self.affected += reply.affected;
        self.bytes += reply.bytes;
        if reply.result_set {
            self.reads += 1;
        } else if reply.affected > 0 {
            self.writes += 1;
        } else {
            self.others += 1;
            self.no_ops += 1;
        }
    }

    /// Adds the sum of another event.
    #[inline]
    pub fn add(&mut self, more: &Tally) {
        self.statements += more.statements;
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
        self.no_ops += more.no_ops;
        self.rows += more.rows;
        self.affected += more.affected;
        self.bytes += more.bytes;
    }
}

// Statements whose values are text with types that the server infers, and replies that keep the
// last row.

/// Names of columns, and rows.
type NamedRows = (Vec<String>, Vec<Vec<Option<String>>>);

impl Connection {
    /// Executes a text and keeps the last row of each of its results.
    pub fn simple_results(
        &mut self,
        sql: &str,
        results: &mut LastRows,
    ) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.simple_results(sql, results),
            Connection::Mysql(client) => client.simple_results(sql, results),
            Connection::Sqlite(connection) => {
                let named = connection.named_rows(sql).map_err(refused)?;
                Ok(keep_last(&named, results))
            }
            Connection::Fake(fake) => fake.simple(sql),
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Simple(sql), &[], Wanted::Results(results))
            }
        }
    }

    /// Prepares a statement with this number of values.
    pub fn prepare_text(&mut self, sql: &str, values: usize) -> Result<Prepared, WireError> {
        match self {
            Connection::Postgres(client) => client.prepare_text(sql),
            Connection::Recorded(recorded) => recorded.prepare_text(sql, values),
            _ => self.prepare(sql, &vec![ValueType::AnyText; values]),
        }
    }

    /// Executes a statement of [`Connection::prepare_text`]. Values are text or NULL.
    #[inline]
    pub fn execute_text(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        match (self, results) {
            (Connection::Postgres(client), results) => {
                client.call_text(TextCall::Prepared(statement), values, results)
            }
            (Connection::Recorded(recorded), results) => {
                let wanted = results.map_or(Wanted::Nothing, Wanted::Results);
                recorded.execute(Call::PreparedText(statement), values, wanted)
            }
            (other, None) => other.execute(statement, values),
            (other, Some(_)) => {
                other.postgres("keeps rows of a result")?;
                Ok(Reply::default())
            }
        }
    }

    /// Parses and executes a statement in one round trip. Values are text or NULL.
    pub fn parse_and_execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        if let Connection::Recorded(recorded) = self {
            let wanted = results.map_or(Wanted::Nothing, Wanted::Results);
            return recorded.execute(Call::Parsed(sql), values, wanted);
        }
        let client = self.postgres("parses a statement with values each time")?;
        client.call_text(TextCall::Parsed(sql), values, results)
    }

    /// True if it only reads, and keeps the answers.
    pub fn is_asked(&self) -> bool {
        matches!(self, Connection::Recorded(_))
    }

    /// True inside a transaction; `None` if the protocol does not tell.
    pub fn is_in_transaction(&self) -> Option<bool> {
        match self {
            Connection::Postgres(client) => Some(client.is_in_transaction()),
            Connection::Recorded(recorded) => recorded.inner().is_in_transaction(),
            Connection::Mysql(_) | Connection::Sqlite(_) | Connection::Fake(_) => None,
        }
    }

    /// The Postgres client, for pipelines.
    ///
    /// # Errors
    ///
    /// The session speaks another protocol; `does` completes "only a session of Postgres …".
    pub fn postgres(&mut self, does: &str) -> Result<&mut PostgresClient, WireError> {
        match self {
            Connection::Postgres(client) => Ok(client),
            _ => Err(WireError::Protocol(format!("only a session of Postgres {does}"))),
        }
    }
}

/// A way to execute a statement.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Without values.
    Simple(&'a str),
    /// Prepared by [`Connection::prepare`].
    Prepared(Prepared),
    /// Prepared by [`Connection::prepare_text`].
    PreparedText(Prepared),
    /// Parsed and executed in one round trip.
    Parsed(&'a str),
}

impl Connection {
    /// Executes a statement; its rows, as text, replace those in `rows`.
    pub(super) fn call_rows(
        &mut self,
        call: Call<'_>,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        match (self, call) {
            (session, Call::Simple(sql)) => session.simple_rows(sql, rows),
            (Connection::Postgres(client), Call::PreparedText(statement)) => {
                client.text_rows(TextCall::Prepared(statement), values, rows)
            }
            (session, Call::Prepared(statement) | Call::PreparedText(statement)) => {
                session.execute_rows(statement, values, rows)
            }
            (session, Call::Parsed(sql)) => {
                let client = session.postgres("parses a statement with values each time")?;
                client.text_rows(TextCall::Parsed(sql), values, rows)
            }
        }
    }
}

/// Keeps the last row.
fn keep_last((names, rows): &NamedRows, results: &mut LastRows) -> Reply {
    results.clear();
    let result = results.begin();
    names.iter().for_each(|name| result.column(name.as_bytes()));
    let mut bytes = 0;
    result.end_columns();
    for row in rows {
        let values = result.next_row();
        for value in row {
            let value = value.as_deref().map(str::as_bytes);
            bytes += value.map_or(0, <[u8]>::len) as u64;
            values.push(value);
        }
        values.end_row();
    }
    Reply { rows: rows.len() as u64, bytes, result_set: !names.is_empty(), affected: 0 }
}

// Scripts and statements that a user brings may never come back: a watch over their clients ends
// the step then, and what the server still does for it.

/// An event may last as long as the step and this time more.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the clients: a step ends at most so much later.
const LOOK: Duration = Duration::from_millis(100);

/// Stack of the watching thread, bytes.
const STACK: usize = 64 << 10;

/// Counts the beginnings and ends of a client's events: odd while one is at work.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// An event begins or ends. Only its client calls this.
    #[inline]
    pub fn beat(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn is_at_work(&self) -> bool {
        self.0.load(Ordering::Relaxed) % 2 == 1
    }
}

/// The clients of a step.
#[derive(Clone)]
pub struct ClientWatch {
    /// Their work, as error messages name it.
    what: String,
    limit: Duration,
    clients: Arc<Mutex<Vec<Watched>>>,
}

/// A client, and when its pulse was seen to change.
struct Watched {
    client: u32,
    /// Id of the server's process or thread for its connection, if the protocol has one.
    session: Option<u32>,
    pulse: Pulse,
    beats: u64,
    since: Instant,
}

impl ClientWatch {
    /// A watch over the clients of `task`, who carry out `what`.
    pub fn over<B>(task: &StepRequest<B>, what: &str) -> ClientWatch {
        let limit = Duration::from_secs_f64(task.warmup_seconds + task.seconds) + PATIENCE;
        ClientWatch { what: what.to_owned(), limit, clients: Arc::default() }
    }

    /// One more client with its session, and its pulse.
    pub(super) fn join(&self, client: u32, session: Option<u32>) -> Pulse {
        let pulse = Pulse::default();
        let (beats, since) = (0, Instant::now());
        let watched = Watched { client, session, pulse: pulse.clone(), beats, since };
        self.clients.lock().expect("no client panics while it joins").push(watched);
        pulse
    }

    /// If an event lasts too long, ends the sessions of all clients at work: the server would
    /// otherwise work on beside the next steps. The error is a complete message.
    pub(super) fn end_sessions(&self, connector: &Connector) -> Result<(), String> {
        let clients = self.clients.lock().expect("no client panics while it joins");
        if !clients.iter().any(|watched| watched.lasts_too_long(self.limit)) {
            return Ok(());
        }
        let at_work = clients.iter().filter(|watched| watched.pulse.is_at_work());
        at_work.filter_map(|watched| watched.session).try_for_each(|id| connector.end_session(id))
    }

    /// Fails for a client whose event lasts too long.
    fn look(&self) -> Result<(), String> {
        for watched in &mut *self.clients.lock().expect("no client panics while it joins") {
            let beats = watched.pulse.0.load(Ordering::Relaxed);
            if beats != watched.beats {
                (watched.beats, watched.since) = (beats, Instant::now());
            } else if watched.lasts_too_long(self.limit) {
                return Err(format!(
                    "failed to execute {}: an event of client {} did not end within {} s, the \
                     seconds of the step and {} more",
                    self.what,
                    watched.client,
                    self.limit.as_secs(),
                    PATIENCE.as_secs()
                ));
            }
        }
        Ok(())
    }

    /// The thread that looks.
    pub(super) fn member<T: Default + Send + 'static>(self) -> WorkerSpec<T> {
        let main = move |handle: &WorkerHandle<T>| {
            handle.ready(Ready::default());
            while !handle.is_over() {
                thread::sleep(LOOK);
                self.look()?;
            }
            handle.done(T::default(), Spent::default());
            Ok(())
        };
        let name = "the watch over the clients".to_owned();
        WorkerSpec { name, stack: STACK, background: true, main: Box::new(main) }
    }
}

impl Watched {
    /// True if the event that was at work at the last look is so for longer than `limit`.
    fn lasts_too_long(&self, limit: Duration) -> bool {
        let is_same = self.pulse.0.load(Ordering::Relaxed) == self.beats;
        is_same && self.pulse.is_at_work() && self.since.elapsed() > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_end_is_found_with_its_client() {
        let watch = ClientWatch {
            what: "a.sql".to_owned(),
            limit: Duration::ZERO,
            clients: Arc::default(),
        };
        let (idle, busy) = (watch.join(3, None), watch.join(4, None));
        assert_eq!(watch.look(), Ok(()));
        idle.beat();
        idle.beat();
        busy.beat();
        assert_eq!(watch.look(), Ok(()), "it has just begun");
        thread::sleep(Duration::from_millis(1));
        let fault = watch.look().unwrap_err();
        let all = "failed to execute a.sql: an event of client 4 did not end within 0 s, ";
        assert!(fault.starts_with(all), "{fault}");
        busy.beat();
        assert_eq!(watch.look(), Ok(()));
    }
}
