//! One inserter or deleter on its own connection: a batch is one statement and one transaction.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::meter::WorkerRecorder;
use crate::rows::{self, Rows, TIME_LEN, append_number, append_price};
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{Draw, KEY_REFRESH, PriceKind, Queries, Query};
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
