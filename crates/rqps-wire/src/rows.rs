//! The rows of a reply: kept as text, taken as numbers, or only counted.

use rqps_model::row_digest::RowDigest;

/// Rows as text, for statements that are not measured; `None` is NULL.
pub type TextRows = Vec<Vec<Option<String>>>;

/// Rows as text. Keeps its memory for the next reply.
#[derive(Clone, Debug, Default)]
pub struct RowTexts {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`, and false for NULL.
    ends: Vec<(usize, bool)>,
    /// Number of values up to the end of each row: the results of one reply may have different
    /// columns.
    row_ends: Vec<usize>,
    /// Takes each row at its end, so that no row is kept.
    digest: Option<Box<RowDigest>>,
}

impl RowTexts {
    /// Rows that go into a digest, one after the other, and are not kept.
    pub fn digesting(digest: RowDigest) -> RowTexts {
        RowTexts { digest: Some(Box::new(digest)), ..RowTexts::default() }
    }

    /// The digest of the rows so far.
    pub fn digest(&self) -> Option<&RowDigest> {
        self.digest.as_deref()
    }

    /// Removes all rows; keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.row_ends.clear();
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.row_ends.len()
    }

    /// Columns of the first row; 0 without rows.
    pub fn columns(&self) -> usize {
        self.row_ends.first().copied().unwrap_or(0)
    }

    /// A value by row and column, both from 0; `None` for NULL, or if there is no such value.
    pub fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        let end = *self.row_ends.get(row)?;
        let index = self.first_of(row) + column;
        if index < end { self.at(index) } else { None }
    }

    /// The values of a row, from 0, in the order of its columns; `None` if there is no such row.
    pub fn row(&self, row: usize) -> Option<impl Iterator<Item = Option<&[u8]>>> {
        let end = *self.row_ends.get(row)?;
        Some((self.first_of(row)..end).map(|index| self.at(index)))
    }

    fn first_of(&self, row: usize) -> usize {
        row.checked_sub(1).map_or(0, |before| self.row_ends[before])
    }

    fn at(&self, index: usize) -> Option<&[u8]> {
        let (end, is_there) = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        is_there.then(|| &self.bytes[start..end])
    }

    /// Adds a value to the current row.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// Formats a value into the current row.
    pub(super) fn push_written(&mut self, text: std::fmt::Arguments<'_>) {
        use std::io::Write;
        // Writing to memory cannot fail.
        self.bytes.write_fmt(text).unwrap_or(());
        self.ends.push((self.bytes.len(), true));
    }

    /// Ends the current row.
    #[inline]
    pub fn end_row(&mut self) {
        self.row_ends.push(self.ends.len());
        if self.digest.is_some() {
            self.take_row();
        }
    }

    /// Hands the only row over to the digest.
    #[cold]
    fn take_row(&mut self) {
        if let Some(mut digest) = self.digest.take() {
            digest.add((0..self.ends.len()).map(|index| self.at(index)));
            self.digest = Some(digest);
        }
        self.clear();
    }

    /// Copies the rows.
    pub fn into_texts(self) -> TextRows {
        let text = |value: Option<&[u8]>| value.map(|it| String::from_utf8_lossy(it).into_owned());
        (0..self.rows()).filter_map(|row| Some(self.row(row)?.map(text).collect())).collect()
    }
}

/// Adds the values of a row in the protocol's text form and ends the row; `None` if the row is
/// invalid.
pub(super) type ReadRow = fn(&[u8], &mut RowTexts) -> Option<()>;

/// A use of the rows of a reply.
pub(super) trait RowSink {
    /// False if `row` is never called, so that long rows need not fit in memory.
    const WANTS_ROWS: bool;

    /// True if `column` must be called before the rows.
    const WANTS_COLUMNS: bool = false;

    /// Takes the definition of a column in the protocol's own form. `first`: a result begins. False
    /// if the definition is invalid.
    fn column(&mut self, _body: &[u8], _first: bool) -> bool {
        true
    }

    /// Takes a whole row in the protocol's own form. False if the row is invalid.
    fn row(&mut self, body: &[u8]) -> bool;
}

/// Keeps the only column of each row: a whole number from 0 to 2³² − 1.
pub(super) struct Ids<'a> {
    pub(super) ids: &'a mut Vec<u32>,
    /// Reads the number of a row.
    pub(super) number: fn(&[u8]) -> Option<u64>,
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
pub(super) struct KeepRows<'a> {
    pub(super) rows: &'a mut RowTexts,
    pub(super) read: ReadRow,
}

impl RowSink for KeepRows<'_> {
    const WANTS_ROWS: bool = true;

    #[inline]
    fn row(&mut self, body: &[u8]) -> bool {
        (self.read)(body, self.rows).is_some()
    }
}

/// Most bytes of rows that `rows` collects: lists of objects, settings and counters have some
/// thousand.
const COLLECTED_MAX: usize = 64 << 20;

/// Keeps rows as text up to a length, whatever the server sends.
pub(super) struct CollectRows<'a>(pub(super) KeepRows<'a>);

impl RowSink for CollectRows<'_> {
    const WANTS_ROWS: bool = true;

    fn row(&mut self, body: &[u8]) -> bool {
        // A value has its bytes and its end; a row has its end and its list of values.
        let of_row = size_of::<usize>() + size_of::<Vec<Option<String>>>();
        let ends = size_of::<(usize, bool)>() * self.0.rows.ends.len()
            + of_row * self.0.rows.row_ends.len();
        self.0.rows.bytes.len() + ends + body.len() < COLLECTED_MAX && self.0.row(body)
    }
}

/// Only counts rows.
pub(super) struct CountRows;

impl RowSink for CountRows {
    const WANTS_ROWS: bool = false;

    fn row(&mut self, _body: &[u8]) -> bool {
        true
    }
}

// The last row of each result of a text, for scripts that use its values.

/// The last row of each result of a text. Keeps its memory for the next text.
#[derive(Clone, Debug, Default)]
pub struct LastRows {
    results: Vec<LastRow>,
    /// Results of the current text.
    used: usize,
}

/// The last row of one result.
#[derive(Clone, Debug, Default)]
pub struct LastRow {
    /// Number of rows of the result.
    pub rows: u64,
    /// The names of the columns, as one row.
    names: RowTexts,
    values: RowTexts,
}

impl LastRows {
    /// The results of the current text.
    pub fn results(&self) -> &[LastRow] {
        &self.results[..self.used]
    }

    /// Forgets all results; keeps their memory.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Begins a result without columns. A statement that returns no rows keeps it so.
    pub fn begin(&mut self) -> &mut LastRow {
        if self.used == self.results.len() {
            self.results.push(LastRow::default());
        }
        self.used += 1;
        let result = &mut self.results[self.used - 1];
        result.rows = 0;
        result.names.clear();
        result.values.clear();
        result
    }

    /// The newest result.
    pub fn last(&mut self) -> Option<&mut LastRow> {
        self.used.checked_sub(1).map(|last| &mut self.results[last])
    }
}

impl LastRow {
    /// Adds a column.
    pub fn column(&mut self, name: &[u8]) {
        self.names.push(Some(name));
    }

    /// Ends the columns.
    pub fn end_columns(&mut self) {
        self.names.end_row();
    }

    /// Forgets the last row and returns the memory for the next one.
    pub fn next_row(&mut self) -> &mut RowTexts {
        self.rows += 1;
        self.values.clear();
        &mut self.values
    }

    /// Names and values of the columns of the last row, in their order; NULL is an empty text.
    pub fn cells(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.names.columns()).map(|column| {
            let (name, value) = (self.names.value(0, column), self.values.value(0, column));
            (name.unwrap_or_default(), value.unwrap_or_default())
        })
    }

    /// False if the statement is of a kind that returns no rows.
    pub fn has_columns(&self) -> bool {
        self.names.columns() > 0
    }
}

// Values of prepared statements, and replies.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_columns_are_bounded_too() {
        let mut rows = RowTexts::default();
        let read: ReadRow = |_, rows| {
            rows.end_row();
            Some(())
        };
        let mut sink = CollectRows(KeepRows { rows: &mut rows, read });
        let most = COLLECTED_MAX / (size_of::<usize>() + size_of::<Vec<u8>>());
        assert!((0..=most + 1).any(|_| !sink.row(b"")));
    }

    #[test]
    fn rows_of_several_results_keep_their_own_columns() {
        let mut rows = RowTexts::default();
        for round in 0..2 {
            rows.clear();
            assert_eq!((rows.rows(), rows.columns()), (0, 0), "round {round}");
            rows.push(Some(b"1"));
            rows.push(None);
            rows.end_row();
            rows.push(Some(b""));
            rows.end_row();
            assert_eq!((rows.rows(), rows.columns()), (2, 2));
            assert_eq!(rows.value(0, 0), Some(&b"1"[..]));
            assert_eq!((rows.value(0, 1), rows.value(0, 2), rows.value(2, 0)), (None, None, None));
            assert_eq!((rows.value(1, 0), rows.value(1, 1)), (Some(&b""[..]), None));
            assert_eq!(
                rows.row(1).map(|values| values.collect::<Vec<_>>()),
                Some(vec![Some(&[][..])])
            );
            assert!(rows.row(2).is_none());
        }
        let texts = rows.into_texts();
        assert_eq!(texts, [vec![Some("1".to_owned()), None], vec![Some(String::new())]]);
    }

    #[test]
    fn only_the_last_row_of_each_result_stays_and_memory_is_used_again() {
        let mut rows = LastRows::default();
        for round in 0..2 {
            rows.clear();
            let result = rows.begin();
            result.column(b"a");
            result.column(b"b");
            result.end_columns();
            for value in [&b"1"[..], b"22"] {
                let row = result.next_row();
                row.push(Some(value));
                row.push(None);
                row.end_row();
            }
            rows.begin();
            assert_eq!(rows.results().len(), 2, "round {round}");
            let first = &rows.results()[0];
            assert_eq!(first.rows, 2);
            let cells: Vec<_> = first.cells().collect();
            assert_eq!(cells, [(&b"a"[..], &b"22"[..]), (b"b", b"")]);
            assert!(!rows.results()[1].has_columns() && first.has_columns());
        }
    }
}
