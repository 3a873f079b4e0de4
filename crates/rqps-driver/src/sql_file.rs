//! A file of SQL, be it a dump, statement by statement.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rqps_model::bounded;

use crate::domain::dialect::Dialect;
use crate::driver::script::table;
use crate::user_text::{SqlChunk, SqlSplitter};

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
