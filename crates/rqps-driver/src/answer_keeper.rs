//! A session that carries out only what reads, and keeps the answers: two targets are compared by
//! them. What would write is not sent.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::cancel;
use rqps_model::answers::{AnswerReply, StatementAnswer, StepAnswers};
use rqps_model::dialect::Dialect;
use rqps_model::row_digest::{RowDigest, RowsRecord};
use rqps_text::reading::{self, Effect};
use rqps_wire::{LastRows, Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// Numbers of statements that were not prepared because they write.
const UNPREPARED: usize = usize::MAX / 2;

/// Most answers to one text.
const OF_ONE_TEXT: usize = 5;

/// Most answers.
const ANSWERS: usize = 60;

/// Most bytes of texts, values and rows that are kept.
const KEPT_BYTES: usize = 48 << 10;

/// Most bytes of a text, and of a value.
const TEXT_BYTES: usize = 8 << 10;
const VALUE_BYTES: usize = 200;

/// A faster statement is executed a second time, which tells whether it repeats itself.
const FAST: Duration = Duration::from_millis(100);

/// A session by which statements are executed.
pub trait AskedSession {
    /// Prepares a statement.
    fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError>;
    /// Prepares a statement with this number of values that are text.
    fn prepare_text(&mut self, sql: &str, values: usize) -> Result<Prepared, WireError>;
    /// Executes a prepared statement; its rows replace those in `rows`.
    fn prepared_rows(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError>;
    /// Executes a statement with values that are text; its rows replace those in `rows`.
    fn text_rows(
        &mut self,
        text: TextStatement<'_>,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError>;
    /// Executes a statement with values that are text, and keeps the last row of each result.
    fn text_results(
        &mut self,
        text: TextStatement<'_>,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError>;
}

/// A statement whose values are text.
#[derive(Clone, Copy, Debug)]
pub enum TextStatement<'a> {
    /// Without values.
    Simple(&'a str),
    /// Prepared by [`AskedSession::prepare_text`].
    Prepared(Prepared),
    /// Parsed and executed in one round trip.
    Parsed(&'a str),
}

/// A session whose reads are kept.
pub struct AnswerKeeper<S> {
    inner: S,
    dialect: Dialect,
    /// Number → text.
    prepared: HashMap<usize, String>,
    /// Text → its place in the answers, and how often it was answered.
    known: HashMap<String, (u32, usize)>,
    found: StepAnswers,
    bytes: usize,
    is_keeping: bool,
    /// True on a server that others run. There rqps sets nothing that outlives a transaction of
    /// others behind a pooler, and reads in transactions that cannot write.
    is_guest: bool,
}

/// Has a session refuse to write as far as its version can.
pub fn only_read<S: AskedSession>(session: &mut S, dialect: Dialect) {
    let setup: &[&str] = match dialect {
        Dialect::Postgres => &["SET default_transaction_read_only = on"],
        Dialect::Mysql => &["SET SESSION TRANSACTION READ ONLY"],
        Dialect::Sqlite => &["PRAGMA query_only = 1"],
        Dialect::KeyValue | Dialect::Fake => &[],
    };
    for sql in setup {
        // Old versions do not know it.
        drop(session.text_rows(TextStatement::Simple(sql), &[], &mut RowTexts::default()));
    }
}

/// Executes a statement and hands its rows over.
type Run<'a, S> = dyn FnMut(&mut S, &mut RowTexts) -> Result<Reply, WireError> + 'a;

impl<S: AskedSession> AnswerKeeper<S> {
    /// Records what `inner` answers, which `is_guest` on a server of others.
    pub fn over(inner: S, dialect: Dialect, is_guest: bool) -> AnswerKeeper<S> {
        let (prepared, known, found) = (HashMap::new(), HashMap::new(), StepAnswers::default());
        let (bytes, is_keeping) = (0, false);
        AnswerKeeper { inner, dialect, prepared, known, found, bytes, is_keeping, is_guest }
    }

    /// Before an event: what it calls cannot write, either.
    pub fn begin_event(&mut self) -> Result<(), WireError> {
        match self.dialect {
            Dialect::Postgres => self.as_guest("BEGIN READ ONLY"),
            _ => self.as_guest("START TRANSACTION READ ONLY"),
        }
    }

    /// After an event, whatever became of it.
    pub fn end_event(&mut self) -> Result<(), WireError> {
        self.as_guest("COMMIT")
    }

    fn as_guest(&mut self, sql: &str) -> Result<(), WireError> {
        if !self.is_guest {
            return Ok(());
        }
        let said = TextStatement::Simple(sql);
        self.inner.text_rows(said, &[], &mut RowTexts::default()).map(drop)
    }

    /// True if it would begin or end the transaction around an event of a guest.
    fn ends_reading(&self, sql: &str) -> bool {
        let words = sql.trim_start().to_ascii_uppercase();
        self.is_guest && (!words.starts_with("SET") || words.contains("AUTOCOMMIT"))
    }

    /// The session.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// From now on, answers are kept.
    pub fn begin(&mut self) {
        self.is_keeping = true;
    }

    /// The answers since the last call, with the texts that are new.
    pub fn take(&mut self) -> StepAnswers {
        std::mem::take(&mut self.found)
    }

    /// True if no more answers are kept.
    pub fn is_full(&self) -> bool {
        let answers: usize = self.known.values().map(|(_, answers)| answers).sum();
        self.bytes >= KEPT_BYTES || answers >= ANSWERS
    }

    /// As [`AskedSession::prepare`].
    pub fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError> {
        self.prepare_with(sql, &mut |session, sql| session.prepare(sql, types))
    }

    /// As [`AskedSession::prepare_text`].
    pub fn prepare_text(&mut self, sql: &str, values: usize) -> Result<Prepared, WireError> {
        self.prepare_with(sql, &mut |session, sql| session.prepare_text(sql, values))
    }

    fn prepare_with(
        &mut self,
        sql: &str,
        prepare: &mut dyn FnMut(&mut S, &str) -> Result<Prepared, WireError>,
    ) -> Result<Prepared, WireError> {
        let statement = match reading::effect(self.dialect, sql) {
            Effect::Reads(sql) => prepare(&mut self.inner, &sql)?,
            Effect::Frames => prepare(&mut self.inner, sql)?,
            Effect::Other => Prepared(UNPREPARED + self.prepared.len()),
        };
        self.prepared.insert(statement.0, sql.to_owned());
        Ok(statement)
    }

    /// Executes a prepared statement.
    pub fn execute(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
    ) -> Result<Reply, WireError> {
        let sql = self.text_of(statement);
        self.carry_out(&sql, values, &mut |session, rows| {
            session.prepared_rows(statement, values, rows)
        })
    }

    /// Executes a prepared statement; its rows replace those in `rows`.
    pub fn execute_rows(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        rows.clear();
        let reply = self.execute(statement, values)?;
        match reply.result_set && statement.0 < UNPREPARED {
            true => self.inner.prepared_rows(statement, values, rows),
            false => Ok(reply),
        }
    }

    /// Executes one text.
    pub fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        match reading::effect(self.dialect, sql) {
            Effect::Reads(read) => self.carry_out(sql, &[], &mut |session, rows| {
                session.text_rows(TextStatement::Simple(&read), &[], rows)
            }),
            _ => self.carry_out(sql, &[], &mut |session, rows| {
                session.text_rows(TextStatement::Simple(sql), &[], rows)
            }),
        }
    }

    /// Executes one text; its rows replace those in `rows`.
    pub fn simple_rows(&mut self, sql: &str, rows: &mut RowTexts) -> Result<Reply, WireError> {
        rows.clear();
        let reply = self.simple(sql)?;
        match (reply.result_set, reading::effect(self.dialect, sql)) {
            (true, Effect::Reads(sql)) => {
                self.inner.text_rows(TextStatement::Simple(&sql), &[], rows)
            }
            _ => Ok(reply),
        }
    }

    /// Executes one text; returns its rows.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, WireError> {
        let mut rows = RowTexts::default();
        self.simple_rows(sql, &mut rows)?;
        let text = |value: Option<&[u8]>| value.map(|it| String::from_utf8_lossy(it).into_owned());
        let all = (0..rows.rows()).filter_map(|row| rows.row(row));
        Ok(all.map(|row| row.map(text).collect()).collect())
    }

    /// Executes one text, and keeps the last row of each of its results.
    pub fn simple_results(
        &mut self,
        sql: &str,
        results: &mut LastRows,
    ) -> Result<Reply, WireError> {
        results.clear();
        let reply = self.simple(sql)?;
        match (reply.result_set, reading::effect(self.dialect, sql)) {
            (true, Effect::Reads(sql)) => {
                self.inner.text_results(TextStatement::Simple(&sql), &[], Some(results))
            }
            _ => {
                results.begin();
                Ok(reply)
            }
        }
    }

    /// Executes a statement of [`AnswerKeeper::prepare_text`].
    pub fn execute_text(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        let sql = self.text_of(statement);
        self.text(&sql, (TextStatement::Prepared(statement), values), results)
    }

    /// Parses and executes a statement in one round trip.
    pub fn parse_and_execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        match reading::effect(self.dialect, sql) {
            Effect::Reads(read) => self.text(sql, (TextStatement::Parsed(&read), values), results),
            _ => self.text(sql, (TextStatement::Parsed(sql), values), results),
        }
    }

    fn text(
        &mut self,
        sql: &str,
        (text, values): (TextStatement<'_>, &[Value<'_>]),
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        let reply = self
            .carry_out(sql, values, &mut |session, rows| session.text_rows(text, values, rows))?;
        match results {
            Some(results) if reply.result_set => {
                self.inner.text_results(text, values, Some(results))
            }
            Some(results) => {
                results.clear();
                results.begin();
                Ok(reply)
            }
            None => Ok(reply),
        }
    }

    fn text_of(&self, statement: Prepared) -> String {
        self.prepared.get(&statement.0).cloned().unwrap_or_default()
    }

    /// Executes a statement unless it writes, and keeps its answer.
    fn carry_out(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        run: &mut Run<'_, S>,
    ) -> Result<Reply, WireError> {
        cancel::begin();
        match reading::effect(self.dialect, sql) {
            // A session that only reads may not begin what would write; others see no difference.
            Effect::Frames if self.dialect == Dialect::Sqlite => Ok(Reply::default()),
            Effect::Frames if self.ends_reading(sql) => Ok(Reply::default()),
            Effect::Frames => run(&mut self.inner, &mut RowTexts::default()),
            Effect::Other => {
                self.place(sql);
                Ok(Reply { affected: 1, ..Reply::default() })
            }
            Effect::Reads(_) => match self.place(sql) {
                Some(place) => self.answer(sql, (place, values), run),
                None => run(&mut self.inner, &mut RowTexts::digesting(RowDigest::default())),
            },
        }
    }

    /// The place of a text; `None` if it, or its next answer, is not kept.
    fn place(&mut self, sql: &str) -> Option<u32> {
        if !self.is_keeping || self.is_full() || sql.len() > TEXT_BYTES {
            return None;
        }
        if let Some((place, answers)) = self.known.get(sql) {
            return (*answers < OF_ONE_TEXT).then_some(*place);
        }
        let place = self.known.len() as u32;
        self.known.insert(sql.to_owned(), (place, 0));
        self.found.statements.push(sql.to_owned());
        self.bytes += sql.len();
        Some(place)
    }

    fn answer(
        &mut self,
        sql: &str,
        (statement, values): (u32, &[Value<'_>]),
        run: &mut Run<'_, S>,
    ) -> Result<Reply, WireError> {
        let began = Instant::now();
        let mut rows = RowTexts::digesting(RowDigest::default());
        let result = run(&mut self.inner, &mut rows);
        let is_fast = began.elapsed() < FAST;
        let reply = match &result {
            Ok(_) => {
                let record = record(&rows);
                let repeats = match is_fast {
                    true => {
                        let mut again = RowTexts::digesting(RowDigest::default());
                        run(&mut self.inner, &mut again)?;
                        Some(self::record(&again).any_order == record.any_order)
                    }
                    false => None,
                };
                AnswerReply::Rows { rows: record, repeats }
            }
            Err(WireError::Server { code, message }) => {
                AnswerReply::Refused { code: code.clone(), message: shortened(message.as_bytes()) }
            }
            Err(_) => return result,
        };
        let text = |value: &Value<'_>| match value {
            Value::Null => None,
            Value::Int(number) => Some(number.to_string()),
            Value::Text(text) | Value::Bytes(text) => Some(shortened(text)),
        };
        let values: Vec<Option<String>> = values.iter().map(text).collect();
        self.bytes += bytes_of(&values, &reply);
        if let Some((_, answers)) = self.known.get_mut(sql) {
            *answers += 1;
        }
        self.found.answers.push(StatementAnswer { statement, values, reply });
        result
    }
}

fn record(rows: &RowTexts) -> RowsRecord {
    rows.digest().map(RowDigest::record).unwrap_or_default()
}

fn shortened(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(VALUE_BYTES)]).into_owned()
}

/// About the bytes of an answer on disk.
fn bytes_of(values: &[Option<String>], reply: &AnswerReply) -> usize {
    let of = |values: &[Option<String>]| -> usize {
        values.iter().flatten().map(|value| value.len() + 8).sum()
    };
    let rows = match reply {
        AnswerReply::Rows { rows, .. } => rows.sample.iter().map(|row| 48 + of(&row.values)).sum(),
        AnswerReply::Refused { message, .. } => message.len(),
    };
    200 + of(values) + rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that writes down what is sent.
    #[derive(Default)]
    struct Listener(Vec<String>);

    impl AskedSession for Listener {
        fn prepare(&mut self, _: &str, _: &[ValueType]) -> Result<Prepared, WireError> {
            Ok(Prepared(0))
        }

        fn prepare_text(&mut self, _: &str, _: usize) -> Result<Prepared, WireError> {
            Ok(Prepared(0))
        }

        fn prepared_rows(
            &mut self,
            _: Prepared,
            _: &[Value<'_>],
            _: &mut RowTexts,
        ) -> Result<Reply, WireError> {
            Ok(Reply::default())
        }

        fn text_rows(
            &mut self,
            text: TextStatement<'_>,
            _: &[Value<'_>],
            _: &mut RowTexts,
        ) -> Result<Reply, WireError> {
            if let TextStatement::Simple(sql) | TextStatement::Parsed(sql) = text {
                self.0.push(sql.to_owned());
            }
            Ok(Reply::default())
        }

        fn text_results(
            &mut self,
            text: TextStatement<'_>,
            values: &[Value<'_>],
            _: Option<&mut LastRows>,
        ) -> Result<Reply, WireError> {
            self.text_rows(text, values, &mut RowTexts::default())
        }
    }

    #[test]
    fn what_a_guest_asks_stays_in_a_transaction_that_cannot_write() {
        let said = |dialect, is_guest| {
            let mut keeper = AnswerKeeper::over(Listener::default(), dialect, is_guest);
            keeper.begin_event().unwrap();
            for sql in [
                "BEGIN",
                "SET work_mem = 1",
                "set autocommit = 1",
                "SELECT refund(1)",
                "UPDATE t SET a = 1",
                "COMMIT AND CHAIN",
            ] {
                keeper.simple(sql).unwrap();
            }
            keeper.end_event().unwrap();
            keeper.inner.0
        };
        let within = ["SET work_mem = 1", "SELECT refund(1)", "COMMIT"];
        let postgres = [&["BEGIN READ ONLY"], &within[..]].concat();
        assert_eq!(said(Dialect::Postgres, true), postgres);
        let mysql = [&["START TRANSACTION READ ONLY"], &within[..]].concat();
        assert_eq!(said(Dialect::Mysql, true), mysql);
        // Own servers have been told to refuse writes.
        let own = ["BEGIN", "SET work_mem = 1", "set autocommit = 1", "SELECT refund(1)"];
        assert_eq!(said(Dialect::Mysql, false), [&own[..], &["COMMIT AND CHAIN"]].concat());
    }
}
