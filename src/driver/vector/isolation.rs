//! What transactions see through the index: one writes a row, moves it, deletes it and takes it
//! back, another asks where it lies, and every answer is held against what its level allows.
//!
//! Both are driven by one thread, in a fixed order, so it is known at every moment what each may
//! see. The row lies where a query asks, nearer than any other, so an index that shows it has it
//! among the first.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Bench;
use super::busy::busy;
use super::dataset::Dataset;
use super::encode::Form;
use super::load;
use super::mixed::is_passing;
use super::score::{SLACK, score};
use super::search::{Ready, count, put_score};
use super::sql::{Sql, TABLE};
use super::truth::Truth;
use crate::domain::build::Dialect;
use crate::domain::metric::Metric;
use crate::domain::run::Outcome;
use crate::domain::vector::{Level, Search};
use crate::driver::Stop;
use crate::driver::session::Session;
use crate::wire::{Prepared, Value, WireError};

/// Violations that are told in words.
const TOLD: usize = 5;
/// A second place must be farther from a query than its k-th neighbour by this factor, so that a
/// search that misses some neighbours does not come upon it.
const FAR: f64 = 1.5;

/// A smaller loss of recall by what was written and taken away again is not told: the graph has
/// other links than before.
const LOST: f64 = 0.02;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Reader,
    Writer,
}

/// Where the row may lie: at one of two queries.
type Place = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Begin(Side),
    Commit(Side),
    Rollback,
    Savepoint,
    RollbackToSavepoint,
    Insert,
    Move,
    Delete,
    Ask(Side, Place),
}

/// For each query: the reader asks before, during, after the writer's transaction and after its
/// own. In the end the row is gone.
const SEEN_BY_OTHERS: &[Deed] = {
    use Deed::{Ask, Begin, Commit, Delete, Insert, Move};
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
        // It moves from the first place to the second.
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

/// What is taken back leaves nothing behind.
const TAKEN_BACK: &[Deed] = {
    use Deed::{Ask, Begin, Commit, Insert, Rollback, RollbackToSavepoint, Savepoint};
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

/// Where each side must see the row.
#[derive(Clone, Debug)]
struct Model {
    level: Level,
    /// READ UNCOMMITTED shows what is not committed; Postgres has no such level and takes it for
    /// READ COMMITTED.
    may_be_dirty: bool,
    committed: Option<Place>,
    /// Inside the writer's transaction.
    pending: Option<Option<Place>>,
    /// Inside a transaction of the reader that keeps its snapshot.
    snapshot: Option<Option<Place>>,
}

/// What one side may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// The row at this place, or no such row.
    Just(Option<Place>),
    /// Either of two states is allowed.
    Open,
}

impl Model {
    fn new(level: Level, dialect: Dialect) -> Model {
        let may_be_dirty = level == Level::ReadUncommitted && dialect == Dialect::Mysql;
        Model { level, may_be_dirty, committed: None, pending: None, snapshot: None }
    }

    fn follow(&mut self, deed: Deed) {
        match deed {
            Deed::Begin(Side::Writer) => self.pending = Some(self.committed),
            // The question that follows fixes the snapshot; nothing happens in between.
            Deed::Begin(Side::Reader) => {
                self.snapshot = self.level.keeps_snapshot().then_some(self.committed);
            }
            Deed::Commit(Side::Reader) => self.snapshot = None,
            Deed::Commit(Side::Writer) => {
                if let Some(pending) = self.pending.take() {
                    self.committed = pending;
                }
            }
            Deed::Rollback => self.pending = None,
            Deed::RollbackToSavepoint => self.pending = Some(self.committed),
            Deed::Insert => self.pending = Some(Some(0)),
            Deed::Move => self.pending = Some(Some(1)),
            Deed::Delete => self.pending = Some(None),
            Deed::Savepoint | Deed::Ask(..) => {}
        }
    }

    fn sight(&self, side: Side) -> Sight {
        match (side, self.pending, self.snapshot) {
            (Side::Writer, Some(pending), _) => Sight::Just(pending),
            (Side::Reader, _, Some(snapshot)) => Sight::Just(snapshot),
            (Side::Reader, Some(pending), None)
                if self.may_be_dirty && pending != self.committed =>
            {
                Sight::Open
            }
            _ => Sight::Just(self.committed),
        }
    }
}

/// What came of all probes.
#[derive(Debug, Default)]
struct Tally {
    probes: u64,
    cycles: u64,
    /// Probes in which the row was to be found, and of these, those in which it was.
    wanted: u64,
    found: u64,
    /// Question → how often the row was in the table there and the index did not show it.
    missed: BTreeMap<String, u64>,
    /// The row came back where its other version lies. It is in the table, so it is no foreign row.
    misplaced: u64,
    violations: u64,
    told: Vec<String>,
    /// Error code → cycles that the server broke off: another way of keeping transactions apart.
    refused: BTreeMap<String, u64>,
    /// Queries that are no good for it: their neighbours are as near as the row would be.
    unfit: u64,
}

impl Tally {
    fn violation(&mut self, what: String) {
        self.violations += 1;
        if self.told.len() < TOLD {
            self.told.push(what);
        }
    }

    /// Judges one answer. `shows` tells, if it must be known, whether the table without its index
    /// shows the row at that place.
    fn judge(
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
            self.violation(format!("{probe}: row {id} came back, and there is none"));
        }
        if ids.iter().enumerate().any(|(place, id)| ids[..place].contains(id)) {
            self.violation(format!("{probe}: a row came back twice"));
        }
        match probe.sight {
            Sight::Open => {}
            Sight::Just(None) if has => {
                self.violation(format!("{probe}: the row came back and must not be seen"));
            }
            Sight::Just(Some(place)) if place == probe.place => {
                self.wanted += 1;
                self.found += u64::from(has);
                if !has && shows()? {
                    *self.missed.entry(probe.to_string()).or_insert(0) += 1;
                } else if !has {
                    self.violation(format!("{probe}: not even a scan shows the row"));
                }
            }
            Sight::Just(Some(_)) => self.misplaced += u64::from(has),
            Sight::Just(None) => {}
        }
        Ok(())
    }
}

/// One question.
struct Probe<'a> {
    /// Number of rows that are always there: all ids below.
    rows: usize,
    /// The row that comes and goes.
    row: u32,
    side: Side,
    place: Place,
    sight: Sight,
    /// What was done last.
    after: &'a [Deed],
}

impl std::fmt::Display for Probe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.after.iter().rev().find(|deed| !matches!(deed, Deed::Ask(..)));
        let place = ["first", "second"][self.place];
        write!(f, "{:?} at the {place} place after ", self.side)?;
        match last {
            Some(deed) => write!(f, "{deed:?}"),
            None => write!(f, "nothing"),
        }
    }
}

/// Measures one level.
pub(super) fn isolate<W: Write>(
    bench: &mut Bench<'_, W>,
    level: Level,
    search: &Search,
) -> Result<Outcome, Stop> {
    let ready = Ready::new(bench, search)?;
    let answers = ready.ask_all(bench, search)?;
    let before = score(&bench.data, &ready.truth, &answers);
    let opener = ready.opener.also(settings(bench.job.dialect, level));
    let (sql, variant) = (bench.sql(), bench.work().variant);
    let shift = load::shift(&bench.data, variant);
    let form = Form::of_row(bench.job.dialect, variant);
    let deadline = Duration::from_secs_f64(bench.task.seconds);
    let (mut tally, mut outcome) = busy(bench, &opener, |session, data, done| {
        let reader = opener.open(1)?;
        let mut pair = Pair::new(&sql, &ready, [reader, opener.open(2)?], data)?;
        let vectors = Vectors { data, shift: shift.as_deref(), form };
        let tally = pair.cycles(level, &vectors, deadline, done)?;
        let (rows, left) = (data.train.rows() as u64, count(session)?);
        if left != rows {
            return Err(format!("failed to clean up: there are {left} rows and were {rows}"));
        }
        Ok(tally)
    })?;
    let answers = ready.ask_all(bench, search)?;
    if let Some(id) =
        answers.iter().find(|id| **id != u32::MAX && **id as usize >= bench.data.train.rows())
    {
        tally.violation(format!("at the end: row {id} came back, and there is none"));
    }
    let after = score(&bench.data, &ready.truth, &answers);
    ready.tell(&mut outcome);
    put_score(&mut outcome, &after);
    outcome.facts.insert("recall before".to_owned(), format!("{:.4}", before.recall));
    if before.recall - after.recall > LOST {
        outcome.notes.push(format!(
            "the same rows are there as before, and recall fell from {:.4} to {:.4}: what \
             transactions did stays in the index or in its cache",
            before.recall, after.recall
        ));
    }
    put(&mut outcome, tally)?;
    Ok(outcome)
}

fn put(outcome: &mut Outcome, tally: Tally) -> Result<(), String> {
    let refused: u64 = tally.refused.values().sum();
    if tally.probes == 0 {
        return Err(format!(
            "failed to probe: no query could be asked ({} of no use, {refused} cycles refused: \
             {:?})",
            tally.unfit, tally.refused
        ));
    }
    let per_probe = tally.violations as f64 / tally.probes as f64;
    outcome.extra.insert(Metric::Violations, per_probe * 1e5);
    if tally.wanted > 0 {
        outcome.extra.insert(Metric::Found, tally.found as f64 / tally.wanted as f64);
    }
    let words = format!(
        "{} in {} cycles: {} violations; the row found in {} of {}; {} times where its other \
         version lies; {refused} cycles refused by the server",
        tally.probes, tally.cycles, tally.violations, tally.found, tally.wanted, tally.misplaced
    );
    outcome.facts.insert("probes".to_owned(), words);
    if !tally.missed.is_empty() {
        let missed = tally.missed.iter().map(|(question, count)| format!("{question}: {count}"));
        let missed: Vec<String> = missed.collect();
        outcome.facts.insert("missed by the index".to_owned(), missed.join("; "));
    }
    let told = tally.told.into_iter().map(|what| format!("isolation was violated: {what}"));
    outcome.notes.extend(told);
    for (code, cycles) in tally.refused {
        *outcome.errors.entry(code).or_insert(0) += cycles;
    }
    Ok(())
}

/// What both sessions are told. Nobody waits for a lock: who could free it is the same thread.
fn settings(dialect: Dialect, level: Level) -> Vec<String> {
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

/// The vectors of queries as rows.
struct Vectors<'a> {
    data: &'a Dataset,
    shift: Option<&'a [f32]>,
    form: Form,
}

impl Vectors<'_> {
    /// As numbers, as they lie in the table.
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

/// The next query after `query` that is far from it, if `query` is fit for a probe: its k-th
/// neighbour is farther than the row will be.
fn second_place(query: usize, truth: &Truth, apart: impl Fn(usize, usize) -> f64) -> Option<usize> {
    let queries = truth.ids.len() / truth.k;
    let fit = |query: usize| truth.threshold(query) > 2.0 * SLACK;
    let far = |other: &usize| {
        let reach = truth.threshold(query).max(truth.threshold(*other));
        fit(*other) && apart(query, *other) > FAR * reach
    };
    (1..queries).map(|step| (query + step) % queries).find(far).filter(|_| fit(query))
}

/// What one session asks with.
struct Asker {
    session: Session,
    ask: Prepared,
}

struct Pair<'a> {
    sql: &'a Sql<'a>,
    ready: &'a Ready,
    reader: Asker,
    writer: Asker,
    insert: Prepared,
    update: Prepared,
    /// The id of the row that comes and goes.
    row: u32,
    ids: Vec<u32>,
}

/// Why a cycle ended early.
enum Broken {
    /// The server refused a statement; the cycle is given up.
    Refused(String),
    /// Nothing more can be done.
    Fault(String),
}

impl<'a> Pair<'a> {
    fn new(
        sql: &'a Sql<'a>,
        ready: &'a Ready,
        sessions: [Session; 2],
        data: &Dataset,
    ) -> Result<Pair<'a>, String> {
        let [mut reader, mut writer] = sessions;
        let fault = |error: WireError| format!("failed to prepare: {error}");
        let (text, types) = sql.insert(1);
        let insert = writer.prepare(&text, &types).map_err(fault)?;
        let (text, types) = sql.update();
        let update = writer.prepare(&text, &types).map_err(fault)?;
        let [of_reader, of_writer] = [ready.prepare(&mut reader)?, ready.prepare(&mut writer)?];
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

    /// Goes through the queries until the time is over; each is used once, since what was deleted
    /// stays in the index for a while.
    fn cycles(
        &mut self,
        level: Level,
        vectors: &Vectors<'_>,
        time: Duration,
        done: &AtomicU64,
    ) -> Result<Tally, String> {
        let (mut tally, start) = (Tally::default(), Instant::now());
        for query in 0..self.ready.queries.len() {
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
        deeds: &[Deed],
        level: Level,
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
            let Deed::Ask(side, place) = *deed else { continue };
            let probe = Probe {
                rows: self.row as usize,
                row: self.row,
                side,
                place,
                sight: model.sight(side),
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
        deed: Deed,
        queries: [usize; 2],
        places: &[Vec<u8>; 2],
    ) -> Result<(), Broken> {
        let (id, zero) = (Value::Int(i64::from(self.row)), Value::Int(0));
        let delete = self.delete();
        let (reader, writer) = (&mut self.reader, &mut self.writer);
        let result = match deed {
            Deed::Begin(Side::Writer) => writer.session.simple("BEGIN"),
            Deed::Commit(Side::Writer) => writer.session.simple("COMMIT"),
            Deed::Begin(Side::Reader) => reader.session.simple("BEGIN"),
            Deed::Commit(Side::Reader) => reader.session.simple("COMMIT"),
            Deed::Rollback => writer.session.simple("ROLLBACK"),
            Deed::Savepoint => writer.session.simple("SAVEPOINT here"),
            Deed::RollbackToSavepoint => writer.session.simple("ROLLBACK TO SAVEPOINT here"),
            Deed::Insert => {
                let values = [id, zero, zero, zero, Value::Bytes(&places[0])];
                writer.session.execute(self.insert, &values)
            }
            Deed::Move => writer.session.execute(self.update, &[Value::Bytes(&places[1]), id]),
            Deed::Delete => writer.session.simple(&delete),
            Deed::Ask(side, place) => {
                let asker = if side == Side::Reader { reader } else { writer };
                let (encoded, query) = (&self.ready.queries, queries[place]);
                encoded.ask(query, asker.ask, &mut asker.session, &mut self.ids)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(WireError::Server { code, .. }) if is_conflict(&code) => Err(Broken::Refused(code)),
            Err(error) => Err(Broken::Fault(format!("failed to {deed:?}: {error}"))),
        }
    }

    fn delete(&self) -> String {
        format!("DELETE FROM {TABLE} WHERE id = {}", self.row)
    }

    /// After a refusal: both transactions end, and the row goes.
    fn clean_up(&mut self) -> Result<(), String> {
        super::run(&mut self.reader.session, "ROLLBACK")?;
        super::run(&mut self.writer.session, "ROLLBACK")?;
        let delete = self.delete();
        super::run(&mut self.writer.session, &delete)
    }
}

/// What a server says that keeps transactions apart by refusing one of them.
fn is_conflict(code: &str) -> bool {
    // Lock not available: Postgres gives up after `lock_timeout`.
    is_passing(code) || code == "55P03"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is to be seen at each question of a cycle: `1` and `2` for the places, `.` for
    /// nothing, `?` for either.
    fn sights(level: Level, dialect: Dialect) -> String {
        let mut model = Model::new(level, dialect);
        let mut words = String::new();
        for deed in SEEN_BY_OTHERS.iter().chain(TAKEN_BACK) {
            model.follow(*deed);
            if let Deed::Ask(side, _) = deed {
                words.push(match model.sight(*side) {
                    Sight::Open => '?',
                    Sight::Just(None) => '.',
                    Sight::Just(Some(place)) => ['1', '2'][place],
                });
            }
        }
        words
    }

    #[test]
    fn levels_differ_in_what_they_show_of_others() {
        let check = |level: Level, dialect: Dialect, expected: [&str; 4]| {
            assert_eq!(sights(level, dialect), expected.concat(), "{level:?} on {dialect:?}");
        };
        // Insert, move, delete, take back.
        let each_question = [".1.11", "122112222", "2.2..", "1.1.."];
        check(Level::ReadCommitted, Dialect::Postgres, each_question);
        check(Level::ReadCommitted, Dialect::Mysql, each_question);
        check(Level::ReadUncommitted, Dialect::Postgres, each_question);
        let snapshot = [".1..1", "122111122", "2.22.", "1.1.."];
        check(Level::RepeatableRead, Dialect::Postgres, snapshot);
        check(Level::Serializable, Dialect::Mysql, snapshot);
        let dirty = [".1?11", "122??2222", "2.?..", "1.1.."];
        check(Level::ReadUncommitted, Dialect::Mysql, dirty);
    }

    fn probe(side: Side, sight: Sight) -> Probe<'static> {
        Probe { rows: 100, row: 100, side, place: 0, sight, after: SEEN_BY_OTHERS }
    }

    #[test]
    fn answers_are_judged_by_what_may_be_seen() {
        let judge = |sight: Sight, ids: &[u32], scan: bool| {
            let mut tally = Tally::default();
            tally.judge(&probe(Side::Reader, sight), ids, &mut || Ok(scan)).unwrap();
            (tally.violations, tally.wanted, tally.found, tally.misplaced)
        };
        let here = Sight::Just(Some(0));
        assert_eq!(judge(here, &[100, 5], true), (0, 1, 1, 0));
        assert_eq!(judge(here, &[7, 5], true), (0, 1, 0, 0), "the index missed it: recall");
        assert_eq!(judge(here, &[7, 5], false), (1, 1, 0, 0), "not even a scan shows it");
        assert_eq!(judge(Sight::Just(None), &[7, 5], false), (0, 0, 0, 0));
        assert_eq!(judge(Sight::Just(None), &[7, 100], false), (1, 0, 0, 0));
        assert_eq!(judge(Sight::Just(Some(1)), &[100], false), (0, 0, 0, 1));
        assert_eq!(judge(Sight::Open, &[100], false), (0, 0, 0, 0));
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
            told: vec!["this".to_owned()],
            refused: BTreeMap::from([("1213".to_owned(), 2)]),
            ..Tally::default()
        };
        put(&mut outcome, tally).unwrap();
        assert_eq!(outcome.extra[&Metric::Violations], 150.0);
        assert_eq!(outcome.extra[&Metric::Found], 0.9);
        assert_eq!(outcome.errors["1213"], 2);
        assert_eq!(outcome.notes, ["isolation was violated: this"]);
        let nothing = put(&mut Outcome::default(), Tally { unfit: 7, ..Tally::default() });
        assert!(nothing.unwrap_err().contains("7 of no use"));
    }

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
