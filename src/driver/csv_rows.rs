//! Rows of a CSV file into a table, the same values on every dialect.

use crate::domain::dialect::Dialect;
use crate::driver::connection::Connection;
use crate::driver::loaders::COPY_BYTES;
use crate::driver::request::CsvFile;
use crate::driver::script::table;
use crate::user_text::{CsvReader, CsvRecord};
use crate::wire::{Prepared, Value, ValueType};

/// Rows of one INSERT on MySQL.
const ROWS_PER_INSERT: usize = 100;

/// Rows of a transaction of INSERTs.
const ROWS_PER_COMMIT: u64 = 10_000;

/// Fills the table and returns the number of rows.
pub fn load(file: &CsvFile, dialect: Dialect, session: &mut Connection) -> Result<u64, String> {
    let mut rows = CsvRows::open(file)?;
    let names: Vec<String> = rows.columns.iter().map(|name| quoted(name, dialect)).collect();
    let names = names.join(", ");
    match dialect {
        Dialect::Postgres => {
            let sql = format!("COPY {} ({names}) FROM STDIN", file.table);
            copy(&sql, &mut rows, session)?;
        }
        Dialect::Mysql => insert(&names, &mut rows, session, ROWS_PER_INSERT)?,
        _ => insert(&names, &mut rows, session, 1)?,
    }
    match file.expect_rows {
        Some(expected) if expected != rows.count => {
            Err(format!("it holds {} rows, not {expected} as `expect_rows` says", rows.count))
        }
        _ => Ok(rows.count),
    }
}

/// The records after the header.
struct CsvRows<'a> {
    file: &'a CsvFile,
    reader: CsvReader<Box<dyn std::io::BufRead>>,
    record: CsvRecord,
    columns: Vec<String>,
    count: u64,
}

impl<'a> CsvRows<'a> {
    fn open(file: &'a CsvFile) -> Result<CsvRows<'a>, String> {
        let mut reader = CsvReader::new(table::open(&file.path)?, file.delimiter);
        let mut record = CsvRecord::default();
        if !reader.read(&mut record).map_err(|error| error.to_string())? {
            return Err("it is empty; its first line must name the columns".to_owned());
        }
        let columns = match file.columns.is_empty() {
            true => record.texts(),
            false => file.columns.clone(),
        };
        if columns.len() != record.len() {
            let (columns, fields) = (columns.len(), record.len());
            return Err(format!("its header has {fields} fields, but `columns` has {columns}"));
        }
        Ok(CsvRows { file, reader, record, columns, count: 0 })
    }

    /// Reads the next record; false after the last.
    fn next(&mut self) -> Result<bool, String> {
        if !self.reader.read(&mut self.record).map_err(|error| error.to_string())? {
            return Ok(false);
        }
        self.count += 1;
        match self.record.len() == self.columns.len() {
            true => Ok(true),
            false => Err(format!(
                "line {} has {} fields, not {}",
                self.record.line,
                self.record.len(),
                self.columns.len()
            )),
        }
    }

    /// A field; `None` is NULL.
    fn field(&self, index: usize) -> Option<&[u8]> {
        let (bytes, quoted) = self.record.field(index)?;
        (quoted || bytes != self.file.null.as_bytes()).then_some(bytes)
    }
}

/// A column's name as an identifier.
fn quoted(name: &str, dialect: Dialect) -> String {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    match dialect {
        _ if is_plain => name.to_owned(),
        Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        _ => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

fn copy(sql: &str, rows: &mut CsvRows<'_>, session: &mut Connection) -> Result<(), String> {
    let mut broken = None;
    let copied = session.copy_in(sql, &mut |out| {
        let full = out.len() + COPY_BYTES;
        while out.len() < full {
            match rows.next() {
                Ok(true) => copy_line(out, rows),
                Ok(false) => return false,
                Err(error) => {
                    broken = Some(error);
                    return false;
                }
            }
        }
        true
    });
    match (broken, copied) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(error.to_string()),
        (None, Ok(_)) => Ok(()),
    }
}

/// A row in COPY's text form.
fn copy_line(out: &mut Vec<u8>, rows: &CsvRows<'_>) {
    for index in 0..rows.columns.len() {
        if index > 0 {
            out.push(b'\t');
        }
        copy_field(out, rows.field(index));
    }
    out.push(b'\n');
}

/// A field in COPY's text form, which is that of LOAD DATA, too; `None` is NULL.
pub fn copy_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
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

/// Prepared INSERTs of `at_once` rows; the last rows one by one.
fn insert(
    names: &str,
    rows: &mut CsvRows<'_>,
    session: &mut Connection,
    at_once: usize,
) -> Result<(), String> {
    let width = rows.columns.len();
    let mut many = InsertStatement::prepare(names, &rows.file.table, (width, at_once), session)?;
    let mut one = InsertStatement::prepare(names, &rows.file.table, (width, 1), session)?;
    session.simple("BEGIN").map_err(|error| error.to_string())?;
    while rows.next()? {
        for index in 0..width {
            many.push(rows.field(index));
        }
        many.send_if_full(session)
            .map_err(|error| format!("line {}: {error}", rows.record.line))?;
        if rows.count.is_multiple_of(ROWS_PER_COMMIT) {
            for sql in ["COMMIT", "BEGIN"] {
                session.simple(sql).map_err(|error| error.to_string())?;
            }
        }
    }
    for field in std::mem::take(&mut many.fields) {
        one.push(field.as_deref());
        one.send_if_full(session)?;
    }
    session.simple("COMMIT").map(|_| ()).map_err(|error| error.to_string())
}

/// An INSERT of so many rows, and the fields that it has got.
struct InsertStatement {
    prepared: Prepared,
    wanted: usize,
    fields: Vec<Option<Vec<u8>>>,
}

impl InsertStatement {
    fn prepare(
        names: &str,
        table: &str,
        (width, rows): (usize, usize),
        session: &mut Connection,
    ) -> Result<InsertStatement, String> {
        let tuple = format!("({})", vec!["?"; width].join(", "));
        let tuples = vec![tuple; rows].join(", ");
        let sql = format!("INSERT INTO {table} ({names}) VALUES {tuples}");
        let wanted = width * rows;
        let prepared = session.prepare(&sql, &vec![ValueType::AnyText; wanted]);
        let prepared = prepared.map_err(|error| error.to_string())?;
        Ok(InsertStatement { prepared, wanted, fields: Vec::with_capacity(wanted) })
    }

    fn push(&mut self, field: Option<&[u8]>) {
        self.fields.push(field.map(<[u8]>::to_vec));
    }

    fn send_if_full(&mut self, session: &mut Connection) -> Result<(), String> {
        if self.fields.len() < self.wanted {
            return Ok(());
        }
        let values: Vec<Value<'_>> = self
            .fields
            .iter()
            .map(|field| field.as_deref().map_or(Value::Null, Value::Text))
            .collect();
        session.execute(self.prepared, &values).map_err(|error| error.to_string())?;
        self.fields.clear();
        Ok(())
    }
}
