//! A file of SQL, be it a dump, statement by statement.

use std::fs;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::script::table;
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::Endpoint;
use rqps_text::{SqlChunk, SqlSplitter};

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
            input: table::open_counted(path, read)?,
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
    let file = table::plain(path).map_err(fault)?;
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
            for _ in 0..600 {
                packed.write_all(piece).unwrap();
            }
            packed.finish().unwrap();
            let mut file = SqlFile::open(&path, Dialect::Postgres).unwrap();
            file.next().unwrap();
            let error = file.next().unwrap_err();
            assert!(error.contains("longer than"), "{error}");
        }
    }
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
