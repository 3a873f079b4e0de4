//! What becomes of the rows of a reply: read as text, taken as numbers, or only counted.

/// Rows of text as the control plane reads them: `None` is NULL.
pub type TextRows = Vec<TextRow>;

/// A row of text.
pub(super) type TextRow = Vec<Option<String>>;

/// Rows of a reply as text, in memory that serves one reply after the other.
#[derive(Clone, Debug, Default)]
pub struct RowTexts {
    bytes: Vec<u8>,
    /// Where each value ends, and whether it is not NULL.
    ends: Vec<(usize, bool)>,
    rows: usize,
}

impl RowTexts {
    /// Takes all rows out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.rows = 0;
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A value, both numbers from 0; `None` for NULL, and where there is none.
    pub fn value(&self, row: usize, column: usize) -> Option<&[u8]> {
        let columns = self.ends.len().checked_div(self.rows)?;
        if row >= self.rows || column >= columns {
            return None;
        }
        let index = row * columns + column;
        let (end, is_there) = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        is_there.then(|| &self.bytes[start..end])
    }

    /// Adds a value to the row that is being read.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// Adds a value that is written out.
    pub(super) fn push_written(&mut self, text: std::fmt::Arguments<'_>) {
        use std::io::Write;
        // Writing to memory cannot fail.
        self.bytes.write_fmt(text).unwrap_or(());
        self.ends.push((self.bytes.len(), true));
    }

    /// All values of a row are there.
    pub fn end_row(&mut self) {
        self.rows += 1;
    }
}

/// What is done with the rows of a reply.
pub(super) trait RowSink {
    /// False if rows are counted only: then a row need never be in memory as a whole.
    const WANTS_ROWS: bool;

    /// True if it needs the definitions of columns to read rows.
    const WANTS_COLUMNS: bool = false;

    /// The definition of a column in the protocol's own form, before the rows; `first` begins the
    /// columns of a result. False if it makes no sense.
    fn column(&mut self, _body: &[u8], _first: bool) -> bool {
        true
    }

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

/// Finds the values of a row in the protocol's own text form; `None` is NULL. False if they do not
/// add up.
type SplitRow = for<'a> fn(&'a [u8], &mut dyn FnMut(Option<&'a [u8]>)) -> bool;

/// Rows of text as they came: split into values only when somebody asks for one.
#[derive(Default)]
pub struct KeptRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    split: Option<SplitRow>,
}

impl KeptRows {
    /// Forgets all rows but not their room.
    pub(super) fn begin(&mut self, split: SplitRow) {
        self.bytes.clear();
        self.ends.clear();
        self.split = Some(split);
    }

    /// The values of row `number`, from 0, one after the other. False if there is no such row.
    pub fn row<'a>(&'a self, number: usize, each: &mut dyn FnMut(Option<&'a [u8]>)) -> bool {
        let (Some(end), Some(split)) = (self.ends.get(number), self.split) else { return false };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        split(&self.bytes[start..*end], each)
    }

    /// Columns of the first row; 0 without rows.
    pub fn columns(&self) -> u32 {
        let mut columns = 0;
        self.row(0, &mut |_| columns += 1);
        columns
    }
}

impl RowSink for KeptRows {
    const WANTS_ROWS: bool = true;

    #[inline]
    fn row(&mut self, body: &[u8]) -> bool {
        self.bytes.extend_from_slice(body);
        self.ends.push(self.bytes.len());
        true
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
