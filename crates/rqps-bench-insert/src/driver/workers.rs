//! One inserter or deleter on its own connection: a batch is one statement and one transaction.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::meter::WorkerRecorder;
use crate::rows::{self, Rows, TIME_LEN, append_number, append_price};
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{Draw, KEY_REFRESH, Pacing, PriceKind, Queries, Query};
use rqps_model::script::Protocol;
use rqps_model::sql_name::Identifier;
use rqps_wire::{Prepared, Reply, Value, ValueType, WireError};

/// Most failures of a statement, or of queries in a row, before the step fails.
const TRIES: u32 = 1000;

/// The content of a batch.
pub(crate) enum Batch {
    /// The next rows.
    Insert {
        /// `INSERT INTO … VALUES `
        head: Vec<u8>,
        rows: Box<Rows>,
        time: WallTime,
    },
    /// The rows with the smallest keys.
    Delete {
        /// Places: the guess of the smallest key, the number of rows.
        sql: Template,
        min_sql: String,
        key: i64,
    },
}

/// A worker that writes.
pub(crate) struct Writer {
    pub(crate) session: Connection,
    pub(crate) clock: Clock,
    pub(crate) recorder: Arc<WorkerRecorder>,
    pub(crate) dialect: Dialect,
    pub(crate) batch: Batch,
    pub(crate) rows_per_batch: u32,
    /// The guess of the smallest key, for query workers.
    pub(crate) min_key: Arc<AtomicI64>,
    /// A lock, if the DBMS has one writer at a time.
    pub(crate) gate: Option<Arc<Mutex<()>>>,
    pub(crate) text: Vec<u8>,
    pub(crate) notes: Notes,
}

/// Observations of a writer beside its counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) errors: BTreeMap<String, u64>,
    /// Deletes that removed fewer rows than requested.
    pub(crate) short_deletes: u64,
    /// The longest query for the smallest key, nanoseconds.
    pub(crate) resync_longest_ns: u64,
    /// The time for making indexes, nanoseconds.
    pub(crate) index_ns: u64,
    /// The largest delay behind the schedule, nanoseconds.
    pub(crate) behind_ns: u64,
}

impl Writer {
    /// Executes the next batch, not before `ready`. Its response time counts from `intended`.
    ///
    /// # Errors
    ///
    /// Complete messages: the statement and the server's message.
    pub(crate) fn write(&mut self, intended: u64, ready: u64) -> Result<(), String> {
        let now = self.clock.now();
        let start = if ready > now { self.clock.wait_until(ready) } else { now };
        let intended = intended.min(start);
        self.notes.behind_ns = self.notes.behind_ns.max(start - intended);
        self.spell(start);
        let reply = self.execute()?;
        let end = self.clock.now();
        let rows = self.check(reply.affected)?;
        self.recorder.record(end - intended, end - start, rows);
        Ok(())
    }

    /// Writes the text of the next batch.
    fn spell(&mut self, now: u64) {
        self.text.clear();
        match &mut self.batch {
            Batch::Insert { head, rows, time } => {
                self.text.extend_from_slice(head);
                let time = *time.at(now);
                for row in 0..self.rows_per_batch {
                    if row > 0 {
                        self.text.push(b',');
                    }
                    rows.append_tuple(&mut self.text, &time);
                }
            }
            Batch::Delete { sql, key, .. } => {
                let values = [*key, i64::from(self.rows_per_batch)];
                sql.spell(&mut self.text, |out, place| append_signed(out, values[place]));
                *key += i64::from(self.rows_per_batch);
                self.min_key.store(*key, Ordering::Relaxed);
            }
        }
    }

    fn execute(&mut self) -> Result<Reply, String> {
        let text = std::str::from_utf8(&self.text)
            .map_err(|error| format!("failed to write the text of a batch: {error}"))?;
        let mut failed = 0;
        loop {
            let turn = self.gate.as_ref().map(|gate| gate.lock());
            let result = self.session.simple(text);
            drop(turn);
            let error = match result {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            failed += 1;
            match &error {
                WireError::Server { code, .. } if self.dialect.retries(code) && failed < TRIES => {
                    *self.notes.errors.entry(code.clone()).or_insert(0) += 1;
                    self.recorder.error();
                }
                _ => return Err(format!("failed to {} a batch: {error}", self.verb())),
            }
        }
    }

    fn verb(&self) -> &'static str {
        match self.batch {
            Batch::Insert { .. } => "insert",
            Batch::Delete { .. } => "delete",
        }
    }

    /// Checks the number of changed rows; an insert must change all.
    fn check(&mut self, affected: u64) -> Result<u64, String> {
        let wanted = u64::from(self.rows_per_batch);
        match self.batch {
            // The fake DBMS reports one row for any statement.
            _ if self.dialect == Dialect::Fake => Ok(wanted),
            Batch::Insert { .. } if affected != wanted => Err(format!(
                "failed to insert a batch: the server reports {affected} inserted rows of {wanted}"
            )),
            Batch::Insert { .. } => Ok(wanted),
            Batch::Delete { .. } => {
                self.notes.short_deletes += u64::from(affected != wanted);
                Ok(affected)
            }
        }
    }

    /// Queries the smallest key, the new guess; 0 for an empty table.
    ///
    /// # Errors
    ///
    /// Complete messages.
    pub(crate) fn resync(&mut self) -> Result<(), String> {
        let Batch::Delete { min_sql, key, .. } = &mut self.batch else { return Ok(()) };
        let start = self.clock.now();
        self.recorder.ask(start);
        let rows = self
            .session
            .rows(min_sql)
            .map_err(|error| format!("failed to ask for the smallest key: {error}"))?;
        let smallest = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        *key = smallest.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.min_key.store(*key, Ordering::Relaxed);
        let end = self.clock.now();
        self.recorder.answered(end);
        let took = end - start;
        let notes = &mut self.notes;
        notes.resync_longest_ns = notes.resync_longest_ns.max(took);
        Ok(())
    }

    /// Makes the indexes.
    ///
    /// # Errors
    ///
    /// Complete messages.
    pub(crate) fn make_indexes(&mut self, statements: &[String]) -> Result<(), String> {
        let start = self.clock.now();
        for sql in statements {
            let turn =
                self.gate.as_ref().map(|gate| gate.lock().unwrap_or_else(PoisonError::into_inner));
            self.session
                .simple(sql)
                .map_err(|error| format!("failed to make an index with {sql:?}: {error}"))?;
            drop(turn);
        }
        self.notes.index_ns = self.clock.now() - start;
        Ok(())
    }
}

// One query worker: sends the next query after the reply; draws the kind of each query.

/// Most parameters of a query.
const PARAMETERS: usize = 16;

/// A prepared kind of query.
pub(crate) struct PreparedQuery {
    name: String,
    draws: Vec<Draw>,
    form: Form,
}

enum Form {
    Text(Template),
    Prepared(Prepared),
}

/// A worker that queries.
pub(crate) struct Querier {
    pub(crate) session: Connection,
    pub(crate) clock: Clock,
    pub(crate) recorder: Arc<WorkerRecorder>,
    pub(crate) dialect: Dialect,
    pub(crate) rng: Rng,
    pub(crate) price: PriceKind,
    pub(crate) kinds: Vec<PreparedQuery>,
    pub(crate) min_key: Arc<AtomicI64>,
    pub(crate) max_key: i64,
    pub(crate) max_sql: Option<String>,
    pub(crate) until_refresh: u32,
    pub(crate) text: Vec<u8>,
    pub(crate) failed_in_a_row: u32,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
}

impl Querier {
    /// Executes one query. Its time begins before its text is made and ends after the last row,
    /// without the query for the largest key.
    ///
    /// # Errors
    ///
    /// Complete messages.
    pub(crate) fn query(&mut self) -> Result<(), String> {
        if let Some(sql) = &self.max_sql {
            if self.until_refresh == 0 {
                self.max_key = largest(&mut self.session, sql)?;
                self.until_refresh = KEY_REFRESH;
            }
            self.until_refresh -= 1;
        }
        let start = self.clock.now();
        let chosen = self.rng.below(self.kinds.len() as u64) as usize;
        match self.execute(chosen) {
            Ok(reply) => {
                let took = self.clock.now() - start;
                self.bytes += reply.bytes;
                self.failed_in_a_row = 0;
                self.recorder.record(took, took, reply.rows);
                Ok(())
            }
            Err(error) => self.failed(chosen, error),
        }
    }

    #[cold]
    fn failed(&mut self, chosen: usize, error: WireError) -> Result<(), String> {
        self.failed_in_a_row += 1;
        match &error {
            WireError::Server { code, .. }
                if self.dialect.retries(code) && self.failed_in_a_row < TRIES =>
            {
                *self.errors.entry(code.clone()).or_insert(0) += 1;
                self.recorder.error();
                Ok(())
            }
            _ => Err(format!("failed to run the query {}: {error}", self.kinds[chosen].name)),
        }
    }

    #[inline]
    fn execute(&mut self, chosen: usize) -> Result<Reply, WireError> {
        let kind = &self.kinds[chosen];
        let low = self.min_key.load(Ordering::Relaxed);
        let keys = (low, self.max_key.max(low + 1));
        let mut values = [0i64; PARAMETERS];
        for (value, draw) in values.iter_mut().zip(&kind.draws) {
            *value = drawn(&mut self.rng, *draw, self.price, keys);
        }
        match &kind.form {
            Form::Text(template) => {
                self.text.clear();
                template.spell(&mut self.text, |out, place| match kind.draws[place] {
                    Draw::Price => append_price(out, values[place].unsigned_abs()),
                    Draw::Key => append_signed(out, values[place]),
                    _ => append_number(out, values[place].unsigned_abs()),
                });
                let text = std::str::from_utf8(&self.text)
                    .map_err(|error| WireError::Protocol(error.to_string()))?;
                self.session.simple(text)
            }
            Form::Prepared(prepared) => {
                let mut bound = [Value::Int(0); PARAMETERS];
                for (bound, value) in bound.iter_mut().zip(values) {
                    *bound = Value::Int(value);
                }
                self.session.execute(*prepared, &bound[..kind.draws.len()])
            }
        }
    }
}

/// Draws a parameter; prices are in hundredths, except for [`Draw::WholePrice`].
#[inline]
fn drawn(rng: &mut Rng, draw: Draw, price: PriceKind, (low, high): (i64, i64)) -> i64 {
    match draw {
        Draw::Product => rng.below(rows::PRODUCTS) as i64,
        Draw::CashRegister => rng.below(rows::CASH_REGISTERS) as i64,
        Draw::WholePrice => rng.below(rows::MAX_PRICE) as i64,
        Draw::Price => rows::query_price(rng, price) as i64,
        Draw::Key => low + rng.below((high - low).max(1).unsigned_abs()) as i64,
    }
}

/// Prepares all queries for a table.
pub(crate) fn prepare(
    session: &mut Connection,
    queries: &Queries,
    table: u32,
) -> Result<Vec<PreparedQuery>, String> {
    queries.kinds.iter().map(|query| prepared(session, query, table)).collect()
}

fn prepared(session: &mut Connection, query: &Query, table: u32) -> Result<PreparedQuery, String> {
    let fault = |error: WireError| format!("failed to prepare the query {}: {error}", query.name);
    if query.parameters.len() > PARAMETERS {
        return Err(format!("failed to prepare the query {}: too many parameters", query.name));
    }
    if let Some(sql) = &query.prepare {
        session.simple(&for_table(sql, table, None)).map_err(fault)?;
    }
    let sql = for_table(&query.sql, table, None);
    let form = match query.protocol {
        Protocol::Text => {
            let places: Vec<String> =
                (1..=query.parameters.len()).map(|number| format!("{{{number}}}")).collect();
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            Form::Text(Template::new(&sql, &places))
        }
        Protocol::Prepared => {
            let types = vec![ValueType::Int; query.parameters.len()];
            Form::Prepared(session.prepare(&sql, &types).map_err(fault)?)
        }
    };
    Ok(PreparedQuery { name: query.name.clone(), draws: query.parameters.clone(), form })
}

fn largest(session: &mut Connection, sql: &str) -> Result<i64, String> {
    let rows =
        session.rows(sql).map_err(|error| format!("failed to ask for the largest key: {error}"))?;
    let first = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
    Ok(first.and_then(|text| text.parse().ok()).unwrap_or(0))
}

// Statement templates: cut once, so that filling one in copies bytes and allocates nothing.

/// A text with numbered places.
pub(crate) struct Template {
    /// The text before each place, and the place's number.
    parts: Vec<(Vec<u8>, usize)>,
    last: Vec<u8>,
}

impl Template {
    /// Cuts `sql` at each of `places`; a place's number is its index in this list.
    pub(crate) fn new(sql: &str, places: &[&str]) -> Template {
        let mut parts = Vec::new();
        let mut rest = sql;
        let next = |rest: &str| {
            let found = places
                .iter()
                .enumerate()
                .filter_map(|(number, place)| rest.find(place).map(|at| (at, number, place.len())));
            found.min()
        };
        while let Some((at, number, length)) = next(rest) {
            parts.push((rest.as_bytes()[..at].to_vec(), number));
            rest = &rest[at + length..];
        }
        Template { parts, last: rest.as_bytes().to_vec() }
    }

    /// Appends the text; `put` appends the content of a place.
    #[inline]
    pub(crate) fn spell(&self, out: &mut Vec<u8>, mut put: impl FnMut(&mut Vec<u8>, usize)) {
        for (text, place) in &self.parts {
            out.extend_from_slice(text);
            put(out, *place);
        }
        out.extend_from_slice(&self.last);
    }
}

/// SQL with the table's number and the storage engine filled in.
pub(crate) fn for_table(sql: &str, table: u32, storage_engine: Option<&str>) -> String {
    let engine = match storage_engine {
        Some("myrocks" | "rocksdb") => "rocksdb",
        Some(other) => other,
        None => "InnoDB",
    };
    let engine = Identifier::plain(Dialect::Mysql, engine).to_string();
    sql.replace("{table}", &table.to_string()).replace("{engine}", &engine)
}

/// Date and time of batches: the wall clock in whole seconds, UTC, formatted once a second.
pub(crate) struct WallTime {
    /// Unix seconds at zero of the driver's clock.
    epoch: i64,
    spelled: i64,
    text: [u8; TIME_LEN],
}

impl WallTime {
    pub(crate) fn new(epoch: i64) -> WallTime {
        WallTime { epoch, spelled: i64::MIN, text: [b'0'; TIME_LEN] }
    }

    /// The time at `now_ns` on the driver's clock.
    #[inline]
    pub(crate) fn at(&mut self, now_ns: u64) -> &[u8; TIME_LEN] {
        let second = self.epoch + (now_ns / 1_000_000_000) as i64;
        if second != self.spelled {
            self.spelled = second;
            self.text = spell_time(second);
        }
        &self.text
    }
}

/// Unix seconds as `2026-01-31 08:05:09`.
fn spell_time(seconds: i64) -> [u8; TIME_LEN] {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let text = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut bytes = *b"1970-01-01 00:00:00";
    if text.len() == TIME_LEN {
        bytes.copy_from_slice(text.as_bytes());
    }
    bytes
}

/// Appends a number that may be negative.
fn append_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    append_number(out, number.unsigned_abs());
}

// Decides when the inserter and the deleter of a client may continue: the published client's
// generator with its two bounded queues, as a state machine without a thread.
//
// In the published client, one process makes batches, waits for its pace, and puts each batch into
// the queues of the inserter and the deleter; each side waits for the other when a queue is full.
// Here a worker makes a batch when it needs one: text costs so little that no thread need be woken
// for it. The times of the batches are those of the generator.

const SECOND: u64 = 1_000_000_000;
/// A second that has already taken this long is not slept out (published).
const WHOLE_SECOND: u64 = SECOND / 100 * 95;

/// A writing worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Insert,
    Delete,
}

/// The next action of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterTurn {
    /// Execute this batch, not before `ready`. The response time counts from `intended`.
    Go { batch: u64, intended: u64, ready: u64 },
    /// Wait for the other side.
    Blocked,
    /// Query the smallest key first; all batches wait for the answer. Only for the deleter.
    Resync,
    /// All batches are taken.
    Over,
}

/// The pace of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pacer {
    /// As fast as the queues accept batches.
    Closed,
    /// Batch i is due at `start + (phase + i) × gap`.
    Open { start: f64, phase: f64, gap: f64 },
    /// The published rule: see [`Pacer::after`].
    Compat { batches_per_second: u64, last_check: u64 },
}

impl Pacer {
    /// The pace of one client: `rate` rows per second in batches of `rows`, from `start` on.
    /// `phase` in [0, 1) delays an open schedule by that share of a gap, so that clients do not
    /// write in step.
    pub(crate) fn new(
        rate: Option<u32>,
        rows: u32,
        pacing: Pacing,
        start: u64,
        phase: f64,
    ) -> Pacer {
        let Some(rate) = rate.filter(|rate| *rate > 0) else { return Pacer::Closed };
        match pacing {
            Pacing::Open => {
                let gap = SECOND as f64 * f64::from(rows) / f64::from(rate);
                Pacer::Open { start: start as f64, phase, gap }
            }
            Pacing::Compat => Pacer::Compat {
                batches_per_second: u64::from(rate.div_ceil(rows.max(1))).max(1),
                last_check: start,
            },
        }
    }

    /// The due time of a batch under a pace that fixes it.
    fn intended(&self, batch: u64) -> u64 {
        match self {
            Pacer::Open { start, phase, gap } => (start + (phase + batch as f64) * gap) as u64,
            Pacer::Closed | Pacer::Compat { .. } => 0,
        }
    }

    /// The time at which the generator continues after it made `batch` at `made`. The published
    /// client makes b batches per second. After every b-th batch it sleeps for the rest of the
    /// second if less than 0.95 s have passed; in any case a new second begins. So the first second
    /// has one batch, later ones begin with a burst of b, and the loss of a stall is not made up
    /// for.
    fn after(&mut self, batch: u64, made: u64) -> u64 {
        let Pacer::Compat { batches_per_second, last_check } = self else { return made };
        if !batch.is_multiple_of(*batches_per_second) {
            return made;
        }
        let elapsed = made.saturating_sub(*last_check);
        let next = if elapsed < WHOLE_SECOND { made + (SECOND - elapsed) } else { made };
        *last_check = next;
        next
    }

    /// The end of an open schedule of `batches` at its rate.
    pub(crate) fn end(&self, batches: u64) -> u64 {
        match self {
            Pacer::Open { start, gap, .. } => (start + batches as f64 * gap) as u64,
            Pacer::Closed | Pacer::Compat { .. } => 0,
        }
    }
}

/// Turns taken by one side.
#[derive(Clone, Debug)]
struct Queue {
    taken: u64,
    /// The time at which batch i was taken, at index i modulo the length.
    taken_at: Vec<u64>,
}

/// The generator and its queues.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    batches: u64,
    depth: u64,
    pacer: Pacer,
    /// Number of batches made.
    made: u64,
    /// The time at which batch i entered the queues, at index i modulo the length.
    ready: Vec<u64>,
    /// The time at which the generator can make the next batch.
    free: u64,
    inserts: Queue,
    /// `None` without deletes.
    deletes: Option<Queue>,
    /// Batches between two queries for the smallest key; 0 for one query at the start.
    resync_every: u64,
    /// The batch of the last such query.
    resynced: Option<u64>,
}

impl Turns {
    /// For `batches` batches from `start` on. Each side may be `depth` statements ahead, besides
    /// the one in flight. `deletes`: batches between two queries for the smallest key.
    pub(crate) fn new(
        batches: u64,
        depth: u32,
        start: u64,
        pacer: Pacer,
        deletes: Option<u32>,
    ) -> Turns {
        let depth = u64::from(depth.max(1));
        let ring = || vec![0; 2 * depth as usize + 2];
        let queue = || Queue { taken: 0, taken_at: ring() };
        Turns {
            batches,
            depth,
            pacer,
            made: 0,
            ready: ring(),
            free: start,
            inserts: queue(),
            deletes: deletes.map(|_| queue()),
            resync_every: u64::from(deletes.unwrap_or(0)),
            resynced: None,
        }
    }

    /// The action of `side` at `now`. [`WriterTurn::Go`] takes the batch.
    pub(crate) fn take(&mut self, side: Side, now: u64) -> WriterTurn {
        let batch = match (side, &self.deletes) {
            (Side::Insert, _) => self.inserts.taken,
            (Side::Delete, Some(queue)) => queue.taken,
            (Side::Delete, None) => return WriterTurn::Over,
        };
        if batch == self.batches {
            return WriterTurn::Over;
        }
        while self.made <= batch {
            if let Some(wait) = self.make(side) {
                return wait;
            }
        }
        let ready = self.ready[slot(&self.ready, batch)];
        let intended = match self.pacer {
            Pacer::Open { .. } => self.pacer.intended(batch),
            Pacer::Closed | Pacer::Compat { .. } => ready.max(now),
        };
        let queue = match side {
            Side::Insert => &mut self.inserts,
            Side::Delete => match &mut self.deletes {
                Some(queue) => queue,
                None => return WriterTurn::Over,
            },
        };
        queue.taken += 1;
        let place = slot(&queue.taken_at, batch);
        queue.taken_at[place] = ready.max(now);
        WriterTurn::Go { batch, intended, ready }
    }

    /// Makes the next batch, or returns what it waits for.
    fn make(&mut self, side: Side) -> Option<WriterTurn> {
        let batch = self.made;
        let queues = [Some(&self.inserts), self.deletes.as_ref()];
        let full = |queue: &&Queue| queue.taken + self.depth <= batch;
        if queues.into_iter().flatten().any(|queue| full(&queue)) {
            return Some(WriterTurn::Blocked);
        }
        if self.resync_is_due(batch) {
            return Some(if side == Side::Delete {
                WriterTurn::Resync
            } else {
                WriterTurn::Blocked
            });
        }
        // A full queue got room when the batch `depth` earlier was taken.
        let room = batch.checked_sub(self.depth).map_or(0, |freed| {
            let at = |queue: &Queue| queue.taken_at[slot(&queue.taken_at, freed)];
            at(&self.inserts).max(self.deletes.as_ref().map_or(0, at))
        });
        let made = self.free.max(room).max(self.pacer.intended(batch));
        let place = slot(&self.ready, batch);
        self.ready[place] = made;
        self.made += 1;
        self.free = self.pacer.after(batch, made);
        None
    }

    /// Published: at the first batch, and again after each `resync_every` batches.
    fn resync_is_due(&self, batch: u64) -> bool {
        let due =
            batch == 0 || (self.resync_every > 0 && batch.is_multiple_of(self.resync_every + 1));
        self.deletes.is_some() && due && self.resynced != Some(batch)
    }

    /// The query for the smallest key was answered at `now`.
    pub(crate) fn resynced(&mut self, now: u64) {
        self.resynced = Some(self.made);
        self.free = self.free.max(now);
    }
}

fn slot(ring: &[u64], batch: u64) -> usize {
    (batch % ring.len() as u64) as usize
}

// Shared state of one client's workers: turns, the smallest key, and the end of the writers.

/// Time between two checks whether the step was aborted.
const LOOK: Duration = Duration::from_millis(100);

/// The shared part of one client.
pub(crate) struct Pair {
    state: Mutex<State>,
    changed: Condvar,
    /// The deleter's guess of the smallest key.
    pub(crate) min_key: Arc<AtomicI64>,
    over: AtomicBool,
}

struct State {
    turns: Turns,
    waiting: u32,
    writers: u32,
}

impl Pair {
    /// For `writers` writing workers.
    pub(crate) fn new(turns: Turns, writers: u32) -> Pair {
        Pair {
            state: Mutex::new(State { turns, waiting: 0, writers }),
            changed: Condvar::new(),
            min_key: Arc::default(),
            over: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the schedule once the start is known.
    pub(crate) fn begin(&self, turns: Turns) {
        self.lock().turns = turns;
    }

    /// The next turn of `side`; waits for the other side if necessary. `None` if the step was
    /// aborted meanwhile.
    pub(crate) fn wait(
        &self,
        side: Side,
        now: impl Fn() -> u64,
        is_over: impl Fn() -> bool,
    ) -> Option<WriterTurn> {
        let mut state = self.lock();
        loop {
            let turn = state.turns.take(side, now());
            if turn != WriterTurn::Blocked {
                if state.waiting > 0 {
                    self.changed.notify_all();
                }
                return Some(turn);
            }
            state.waiting += 1;
            let (woken, _) =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.waiting -= 1;
            if is_over() {
                return None;
            }
        }
    }

    /// The next turn of `side`, without waiting.
    pub(crate) fn look(&self, side: Side, now: u64) -> WriterTurn {
        self.lock().turns.take(side, now)
    }

    /// The smallest key is known again.
    pub(crate) fn resynced(&self, now: u64) {
        let mut state = self.lock();
        state.turns.resynced(now);
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// One writer is done; the last one ends the step of this client.
    pub(crate) fn done(&self) {
        let mut state = self.lock();
        state.writers = state.writers.saturating_sub(1);
        if state.writers == 0 {
            self.over.store(true, Ordering::Release);
        }
    }

    /// True if all writers are done; then queries end too.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_the_order_of_the_text() {
        let template = Template::new("DELETE {key} LIMIT {rows} {key}.", &["{rows}", "{key}"]);
        let mut out = Vec::new();
        template.spell(&mut out, |out, place| append_signed(out, [50, -7][place]));
        assert_eq!(out, b"DELETE -7 LIMIT 50 -7.");
        let mut plain = Vec::new();
        Template::new("SELECT 1", &["{key}"]).spell(&mut plain, |_, _| {});
        assert_eq!(plain, b"SELECT 1");
    }

    #[test]
    fn time_moves_with_the_clock() {
        let mut time = WallTime::new(1_769_846_709);
        assert_eq!(time.at(999_999_999), b"2026-01-31 08:05:09");
        assert_eq!(time.at(1_000_000_000), b"2026-01-31 08:05:10");
    }

    #[test]
    fn the_storage_engine_has_its_name() {
        assert_eq!(for_table("pi{table} {engine}", 3, None), "pi3 InnoDB");
        assert_eq!(for_table("pi{table} {engine}", 3, Some("myrocks")), "pi3 rocksdb");
    }
}

#[cfg(test)]
mod turns_tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One side of a client on a server with statements of this `service` time.
    struct Worker {
        side: Side,
        now: u64,
        blocked: bool,
        over: bool,
        /// Actual and intended start of its statements.
        started: Vec<(u64, u64)>,
    }

    fn worker(side: Side) -> Worker {
        Worker { side, now: 0, blocked: false, over: false, started: Vec::new() }
    }

    /// Runs both sides, always the one furthest behind. `check` gets the number of completed
    /// batches after each statement.
    fn run(
        turns: &mut Turns,
        workers: &mut [Worker],
        service: impl Fn(Side, u64) -> u64,
        mut check: impl FnMut(u64, u64),
    ) {
        loop {
            let able = workers.iter_mut().filter(|worker| !worker.over && !worker.blocked);
            let Some(worker) = able.min_by_key(|worker| worker.now) else { break };
            match turns.take(worker.side, worker.now) {
                WriterTurn::Go { intended, ready, .. } => {
                    let start = worker.now.max(ready);
                    worker.started.push((start, intended));
                    worker.now = start + service(worker.side, start);
                }
                WriterTurn::Resync => turns.resynced(worker.now),
                WriterTurn::Over => worker.over = true,
                WriterTurn::Blocked => {
                    worker.blocked = true;
                    continue;
                }
            }
            workers.iter_mut().for_each(|worker| worker.blocked = false);
            let done = |side| {
                let of_side = workers.iter().find(|worker| worker.side == side);
                of_side.map_or(0, |worker| worker.started.len() as u64)
            };
            check(done(Side::Insert), done(Side::Delete));
        }
        assert!(workers.iter().all(|worker| worker.over), "nobody waits for ever");
    }

    fn per_second(worker: &Worker, seconds: u64) -> Vec<usize> {
        let within = |second: u64| {
            let begun = worker.started.iter().map(|(start, _)| start / SECOND);
            begun.filter(|at| *at == second).count()
        };
        (0..seconds).map(within).collect()
    }

    /// As the published client does with 1000 inserts/s, 50 a commit, on an instant server.
    #[test]
    fn compat_gives_one_batch_in_the_first_second_and_twenty_in_each_later_one() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Compat, 0, 0.5);
        let mut turns = Turns::new(181, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        run(&mut turns, &mut workers, |_, _| 0, |_, _| {});
        let mut want = vec![20; 10];
        want[0] = 1;
        assert_eq!(per_second(&workers[0], 10), want);
    }

    /// The same with a stall of 5 s at the beginning of second 3: the generator waits with a full
    /// queue, and what it did not make meanwhile is not made up for.
    #[test]
    fn compat_does_not_recover_what_a_stall_has_cost() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Compat, 0, 0.5);
        let mut turns = Turns::new(181, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        let mut stalled = std::cell::Cell::new(false);
        let service = |_, start: u64| {
            let stalls = start / SECOND == 3 && !stalled.replace(true);
            if stalls { 5 * SECOND } else { MS }
        };
        run(&mut turns, &mut workers, service, |_, _| {});
        assert!(*stalled.get_mut());
        let counts = per_second(&workers[0], 12);
        // At 8 s the rest of the burst that was broken off, of which 8 were in the queue, and that
        // of the second that begins then. The 80 of the seconds 4 to 7 are lost.
        assert_eq!(counts, [1, 20, 20, 1, 0, 0, 0, 0, 19 + 20, 20, 20, 20]);
    }

    /// An open schedule: in each second what the rate says to within a batch, and all of it after a
    /// stall.
    #[test]
    fn an_open_schedule_errs_by_less_than_a_batch_and_loses_nothing() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Open, 0, 0.3);
        let mut turns = Turns::new(200, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        run(&mut turns, &mut workers, |_, _| 3 * MS, |_, _| {});
        assert!(per_second(&workers[0], 10).iter().all(|count| count.abs_diff(20) <= 1));
        assert!(workers[0].started.iter().all(|(start, intended)| start == intended));

        let mut turns = Turns::new(200, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        let stall = |_, start: u64| if start / SECOND == 2 { 3 * SECOND } else { 3 * MS };
        run(&mut turns, &mut workers, stall, |_, _| {});
        let counts = per_second(&workers[0], 10);
        assert_eq!(counts.iter().sum::<usize>(), 200, "{counts:?}");
        assert_eq!(counts[9], 20, "caught up in the end: {counts:?}");
        let late = workers[0].started.iter().map(|(start, intended)| start - intended).max();
        assert!(late > Some(2 * SECOND), "response time counts from the schedule: {late:?}");
    }

    /// Two bounded queues couple both sides: neither is ever more than the queue and the batch in
    /// flight ahead.
    #[test]
    fn inserts_and_deletes_stay_together_and_end_equal() {
        for (insert_ms, delete_ms) in [(1, 20), (20, 1), (5, 5), (0, 3)] {
            let mut turns = Turns::new(3000, 8, 0, Pacer::Closed, Some(1000));
            let mut workers = [worker(Side::Insert), worker(Side::Delete)];
            let service = |side, _| match side {
                Side::Insert => insert_ms * MS,
                Side::Delete => delete_ms * MS,
            };
            let mut furthest = 0;
            run(&mut turns, &mut workers, service, |inserted, deleted| {
                furthest = furthest.max(inserted.abs_diff(deleted));
            });
            assert!(furthest <= 9, "{furthest}");
            assert!(workers.iter().all(|worker| worker.started.len() == 3000));
        }
    }

    #[test]
    fn the_smallest_key_is_asked_for_at_first_and_after_every_1001st_batch() {
        let asked = |resync_every: u32| {
            let mut turns = Turns::new(3500, 8, 0, Pacer::Closed, Some(resync_every));
            let (mut asked, mut now) = (Vec::new(), 0);
            for batch in 0..3500 {
                while turns.take(Side::Delete, now) == WriterTurn::Resync {
                    asked.push(batch);
                    assert_eq!(turns.take(Side::Insert, now), WriterTurn::Blocked, "all wait");
                    now += 7;
                    turns.resynced(now);
                }
                assert!(matches!(turns.take(Side::Insert, now), WriterTurn::Go { .. }));
            }
            asked
        };
        assert_eq!(asked(1000), [0, 1001, 2002, 3003]);
        assert_eq!(asked(0), [0]);
    }
}
