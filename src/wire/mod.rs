//! Blocking clients for the Postgres and MySQL protocols, made for measuring: a statement costs one
//! write and one read (on a unix socket with a poll between them, which is cheaper: socket.rs says
//! why), rows are counted but not decoded, and nothing is allocated per statement once buffers have
//! grown.

pub mod dsn;
pub mod mysql;
pub mod postgres;
mod rsa;
mod socket;
#[cfg(feature = "tls")]
mod tls;

use thiserror::Error;

/// A value bound to a placeholder. Integers are 64-bit on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// BIGINT / int8.
    Int(i64),
    /// VARCHAR / text.
    Text(&'a [u8]),
    /// A value in the binary form of the type that the server infers: BLOB, vector.
    Bytes(&'a [u8]),
}

/// Types of placeholders, declared when a statement is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// 64-bit integer.
    Int,
    /// Text.
    Text,
    /// Bytes; on Postgres of whatever type the place of the placeholder asks for.
    Bytes,
}

/// What came back of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Rows returned.
    pub rows: u64,
    /// Rows changed, as the server reports.
    pub affected: u64,
    /// Bytes of the reply.
    pub bytes: u64,
    /// True if the statement returned a result set, empty or not.
    pub result_set: bool,
}

/// A prepared statement of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// What went wrong on a session.
#[derive(Debug, Error)]
pub enum WireError {
    /// The server refused the statement; the session lives on.
    #[error("{message} ({code})")]
    Server {
        /// SQLSTATE for Postgres (`40001`), error number for MySQL (`1213`), result code for
        /// SQLite.
        code: String,
        /// The server's words.
        message: String,
    },
    /// The connection is broken or was never made.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done: "connect to /tmp/x/.s.PGSQL.5432".
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The server said something that this client does not understand or support.
    #[error("{0}")]
    Protocol(String),
}

impl WireError {
    /// The server's code, if it was the server who refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Server { code, .. } => Some(code),
            WireError::Io { .. } | WireError::Protocol(_) => None,
        }
    }
}

/// Rows of text as the control plane reads them: `None` is NULL.
pub type TextRows = Vec<TextRow>;

type TextRow = Vec<Option<String>>;

/// What is done with the rows of a reply.
trait RowSink {
    /// False if rows are counted only: then a row need never be in memory as a whole.
    const WANTS_ROWS: bool;

    /// A whole row in the protocol's own text form. False if it makes no sense.
    fn row(&mut self, body: &[u8]) -> bool;
}

/// Keeps the one column of each row: a whole number that is not negative.
struct Ids<'a> {
    ids: &'a mut Vec<u32>,
    /// Finds the bytes of the number in a row, the most significant first.
    number: fn(&[u8]) -> Option<u64>,
}

impl RowSink for Ids<'_> {
    const WANTS_ROWS: bool = true;

    #[inline]
    fn row(&mut self, body: &[u8]) -> bool {
        match (self.number)(body).map(u32::try_from) {
            Some(Ok(id)) => {
                self.ids.push(id);
                true
            }
            _ => false,
        }
    }
}

/// Keeps rows as text.
struct Rows {
    rows: TextRows,
    /// Reads a row.
    text: fn(&[u8]) -> Option<TextRow>,
}

impl RowSink for Rows {
    const WANTS_ROWS: bool = true;

    fn row(&mut self, body: &[u8]) -> bool {
        let row = (self.text)(body);
        let read = row.is_some();
        self.rows.extend(row);
        read
    }
}

/// Counts rows without looking at them.
struct CountRows;

impl RowSink for CountRows {
    const WANTS_ROWS: bool = false;

    fn row(&mut self, _body: &[u8]) -> bool {
        true
    }
}
