//! The rules of visibility: which of two transactions may see a row that one of them writes, and
//! the tally of observations. Pure; `isolation.rs` runs the statements.

use std::collections::BTreeMap;

use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::IsolationLevel;

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
