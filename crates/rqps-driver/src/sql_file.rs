//! A file of SQL, be it a dump, statement by statement.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
            let length = self.input.read_until(b'\n', &mut self.line);
            is_at_end = length.map_err(|error| error.to_string())? == 0;
            let split = match is_at_end {
                true => self.splitter.end(&mut self.chunks),
                false => self.splitter.take(&self.line, &mut self.chunks),
            };
            split.map_err(|error| error.to_string())?;
            self.chunks.reverse();
        }
        Ok(self.chunks.pop())
    }
}
