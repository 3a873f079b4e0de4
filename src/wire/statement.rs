//! Values of a prepared statement, and its reply.

/// A value bound to a placeholder. Integers are 64-bit on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// BIGINT / int8.
    Int(i64),
    /// VARCHAR / text.
    Text(&'a [u8]),
    /// A value in the binary form of the type that the server infers: BLOB, vector.
    Bytes(&'a [u8]),
    /// NULL.
    Null,
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
    /// A whole number; on Postgres of whatever type the place of the placeholder asks for.
    AnyInt,
    /// Text; on Postgres read as whatever type the place of the placeholder asks for.
    AnyText,
}

/// The reply to one statement.
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
