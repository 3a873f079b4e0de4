//! A walk over the tokens of one reading of a statement.

use std::ops::Range;

use crate::admission::tokens::{Token, TokenKind};
use crate::changes::ChangedRelation;
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
