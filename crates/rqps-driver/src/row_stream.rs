//! Loads rows from memory into a table by the fastest way of the dialect.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::connection::Connection;
use crate::loaders::{self, COPY_BYTES, send_local};
use crate::part::{FieldRow, LoadRow, PartRows};
use crate::request::{LoadRequest, LoadType};
use rqps_model::dialect::{Bulk, Dialect, push_literal};
use rqps_model::sql_name::Identifier;
use rqps_wire::{Value, ValueType, WireError};

/// Rows per LOAD DATA, which is one transaction.
const ROWS_PER_LOAD: u64 = 50_000;

/// Rows per INSERT where the server does not allow LOAD DATA.
const ROWS_PER_INSERT: u64 = 500;

/// Rows per transaction of single-row INSERTs.
const ROWS_PER_COMMIT: u64 = 10_000;

/// A table to load.
pub struct TableFill<'a> {
    /// Its name.
    pub name: Identifier,
    /// Columns in the order of the fields.
    pub columns: Vec<FillColumn>,
    /// Character set of the fields, by its MySQL name.
    pub character_set: &'a str,
    /// Rows that the server has loaded so far.
    pub rows: &'a AtomicU64,
}

/// A column to load.
pub struct FillColumn {
    name: Identifier,
    /// True if the fields are bytes, in the dialect's form: `\x` and hexadecimal digits for
    /// Postgres, hexadecimal digits for MySQL, the bytes themselves for SQLite.
    is_binary: bool,
}

impl FillColumn {
    /// A column of numbers or texts.
    pub fn text(name: Identifier) -> FillColumn {
        FillColumn { name, is_binary: false }
    }

    /// A column of bytes.
    pub fn binary(name: Identifier) -> FillColumn {
        FillColumn { name, is_binary: true }
    }
}

impl TableFill<'_> {
    /// Sends the rows. The error is a complete message.
    pub fn fill(
        &self,
        dialect: Dialect,
        mut stream: RowStream,
        session: &mut Connection,
    ) -> Result<(), String> {
        let filled = match dialect.spec().bulk {
            Bulk::Copy => self.copy(&mut stream, session),
            Bulk::LoadData => self.load_data(&mut stream, session),
            Bulk::Rows => self.insert_each(&mut stream, session),
        };
        if let Some(fault) = stream.rows.fault() {
            return Err(fault);
        }
        filled.map_err(|error| {
            let place = stream.rows.place().map(|place| format!("{place}: ")).unwrap_or_default();
            let hint = loaders::hint(&error);
            format!("failed to fill {}: {place}{error}{hint}", self.name)
        })
    }

    fn names(&self) -> Identifier {
        let names: Vec<Identifier> =
            self.columns.iter().map(|column| column.name.clone()).collect();
        Identifier::list(&names)
    }

    fn copy(&self, stream: &mut RowStream, session: &mut Connection) -> Result<(), WireError> {
        let sql = format!("COPY {} ({}) FROM STDIN", self.name, self.names());
        session.copy_in(&sql, &mut |out| {
            let (taken, more) = stream.lines(out, u64::MAX);
            self.rows.fetch_add(taken, Ordering::Relaxed);
            more
        })?;
        Ok(())
    }

    /// LOAD DATA LOCAL with rows from memory; INSERTs if the server does not allow that.
    fn load_data(&self, stream: &mut RowStream, session: &mut Connection) -> Result<(), WireError> {
        let sql = self.load_statement();
        while stream.is_more() {
            let mut sent = 0;
            let loaded = send_local(&sql, session, &mut |out| {
                let (taken, more) = stream.lines(out, ROWS_PER_LOAD - sent);
                sent += taken;
                (taken, more && sent < ROWS_PER_LOAD)
            })?;
            let Some(sent) = loaded else { return self.insert_many(stream, session) };
            self.rows.fetch_add(sent, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Bytes travel as hexadecimal digits, because texts must be valid in the character set.
    fn load_statement(&self) -> String {
        let (mut fields, mut sets) = (Vec::new(), Vec::new());
        for (index, FillColumn { name, is_binary }) in self.columns.iter().enumerate() {
            if *is_binary {
                fields.push(format!("@rqps_{index}"));
                sets.push(format!("{name} = UNHEX(@rqps_{index})"));
            } else {
                fields.push(name.to_string())
            }
        }
        let set = if sets.is_empty() { "" } else { " SET " };
        format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET {} ({}){set}{}",
            self.name,
            Identifier::plain(Dialect::Mysql, self.character_set),
            fields.join(", "),
            sets.join(", ")
        )
    }

    /// Multi-row INSERTs of literals, 50,000 rows per transaction.
    fn insert_many(
        &self,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let columns = self.names();
        session.simple("BEGIN")?;
        let mut in_transaction = 0;
        while stream.is_more() {
            let mut sql = format!("INSERT INTO {} ({columns}) VALUES ", self.name);
            let mut count = 0;
            while count < ROWS_PER_INSERT
                && let Some(row) = stream.row()
            {
                sql.push_str(if count > 0 { ",(" } else { "(" });
                spell(&mut sql, &self.columns, row, session.escapes_backslash());
                sql.push(')');
                count += 1;
            }
            session.simple(&sql)?;
            self.rows.fetch_add(count, Ordering::Relaxed);
            in_transaction += count;
            if in_transaction >= ROWS_PER_LOAD {
                session.simple("COMMIT")?;
                session.simple("BEGIN")?;
                in_transaction = 0;
            }
        }
        session.simple("COMMIT").map(|_| ())
    }

    /// One prepared statement in few transactions: the fastest way into SQLite.
    fn insert_each(
        &self,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let mark = |column: &FillColumn| if column.is_binary { "CAST(? AS BLOB)" } else { "?" };
        let marks: Vec<&str> = self.columns.iter().map(mark).collect();
        let (columns, marks) = (self.names(), marks.join(", "));
        session.simple("BEGIN")?;
        let sql = format!("INSERT INTO {} ({columns}) VALUES ({marks})", self.name);
        let types = vec![ValueType::AnyText; self.columns.len()];
        let insert = session.prepare(&sql, &types)?;
        let mut in_transaction = 0;
        while let Some(row) = stream.row() {
            let value = |field: Option<_>| field.map_or(Value::Null, Value::Text);
            let values: Vec<Value<'_>> = row.fields().map(value).collect();
            session.execute(insert, &values)?;
            self.rows.fetch_add(1, Ordering::Relaxed);
            in_transaction += 1;
            if in_transaction == ROWS_PER_COMMIT {
                session.simple("COMMIT")?;
                session.simple("BEGIN")?;
                in_transaction = 0;
            }
        }
        session.simple("COMMIT").map(|_| ())
    }
}

/// Appends the values of a row as literals; numbers stand in quotes too.
fn spell(sql: &mut String, columns: &[FillColumn], row: &FieldRow, backslash: bool) {
    for (index, (field, column)) in row.fields().zip(columns).enumerate() {
        if index > 0 {
            sql.push(',');
        }
        let Some(field) = field else {
            sql.push_str("NULL");
            continue;
        };
        if column.is_binary {
            sql.push('x');
        }
        push_literal(sql, field, backslash);
    }
}

/// An iterator of rows that can look at the next row before taking it.
pub struct RowStream {
    rows: Box<dyn PartRows>,
    row: FieldRow,
    /// True if `row` is the next row; false if it must be made.
    is_made: bool,
    is_over: bool,
}

impl RowStream {
    /// Iterates over these rows.
    pub fn new(rows: Box<dyn PartRows>) -> RowStream {
        RowStream { rows, row: FieldRow::default(), is_made: false, is_over: false }
    }

    /// True if a row is left.
    fn is_more(&mut self) -> bool {
        if !self.is_made && !self.is_over {
            self.row.clear();
            self.is_made = self.rows.next(&mut self.row);
            self.is_over = !self.is_made;
        }
        self.is_made
    }

    /// The next row.
    fn row(&mut self) -> Option<&FieldRow> {
        let is_there = self.is_more();
        self.is_made = false;
        is_there.then_some(&self.row)
    }

    /// Appends lines in COPY's text form: about 64 KB, at most `most`. Returns their number, and
    /// whether rows are left.
    fn lines(&mut self, out: &mut Vec<u8>, most: u64) -> (u64, bool) {
        let (full, mut count) = (out.len() + COPY_BYTES, 0);
        while out.len() < full
            && count < most
            && let Some(row) = self.row()
        {
            for (index, field) in row.fields().enumerate() {
                if index > 0 {
                    out.push(b'\t');
                }
                copy_field(out, field);
            }
            out.push(b'\n');
            count += 1;
        }
        (count, self.is_more())
    }
}

/// Appends a field in the text form of COPY and LOAD DATA; `None` is NULL.
fn copy_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    let Some(field) = field else {
        out.extend_from_slice(b"\\N");
        return;
    };
    for byte in field {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            other => out.push(*other),
        }
    }
}

// Encodes rows of generated tables for COPY, LOAD DATA and INSERT.

/// The columns of generated tables, and the encoders of their rows.
pub struct LoadColumns {
    /// Their names as a list for SQL.
    pub names: String,
    /// Their types.
    pub holds: Vec<LoadType>,
}

impl LoadColumns {
    /// The columns of a load.
    pub fn of(task: &LoadRequest) -> LoadColumns {
        let names: Vec<&str> = task.columns.iter().map(|column| column.name.as_str()).collect();
        let holds = task.columns.iter().map(|column| column.holds).collect();
        LoadColumns { names: names.join(", "), holds }
    }

    /// The types as the protocols name them.
    pub fn types(&self) -> Vec<ValueType> {
        let of = |holds: &LoadType| match holds {
            LoadType::Int => ValueType::Int,
            LoadType::Text { .. } => ValueType::Text,
        };
        self.holds.iter().map(of).collect()
    }

    /// One row of placeholders, in parentheses.
    pub fn placeholders(&self) -> String {
        format!("({})", vec!["?"; self.holds.len()].join(","))
    }

    /// The values of a row in the order of the columns. Allocates nothing.
    pub fn values<'a>(&'a self, row: &'a LoadRow) -> impl Iterator<Item = Value<'a>> {
        let (mut numbers, mut text) = (row.numbers.iter(), row.text.as_slice());
        self.holds.iter().map(move |holds| match holds {
            LoadType::Int => Value::Int(numbers.next().copied().unwrap_or(0)),
            LoadType::Text { bytes, .. } => {
                let (own, rest) = text.split_at((*bytes as usize).min(text.len()));
                text = rest;
                Value::Text(own)
            }
        })
    }

    /// Appends a LOAD DATA line without separators, the cheapest form for the server: 11 bytes of
    /// an INT (MySQL's manual), and each text filled with spaces to the width of its column.
    pub fn fixed_line(&self, out: &mut Vec<u8>, row: &LoadRow) {
        for (value, holds) in self.values(row).zip(&self.holds) {
            match (value, holds) {
                (Value::Int(number), _) => out.extend_from_slice(&fixed_number(number as u64)),
                (Value::Text(text) | Value::Bytes(text), LoadType::Text { width, .. }) => {
                    out.extend_from_slice(text);
                    out.resize(out.len() + (*width as usize).saturating_sub(text.len()), b' ');
                }
                (Value::Text(text) | Value::Bytes(text), LoadType::Int) => {
                    out.extend_from_slice(text);
                }
                // Generated rows have no NULL.
                (Value::Null, _) => {}
            }
        }
        out.push(b'\n');
    }

    /// Appends a tuple of COPY's binary form: int4 and texts. `rows` is checked to fit into 32
    /// bits.
    pub fn copy_tuple(&self, out: &mut Vec<u8>, row: &LoadRow) {
        const INT: [u8; 4] = 4i32.to_be_bytes();
        out.extend_from_slice(&(self.holds.len() as i16).to_be_bytes());
        for value in self.values(row) {
            match value {
                Value::Int(int) => {
                    out.extend_from_slice(&INT);
                    out.extend_from_slice(&(int as i32).to_be_bytes());
                }
                Value::Text(text) | Value::Bytes(text) => {
                    out.extend_from_slice(&(text.len() as i32).to_be_bytes());
                    out.extend_from_slice(text);
                }
                Value::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
            }
        }
    }
}

/// An INT as 11 bytes.
fn fixed_number(mut number: u64) -> [u8; 11] {
    let mut digits = *b"          0";
    let mut place = digits.len();
    while number > 0 && place > 0 {
        place -= 1;
        digits[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> Identifier {
        Identifier::plain(Dialect::Mysql, name)
    }

    /// Three rows: a number, a text that needs escapes, and a NULL in every second row.
    struct Three(u64);

    impl PartRows for Three {
        fn next(&mut self, row: &mut FieldRow) -> bool {
            if self.0 == 3 {
                return false;
            }
            row.number(self.0 * 10);
            row.text(b"a\\'b\tc");
            match self.0 % 2 {
                0 => row.null(),
                _ => row.written(|out| out.extend_from_slice(b"x")),
            }
            self.0 += 1;
            true
        }
    }

    #[test]
    fn lines_are_cut_at_the_number_of_rows_and_lose_none() {
        let mut stream = RowStream::new(Box::new(Three(0)));
        let mut out = Vec::new();
        assert_eq!(stream.lines(&mut out, 2), (2, true));
        assert_eq!(stream.lines(&mut out, 2), (1, false));
        let text = String::from_utf8(out).unwrap();
        let want = "0\ta\\\\'b\\tc\t\\N\n10\ta\\\\'b\\tc\tx\n20\ta\\\\'b\\tc\t\\N\n";
        assert_eq!(text, want);
    }

    #[test]
    fn literals_are_quoted_for_the_dialect() {
        let mut stream = RowStream::new(Box::new(Three(0)));
        let mut sql = String::new();
        let columns = ["a", "b", "c"].map(|name| FillColumn::text(plain(name)));
        spell(&mut sql, &columns, stream.row().unwrap(), true);
        assert_eq!(sql, "'0','a\\\\''b\tc',NULL");
        assert!(stream.is_more() && stream.is_more());
        let rest = std::iter::from_fn(|| stream.row().map(|row| row.fields().count()));
        assert_eq!(rest.collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn bytes_travel_as_hex_digits_to_mysql() {
        let rows = AtomicU64::new(0);
        let columns = vec![FillColumn::text(plain("id")), FillColumn::binary(plain("raw"))];
        let table = TableFill { name: plain("t"), columns, character_set: "utf8mb4", rows: &rows };
        let want = "LOAD DATA LOCAL INFILE 'rows' INTO TABLE t CHARACTER SET utf8mb4 \
                    (id, @rqps_1) SET raw = UNHEX(@rqps_1)";
        assert_eq!(table.load_statement(), want);
        let (mut row, mut sql) = (FieldRow::default(), String::new());
        row.number(7);
        row.text(b"00ff");
        spell(&mut sql, &table.columns, &row, true);
        assert_eq!(sql, "'7',x'00ff'");
    }
}
