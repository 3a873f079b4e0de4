//! Checks the isolation of transactions through the index: one session inserts, moves and deletes a
//! row and rolls back, another queries its place, and each answer is compared with the rules of the
//! isolation level.
//!
//! One thread drives both sessions in a fixed order, so the rows that each may see are known at all
//! times. The row lies at a query, nearer than all others, so an index that shows it returns it
//! among the first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::search::{Ready, count, put_score};
use super::searcher::{Encoding, SLACK, score};
use super::sql::{Sql, TABLE};
use crate::data::VectorSet;
use crate::data::truth::Truth;
use crate::driver::{VectorContext, run, shift, untimed};
use rqps_driver::Stop;
use rqps_driver::connection::Connection;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
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
pub(super) fn isolate(
    context: &mut VectorContext,
    level: IsolationLevel,
    search: &Search,
) -> Result<Outcome, Stop> {
    let ready = Arc::new(Ready::new(context, search)?);
    let answers = ready.ask_all(context, search)?;
    let before = score(&context.data, &ready.truth, &answers);
    let connector = ready.asking.connector.also(settings(context.request.dialect, level));
    let variant = context.work().variant;
    let shift = shift(&context.data, variant);
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

// The rules of visibility: which of two transactions may see a row that one of them writes, and
// the tally of observations. Pure; `isolation.rs` runs the statements.

/// Most violations described in words.
const DESCRIBED: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Reader,
    Writer,
}

/// The place of the row: at the first or the second query.
pub(super) type RowIndex = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Begin(Side),
    Commit(Side),
    Rollback,
    Savepoint,
    RollbackToSavepoint,
    Insert,
    Move,
    Delete,
    Ask(Side, RowIndex),
}

/// For each query: the reader queries before, during and after the writer's transaction, and after
/// its own. At the end the row is deleted.
pub(super) const SEEN_BY_OTHERS: &[Action] = {
    use Action::{Ask, Begin, Commit, Delete, Insert, Move};
    use Side::{Reader, Writer};
    &[
        Begin(Reader),
        Ask(Reader, 0),
        Begin(Writer),
        Insert,
        Ask(Writer, 0),
        Ask(Reader, 0),
        Commit(Writer),
        Ask(Reader, 0),
        Commit(Reader),
        Ask(Reader, 0),
        // The row moves from the first place to the second.
        Begin(Reader),
        Ask(Reader, 0),
        Begin(Writer),
        Move,
        Ask(Writer, 0),
        Ask(Writer, 1),
        Ask(Reader, 0),
        Ask(Reader, 1),
        Commit(Writer),
        Ask(Reader, 0),
        Ask(Reader, 1),
        Commit(Reader),
        Ask(Reader, 0),
        Ask(Reader, 1),
        Begin(Reader),
        Ask(Reader, 1),
        Begin(Writer),
        Delete,
        Ask(Writer, 1),
        Ask(Reader, 1),
        Commit(Writer),
        Ask(Reader, 1),
        Commit(Reader),
        Ask(Reader, 1),
    ]
};

/// A rollback leaves nothing behind.
pub(super) const TAKEN_BACK: &[Action] = {
    use Action::{Ask, Begin, Commit, Insert, Rollback, RollbackToSavepoint, Savepoint};
    use Side::{Reader, Writer};
    &[
        Begin(Writer),
        Insert,
        Ask(Writer, 0),
        Rollback,
        Ask(Writer, 0),
        Begin(Writer),
        Savepoint,
        Insert,
        Ask(Writer, 0),
        RollbackToSavepoint,
        Ask(Writer, 0),
        Commit(Writer),
        Ask(Reader, 0),
    ]
};

/// The places where each side must see the row.
#[derive(Clone, Debug)]
pub(super) struct Model {
    level: IsolationLevel,
    /// READ UNCOMMITTED shows uncommitted rows; Postgres treats it as READ COMMITTED.
    may_be_dirty: bool,
    committed: Option<RowIndex>,
    /// The state inside the writer's transaction.
    pending: Option<Option<RowIndex>>,
    /// The state inside a reader's transaction with a snapshot.
    snapshot: Option<Option<RowIndex>>,
}

/// The states that one side may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// The row at this place, or no row.
    Just(Option<RowIndex>),
    /// Two states are allowed.
    Open,
}

impl Model {
    pub(super) fn new(level: IsolationLevel, dialect: Dialect) -> Model {
        let may_be_dirty = level == IsolationLevel::ReadUncommitted && dialect == Dialect::Mysql;
        Model { level, may_be_dirty, committed: None, pending: None, snapshot: None }
    }

    pub(super) fn follow(&mut self, deed: Action) {
        match deed {
            Action::Begin(Side::Writer) => self.pending = Some(self.committed),
            // The next query fixes the snapshot; nothing happens in between.
            Action::Begin(Side::Reader) => {
                self.snapshot = self.level.keeps_snapshot().then_some(self.committed);
            }
            Action::Commit(Side::Reader) => self.snapshot = None,
            Action::Commit(Side::Writer) => {
                if let Some(pending) = self.pending.take() {
                    self.committed = pending;
                }
            }
            Action::Rollback => self.pending = None,
            Action::RollbackToSavepoint => self.pending = Some(self.committed),
            Action::Insert => self.pending = Some(Some(0)),
            Action::Move => self.pending = Some(Some(1)),
            Action::Delete => self.pending = Some(None),
            Action::Savepoint | Action::Ask(..) => {}
        }
    }

    pub(super) fn visible(&self, side: Side) -> Visible {
        match (side, self.pending, self.snapshot) {
            (Side::Writer, Some(pending), _) => Visible::Just(pending),
            (Side::Reader, _, Some(snapshot)) => Visible::Just(snapshot),
            (Side::Reader, Some(pending), None)
                if self.may_be_dirty && pending != self.committed =>
            {
                Visible::Open
            }
            _ => Visible::Just(self.committed),
        }
    }
}

/// The sum of all probes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) probes: u64,
    pub(super) cycles: u64,
    /// Probes that had to find the row, and those of them that found it.
    wanted: u64,
    found: u64,
    /// By query: number of times that the row was in the table and the index did not return it.
    missed: BTreeMap<String, u64>,
    /// The row was found at its other version's place. It is in the table, so it does not count as
    /// a foreign row.
    misplaced: u64,
    violations: u64,
    described: Vec<String>,
    /// Cycles that the server ended with an error, by code: another way of isolating transactions.
    pub(super) refused: BTreeMap<String, u64>,
    /// Unsuitable queries: their neighbours are as near as the row would be.
    pub(super) unfit: u64,
}

impl Tally {
    pub(super) fn violation(&mut self, what: String) {
        self.violations += 1;
        if self.described.len() < DESCRIBED {
            self.described.push(what);
        }
    }

    /// Judges one answer. `shows` tells, if necessary, whether the table without its index has the
    /// row at that place.
    pub(super) fn judge(
        &mut self,
        probe: &Probe<'_>,
        ids: &[u32],
        shows: &mut dyn FnMut() -> Result<bool, String>,
    ) -> Result<(), String> {
        self.probes += 1;
        let has = ids.contains(&probe.row);
        let foreign =
            ids.iter().find(|id| (**id as usize) >= probe.rows && **id != probe.row).copied();
        if let Some(id) = foreign {
            self.violation(format!("{probe}: the query returned row {id}, which does not exist"));
        }
        if ids.iter().enumerate().any(|(place, id)| ids[..place].contains(id)) {
            self.violation(format!("{probe}: the query returned a row twice"));
        }
        match probe.visible {
            Visible::Open => {}
            Visible::Just(None) if has => {
                self.violation(format!(
                    "{probe}: the query returned the row, which must be invisible"
                ));
            }
            Visible::Just(Some(place)) if place == probe.place => {
                self.wanted += 1;
                self.found += u64::from(has);
                if !has && shows()? {
                    *self.missed.entry(probe.to_string()).or_insert(0) += 1;
                } else if !has {
                    self.violation(format!("{probe}: even a scan does not find the row"));
                }
            }
            Visible::Just(Some(_)) => self.misplaced += u64::from(has),
            Visible::Just(None) => {}
        }
        Ok(())
    }
}

/// One query of a probe.
pub(super) struct Probe<'a> {
    /// Number of permanent rows; their ids are smaller.
    pub(super) rows: usize,
    /// The row that comes and goes.
    pub(super) row: u32,
    pub(super) side: Side,
    pub(super) place: RowIndex,
    pub(super) visible: Visible,
    /// The statements before the query.
    pub(super) after: &'a [Action],
}

impl std::fmt::Display for Probe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.after.iter().rev().find(|deed| !matches!(deed, Action::Ask(..)));
        let place = ["first", "second"][self.place];
        write!(f, "{:?} at the {place} place after ", self.side)?;
        match last {
            Some(deed) => write!(f, "{deed:?}"),
            None => write!(f, "nothing"),
        }
    }
}

/// Records the tally.
///
/// # Errors
///
/// There was no probe.
pub(super) fn put(outcome: &mut Outcome, tally: Tally) -> Result<(), String> {
    let refused: u64 = tally.refused.values().sum();
    if tally.probes == 0 {
        return Err(format!(
            "failed to probe: no usable query ({} unusable, {refused} cycles refused: {:?})",
            tally.unfit, tally.refused
        ));
    }
    let per_probe = tally.violations as f64 / tally.probes as f64;
    outcome.extra.insert(Metric::Violations, per_probe * 1e5);
    if tally.wanted > 0 {
        outcome.extra.insert(Metric::Found, tally.found as f64 / tally.wanted as f64);
    }
    let words = format!(
        "{} in {} cycles: {} violations; the row found in {} of {}; {} times at the position of \
         its other version; the server refused {refused} cycles",
        tally.probes, tally.cycles, tally.violations, tally.found, tally.wanted, tally.misplaced
    );
    outcome.facts.insert("probes".to_owned(), words);
    if !tally.missed.is_empty() {
        let missed = tally.missed.iter().map(|(question, count)| format!("{question}: {count}"));
        let missed: Vec<String> = missed.collect();
        outcome.facts.insert("missed by the index".to_owned(), missed.join("; "));
    }
    let described = tally.described.into_iter().map(|what| format!("isolation violation: {what}"));
    outcome.notes.extend(described);
    for (code, cycles) in tally.refused {
        *outcome.errors.entry(code).or_insert(0) += cycles;
    }
    Ok(())
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

#[cfg(test)]
mod visibility_tests {
    use super::*;

    /// The visible state at each query of a cycle: `1` and `2` for the places, `.` for no row, `?`
    /// for either.
    fn visible_states(level: IsolationLevel, dialect: Dialect) -> String {
        let mut model = Model::new(level, dialect);
        let mut words = String::new();
        for deed in SEEN_BY_OTHERS.iter().chain(TAKEN_BACK) {
            model.follow(*deed);
            if let Action::Ask(side, _) = deed {
                words.push(match model.visible(*side) {
                    Visible::Open => '?',
                    Visible::Just(None) => '.',
                    Visible::Just(Some(place)) => ['1', '2'][place],
                });
            }
        }
        words
    }

    #[test]
    fn levels_differ_in_what_they_show_of_others() {
        let check = |level: IsolationLevel, dialect: Dialect, expected: [&str; 4]| {
            assert_eq!(
                visible_states(level, dialect),
                expected.concat(),
                "{level:?} on {dialect:?}"
            );
        };
        // Insert, move, delete, roll back.
        let each_question = [".1.11", "122112222", "2.2..", "1.1.."];
        check(IsolationLevel::ReadCommitted, Dialect::Postgres, each_question);
        check(IsolationLevel::ReadCommitted, Dialect::Mysql, each_question);
        check(IsolationLevel::ReadUncommitted, Dialect::Postgres, each_question);
        let snapshot = [".1..1", "122111122", "2.22.", "1.1.."];
        check(IsolationLevel::RepeatableRead, Dialect::Postgres, snapshot);
        check(IsolationLevel::Serializable, Dialect::Mysql, snapshot);
        let dirty = [".1?11", "122??2222", "2.?..", "1.1.."];
        check(IsolationLevel::ReadUncommitted, Dialect::Mysql, dirty);
    }

    fn probe(side: Side, visible: Visible) -> Probe<'static> {
        Probe { rows: 100, row: 100, side, place: 0, visible, after: SEEN_BY_OTHERS }
    }

    #[test]
    fn answers_are_judged_by_what_may_be_seen() {
        let judge = |visible: Visible, ids: &[u32], scan: bool| {
            let mut tally = Tally::default();
            tally.judge(&probe(Side::Reader, visible), ids, &mut || Ok(scan)).unwrap();
            (tally.violations, tally.wanted, tally.found, tally.misplaced)
        };
        let here = Visible::Just(Some(0));
        assert_eq!(judge(here, &[100, 5], true), (0, 1, 1, 0));
        assert_eq!(judge(here, &[7, 5], true), (0, 1, 0, 0), "the index missed it: recall");
        assert_eq!(judge(here, &[7, 5], false), (1, 1, 0, 0), "not even a scan shows it");
        assert_eq!(judge(Visible::Just(None), &[7, 5], false), (0, 0, 0, 0));
        assert_eq!(judge(Visible::Just(None), &[7, 100], false), (1, 0, 0, 0));
        assert_eq!(judge(Visible::Just(Some(1)), &[100], false), (0, 0, 0, 1));
        assert_eq!(judge(Visible::Open, &[100], false), (0, 0, 0, 0));
        assert_eq!(judge(here, &[100, 101], true).0, 1, "a row that nobody wrote");
        assert_eq!(judge(here, &[100, 5, 5], true).0, 1, "a row twice");
    }

    #[test]
    fn violations_are_counted_per_hundred_thousand_and_told() {
        let mut outcome = Outcome::default();
        let tally = Tally {
            probes: 2_000,
            wanted: 10,
            found: 9,
            violations: 3,
            described: vec!["this".to_owned()],
            refused: BTreeMap::from([("1213".to_owned(), 2)]),
            ..Tally::default()
        };
        put(&mut outcome, tally).unwrap();
        assert_eq!(outcome.extra[&Metric::Violations], 150.0);
        assert_eq!(outcome.extra[&Metric::Found], 0.9);
        assert_eq!(outcome.errors["1213"], 2);
        assert_eq!(outcome.notes, ["isolation violation: this"]);
        let nothing = put(&mut Outcome::default(), Tally { unfit: 7, ..Tally::default() });
        assert!(nothing.unwrap_err().contains("7 unusable"));
    }
}
