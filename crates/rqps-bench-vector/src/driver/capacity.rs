//! Measures how many rows an indexed table accepts, and how fast: each INSERT maintains the index.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::load::{self, RowMaker};
use super::search::count;
use super::sql::{Sql, TABLE};
use crate::data::parts;
use crate::driver::{TableContext, VectorContext, Worker, numbers, run, untimed, untimed_workers};
use rqps_driver::Stop;
use rqps_driver::connection::Connection;
use rqps_driver::recorder::{Recorder, histograms};
use rqps_host::tree;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::{Index, Present};
use rqps_wire::{Prepared, WireError};

/// Creates an empty table with `index`, then inserts on `clients` connections with `commit_rows`
/// rows per transaction, until the server refuses rows, all are in, or the time is over.
pub(super) fn fill<W: Write>(
    context: &mut VectorContext<'_, W>,
    index: &Index,
    clients: u32,
    commit_rows: usize,
) -> Result<Outcome, Stop> {
    let (sql, connector) = (context.sql(), context.connector.clone());
    let mut session = connector.open(0)?;
    prepare(&sql, &mut session, index, context.data.train.rows() as u64)?;
    let log = |session: &mut Connection| -> Option<f64> {
        numbers(session, sql.log_bytes()).ok()?.first().copied()?
    };
    let log_before = log(&mut session);
    let time = Duration::from_secs_f64(context.task.seconds);
    let filling = Arc::new(Filling::new(Arc::clone(&context.table), commit_rows));
    let worker = |client| {
        let filling = Arc::clone(&filling);
        Worker {
            name: format!("client {client}"),
            connector: connector.clone(),
            client,
            work: Box::new(move |session: &mut Connection, _| filling.insert(session, time)),
        }
    };
    let workers = (0..clients).map(worker).collect();
    let (clients, mut outcome) = untimed_workers(context, workers, &filling.done)?;
    let filling = filling.result(clients, outcome.seconds);
    let rows = count(&mut session)?;
    filling.check(rows)?;
    let log_after = log(&mut session);
    if let Some((before, after)) = log_before.zip(log_after).filter(|_| rows > 0) {
        outcome.extra.insert(Metric::LogBytesPerRow, (after - before) / rows as f64);
    }
    load::put_sizes(&sql, &mut session, &mut outcome)?;
    filling.put(&mut outcome, context.data.train.rows() as u64);
    load::settle(&sql, &mut session)?;
    Ok(outcome)
}

/// Creates an empty table with its index, and makes room for the graph of all rows.
fn prepare(sql: &Sql, session: &mut Connection, index: &Index, rows: u64) -> Result<(), String> {
    load::create(sql, session)?;
    load::allow(sql, session, load::memory_bytes(sql, index, rows));
    run(session, &sql.create_index(index))
}

/// Shared by the clients.
struct Filling {
    table: Arc<TableContext>,
    commit_rows: usize,
    /// The first row not taken by a client.
    next: AtomicUsize,
    done: Arc<AtomicU64>,
    over: AtomicBool,
    /// The server's refusal of further rows.
    refusal: Mutex<Option<String>>,
}

/// Counts of one client.
struct Inserter {
    recorder: Recorder,
    retries: BTreeMap<String, u64>,
    /// Its share of a CPU.
    used: f64,
}

/// The sum over all clients.
struct Filled {
    seconds: f64,
    rows: u64,
    refusal: Option<String>,
    workers: Vec<Inserter>,
}

impl Filling {
    fn new(table: Arc<TableContext>, commit_rows: usize) -> Filling {
        Filling {
            table,
            commit_rows,
            next: AtomicUsize::new(0),
            done: Arc::default(),
            over: AtomicBool::new(false),
            refusal: Mutex::new(None),
        }
    }

    /// Inserts as one client until the end.
    fn insert(&self, session: &mut Connection, time: Duration) -> Result<Inserter, String> {
        let (start, cpu) = (Instant::now(), tree::thread_cpu_ns());
        let TableContext { sql: Sql { dialect, work, .. }, data } = &*self.table;
        let mut rows = RowMaker::new(data, *dialect, work.variant);
        let mut worker =
            Inserter { recorder: Recorder::new(false), retries: BTreeMap::new(), used: 0.0 };
        let (mut statement, mut committed) = (None, 0);
        while !self.over.load(Ordering::Relaxed) && start.elapsed() < time {
            let first = self.next.fetch_add(self.commit_rows, Ordering::Relaxed);
            let last = (first + self.commit_rows).min(data.train.rows());
            if first >= last {
                break;
            }
            let ids: Vec<u32> = (first as u32..last as u32).collect();
            match self.commit(session, &mut statement, &ids, &mut rows, &mut worker) {
                Ok(nanoseconds) => {
                    committed += 1;
                    worker.recorder.event(nanoseconds, nanoseconds, committed);
                    self.done.fetch_add(ids.len() as u64, Ordering::Relaxed);
                }
                Err(WireError::Server { code, message }) => {
                    self.over.store(true, Ordering::Relaxed);
                    let mut refusal = self.refusal.lock().map_err(|_| "a client failed")?;
                    refusal.get_or_insert(format!("{message} ({code})"));
                }
                Err(error) => {
                    self.over.store(true, Ordering::Relaxed);
                    let rows = self.done.load(Ordering::Relaxed);
                    return Err(format!("failed to insert after {rows} rows: {error}"));
                }
            }
        }
        let spent = start.elapsed().as_nanos().max(1);
        worker.used = (tree::thread_cpu_ns() - cpu) as f64 / spent as f64;
        Ok(worker)
    }

    /// Commits one transaction, and repeats it after conflicts with others. Returns its
    /// nanoseconds.
    fn commit(
        &self,
        session: &mut Connection,
        kept: &mut Option<(usize, Prepared)>,
        ids: &[u32],
        rows: &mut RowMaker<'_>,
        worker: &mut Inserter,
    ) -> Result<u64, WireError> {
        let statement = match *kept {
            Some((count, statement)) if count == ids.len() => statement,
            _ => {
                let (text, types) = self.table.sql.insert(ids.len());
                let statement = session.prepare(&text, &types)?;
                *kept = Some((ids.len(), statement));
                statement
            }
        };
        let vectors = rows.vectors(ids);
        let values = rows.values(ids, &vectors);
        let start = Instant::now();
        while let Err(error) = session.execute(statement, &values) {
            let Some(code) = error.code().filter(|code| self.table.sql.dialect.is_conflict(code))
            else {
                return Err(error);
            };
            *worker.retries.entry(code.to_owned()).or_insert(0) += 1;
        }
        Ok(start.elapsed().as_nanos() as u64)
    }

    fn result(&self, workers: Vec<Inserter>, seconds: f64) -> Filled {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Filled { seconds, rows: self.done.load(Ordering::Relaxed), refusal, workers }
    }
}

impl Filled {
    /// Checks that the committed rows are in the table, and at least one is.
    fn check(&self, found: u64) -> Result<(), String> {
        match &self.refusal {
            Some(why) if self.rows == 0 => Err(format!("failed to insert the first row: {why}")),
            _ if found != self.rows => Err(format!(
                "failed to fill the table: {} committed rows, but {found} in the table",
                self.rows
            )),
            _ => Ok(()),
        }
    }

    fn put(&self, outcome: &mut Outcome, all: u64) {
        let recorders: Vec<&Recorder> = self.workers.iter().map(|it| &it.recorder).collect();
        outcome.latency = histograms(&recorders).0;
        outcome.client_busiest = self.workers.iter().map(|it| it.used).fold(0.0, f64::max);
        outcome.extra.insert(Metric::Capacity, self.rows as f64);
        for (code, count) in self.workers.iter().flat_map(|worker| &worker.retries) {
            *outcome.errors.entry(code.clone()).or_insert(0) += count;
        }
        let seconds = self.seconds;
        let ended = match &self.refusal {
            Some(why) => format!("the server refused more rows: {why}"),
            None if self.rows == all => {
                outcome.notes.push(format!(
                    "the table took all {all} rows of the set in {seconds:.1} s; use more rows \
                     to find its limit"
                ));
                "all rows of the set inserted".to_owned()
            }
            None => "time limit reached".to_owned(),
        };
        let words = format!("{} rows in {seconds:.1} s; {ended}", self.rows);
        outcome.facts.insert("capacity".to_owned(), words);
    }
}

// Deletes rows, and cleans the table afterwards.

/// Deletes until `percent` of all rows are gone: always the same rows, and each share includes the
/// smaller ones.
pub(super) fn delete<W: Write>(
    context: &mut VectorContext<'_, W>,
    percent: f64,
) -> Result<Outcome, Stop> {
    let connector = context.connector.clone();
    let (_, outcome) =
        untimed(context, &connector, "the deletion", move |session, table, done| {
            let data = &table.data;
            let statement = format!("DELETE FROM {TABLE} WHERE fate < {}", parts(percent));
            let reply = session.simple(&statement);
            let reply = reply.map_err(|error| format!("failed to run {statement}: {error}"))?;
            done.store(reply.affected, Ordering::Relaxed);
            let present = Present::Kept { deleted: percent };
            let rows = 0..data.train.rows() as u32;
            let expected = rows.filter(|id| data.is_present(*id, present)).count() as u64;
            match count(session)? {
                left if left == expected => Ok(()),
                left => Err(format!(
                    "failed to delete {percent} % of the rows: {left} rows remain instead of \
                     {expected}"
                )),
            }
        })?;
    Ok(outcome)
}

/// Runs VACUUM or OPTIMIZE.
pub(super) fn clean<W: Write>(context: &mut VectorContext<'_, W>) -> Result<Outcome, Stop> {
    let (statement, connector) = (context.sql().clean(), context.connector.clone());
    let (_, mut outcome) =
        untimed(context, &connector, "the cleaning", move |session, _, done| {
            let cleaned = session.rows(&statement);
            cleaned.map_err(|error| format!("failed to run {statement}: {error}"))?;
            done.store(1, Ordering::Relaxed);
            Ok(())
        })?;
    outcome.extra.insert(Metric::CleanSeconds, outcome.seconds);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(rows: u64, refusal: Option<&str>) -> Filled {
        Filled { seconds: 2.0, rows, refusal: refusal.map(str::to_owned), workers: Vec::new() }
    }

    #[test]
    fn it_is_told_how_the_filling_ended() {
        let check = |filled: Filled, words: &str, notes: usize| {
            let mut outcome = Outcome::default();
            filled.put(&mut outcome, 500);
            assert_eq!(outcome.facts["capacity"], words);
            assert_eq!(outcome.notes.len(), notes);
            assert_eq!(outcome.extra[&Metric::Capacity], filled.rows as f64);
        };
        check(filled(500, None), "500 rows in 2.0 s; all rows of the set inserted", 1);
        check(filled(499, None), "499 rows in 2.0 s; time limit reached", 0);
        let full = filled(20, Some("the table is full (1114)"));
        check(full, "20 rows in 2.0 s; the server refused more rows: the table is full (1114)", 0);
    }

    #[test]
    fn rows_that_are_lost_or_never_came_are_no_capacity() {
        assert!(filled(20, None).check(20).is_ok());
        assert!(filled(20, None).check(19).unwrap_err().contains("20 committed rows, but 19"));
        assert!(filled(0, Some("disk full")).check(0).unwrap_err().contains("disk full"));
        assert!(filled(7, Some("disk full")).check(7).is_ok());
    }
}
