//! A file of SQL, be it a dump, statement by statement.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rqps_model::bounded;

use crate::script::table;
use rqps_model::dialect::Dialect;
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
        match begin.starts_with(b"PGDMP") {
            true => Err("it is in pg_dump's custom format\nhint: make SQL of it with \
                         `pg_restore -f shop.sql FILE`"
                .to_owned()),
            false => Ok(()),
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
            let split = match is_at_end {
                true => self.splitter.end(&mut self.chunks),
                false => self.splitter.take(&self.line, &mut self.chunks),
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
