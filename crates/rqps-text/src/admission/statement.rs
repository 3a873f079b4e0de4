//! A walk over the tokens of one reading of a statement.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::admission::tokens::{Token, TokenKind};
use crate::reading::{ChangedRelation, RelationKind};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;

/// The reason why a statement is refused.
pub(super) type Refusal = String;

/// A name in a statement.
#[derive(Clone, Debug)]
pub(super) struct SaidName {
    /// As it is written, with quotes.
    pub(super) text: String,
    /// As the server stores it, from the outermost part.
    pub(super) parts: Vec<String>,
}

impl SaidName {
    /// The name without its schema.
    pub(super) fn last(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }
}

/// A place in a statement.
#[derive(Clone, Copy)]
pub(super) struct Statement<'a> {
    pub(super) dialect: Dialect,
    pub(super) sql: &'a [u8],
    pub(super) tokens: &'a [Token],
    pub(super) at: usize,
}

impl<'a> Statement<'a> {
    pub(super) fn is_mysql(&self) -> bool {
        self.dialect == Dialect::Mysql
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn text(&self, token: &Token) -> &'a [u8] {
        &self.sql[token.begin..token.end]
    }

    /// The word at a distance, in capitals; empty if something else is there.
    pub(super) fn word_at(&self, distance: usize) -> String {
        match self.tokens.get(self.at + distance) {
            Some(token) if token.kind == TokenKind::Word => {
                String::from_utf8_lossy(self.text(token)).to_ascii_uppercase()
            }
            _ => String::new(),
        }
    }

    /// The next word, in capitals; empty if something else follows.
    pub(super) fn word(&self) -> String {
        self.word_at(0)
    }

    /// The word before this place, in capitals; empty if something else is there.
    pub(super) fn word_before(&self) -> String {
        let before = self.at.checked_sub(1).map(|at| Statement { at, ..*self });
        before.map(|before| before.word()).unwrap_or_default()
    }

    /// True if these words stand before this place.
    pub(super) fn follows(&self, words: &[&str]) -> bool {
        let before = self.at.checked_sub(words.len()).map(|at| Statement { at, ..*self });
        before.is_some_and(|mut before| before.take(words))
    }

    /// Takes these words if all of them follow.
    pub(super) fn take(&mut self, words: &[&str]) -> bool {
        let follow = words.iter().enumerate().all(|(index, word)| self.word_at(index) == *word);
        self.at += if follow { words.len() } else { 0 };
        follow
    }

    /// Takes one of these words if it follows.
    pub(super) fn take_any(&mut self, words: &[&str]) -> Option<String> {
        let word = self.word();
        words.contains(&word.as_str()).then(|| {
            self.at += 1;
            word
        })
    }

    pub(super) fn is_sign(&self, sign: u8) -> bool {
        self.is_sign_at(0, sign)
    }

    pub(super) fn is_sign_at(&self, distance: usize, sign: u8) -> bool {
        self.tokens
            .get(self.at + distance)
            .is_some_and(|token| token.kind == TokenKind::Sign && self.sql[token.begin] == sign)
    }

    /// True if the sign stands before this place.
    pub(super) fn is_sign_before(&self, sign: u8) -> bool {
        self.at.checked_sub(1).is_some_and(|at| Statement { at, ..*self }.is_sign(sign))
    }

    pub(super) fn take_sign(&mut self, sign: u8) -> bool {
        let follows = self.is_sign(sign);
        self.at += usize::from(follows);
        follows
    }

    /// The content of a literal without escapes that follows.
    pub(super) fn take_literal(&mut self) -> Option<String> {
        let token = self.peek().filter(|token| token.kind == TokenKind::Text)?;
        let inside = self.text(token).strip_prefix(b"'")?.strip_suffix(b"'")?;
        if inside.iter().any(|byte| matches!(byte, b'\'' | b'\\')) {
            return None;
        }
        self.at += 1;
        Some(String::from_utf8_lossy(inside).into_owned())
    }

    fn take_kind(&mut self, kind: TokenKind) -> bool {
        let follows = self.peek().is_some_and(|token| token.kind == kind);
        self.at += usize::from(follows);
        follows
    }

    /// Takes a literal, whatever it holds.
    pub(super) fn take_text(&mut self) -> bool {
        self.take_kind(TokenKind::Text)
    }

    /// Takes a number.
    pub(super) fn take_number(&mut self) -> bool {
        self.take_sign(b'-');
        self.take_kind(TokenKind::Number)
    }

    /// True at the end.
    pub(super) fn is_over(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Refuses what follows.
    pub(super) fn end(&self) -> Result<(), Refusal> {
        if self.is_over() {
            Ok(())
        } else {
            Err(format!("`{}` is not expected there", self.shown()))
        }
    }

    /// The next token for a person.
    pub(super) fn shown(&self) -> String {
        let token = self.peek().map_or(&b"the end"[..], |token| self.text(token));
        String::from_utf8_lossy(token).chars().take(40).collect()
    }

    /// Takes the name that follows, with its schema.
    pub(super) fn name(&mut self) -> Result<SaidName, Refusal> {
        let begin = self.at;
        let is_name = |statement: &Statement<'_>| {
            statement
                .peek()
                .is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::Name))
        };
        if !is_name(self) {
            return Err(format!("a name is missing before `{}`", self.shown()));
        }
        self.at += 1;
        while self.take_sign(b'.') {
            if !is_name(self) {
                return Err(format!("a name is missing before `{}`", self.shown()));
            }
            self.at += 1;
        }
        let parts = self.tokens[begin..self.at].iter().map(|token| self.text(token));
        let text = String::from_utf8_lossy(&parts.collect::<Vec<_>>().concat()).into_owned();
        let name = TableName::try_from(text.clone())?;
        Ok(SaidName { text, parts: name.folded(self.dialect) })
    }

    /// Takes names in parentheses, if parentheses follow. Nothing else may stand in them.
    pub(super) fn take_columns(&mut self) -> Result<bool, Refusal> {
        if !self.take_sign(b'(') {
            return Ok(false);
        }
        loop {
            self.name()?;
            match (self.take_sign(b','), self.take_sign(b')')) {
                (true, _) => {}
                (false, true) => return Ok(true),
                (false, false) => return Err(format!("`{}` is no name", self.shown())),
            }
        }
    }

    /// Passes what stands in parentheses.
    pub(super) fn pass_parentheses(&mut self) -> Result<(), Refusal> {
        let mut depth = 0_u32;
        loop {
            if self.is_sign(b'(') {
                depth += 1;
            } else if self.is_sign(b')') {
                depth = depth.saturating_sub(1);
            } else if depth == 0 || self.is_over() {
                return Err("parentheses do not fit".to_owned());
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

/// A statement that a load may execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// The reason why it is not sent, if it is not the load's business; empty if it would do
    /// nothing.
    pub left_out: Option<&'static str>,
    /// Parts that are not sent: `IF NOT EXISTS` would take the table of somebody else for the own.
    pub without: Vec<Range<usize>>,
    /// What it makes.
    pub makes: Vec<ChangedRelation>,
}

impl Admitted {
    /// The statement as it is sent.
    pub fn sent(&self, sql: &[u8]) -> Vec<u8> {
        let mut sent = sql.to_vec();
        for part in self.without.iter().rev() {
            sent.drain(part.clone());
        }
        sent
    }

    pub(super) fn left_out(why: &'static str) -> Admitted {
        Admitted { left_out: Some(why), ..Admitted::default() }
    }
}

/// The statement would do nothing.
pub(super) const NOTHING: &str = "";

pub(super) const EXTENSIONS: &str = "extensions are the business of the server's owner";

const ROUTINES: &str = "functions, procedures, triggers and rules hold statements that nobody sees \
                        here\nhint: dump without them (mysqldump --skip-triggers), or make them \
                        yourself and measure the tables as they are, without `load = true`";

/// The end of a statement that is admitted.
pub(super) fn done(statement: Statement<'_>) -> Result<Admitted, Refusal> {
    statement.end().map(|()| Admitted::default())
}

/// Why routines and the like are refused.
pub(super) fn routines() -> Refusal {
    ROUTINES.to_owned()
}

// What a load has made so far, and in which schema or database: only that may it fill and change.

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
    /// Names after a point, which Postgres may take for functions: `a.f` is `f(a)`.
    pub(super) attributes: BTreeSet<String>,
    /// Those of them that may be of a value.
    pub(super) of_values: BTreeSet<String>,
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
            attributes: BTreeSet::new(),
            of_values: BTreeSet::new(),
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
