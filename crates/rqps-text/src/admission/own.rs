//! What a load has made so far, and in which schema or database: only that may it fill and change.

use std::collections::BTreeSet;

use crate::admission::statement::{Refusal, SaidName, Statement};
use crate::changes::{ChangedRelation, RelationKind};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;

/// Relations that have rows.
pub(super) const WITH_ROWS: [RelationKind; 3] =
    [RelationKind::Table, RelationKind::View, RelationKind::MaterializedView];

/// All that a load may make.
pub(super) const ALL_KINDS: [RelationKind; 6] = [
    RelationKind::Table,
    RelationKind::View,
    RelationKind::MaterializedView,
    RelationKind::Sequence,
    RelationKind::Index,
    RelationKind::Type,
];

/// Objects that a load made.
#[derive(Clone, Debug)]
pub(super) struct OwnObjects {
    pub(super) dialect: Dialect,
    /// The schema or database that the load names, once it has named one.
    pub(super) place: Option<String>,
    made: BTreeSet<(RelationKind, String)>,
    /// Names that were made, even if they are dropped by now.
    named: BTreeSet<String>,
    /// Views that may do what a load may not.
    unread: BTreeSet<String>,
    /// Sequences that come and go with a table.
    belonging: BTreeSet<String>,
    /// Statistics over several columns, which have names of their own.
    statistics: BTreeSet<String>,
    /// Names and operators that statements call, which others may have made.
    pub(super) called: BTreeSet<String>,
    /// Names where types may stand.
    pub(super) types: BTreeSet<String>,
}

impl OwnObjects {
    pub(super) fn new(dialect: Dialect) -> OwnObjects {
        OwnObjects {
            dialect,
            place: None,
            made: BTreeSet::new(),
            named: BTreeSet::new(),
            unread: BTreeSet::new(),
            belonging: BTreeSet::new(),
            statistics: BTreeSet::new(),
            called: BTreeSet::new(),
            types: BTreeSet::new(),
        }
    }

    /// Notes statistics that a statement makes.
    pub(super) fn make_statistics(&mut self, name: &SaidName) -> Result<(), Refusal> {
        self.check_place(name)?;
        self.statistics.insert(name.last().to_owned());
        Ok(())
    }

    /// True if the load made these statistics.
    pub(super) fn has_statistics(&self, name: &SaidName) -> bool {
        let in_place = name.parts.len() == 1 || self.is_place(name);
        in_place && self.statistics.contains(name.last())
    }

    /// True for a sequence that comes and goes with a table.
    pub(super) fn is_of_table(&self, made: &ChangedRelation) -> bool {
        let name = TableName::try_from(made.name.clone()).map(|name| name.folded(self.dialect));
        let name = name.ok().and_then(|mut parts| parts.pop());
        made.kind == RelationKind::Sequence && name.is_some_and(|it| self.belonging.contains(&it))
    }

    /// True if the load made a relation of one of these kinds. An index that has the name of
    /// somebody's table is not that table.
    pub(super) fn is_made(&self, name: &SaidName, kinds: &[RelationKind]) -> bool {
        let in_place = name.parts.len() == 1 || self.is_place(name);
        let is_made = |kind: &RelationKind| self.made.contains(&(*kind, name.last().to_owned()));
        in_place && kinds.iter().any(is_made)
    }

    pub(super) fn is_made_text(&self, name: &TableName, kind: RelationKind) -> bool {
        let said = SaidName { text: name.to_string(), parts: name.folded(self.dialect) };
        self.is_made(&said, &[kind])
    }

    /// True if a load may read it: what it made, without views that do what it may not.
    pub(super) fn is_read(&self, name: &SaidName) -> bool {
        self.is_made(name, &WITH_ROWS) && !self.unread.contains(name.last())
    }

    /// A load may make the view, but not read it.
    pub(super) fn hide(&mut self, view: &SaidName, was_named: bool) {
        self.unread.insert(view.last().to_owned());
        // Views and materialized views that were admitted before may read it.
        if was_named {
            self.unread.extend(self.named.iter().cloned());
        }
    }

    /// True if the load used the name before, for whatever it made.
    pub(super) fn was_named(&self, name: &SaidName) -> bool {
        self.named.contains(name.last())
    }

    /// True if a name is of the schema or database of the load.
    pub(super) fn is_place(&self, name: &SaidName) -> bool {
        name.parts.len() == 2 && self.place.as_ref() == Some(&name.parts[0])
    }

    /// Remembers the place that a name has, and refuses another one.
    pub(super) fn check_place(&mut self, name: &SaidName) -> Result<(), Refusal> {
        match name.parts.as_slice() {
            [_] => {}
            [place, _] => {
                let known = self.place.get_or_insert_with(|| place.clone());
                if known != place {
                    return Err(format!("{} is not in {known}, where the load is", name.text));
                }
            }
            _ => return Err(format!("{} names a database", name.text)),
        }
        // The server looks in its own catalogue first.
        if self.dialect == Dialect::Postgres && name.last().starts_with("pg_") {
            return Err(format!("{} is a name of the server's own", name.text));
        }
        // A table of that name would tell the next rqps what it may drop.
        if name.last().to_ascii_lowercase().starts_with("rqps_") {
            Err(format!("{} is a name of rqps's own", name.text))
        } else {
            Ok(())
        }
    }

    /// Notes what a statement makes.
    pub(super) fn make(
        &mut self,
        name: &SaidName,
        kind: RelationKind,
    ) -> Result<ChangedRelation, Refusal> {
        self.check_place(name)?;
        // Nothing else has that name any more: rows for a table must not go through a view.
        let is_apart = |other: RelationKind| {
            self.dialect == Dialect::Mysql
                && (kind == RelationKind::Index) != (other == RelationKind::Index)
        };
        self.made.retain(|(other, known)| known != name.last() || is_apart(*other));
        self.made.insert((kind, name.last().to_owned()));
        self.named.insert(name.last().to_owned());
        Ok(ChangedRelation { name: name.text.clone(), kind })
    }

    /// A sequence belongs to a table.
    pub(super) fn belongs(&mut self, sequence: &SaidName) {
        self.belonging.insert(sequence.last().to_owned());
    }

    /// The load does not make it after all, or drops it. True if it had made it.
    pub(super) fn forget(&mut self, name: &SaidName, kind: RelationKind) -> bool {
        self.made.remove(&(kind, name.last().to_owned()))
    }

    /// Takes the name of something of these kinds that the load made.
    pub(super) fn own(
        &mut self,
        statement: &mut Statement<'_>,
        kinds: &[RelationKind],
    ) -> Result<SaidName, Refusal> {
        let name = statement.name()?;
        self.check_place(&name)?;
        if self.is_made(&name, kinds) {
            Ok(name)
        } else {
            Err(format!("the load did not make {}", name.text))
        }
    }

    /// Takes the name of a table of the load.
    pub(super) fn own_table(&mut self, statement: &mut Statement<'_>) -> Result<SaidName, Refusal> {
        self.own(statement, &[RelationKind::Table])
    }
}
