//! Statements whose values are text, with types inferred by the server, as libpq programs send
//! them: prepared, parsed each time, or in a pipeline.

use super::{PostgresClient, Sent, Statement};
use crate::postgres::message::{self, header, whole};
use crate::rows::{CountRows, KeepRows, LastRow, LastRows};
use crate::{Prepared, Reply, RowTexts, Value, WireError};

/// Result formats: all text.
const TEXT_RESULTS: [u8; 2] = [0, 0];
/// Describe of the portal.
const DESCRIBE: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];
/// Execute without a limit of rows.
const EXECUTE: [u8; 10] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// A statement to execute with values.
#[derive(Clone, Copy, Debug)]
pub enum TextCall<'a> {
    /// A statement prepared by [`PostgresClient::prepare_text`].
    Prepared(Prepared),
    /// A statement to parse now.
    Parsed(&'a str),
}

impl PostgresClient {
    /// Prepares a statement with `$1` placeholders whose types the server infers.
    pub fn prepare_text(&mut self, sql: &str) -> Result<Prepared, WireError> {
        let number = self.statements.len();
        self.output.clear();
        message::parse(&mut self.output, number, sql, &[])
            .and_then(|()| message::describe(&mut self.output, number))?;
        message::sync(&mut self.output);
        self.channel.send(&self.output)?;
        let described = self.finish_prepare()?;
        self.statements.push(Statement {
            bind: format!("\0s{number}\0").into_bytes(),
            forms: Vec::new(),
            result_set: described.result_set,
        });
        Ok(Prepared(number))
    }

    /// Executes a statement with values that are text or NULL. `results` keeps the last row of its
    /// result.
    pub fn call_text(
        &mut self,
        call: TextCall<'_>,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        self.output.clear();
        let result_set = self.append(call, values, results.is_some())?;
        message::sync(&mut self.output);
        self.channel.send(&self.output)?;
        let reply = Reply { result_set, ..Reply::default() };
        match results {
            None => self.finish(Sent::Extended, reply, &mut CountRows),
            Some(results) => self.finish_results(Sent::Extended, results),
        }
    }

    /// Executes a statement as [`PostgresClient::call_text`]; its rows, as text, replace those in
    /// `rows`.
    pub fn text_rows(
        &mut self,
        call: TextCall<'_>,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        rows.clear();
        self.output.clear();
        let result_set = self.append(call, values, false)?;
        message::sync(&mut self.output);
        self.channel.send(&self.output)?;
        let reply = Reply { result_set, ..Reply::default() };
        self.finish(Sent::Extended, reply, &mut KeepRows { rows, read: message::text_values })
    }

    /// Runs text through the simple protocol and keeps the last row of each of its results.
    pub fn simple_results(
        &mut self,
        sql: &str,
        results: &mut LastRows,
    ) -> Result<Reply, WireError> {
        let sent = self.query(sql)?;
        self.finish_results(sent, results)
    }

    /// True inside a transaction, also a failed one.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction != b'I'
    }

    /// Begins a pipeline. [`PostgresClient::sync_pipeline`] sends the queued statements. Nothing
    /// else may use the connection until [`PostgresClient::end_pipeline`].
    pub fn begin_pipeline(&mut self) {
        self.output.clear();
    }

    /// Adds a statement to the pipeline.
    pub fn queue(&mut self, call: TextCall<'_>, values: &[Value<'_>]) -> Result<(), WireError> {
        self.append(call, values, false).map(drop)
    }

    /// Sends the queued statements and a Sync.
    pub fn sync_pipeline(&mut self) -> Result<(), WireError> {
        message::sync(&mut self.output);
        let sent = self.channel.send(&self.output);
        self.output.clear();
        sent
    }

    /// Reads the replies of a pipeline up to Sync number `syncs`, and calls `each` for each reply.
    /// Returns the first error after reading all.
    pub fn end_pipeline(
        &mut self,
        syncs: u32,
        each: &mut dyn FnMut(Reply),
    ) -> Result<(), WireError> {
        let (mut refused, mut left) = (None, syncs);
        let (mut reply, mut before) = (Reply::default(), self.channel.consumed());
        while left > 0 {
            let (kind, length) = header(&mut self.channel)?;
            match kind {
                b'D' => {
                    reply.rows += 1;
                    reply.result_set = true;
                }
                b'2' => {}
                b'C' => {
                    let tag = whole(&mut self.channel, kind, length)?;
                    reply.affected = message::affected(tag);
                    reply.result_set |= tag.starts_with(b"SELECT");
                    let now = self.channel.consumed();
                    each(Reply { bytes: now - before, ..std::mem::take(&mut reply) });
                    before = now;
                }
                b'Z' => {
                    self.ready(length)?;
                    left -= 1;
                    continue;
                }
                _ => self.unusual(Sent::Extended, kind, length, &mut reply, &mut refused)?,
            }
            self.channel.skip(message::HEADER + length)?;
        }
        refused.map_or(Ok(()), Err)
    }

    /// Appends Parse, Bind and Execute. True if the statement is known to return rows.
    fn append(
        &mut self,
        call: TextCall<'_>,
        values: &[Value<'_>],
        describe: bool,
    ) -> Result<bool, WireError> {
        let output = &mut self.output;
        let (names, result_set): (&[u8], bool) = match call {
            TextCall::Prepared(Prepared(number)) => match self.statements.get(number) {
                Some(statement) => (&statement.bind, statement.result_set),
                None => {
                    let what = format!("the session has no prepared statement number {number}");
                    return Err(WireError::Protocol(what));
                }
            },
            TextCall::Parsed(sql) => {
                let position = message::begin(output, b'P');
                output.push(0);
                message::text(output, sql)?;
                output.extend_from_slice(&[0, 0]);
                message::end(output, position)?;
                // The tag or the rows of the reply show whether it returns rows.
                (&[0, 0], starts_like_a_query(sql))
            }
        };
        bind(output, names, values)?;
        if describe {
            output.extend_from_slice(&DESCRIBE);
        }
        output.extend_from_slice(&EXECUTE);
        Ok(result_set)
    }

    fn finish_results(&mut self, sent: Sent, results: &mut LastRows) -> Result<Reply, WireError> {
        results.clear();
        let before = self.channel.consumed();
        let (mut reply, mut refused, mut has_begun) = (Reply::default(), None, false);
        loop {
            let (kind, length) = header(&mut self.channel)?;
            match kind {
                b'T' => {
                    reply.result_set = true;
                    has_begun = true;
                    let result = results.begin();
                    let body = whole(&mut self.channel, kind, length)?;
                    if !columns(body, &mut |name| result.column(name)) {
                        return Err(self.channel.confused("invalid description of rows"));
                    }
                    result.end_columns();
                }
                b'D' => {
                    reply.rows += 1;
                    let body = whole(&mut self.channel, kind, length)?;
                    let values = results.last().map(LastRow::next_row);
                    if values.and_then(|values| message::text_values(body, values)).is_none() {
                        return Err(self.channel.confused("invalid row"));
                    }
                }
                b'2' => {}
                b'C' => {
                    let affected = message::affected(whole(&mut self.channel, kind, length)?);
                    reply.affected = reply.affected.saturating_add(affected);
                    if !has_begun {
                        results.begin();
                    }
                    has_begun = false;
                }
                b'Z' => {
                    self.ready(length)?;
                    break;
                }
                _ => self.unusual(sent, kind, length, &mut reply, &mut refused)?,
            }
            self.channel.skip(message::HEADER + length)?;
        }
        reply.bytes = self.channel.consumed() - before;
        refused.map_or(Ok(reply), Err)
    }
}

/// True if the first word of a statement says that it returns rows.
fn starts_like_a_query(sql: &str) -> bool {
    let word = sql.trim_start().get(..6).unwrap_or_default();
    word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("values")
}

/// Appends Bind: the names of portal and statement, values as text, results as text.
fn bind(output: &mut Vec<u8>, names: &[u8], values: &[Value<'_>]) -> Result<(), String> {
    let position = message::begin(output, b'B');
    output.extend_from_slice(names);
    // No formats: all values are text.
    output.extend_from_slice(&[0, 0]);
    let count = u16::try_from(values.len()).map_err(|_| "too many values".to_owned())?;
    output.extend_from_slice(&count.to_be_bytes());
    for value in values {
        match value {
            Value::Null => output.extend_from_slice(&(-1i32).to_be_bytes()),
            Value::Text(text) => {
                output.extend_from_slice(&(text.len() as u32).to_be_bytes());
                output.extend_from_slice(text);
            }
            other => return Err(format!("{other:?} is no text")),
        }
    }
    output.extend_from_slice(&TEXT_RESULTS);
    message::end(output, position)
}

/// Calls `each` for the names in a RowDescription. False if the message is invalid.
fn columns(body: &[u8], each: &mut dyn FnMut(&[u8])) -> bool {
    /// Bytes after a name: table, column, type, its size, modifier, format.
    const FACTS: usize = 18;
    let Some((count, mut rest)) = body.split_first_chunk::<2>() else { return false };
    for _ in 0..u16::from_be_bytes(*count) {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { return false };
        each(&rest[..end]);
        let Some(after) = rest.get(end + 1 + FACTS..) else { return false };
        rest = after;
    }
    true
}
