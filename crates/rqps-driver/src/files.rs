//! The files of a load: SQL, be it a dump, statement by statement, and rows of CSV.

use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::connection::Connection;
use crate::part::{FieldRow, PartRows};
use crate::request::CsvFile;
use crate::row_stream::{FillColumn, RowStream, TableFill};
use crate::script::values::{self, CountedFile};
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::Endpoint;
use rqps_model::sql_name::{Identifier, TableName};
use rqps_text::{
    ChangedRelation, CsvPlace, CsvReader, CsvRecord, SqlChunk, SqlSplitter, UTF8_HINT, cuts,
};

/// A file of SQL as it is read.
pub(super) struct SqlFile {
    input: Box<dyn BufRead>,
    splitter: SqlSplitter,
    /// Results of the lines so far that were not taken yet, in reverse order.
    chunks: Vec<SqlChunk>,
    line: Vec<u8>,
}

impl SqlFile {
    /// Opens a file, which must be text.
    pub(super) fn open(path: &Path, dialect: Dialect) -> Result<SqlFile, String> {
        SqlFile::open_counted(path, dialect, &Arc::default())
    }

    /// The same; adds the bytes that are read to `read`.
    pub(super) fn open_counted(
        path: &Path,
        dialect: Dialect,
        read: &Arc<AtomicU64>,
    ) -> Result<SqlFile, String> {
        let mut file = SqlFile {
            input: values::open_counted(path, read)?,
            splitter: SqlSplitter::new(dialect),
            chunks: Vec::new(),
            line: Vec::new(),
        };
        file.check_format()?;
        Ok(file)
    }

    /// Refuses what is no text.
    fn check_format(&mut self) -> Result<(), String> {
        let begin = self.input.fill_buf().map_err(|error| error.to_string())?;
        // Some editors begin a text of UTF-8 with this mark, which servers do not know.
        if begin.starts_with(b"\xef\xbb\xbf") {
            self.input.consume(3);
            return Ok(());
        }
        if begin.starts_with(b"\xff\xfe") || begin.starts_with(b"\xfe\xff") {
            return Err(
                "it is UTF-16\nhint: convert the file, for instance by `iconv -f utf16 -t \
                        utf8`"
                    .to_owned(),
            );
        }
        if begin.starts_with(b"PGDMP") {
            Err("it is in pg_dump's custom format\nhint: make SQL of it with \
                         `pg_restore -f shop.sql FILE`"
                .to_owned())
        } else {
            Ok(())
        }
    }

    /// The next statement, or row of a COPY; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<SqlChunk>, String> {
        let mut is_at_end = false;
        while self.chunks.is_empty() {
            if is_at_end {
                return Ok(None);
            }
            self.line.clear();
            let length = bounded::line(&mut self.input, &mut self.line, bounded::STATEMENT_MAX);
            is_at_end = length.map_err(|error| error.to_string())? == 0;
            let split = if is_at_end {
                self.splitter.end(&mut self.chunks)
            } else {
                self.splitter.take(&self.line, &mut self.chunks)
            };
            split.map_err(|error| error.to_string())?;
            if self.splitter.pending() as u64 > bounded::STATEMENT_MAX {
                let error = bounded::too_long(bounded::STATEMENT_MAX);
                return Err(format!("line {}: the statement: {error}", self.splitter.begun()));
            }
            self.chunks.reverse();
        }
        Ok(self.chunks.pop())
    }
}

/// The first bytes of each SQLite database file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// True for a SQLite database file. The error is a complete message.
pub(super) fn is_database(path: &Path) -> Result<bool, String> {
    let fault = |error| format!("failed to load {}: {error}", path.display());
    let mut begin = Vec::with_capacity(MAGIC.len());
    let file = values::plain(path).map_err(fault)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).map_err(fault)?;
    Ok(begin == MAGIC)
}

/// Copies the file to the path of the target's database. The error is a complete message.
pub(super) fn copy_database(path: &Path, target: &Endpoint, is_first: bool) -> Result<(), String> {
    let fault = |what: String| Err(format!("failed to load {}: {what}", path.display()));
    let Endpoint::File { path: database, .. } = target else {
        return fault(
            "it is a database file of SQLite\nhint: other targets need SQL: `schema = { sqlite = \
             [\"shop.db\"], any = [\"shop.sql\"] }`"
                .to_owned(),
        );
    };
    if !is_first {
        return fault(
            "a database file of SQLite replaces all tables\nhint: name it first".to_owned(),
        );
    }
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return fault(format!(
            "{} holds changes that are not in the file yet\nhint: run sqlite3 {} 'PRAGMA \
             wal_checkpoint(TRUNCATE)'",
            log.display(),
            path.display()
        ));
    }
    for end in ["-wal", "-shm"] {
        // An empty database that was opened before may have left one.
        let _ = fs::remove_file(beside(database, end));
    }
    #[expect(clippy::disallowed_methods, reason = "the driver may be the user of servers by now")]
    match fs::copy(path, database) {
        Ok(_) => Ok(()),
        Err(error) => fault(format!("copy it to {}: {error}", database.display())),
    }
}

/// The path of a file that SQLite keeps beside a database.
fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod sqlite_file_tests {
    use super::*;
    use rqps_model::endpoint::Address;

    #[test]
    fn only_a_whole_file_that_comes_first_is_copied_and_only_for_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let (source, copied) = (folder.path().join("a.db"), folder.path().join("b.db"));
        fs::write(&source, b"SQLite format 3\0 and the rest").unwrap();
        fs::write(folder.path().join("a.sql"), "SELECT 1;").unwrap();
        assert_eq!(is_database(&source), Ok(true));
        assert_eq!(is_database(&folder.path().join("a.sql")), Ok(false));
        assert!(is_database(&folder.path().join("none")).unwrap_err().contains("none"));
        let target = Endpoint::File { path: copied.clone(), library: None };
        fs::write(folder.path().join("b.db-wal"), "old").unwrap();
        copy_database(&source, &target, true).unwrap();
        assert_eq!(fs::read(&copied).unwrap(), fs::read(&source).unwrap());
        assert!(!folder.path().join("b.db-wal").exists());
        let refused =
            |target: &Endpoint, is_first| copy_database(&source, target, is_first).unwrap_err();
        assert!(refused(&target, false).contains("name it first"));
        let server = Endpoint::Server(Address::Unix("/tmp/s".into()));
        assert!(refused(&server, true).contains("other targets need SQL"));
        fs::write(folder.path().join("a.db-wal"), "new").unwrap();
        assert!(refused(&target, true).contains("wal_checkpoint"));
    }
}

// Loads rows of CSV files, with the same values on every dialect.

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
    let count = if values::is_compressed(&file.path) {
        1
    } else {
        u64::from(sessions).min(bytes / PART).max(1)
    };
    let wanted: Vec<u64> = (1..count).map(|part| bytes / count * part).collect();
    let mut places = vec![CsvPlace { byte: 0, line: 1 }];
    if !wanted.is_empty() {
        let input = BufReader::with_capacity(256 << 10, values::plain(&file.path).map_err(fault)?);
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
            true => values::open_counted(&file.path, read)?,
            // Only the header.
            false => values::open(&file.path)?,
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
            let mut input = values::plain(&file.path).map_err(fault)?;
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
    use std::io::Write;

    use super::*;

    #[test]
    fn marks_of_encodings_are_no_part_of_the_first_statement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sql");
        std::fs::write(&path, b"\xef\xbb\xbfSELECT 1;\n").unwrap();
        let mut file = SqlFile::open(&path, Dialect::Postgres).unwrap();
        let first = SqlChunk::Statement(b"SELECT 1".to_vec(), 1);
        assert_eq!(file.next().unwrap(), Some(first));
        std::fs::write(&path, b"\xff\xfeS\0").unwrap();
        let error = SqlFile::open(&path, Dialect::Postgres).err().unwrap();
        assert!(error.contains("it is UTF-16") && error.contains("iconv"), "{error}");
    }

    /// Some bytes of gzip are gigabytes of one statement.
    #[test]
    fn a_statement_without_end_is_an_error_and_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        for piece in [&[b'x'; 1 << 20][..], &[b"xxxx\n".repeat(1 << 17)].concat()] {
            let path = folder.path().join("a.sql.gz");
            let file = std::fs::File::create(&path).unwrap();
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            packed.write_all(b"SELECT 1;\nSELECT '").unwrap();
            for _ in 0..(bounded::STATEMENT_MAX as usize + (4 << 20)) / piece.len() {
                packed.write_all(piece).unwrap();
            }
            packed.finish().unwrap();
            let mut file = SqlFile::open(&path, Dialect::Postgres).unwrap();
            file.next().unwrap();
            let error = file.next().unwrap_err();
            assert!(error.contains("longer than"), "{error}");
        }
    }

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
