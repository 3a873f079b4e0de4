//! Loads rows of CSV files, with the same values on every dialect.

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::connection::Connection;
use crate::part::{FieldRow, PartRows};
use crate::request::CsvFile;
use crate::row_stream::{FillColumn, RowStream, TableFill};
use crate::script::table::{self, CountedFile};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::{Identifier, TableName};
use rqps_text::{ChangedRelation, CsvPlace, CsvReader, CsvRecord, UTF8_HINT, cuts};

/// Fewest bytes of a part of a file; each part has its own session.
const PART: u64 = 1 << 20;

/// A range of the records of a file.
#[derive(Clone, Debug)]
pub(super) struct CsvPart {
    pub(super) file: CsvFile,
    /// The first byte of its records; the first part begins at the header.
    from: CsvPlace,
    /// The byte after its last record.
    to: u64,
}

/// Splits a file into at most `sessions` parts. A compressed file is one part.
pub(super) fn parts(file: &CsvFile, sessions: u32) -> Result<Vec<CsvPart>, String> {
    let fault = |error: std::io::Error| format!("open {}: {error}", file.path.display());
    let bytes = fs::metadata(&file.path).map_err(fault)?.len();
    let count = if table::is_compressed(&file.path) {
        1
    } else {
        u64::from(sessions).min(bytes / PART).max(1)
    };
    let wanted: Vec<u64> = (1..count).map(|part| bytes / count * part).collect();
    let mut places = vec![CsvPlace { byte: 0, line: 1 }];
    if !wanted.is_empty() {
        let input = BufReader::with_capacity(256 << 10, table::plain(&file.path).map_err(fault)?);
        places.extend(cuts(input, &wanted).map_err(fault)?);
    }
    places.dedup();
    let ends = places.iter().skip(1).map(|place| place.byte).chain([u64::MAX]);
    let part = |(from, to): (&CsvPlace, u64)| CsvPart { file: file.clone(), from: *from, to };
    Ok(places.iter().zip(ends).map(part).collect())
}

/// Loads the rows of a part. Counts them in `rows`, and the bytes of the file in `read`.
pub(super) fn load(
    part: &CsvPart,
    dialect: Dialect,
    session: &mut Connection,
    (rows, read): (&AtomicU64, &Arc<AtomicU64>),
) -> Result<(), String> {
    let CsvFile { table, hex, .. } = &part.file;
    let records = CsvRecords::open(part, dialect, read)?;
    if dialect == Dialect::Mysql {
        refuse_generated(table, &records.columns, session)?;
    }
    if let Some(unknown) = hex.iter().find(|name| !records.columns.contains(name)) {
        let known = records.columns.join(", ");
        return Err(format!("`hex` names the column `{unknown}`; there are {known}"));
    }
    let column = |name: &String| {
        let identifier = Identifier::plain(dialect, name);
        if hex.contains(name) {
            FillColumn::binary(identifier)
        } else {
            FillColumn::text(identifier)
        }
    };
    let columns = records.columns.iter().map(column).collect();
    let filled =
        TableFill { name: table.identifier(dialect), columns, character_set: "utf8mb4", rows };
    filled.fill(dialect, RowStream::new(Box::new(records)), session)
}

/// Reads the records of a part.
struct CsvRecords {
    null: Vec<u8>,
    dialect: Dialect,
    reader: CsvReader<Box<dyn BufRead>>,
    record: CsvRecord,
    columns: Vec<String>,
    /// By column: true if its fields are hexadecimal digits.
    is_hex: Vec<bool>,
    fault: Option<String>,
}

impl CsvRecords {
    fn open(part: &CsvPart, dialect: Dialect, read: &Arc<AtomicU64>) -> Result<CsvRecords, String> {
        let file = &part.file;
        let is_whole = part.from.byte == 0 && part.to == u64::MAX;
        let input = match is_whole {
            true => table::open_counted(&file.path, read)?,
            // Only the header.
            false => table::open(&file.path)?,
        };
        let mut reader = CsvReader::new(input, file.delimiter);
        let mut record = CsvRecord::default();
        if !reader.read(&mut record).map_err(|error| error.to_string())? {
            return Err("it is empty; its first line must name the columns".to_owned());
        }
        let columns = if file.columns.is_empty() { record.texts() } else { file.columns.clone() };
        if columns.len() != record.len() {
            let (columns, fields) = (columns.len(), record.len());
            return Err(format!("its header has {fields} fields, but `columns` has {columns}"));
        }
        if !is_whole {
            let fault = |error: std::io::Error| error.to_string();
            let mut input = table::plain(&file.path).map_err(fault)?;
            input.seek(SeekFrom::Start(part.from.byte)).map_err(fault)?;
            let input = CountedFile::new(input, read).take(part.to - part.from.byte);
            let input = BufReader::with_capacity(256 << 10, input);
            reader = CsvReader::within(Box::new(input), file.delimiter, part.from.line);
            if part.from.byte == 0 {
                reader.read(&mut record).map_err(|error| error.to_string())?;
            }
        }
        let is_hex = columns.iter().map(|name| file.hex.contains(name)).collect();
        let null = file.null.clone().into_bytes();
        Ok(CsvRecords { null, dialect, reader, record, columns, is_hex, fault: None })
    }

    /// Reads the next record into `row`; false after the last.
    fn read(&mut self, row: &mut FieldRow) -> Result<bool, String> {
        if !self.reader.read(&mut self.record).map_err(|error| error.to_string())? {
            return Ok(false);
        }
        let (line, fields) = (self.record.line, self.record.len());
        if fields != self.columns.len() {
            return Err(format!("line {line} has {fields} fields, not {}", self.columns.len()));
        }
        for (index, is_hex) in self.is_hex.iter().enumerate() {
            let Some((bytes, quoted)) = self.record.field(index) else { continue };
            if !quoted && bytes == self.null {
                row.null();
                continue;
            }
            let name = &self.columns[index];
            if *is_hex {
                let digits = hex_digits(bytes)
                    .ok_or_else(|| format!("line {line}: `{name}` holds no bytes in hex"))?;
                row.written(|out| push_bytes(out, digits, self.dialect));
            } else if std::str::from_utf8(bytes).is_ok() {
                row.text(bytes);
            } else {
                return Err(format!(
                    "line {line}: `{name}` is not UTF-8{UTF8_HINT}; bytes belong in a column of \
                     hex digits, named in `hex`"
                ));
            }
        }
        Ok(true)
    }
}

impl PartRows for CsvRecords {
    fn next(&mut self, row: &mut FieldRow) -> bool {
        let read = self.read(row);
        read.unwrap_or_else(|fault| {
            self.fault = Some(fault);
            false
        })
    }

    fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    fn place(&self) -> Option<String> {
        // The other loaders read further ahead than the server.
        (self.dialect == Dialect::Sqlite).then(|| format!("line {}", self.record.line))
    }
}

/// The digits of bytes in the form `\x00ff`, `0x00ff` or `00ff`.
fn hex_digits(field: &[u8]) -> Option<&[u8]> {
    let prefixes: [&[u8]; 2] = [b"\\x", b"0x"];
    let rest = prefixes.iter().find_map(|prefix| field.strip_prefix(*prefix)).unwrap_or(field);
    let is_whole = rest.len().is_multiple_of(2) && rest.iter().all(u8::is_ascii_hexdigit);
    is_whole.then_some(rest)
}

/// Appends bytes in the dialect's form (see [`FillColumn::binary`]).
fn push_bytes(out: &mut Vec<u8>, digits: &[u8], dialect: Dialect) {
    match dialect {
        Dialect::Postgres => out.extend_from_slice(b"\\x"),
        Dialect::Mysql => {}
        _ => {
            let value = |digit: u8| char::from(digit).to_digit(16).unwrap_or_default() as u8;
            out.extend(digits.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])));
            return;
        }
    }
    out.extend_from_slice(digits);
}

/// Refuses a file with these columns if the server computes one of them.
fn refuse_generated(
    table: &TableName,
    columns: &[String],
    session: &mut Connection,
) -> Result<(), String> {
    let table = ChangedRelation::table(&table.to_string());
    let sql = table.generated_columns_query();
    // A server that is only compatible may not tell.
    let Ok(rows) = session.rows(&sql) else { return Ok(()) };
    let generated: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let is_generated =
        |column: &&String| generated.iter().any(|name| name.eq_ignore_ascii_case(column));
    match columns.iter().find(is_generated) {
        None => Ok(()),
        Some(column) => Err(format!(
            "`{column}` of {} is a generated column\nhint: the server computes generated columns: \
             leave the column out of the file",
            table.name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_for_each_dialect() {
        let check = |field: &str, dialect, want: Option<&[u8]>| {
            let found = hex_digits(field.as_bytes()).map(|digits| {
                let mut out = Vec::new();
                push_bytes(&mut out, digits, dialect);
                out
            });
            assert_eq!(found.as_deref(), want, "{field}");
        };
        check("\\x00Ff", Dialect::Postgres, Some(b"\\x00Ff"));
        check("0x00ff", Dialect::Mysql, Some(b"00ff"));
        check("00ff", Dialect::Sqlite, Some(&[0, 255]));
        check("", Dialect::Sqlite, Some(b""));
        check("0", Dialect::Sqlite, None);
        check("zz", Dialect::Sqlite, None);
    }
}
