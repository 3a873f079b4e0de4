//! Checks the isolation of transactions through the index: one session inserts, moves and deletes a
//! row and rolls back, another queries its place, and each answer is compared with the rules of the
//! isolation level.
//!
//! One thread drives both sessions in a fixed order, so the rows that each may see are known at all
//! times. The row lies at a query, nearer than all others, so an index that shows it returns it
//! among the first.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::load;
use super::search::{Ready, count, put_score};
use super::searcher::{Encoding, SLACK, score};
use super::sql::{Sql, TABLE};
use super::visibility::{Action, Model, Probe, SEEN_BY_OTHERS, Side, TAKEN_BACK, Tally, put};
use crate::data::VectorSet;
use crate::data::truth::Truth;
use crate::driver::{VectorContext, run, untimed};
use rqps_driver::Stop;
use rqps_driver::connection::Connection;
use rqps_model::dialect::Dialect;
use rqps_model::run::Outcome;
use rqps_model::vector::{IsolationLevel, Search};
use rqps_wire::{Prepared, Value, WireError};

/// A second place must be farther from a query than its k-th neighbour by this factor, so that a
/// search that misses neighbours does not find it.
const FAR: f64 = 1.5;

/// Smallest reported loss of recall after written rows were removed: the graph then has other links
/// than before.
const LOST: f64 = 0.02;

/// Measures one isolation level.
pub(super) fn isolate<W: Write>(
    context: &mut VectorContext<'_, W>,
    level: IsolationLevel,
    search: &Search,
) -> Result<Outcome, Stop> {
    let ready = Arc::new(Ready::new(context, search)?);
    let answers = ready.ask_all(context, search)?;
    let before = score(&context.data, &ready.truth, &answers);
    let connector = ready.asking.connector.also(settings(context.request.dialect, level));
    let variant = context.work().variant;
    let shift = load::shift(&context.data, variant);
    let form = Encoding::of_row(context.request.dialect, variant);
    let deadline = Duration::from_secs_f64(context.task.seconds);
    let (also, plan) = (connector.clone(), Arc::clone(&ready));
    let transactions = "the transactions";
    let (mut tally, mut outcome) =
        untimed(context, &connector, transactions, move |session, table, done| {
            let (sql, data) = (&table.sql, &*table.data);
            let reader = also.open(1)?;
            let mut pair = Pair::new(sql, &plan, [reader, also.open(2)?], data)?;
            let vectors = Vectors { data, shift: shift.as_deref(), form };
            let tally = pair.cycles(level, &vectors, deadline, done)?;
            let (rows, left) = (data.train.rows() as u64, count(session)?);
            if left != rows {
                return Err(format!("failed to clean up: {left} rows instead of {rows}"));
            }
            Ok(tally)
        })?;
    let answers = ready.ask_all(context, search)?;
    if let Some(id) =
        answers.iter().find(|id| **id != u32::MAX && **id as usize >= context.data.train.rows())
    {
        tally.violation(format!("at the end: a query returned row {id}, which does not exist"));
    }
    let after = score(&context.data, &ready.truth, &answers);
    ready.tell(&mut outcome);
    put_score(&mut outcome, &after);
    outcome.facts.insert("recall before".to_owned(), format!("{:.4}", before.recall));
    if before.recall - after.recall > LOST {
        outcome.notes.push(format!(
            "the table has the same rows as before, but recall fell from {:.4} to {:.4}: effects \
             of transactions remain in the index or its cache",
            before.recall, after.recall
        ));
    }
    put(&mut outcome, tally)?;
    Ok(outcome)
}

/// Settings of both sessions. Nobody waits for a lock, because the same thread would have to
/// release it.
fn settings(dialect: Dialect, level: IsolationLevel) -> Vec<String> {
    let words = level.name().replace('-', " ").to_uppercase();
    match dialect {
        Dialect::Mysql => vec![
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {words}"),
            "SET SESSION innodb_lock_wait_timeout = 0".to_owned(),
        ],
        _ => vec![
            format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {words}"),
            "SET lock_timeout = '10ms'".to_owned(),
        ],
    }
}

/// The vectors of queries, as rows.
struct Vectors<'a> {
    data: &'a VectorSet,
    shift: Option<&'a [f32]>,
    form: Encoding,
}

impl Vectors<'_> {
    /// As numbers, in the form stored in the table.
    fn numbers(&self, query: usize) -> Vec<f32> {
        let mut values = vec![0.0; self.data.test.dims];
        self.data.test.copy_row(query, &mut values);
        if let Some(shift) = self.shift {
            values.iter_mut().zip(shift).for_each(|(value, shift)| *value += shift);
        }
        values
    }

    fn bytes(&self, query: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.form.push(&self.numbers(query), &mut bytes);
        bytes
    }

    fn apart(&self, a: usize, b: usize) -> f64 {
        let (mut x, mut y) = (vec![0.0; self.data.test.dims], vec![0.0; self.data.test.dims]);
        self.data.test.copy_row(a, &mut x);
        self.data.test.copy_row(b, &mut y);
        self.data.distance.between(&x, &y)
    }
}

/// The next query after `query` that is far from it. `None` if `query` is unsuitable for a probe:
/// its k-th neighbour must be farther than the row.
fn second_place(query: usize, truth: &Truth, apart: impl Fn(usize, usize) -> f64) -> Option<usize> {
    let queries = truth.ids.len() / truth.k;
    let fit = |query: usize| truth.threshold(query) > 2.0 * SLACK;
    let far = |other: &usize| {
        let reach = truth.threshold(query).max(truth.threshold(*other));
        fit(*other) && apart(query, *other) > FAR * reach
    };
    (1..queries).map(|step| (query + step) % queries).find(far).filter(|_| fit(query))
}

/// A session with its prepared statements.
struct Asker {
    session: Connection,
    ask: Prepared,
}

struct Pair<'a> {
    sql: &'a Sql,
    ready: &'a Ready,
    reader: Asker,
    writer: Asker,
    insert: Prepared,
    update: Prepared,
    /// The id of the row that comes and goes.
    row: u32,
    ids: Vec<u32>,
}

/// The reason for ending a cycle early.
enum Broken {
    /// The server refused a statement; the next cycle begins.
    Refused(String),
    /// A fault that ends the step.
    Fault(String),
}

impl<'a> Pair<'a> {
    fn new(
        sql: &'a Sql,
        ready: &'a Ready,
        sessions: [Connection; 2],
        data: &VectorSet,
    ) -> Result<Pair<'a>, String> {
        let [mut reader, mut writer] = sessions;
        let fault = |error: WireError| format!("failed to prepare: {error}");
        let (text, types) = sql.insert(1);
        let insert = writer.prepare(&text, &types).map_err(fault)?;
        let (text, types) = sql.update();
        let update = writer.prepare(&text, &types).map_err(fault)?;
        let [of_reader, of_writer] =
            [ready.asking.prepare(&mut reader)?, ready.asking.prepare(&mut writer)?];
        Ok(Pair {
            sql,
            ready,
            reader: Asker { session: reader, ask: of_reader },
            writer: Asker { session: writer, ask: of_writer },
            insert,
            update,
            row: data.train.rows() as u32,
            ids: Vec::new(),
        })
    }

    /// Runs cycles over the queries until the time is over. Each query is used once, because a
    /// deleted row stays in the index for a while.
    fn cycles(
        &mut self,
        level: IsolationLevel,
        vectors: &Vectors<'_>,
        time: Duration,
        done: &AtomicU64,
    ) -> Result<Tally, String> {
        let (mut tally, start) = (Tally::default(), Instant::now());
        for query in 0..self.ready.asking.queries.len() {
            if start.elapsed() >= time {
                break;
            }
            let apart = |a, b| vectors.apart(a, b);
            let Some(other) = second_place(query, &self.ready.truth, apart) else {
                tally.unfit += 1;
                continue;
            };
            for deeds in [SEEN_BY_OTHERS, TAKEN_BACK] {
                match self.cycle(deeds, level, [query, other], vectors, &mut tally) {
                    Ok(()) => {}
                    Err(Broken::Fault(fault)) => return Err(fault),
                    Err(Broken::Refused(code)) => {
                        *tally.refused.entry(code).or_insert(0) += 1;
                        self.clean_up()?;
                    }
                }
                tally.cycles += 1;
            }
            done.store(tally.probes, Ordering::Relaxed);
        }
        Ok(tally)
    }

    fn cycle(
        &mut self,
        deeds: &[Action],
        level: IsolationLevel,
        queries: [usize; 2],
        vectors: &Vectors<'_>,
        tally: &mut Tally,
    ) -> Result<(), Broken> {
        let mut model = Model::new(level, self.sql.dialect);
        let places = queries.map(|query| vectors.bytes(query));
        let near = vectors.apart(queries[0], queries[1]) / 2.0;
        let scans = queries.map(|query| self.sql.shows(self.row, &vectors.numbers(query), near));
        for (number, deed) in deeds.iter().enumerate() {
            self.carry_out(*deed, queries, &places)?;
            model.follow(*deed);
            let Action::Ask(side, place) = *deed else { continue };
            let probe = Probe {
                rows: self.row as usize,
                row: self.row,
                side,
                place,
                visible: model.visible(side),
                after: &deeds[..number],
            };
            let session = match side {
                Side::Reader => &mut self.reader.session,
                Side::Writer => &mut self.writer.session,
            };
            let mut shows = || {
                let rows = session.rows(&scans[place]);
                let rows = rows.map_err(|error| format!("failed to look for the row: {error}"))?;
                Ok(!rows.is_empty())
            };
            tally.judge(&probe, &self.ids, &mut shows).map_err(Broken::Fault)?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        deed: Action,
        queries: [usize; 2],
        places: &[Vec<u8>; 2],
    ) -> Result<(), Broken> {
        let (id, zero) = (Value::Int(i64::from(self.row)), Value::Int(0));
        let delete = self.delete();
        let (reader, writer) = (&mut self.reader, &mut self.writer);
        let result = match deed {
            Action::Begin(Side::Writer) => writer.session.simple("BEGIN"),
            Action::Commit(Side::Writer) => writer.session.simple("COMMIT"),
            Action::Begin(Side::Reader) => reader.session.simple("BEGIN"),
            Action::Commit(Side::Reader) => reader.session.simple("COMMIT"),
            Action::Rollback => writer.session.simple("ROLLBACK"),
            Action::Savepoint => writer.session.simple("SAVEPOINT here"),
            Action::RollbackToSavepoint => writer.session.simple("ROLLBACK TO SAVEPOINT here"),
            Action::Insert => {
                let values = [id, zero, zero, zero, Value::Bytes(&places[0])];
                writer.session.execute(self.insert, &values)
            }
            Action::Move => writer.session.execute(self.update, &[Value::Bytes(&places[1]), id]),
            Action::Delete => writer.session.simple(&delete),
            Action::Ask(side, place) => {
                let asker = if side == Side::Reader { reader } else { writer };
                let (encoded, query) = (&self.ready.asking.queries, queries[place]);
                encoded.ask(query, asker.ask, &mut asker.session, &mut self.ids)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(WireError::Server { code, .. }) if self.is_refusal(&code) => {
                Err(Broken::Refused(code))
            }
            Err(error) => Err(Broken::Fault(format!("failed to {deed:?}: {error}"))),
        }
    }

    /// True for a code with which a server isolates transactions by refusing one.
    fn is_refusal(&self, code: &str) -> bool {
        // Lock not available: Postgres gives up after `lock_timeout`.
        self.sql.dialect.is_conflict(code) || code == "55P03"
    }

    fn delete(&self) -> String {
        format!("DELETE FROM {TABLE} WHERE id = {}", self.row)
    }

    /// Ends both transactions after a refusal and deletes the row.
    fn clean_up(&mut self) -> Result<(), String> {
        run(&mut self.reader.session, "ROLLBACK")?;
        run(&mut self.writer.session, "ROLLBACK")?;
        let delete = self.delete();
        run(&mut self.writer.session, &delete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_place_is_far_from_the_first() {
        let truth = Truth { k: 1, ids: vec![0; 4], distances: vec![1.0, 1.0, 0.0, 1.0] };
        let line: [f64; 4] = [0.0, 1.2, 9.0, 5.0];
        let apart = |a: usize, b: usize| (line[a] - line[b]).abs();
        assert_eq!(second_place(0, &truth, apart), Some(3), "1 is near, and 2 is unfit");
        assert_eq!(second_place(2, &truth, apart), None);
        assert_eq!(second_place(3, &truth, apart), Some(0));
    }
}
