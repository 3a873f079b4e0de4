//! The last row of each result of a text, for scripts that use its values.

use super::rows::RowTexts;

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
