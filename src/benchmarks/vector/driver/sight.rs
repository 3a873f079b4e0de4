//! What each of two transactions may see of a row that one of them writes, and what came of asking.
//! Pure: who carries it out is `isolation`.

use std::collections::BTreeMap;

use crate::domain::dialect::Dialect;
use crate::domain::metric::Metric;
use crate::domain::run::Outcome;
use crate::domain::vector::IsolationLevel;

/// Violations that are told in words.
const TOLD: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Reader,
    Writer,
}

/// Where the row may lie: at one of two queries.
pub(super) type RowIndex = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
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

/// For each query: the reader asks before, during, after the writer's transaction and after its
/// own. In the end the row is gone.
pub(super) const SEEN_BY_OTHERS: &[Deed] = {
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
pub(super) const TAKEN_BACK: &[Deed] = {
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
pub(super) struct Model {
    level: IsolationLevel,
    /// READ UNCOMMITTED shows what is not committed; Postgres has no such level and takes it for
    /// READ COMMITTED.
    may_be_dirty: bool,
    committed: Option<RowIndex>,
    /// Inside the writer's transaction.
    pending: Option<Option<RowIndex>>,
    /// Inside a transaction of the reader that keeps its snapshot.
    snapshot: Option<Option<RowIndex>>,
}

/// What one side may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// The row at this place, or no such row.
    Just(Option<RowIndex>),
    /// Either of two states is allowed.
    Open,
}

impl Model {
    pub(super) fn new(level: IsolationLevel, dialect: Dialect) -> Model {
        let may_be_dirty = level == IsolationLevel::ReadUncommitted && dialect == Dialect::Mysql;
        Model { level, may_be_dirty, committed: None, pending: None, snapshot: None }
    }

    pub(super) fn follow(&mut self, deed: Deed) {
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

    pub(super) fn sight(&self, side: Side) -> Sight {
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
pub(super) struct Tally {
    pub(super) probes: u64,
    pub(super) cycles: u64,
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
    pub(super) refused: BTreeMap<String, u64>,
    /// Queries that are no good for it: their neighbours are as near as the row would be.
    pub(super) unfit: u64,
}

impl Tally {
    pub(super) fn violation(&mut self, what: String) {
        self.violations += 1;
        if self.told.len() < TOLD {
            self.told.push(what);
        }
    }

    /// Judges one answer. `shows` tells, if it must be known, whether the table without its index
    /// shows the row at that place.
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
        match probe.sight {
            Sight::Open => {}
            Sight::Just(None) if has => {
                self.violation(format!(
                    "{probe}: the query returned the row, which must be invisible"
                ));
            }
            Sight::Just(Some(place)) if place == probe.place => {
                self.wanted += 1;
                self.found += u64::from(has);
                if !has && shows()? {
                    *self.missed.entry(probe.to_string()).or_insert(0) += 1;
                } else if !has {
                    self.violation(format!("{probe}: even a scan does not find the row"));
                }
            }
            Sight::Just(Some(_)) => self.misplaced += u64::from(has),
            Sight::Just(None) => {}
        }
        Ok(())
    }
}

/// One question.
pub(super) struct Probe<'a> {
    /// Number of rows that are always there: all ids below.
    pub(super) rows: usize,
    /// The row that comes and goes.
    pub(super) row: u32,
    pub(super) side: Side,
    pub(super) place: RowIndex,
    pub(super) sight: Sight,
    /// What was done last.
    pub(super) after: &'a [Deed],
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

/// Writes down what came of it.
///
/// # Errors
/// Nothing could be asked.
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
    let told = tally.told.into_iter().map(|what| format!("isolation violation: {what}"));
    outcome.notes.extend(told);
    for (code, cycles) in tally.refused {
        *outcome.errors.entry(code).or_insert(0) += cycles;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is to be seen at each question of a cycle: `1` and `2` for the places, `.` for
    /// nothing, `?` for either.
    fn sights(level: IsolationLevel, dialect: Dialect) -> String {
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
        let check = |level: IsolationLevel, dialect: Dialect, expected: [&str; 4]| {
            assert_eq!(sights(level, dialect), expected.concat(), "{level:?} on {dialect:?}");
        };
        // Insert, move, delete, take back.
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
        assert_eq!(outcome.notes, ["isolation violation: this"]);
        let nothing = put(&mut Outcome::default(), Tally { unfit: 7, ..Tally::default() });
        assert!(nothing.unwrap_err().contains("7 unusable"));
    }
}
