//! Files of SQL that the user names.

use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::statement::Statement;
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_text::{SqlChunk, SqlSplitter};

/// Gives each part of a file, in order.
///
/// # Errors
/// The file cannot be read or split, or `take` refuses a part.
pub fn each_chunk(
    path: &Path,
    dialect: Dialect,
    take: &mut dyn FnMut(SqlChunk) -> Result<()>,
) -> Result<()> {
    let doing = || format!("read {}", path.display());
    let mut lines = BufReader::new(bounded::plain(path).with_context(doing)?);
    let (mut splitter, mut line, mut chunks) = (SqlSplitter::new(dialect), Vec::new(), Vec::new());
    loop {
        line.clear();
        let left = bounded::STATEMENT_MAX.saturating_sub(splitter.pending() as u64).max(1);
        let read = bounded::line(&mut lines, &mut line, left).with_context(doing)?;
        if read == 0 {
            splitter.end(&mut chunks).with_context(doing)?;
        } else {
            splitter.take(&line, &mut chunks).with_context(doing)?;
        }
        chunks.drain(..).try_for_each(&mut *take)?;
        if read == 0 {
            return Ok(());
        }
    }
}

/// The statements of a file, numbered on from those that are there.
///
/// # Errors
/// As [`each_chunk`], and a COPY with data.
pub fn statements_of(path: &Path, dialect: Dialect, found: &mut Vec<Statement>) -> Result<()> {
    each_chunk(path, dialect, &mut |chunk| {
        let SqlChunk::Statement(text, line) = chunk else {
            bail!("read {}: data of COPY are no statement to plan", path.display());
        };
        let origin = format!("{}:{line}", path.display());
        let text = String::from_utf8(text)
            .with_context(|| format!("read {origin}: the statement is not UTF-8"))?;
        found.push(Statement { number: found.len() + 1, text, origin, share: None });
        Ok(())
    })
}
