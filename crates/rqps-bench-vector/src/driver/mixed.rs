//! Measures queries while another client inserts rows at a fixed rate; recall refers to the rows
//! that existed at the time.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use super::load::RowMaker;
use super::search::{Beside, Ready as Prepared, put_score};
use super::searcher::{self, AnswerLog, SLACK, seconds};
use super::sql::Sql;
use crate::data::VectorSet;
use crate::data::truth::Truth;
use crate::driver::{VectorContext, numbers};
use rqps_driver::Stop;
use rqps_driver::client::Counts;
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_driver::recorder::{Recorder, histograms};
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerSpec};
use rqps_host::clock::RealClock;
use rqps_host::tree;
use rqps_model::metric::Metric;
use rqps_model::run::{Outcome, Role};
use rqps_model::vector::{Present, Search};
use rqps_wire::{Value, WireError};

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
pub(super) fn mixed<W: Write>(
    context: &mut VectorContext<'_, W>,
    rate: f64,
    search: &Search,
) -> Result<Outcome, Stop> {
    let ready = Prepared::new(context, search)?;
    let begun = Instant::now();
    let clock = Clock::Real(RealClock::starting_at(begun));
    let (sender, logs) = channel();
    let (hand_over, written) = channel();
    let writer = member(context, (rate, search.rows), clock.clone(), hand_over);
    let log = Some((clock.clone(), KEPT, sender));
    let beside = Beside { begun, writer: Some(writer), log };
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
fn member<W: Write>(
    context: &VectorContext<'_, W>,
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
fn judge<W>(
    outcome: &mut Outcome,
    context: &VectorContext<'_, W>,
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
    use crate::data::dataset::Matrix;
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
