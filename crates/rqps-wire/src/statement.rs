//! Values of prepared statements, and replies.

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
    /// Bytes; on Postgres of the type that the context of the placeholder requires.
    Bytes,
    /// A whole number; on Postgres of the type that the context of the placeholder requires.
    AnyInt,
    /// Text; on Postgres read as the type that the context of the placeholder requires.
    AnyText,
}

/// The reply to a text or a prepared statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Rows returned.
    pub rows: u64,
    /// Rows changed, as the server reports them.
    pub affected: u64,
    /// Bytes of the reply, with the protocol's headers.
    pub bytes: u64,
    /// True if the statement returned a result set, empty or not.
    pub result_set: bool,
}

/// A prepared statement of one connection: its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);
