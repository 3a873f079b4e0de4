//! One inserter or deleter on its own connection: a batch is one statement and one transaction.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::driver::meter::WorkerRecorder;
use crate::driver::text::{Template, WallTime, append_signed};
use crate::rows::Rows;
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_model::dialect::Dialect;
use rqps_wire::{Reply, WireError};

/// Most repetitions of a statement before the step fails.
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
