//! Statements whose values are text with types that the server infers, and replies that keep the
//! last row.

use crate::answer_keeper::Wanted;
use crate::connection::{Connection, refused};
use rqps_wire::postgres::{PostgresClient, TextCall};
use rqps_wire::{LastRows, Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// Names of columns, and rows.
type NamedRows = (Vec<String>, Vec<Vec<Option<String>>>);

impl Connection {
    /// Executes a text and keeps the last row of each of its results.
    pub fn simple_results(
        &mut self,
        sql: &str,
        results: &mut LastRows,
    ) -> Result<Reply, WireError> {
        match self {
            Connection::Postgres(client) => client.simple_results(sql, results),
            Connection::Mysql(client) => client.simple_results(sql, results),
            Connection::Sqlite(connection) => {
                let named = connection.named_rows(sql).map_err(refused)?;
                Ok(keep_last(&named, results))
            }
            Connection::Fake(fake) => fake.simple(sql),
            Connection::Recorded(recorded) => {
                recorded.execute(Call::Simple(sql), &[], Wanted::Results(results))
            }
        }
    }

    /// Prepares a statement with this number of values.
    pub fn prepare_text(&mut self, sql: &str, values: usize) -> Result<Prepared, WireError> {
        match self {
            Connection::Postgres(client) => client.prepare_text(sql),
            Connection::Recorded(recorded) => recorded.prepare_text(sql, values),
            _ => self.prepare(sql, &vec![ValueType::AnyText; values]),
        }
    }

    /// Executes a statement of [`Connection::prepare_text`]. Values are text or NULL.
    #[inline]
    pub fn execute_text(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        match (self, results) {
            (Connection::Postgres(client), results) => {
                client.call_text(TextCall::Prepared(statement), values, results)
            }
            (Connection::Recorded(recorded), results) => {
                let wanted = results.map_or(Wanted::Nothing, Wanted::Results);
                recorded.execute(Call::PreparedText(statement), values, wanted)
            }
            (other, None) => other.execute(statement, values),
            (other, Some(_)) => {
                other.postgres("keeps rows of a result")?;
                Ok(Reply::default())
            }
        }
    }

    /// Parses and executes a statement in one round trip. Values are text or NULL.
    pub fn parse_and_execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        results: Option<&mut LastRows>,
    ) -> Result<Reply, WireError> {
        if let Connection::Recorded(recorded) = self {
            let wanted = results.map_or(Wanted::Nothing, Wanted::Results);
            return recorded.execute(Call::Parsed(sql), values, wanted);
        }
        let client = self.postgres("parses a statement with values each time")?;
        client.call_text(TextCall::Parsed(sql), values, results)
    }

    /// True if it only reads, and keeps the answers.
    pub fn is_asked(&self) -> bool {
        matches!(self, Connection::Recorded(_))
    }

    /// True inside a transaction; `None` if the protocol does not tell.
    pub fn is_in_transaction(&self) -> Option<bool> {
        match self {
            Connection::Postgres(client) => Some(client.is_in_transaction()),
            Connection::Recorded(recorded) => recorded.inner().is_in_transaction(),
            Connection::Mysql(_) | Connection::Sqlite(_) | Connection::Fake(_) => None,
        }
    }

    /// The Postgres client, for pipelines.
    ///
    /// # Errors
    ///
    /// The session speaks another protocol; `does` completes "only a session of Postgres …".
    pub fn postgres(&mut self, does: &str) -> Result<&mut PostgresClient, WireError> {
        match self {
            Connection::Postgres(client) => Ok(client),
            _ => Err(WireError::Protocol(format!("only a session of Postgres {does}"))),
        }
    }
}

/// A way to execute a statement.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// Without values.
    Simple(&'a str),
    /// Prepared by [`Connection::prepare`].
    Prepared(Prepared),
    /// Prepared by [`Connection::prepare_text`].
    PreparedText(Prepared),
    /// Parsed and executed in one round trip.
    Parsed(&'a str),
}

impl Connection {
    /// Executes a statement; its rows, as text, replace those in `rows`.
    pub(super) fn call_rows(
        &mut self,
        call: Call<'_>,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        match (self, call) {
            (session, Call::Simple(sql)) => session.simple_rows(sql, rows),
            (Connection::Postgres(client), Call::PreparedText(statement)) => {
                client.text_rows(TextCall::Prepared(statement), values, rows)
            }
            (session, Call::Prepared(statement) | Call::PreparedText(statement)) => {
                session.execute_rows(statement, values, rows)
            }
            (session, Call::Parsed(sql)) => {
                let client = session.postgres("parses a statement with values each time")?;
                client.text_rows(TextCall::Parsed(sql), values, rows)
            }
        }
    }
}

/// Keeps the last row.
fn keep_last((names, rows): &NamedRows, results: &mut LastRows) -> Reply {
    results.clear();
    let result = results.begin();
    names.iter().for_each(|name| result.column(name.as_bytes()));
    let mut bytes = 0;
    result.end_columns();
    for row in rows {
        let values = result.next_row();
        for value in row {
            let value = value.as_deref().map(str::as_bytes);
            bytes += value.map_or(0, <[u8]>::len) as u64;
            values.push(value);
        }
        values.end_row();
    }
    Reply { rows: rows.len() as u64, bytes, result_set: !names.is_empty(), affected: 0 }
}
