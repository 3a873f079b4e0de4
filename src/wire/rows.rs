//! What becomes of the rows of a reply: read as text, taken as numbers, or only counted.

/// Rows of text as the control plane reads them: `None` is NULL.
pub type TextRows = Vec<TextRow>;

/// A row of text.
pub(super) type TextRow = Vec<Option<String>>;

/// What is done with the rows of a reply.
pub(super) trait RowSink {
    /// False if rows are counted only: then a row need never be in memory as a whole.
    const WANTS_ROWS: bool;

    /// A whole row in the protocol's own text form. False if it makes no sense.
    fn row(&mut self, body: &[u8]) -> bool;
}

/// Keeps the one column of each row: a whole number that is not negative.
pub(super) struct Ids<'a> {
    pub(super) ids: &'a mut Vec<u32>,
    /// Finds the bytes of the number in a row, the most significant first.
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
pub(super) struct Rows {
    pub(super) rows: TextRows,
    /// Reads a row.
    pub(super) text: fn(&[u8]) -> Option<TextRow>,
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
pub(super) struct CountRows;

impl RowSink for CountRows {
    const WANTS_ROWS: bool = false;

    fn row(&mut self, _body: &[u8]) -> bool {
        true
    }
}
