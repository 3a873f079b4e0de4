//! Measures how many rows an indexed table accepts, and how fast: each INSERT maintains the index.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::search::{self, Beside, count, put_score};
use super::searcher::{self, AnswerLog, SLACK, seconds};
use super::sql::{Sql, TABLE};
use super::{self as driver, RowMaker};
use crate::data::truth::Truth;
use crate::data::{VectorSet, parts};
use crate::driver::{TableContext, VectorContext, Worker, numbers, run, untimed, untimed_workers};
use rqps_driver::Stop;
use rqps_driver::client::Counts;
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_driver::recorder::{Recorder, histograms};
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerSpec};
use rqps_host::tree;
use rqps_model::metric::Metric;
use rqps_model::run::{Outcome, Role};
use rqps_model::vector::{Index, Present, Search};
use rqps_wire::{Prepared, Value, WireError};

/// Creates an empty table with `index`, then inserts on `clients` connections with `commit_rows`
/// rows per transaction, until the server refuses rows, all are in, or the time is over.
pub(super) fn fill(
    context: &mut VectorContext,
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
    driver::put_sizes(&sql, &mut session, &mut outcome)?;
    filling.put(&mut outcome, context.data.train.rows() as u64);
    driver::settle(&sql, &mut session)?;
    Ok(outcome)
}

/// Creates an empty table with its index, and makes room for the graph of all rows.
fn prepare(sql: &Sql, session: &mut Connection, index: &Index, rows: u64) -> Result<(), String> {
    driver::create(sql, session)?;
    driver::allow(sql, session, driver::memory_bytes(sql, index, rows));
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
pub(super) fn delete(context: &mut VectorContext, percent: f64) -> Result<Outcome, Stop> {
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
pub(super) fn clean(context: &mut VectorContext) -> Result<Outcome, Stop> {
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

// Measures queries while another client inserts rows at a fixed rate; recall refers to the rows
// that existed at the time.

/// Most answers per client for recall: the first ones.
const KEPT: usize = 20_000;
/// Longest wait for the clients' logs after the window.
const HAND_OVER: Duration = Duration::from_secs(5);
/// Longest sleep of the writer before it checks whether the step is over, nanoseconds.
const NAP_NS: u64 = 50_000_000;

/// An inserted row: id, start of the transaction, and commit.
struct Inserted {
    id: u32,
    committed: u64,
}

struct Writer {
    inserted: Vec<Inserted>,
    recorder: Recorder,
    retries: u64,
    cpu_ns: u64,
    spent_ns: u64,
    log_bytes: Option<f64>,
    exhausted: bool,
    /// Start and end of the measured window.
    window: Option<(u64, u64)>,
}

/// Measures the queries of `search` while `rate` rows per second are inserted.
pub(super) fn mixed(
    context: &mut VectorContext,
    rate: f64,
    search: &Search,
) -> Result<Outcome, Stop> {
    let ready = search::Ready::new(context, search)?;
    let clock = Clock::real();
    let (sender, logs) = channel();
    let (hand_over, written) = channel();
    let writer = member(context, (rate, search.rows), clock.clone(), hand_over);
    let log = Some((clock.clone(), KEPT, sender));
    let beside = Beside { clock: clock.clone(), writer: Some(writer), log };
    let mut outcome = ready.window_beside(context, search, beside)?;
    let now = clock.now();
    let mut all = Vec::new();
    for _ in 0..search.clients {
        all.extend(logs.recv_timeout(HAND_OVER).ok());
    }
    let writer: Writer = written
        .recv_timeout(HAND_OVER)
        .map_err(|_| "failed to measure: the writer hangs".to_owned())?;
    let length = (outcome.seconds * 1e9) as u64;
    let (start, end) = writer.window.unwrap_or((now.saturating_sub(length), now));
    judge(&mut outcome, context, &ready.truth, &writer, &all, start);
    put_writer(&mut outcome, &writer, rate, (start, end));
    Ok(outcome)
}

/// The writer as a background thread. It begins with the warm-up of the queries.
fn member(
    context: &VectorContext,
    (rate, present): (f64, Present),
    clock: Clock,
    hand_over: Sender<Writer>,
) -> WorkerSpec<Counts> {
    let (connector, table) = (context.connector.clone(), Arc::clone(&context.table));
    let main = move |handle: &WorkerHandle<Counts>| {
        let mut session = connector.open(u32::MAX)?;
        handle.ready(Ready::default());
        if handle.order().is_none() {
            return Ok(());
        }
        let rows = Rows { data: &table.data, present, rate };
        let maker = RowMaker::new(rows.data, table.sql.dialect, table.sql.work.variant);
        let mut writer =
            write(&table.sql, &mut session, maker, &rows, &clock, &|| handle.is_over())?;
        writer.window = handle.window().map(|window| (window.start, window.end));
        // Without a receiver the step has already failed.
        let _ = hand_over.send(writer);
        handle.done(Counts::default(), Spent::default());
        Ok(())
    };
    let name = "the writer".to_owned();
    WorkerSpec::new(name, main).in_background()
}

struct Rows<'a> {
    data: &'a VectorSet,
    present: Present,
    rate: f64,
}

/// Inserts the missing rows by number on a fixed schedule.
fn write(
    sql: &Sql,
    session: &mut Connection,
    mut maker: RowMaker<'_>,
    rows: &Rows<'_>,
    clock: &Clock,
    is_over: &dyn Fn() -> bool,
) -> Result<Writer, String> {
    let (text, types) = sql.insert(1);
    let fault = |error: WireError| format!("failed to insert a row: {error}");
    let statement = session.prepare(&text, &types).map_err(fault)?;
    let log_before = numbers(session, sql.log_bytes()).ok().and_then(|row| row.first().copied()?);
    let mut writer = Writer {
        inserted: Vec::new(),
        recorder: Recorder::new(true),
        retries: 0,
        cpu_ns: tree::thread_cpu_ns(),
        spent_ns: clock.now(),
        log_bytes: None,
        exhausted: true,
        window: None,
    };
    let absent =
        (0..rows.data.train.rows() as u32).filter(|id| !rows.data.is_present(*id, rows.present));
    let (mut vector, start) = (Vec::new(), clock.now());
    for (number, id) in absent.enumerate() {
        let due = start + (number as f64 / rows.rate * 1e9) as u64;
        // Short naps, so that it notices the end.
        while clock.now() < due && !is_over() {
            clock.wait_until(due.min(clock.now() + NAP_NS));
        }
        if is_over() {
            writer.exhausted = false;
            break;
        }
        vector.clear();
        maker.vector(id, &mut vector);
        let [row, class, u, fate] = maker.attributes(id).map(Value::Int);
        let values = [row, class, u, fate, Value::Bytes(&vector)];
        let begun = clock.now();
        while let Err(error) = session.execute(statement, &values) {
            if !error.code().is_some_and(|code| sql.dialect.is_conflict(code)) {
                return Err(fault(error));
            }
            writer.retries += 1;
        }
        let committed = clock.now();
        writer.inserted.push(Inserted { id, committed });
        writer.recorder.event(committed - due, committed - begun, writer.inserted.len() as u64);
    }
    writer.cpu_ns = tree::thread_cpu_ns() - writer.cpu_ns;
    writer.spent_ns = clock.now() - writer.spent_ns;
    let log_after = numbers(session, sql.log_bytes()).ok().and_then(|row| row.first().copied()?);
    writer.log_bytes = log_before.zip(log_after).map(|(before, after)| after - before);
    Ok(writer)
}

/// Recall of each kept answer in the window: by the rows committed before its query began (so that
/// no correct answer loses), and by those committed before it ended.
fn judge(
    outcome: &mut Outcome,
    context: &VectorContext,
    truth: &Truth,
    writer: &Writer,
    logs: &[AnswerLog],
    from: u64,
) {
    let data = &context.data;
    let k = truth.k;
    let near = Near::new(data, writer);
    let mut judged = searcher::Score::default();
    let (mut sum, mut low, mut by_id, mut returned, mut squares) = (0.0, 0.0, 0usize, 0usize, 0.0);
    for log in logs {
        for ((query, start, end), ids) in log.asked.iter().zip(log.ids.chunks(k)) {
            if *start < from {
                continue;
            }
            let query = *query as usize;
            let distances: Vec<f64> = ids
                .iter()
                .filter(|id| **id != u32::MAX && (**id as usize) < data.train.rows())
                .map(|id| near.distance(data, query, *id))
                .collect();
            let hits = |limit: f64| {
                distances.iter().filter(|distance| **distance <= limit + SLACK).count() as f64
                    / k as f64
            };
            let recall = hits(near.threshold(truth, query, *start));
            sum += recall;
            squares += recall * recall;
            low += hits(near.threshold(truth, query, *end));
            by_id += ids.iter().filter(|id| near.is_true(truth, query, **id, *start)).count();
            returned += distances.len();
            judged.queries += 1;
        }
    }
    let count = judged.queries.max(1) as f64;
    judged.recall = sum / count;
    judged.deviation = (squares / count - judged.recall * judged.recall).max(0.0).sqrt();
    judged.recall_ids = by_id as f64 / (count * k as f64);
    judged.rows_per_k = returned as f64 / (count * k as f64);
    put_score(outcome, &judged);
    outcome.extra.insert(Metric::RecallLow, low / count);
}

/// Distances of inserted rows from each query.
struct Near<'a> {
    inserted: &'a [Inserted],
    /// Distances, queries × inserted rows.
    distances: Vec<f64>,
}

impl<'a> Near<'a> {
    fn new(data: &VectorSet, writer: &'a Writer) -> Near<'a> {
        let (mut query, mut row) = (vec![0.0; data.train.dims], vec![0.0; data.train.dims]);
        let mut distances = Vec::with_capacity(data.test.rows() * writer.inserted.len());
        for index in 0..data.test.rows() {
            data.test.copy_row(index, &mut query);
            for inserted in &writer.inserted {
                data.train.copy_row(inserted.id as usize, &mut row);
                distances.push(data.distance.between(&query, &row));
            }
        }
        Near { inserted: &writer.inserted, distances }
    }

    /// Rows committed before `time` as (distance, id), if they are near enough to matter.
    fn before(&self, query: usize, time: u64) -> impl Iterator<Item = (f64, u32)> {
        let count = self.inserted.partition_point(|row| row.committed < time);
        let distances = &self.distances[query * self.inserted.len()..][..count];
        distances.iter().copied().zip(self.inserted.iter().map(|row| row.id))
    }

    /// The distance of the true k-th neighbour at `time`.
    fn threshold(&self, truth: &Truth, query: usize, time: u64) -> f64 {
        let mut all = truth.distances[query * truth.k..][..truth.k].to_vec();
        let limit = truth.threshold(query);
        all.extend(self.before(query, time).map(|(far, _)| far).filter(|far| *far < limit));
        all.sort_by(f64::total_cmp);
        all[truth.k - 1]
    }

    fn is_true(&self, truth: &Truth, query: usize, id: u32, time: u64) -> bool {
        let limit = self.threshold(truth, query, time);
        let place = truth.ids_of(query).iter().position(|other| *other == id);
        match place {
            Some(place) => truth.distances[query * truth.k + place] <= limit,
            None => self.before(query, time).any(|(far, other)| other == id && far <= limit),
        }
    }

    fn distance(&self, data: &VectorSet, query: usize, id: u32) -> f64 {
        let (mut a, mut b) = (vec![0.0; data.train.dims], vec![0.0; data.train.dims]);
        data.test.copy_row(query, &mut a);
        data.train.copy_row(id as usize, &mut b);
        data.distance.between(&a, &b)
    }
}

fn put_writer(outcome: &mut Outcome, writer: &Writer, rate: f64, (start, end): (u64, u64)) {
    let within = writer.inserted.iter().filter(|row| (start..=end).contains(&row.committed));
    let rows = within.count() as u64;
    let (latency, service) = histograms(&[&writer.recorder]);
    let used = writer.cpu_ns as f64 / writer.spent_ns.max(1) as f64;
    let cpu = rqps_model::run::CpuTime { user_us: writer.cpu_ns as f64 / 1e3, system_us: 0.0 };
    let role = Role {
        workers: 1,
        operations: rows,
        rows,
        target_per_second: Some(rate),
        latency,
        service,
        cpu,
        busiest: used,
        seconds: None,
    };
    outcome.roles.insert("inserts".to_owned(), role);
    if let Some(bytes) = writer.log_bytes.filter(|_| !writer.inserted.is_empty()) {
        outcome.extra.insert(Metric::LogBytesPerRow, bytes / writer.inserted.len() as f64);
    }
    if writer.retries > 0 {
        *outcome.errors.entry("insert retried".to_owned()).or_insert(0) += writer.retries;
    }
    let achieved = rows as f64 / seconds(end.saturating_sub(start)).max(1e-9);
    outcome.facts.insert("inserted".to_owned(), format!("{achieved:.1} rows/s of {rate}"));
    if writer.exhausted {
        outcome.notes.push(
            "the writer inserted all reserved rows before the window ended; use a lower \
             insert_rate, a shorter window or more rows"
                .to_owned(),
        );
    } else if achieved < 0.99 * rate {
        outcome.notes.push(format!(
            "the server inserted {achieved:.1} rows/s instead of the requested {rate}: it cannot \
             do more during these queries"
        ));
    }
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

#[cfg(test)]
mod mixed_tests {
    use super::*;
    use crate::data::Matrix;
    use crate::data::truth::exact;
    use rqps_model::vector::Distance;

    #[test]
    fn thresholds_follow_what_was_committed() {
        // Rows at 0, 4, 8 exist; 1 and 2 are committed at times 10 and 20. Queried from 0 for the
        // two nearest.
        let train = Matrix::of_floats(1, vec![0.0, 4.0, 8.0, 1.0, 2.0]);
        let test = Matrix::of_floats(1, vec![0.0]);
        let data = VectorSet::new("line".to_owned(), train, test, Distance::Euclidean);
        let there = [0, 1, 2];
        let truth = exact(&data.train, &data.test, data.distance, Some(&there), 2, 1);
        let row = |id, committed| Inserted { id, committed };
        let writer = Writer {
            inserted: vec![row(3, 10), row(4, 20)],
            recorder: Recorder::new(true),
            retries: 0,
            cpu_ns: 0,
            spent_ns: 1,
            log_bytes: None,
            exhausted: false,
            window: None,
        };
        let near = Near::new(&data, &writer);
        for (time, threshold) in [(5, 4.0), (10, 4.0), (11, 1.0), (30, 1.0)] {
            assert_eq!(near.threshold(&truth, 0, time), threshold, "{time}");
        }
        assert!(near.is_true(&truth, 0, 1, 5) && !near.is_true(&truth, 0, 1, 15));
        assert!(!near.is_true(&truth, 0, 3, 5) && near.is_true(&truth, 0, 3, 15));
        assert!(!near.is_true(&truth, 0, 4, 30), "two is farther than one");
    }
}
