//! What a load has made so far, and in which schema or database: only that may it fill and change.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::dialect::Dialect;
use crate::domain::sql_name::TableName;
use crate::user_text::admission::statement::{Refusal, SaidName, Statement};
use crate::user_text::changes::{ChangedRelation, RelationKind};

/// Objects that a load made.
#[derive(Clone, Debug)]
pub(super) struct OwnObjects {
    pub(super) dialect: Dialect,
    /// The schema or database that the load names, once it has named one.
    pub(super) place: Option<String>,
    made: BTreeMap<String, RelationKind>,
    /// Sequences that come and go with a table.
    belonging: BTreeSet<String>,
}

impl OwnObjects {
    pub(super) fn new(dialect: Dialect) -> OwnObjects {
        OwnObjects { dialect, place: None, made: BTreeMap::new(), belonging: BTreeSet::new() }
    }

    /// True for a sequence that comes and goes with a table.
    pub(super) fn is_of_table(&self, made: &ChangedRelation) -> bool {
        let name = TableName::try_from(made.name.clone()).map(|name| name.folded(self.dialect));
        let name = name.ok().and_then(|mut parts| parts.pop());
        made.kind == RelationKind::Sequence && name.is_some_and(|it| self.belonging.contains(&it))
    }

    /// True if the load made the relation.
    pub(super) fn is_made(&self, name: &SaidName) -> bool {
        let in_place = name.parts.len() == 1 || self.is_place(name);
        in_place && self.made.contains_key(name.last())
    }

    pub(super) fn is_made_text(&self, name: &TableName) -> bool {
        let said = SaidName { text: name.to_string(), parts: name.folded(self.dialect) };
        self.is_made(&said)
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
        match self.dialect == Dialect::Postgres && name.last().starts_with("pg_") {
            true => Err(format!("{} is a name of the server's own", name.text)),
            false => Ok(()),
        }
    }

    /// Notes what a statement makes.
    pub(super) fn make(
        &mut self,
        name: &SaidName,
        kind: RelationKind,
    ) -> Result<ChangedRelation, Refusal> {
        self.check_place(name)?;
        self.made.insert(name.last().to_owned(), kind);
        Ok(ChangedRelation { name: name.text.clone(), kind })
    }

    /// A sequence belongs to a table.
    pub(super) fn belongs(&mut self, sequence: &SaidName) {
        self.belonging.insert(sequence.last().to_owned());
    }

    /// The load does not make it after all, or drops it. True if it had made it.
    pub(super) fn forget(&mut self, name: &SaidName) -> bool {
        self.made.remove(name.last()).is_some()
    }

    /// Takes the name of a table, view or sequence of the load.
    pub(super) fn own(&mut self, statement: &mut Statement<'_>) -> Result<SaidName, Refusal> {
        let name = statement.name()?;
        self.check_place(&name)?;
        match self.is_made(&name) {
            true => Ok(name),
            false => Err(format!("the load did not make {}", name.text)),
        }
    }

    /// Takes the name of a table of the load.
    pub(super) fn own_table(&mut self, statement: &mut Statement<'_>) -> Result<SaidName, Refusal> {
        let name = self.own(statement)?;
        match self.made.get(name.last()) {
            Some(RelationKind::Table) => Ok(name),
            _ => Err(format!("{} is no table", name.text)),
        }
    }
}
