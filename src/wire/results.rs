//! The last row of each result of a message, for scripts that go on with its values.

/// The last row of each result. Memory is kept from one message to the next.
#[derive(Clone, Debug, Default)]
pub struct LastRows {
    results: Vec<LastRow>,
    /// How many of them belong to the message at hand.
    used: usize,
}

/// A result.
#[derive(Clone, Debug, Default)]
pub struct LastRow {
    /// Rows of the result.
    pub rows: u64,
    names: TextCells,
    values: TextCells,
}

/// Texts one after the other.
#[derive(Clone, Debug, Default)]
struct TextCells {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl TextCells {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).and_then(|before| self.ends.get(before)).unwrap_or(&0);
        let end = self.ends.get(index).unwrap_or(begin);
        &self.bytes[*begin..*end]
    }
}

impl LastRows {
    /// The results of the message.
    pub fn results(&self) -> &[LastRow] {
        &self.results[..self.used]
    }

    /// Forgets all results.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// A result begins, without columns yet. One without columns is none that returns rows.
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

    /// The result that began last.
    pub fn last(&mut self) -> Option<&mut LastRow> {
        self.used.checked_sub(1).map(|last| &mut self.results[last])
    }
}

impl LastRow {
    /// Adds a column.
    pub fn column(&mut self, name: &[u8]) {
        self.names.push(name);
    }

    /// A row begins: the one before is forgotten.
    pub fn begin_row(&mut self) {
        self.rows += 1;
        self.values.clear();
    }

    /// Adds a value of the row; NULL is an empty text.
    pub fn value(&mut self, value: &[u8]) {
        self.values.push(value);
    }

    /// Names and values of the columns of the last row.
    pub fn cells(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.names.ends.len()).map(|index| (self.names.get(index), self.values.get(index)))
    }

    /// False if the statement returns no rows whatever it finds.
    pub fn has_columns(&self) -> bool {
        !self.names.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_row_of_each_result_stays_and_memory_is_used_again() {
        let mut rows = LastRows::default();
        for round in 0..2 {
            rows.clear();
            let result = rows.begin();
            result.column(b"a");
            result.column(b"b");
            for value in [&b"1"[..], b"22"] {
                result.begin_row();
                result.value(value);
                result.value(b"");
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
