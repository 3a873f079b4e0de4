//! Errors of imports: the file, the line, the problem.

use std::path::{Path, PathBuf};

use thiserror::Error;

use rqps_model::escape;
use rqps_results::ResultsError;

/// An error of an import. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("read `{}` for import: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line is not what its form asks for.
    #[error("import `{}`, line {line}{}: {why} (docs/importing.md describes the formats)",
            path.display(), column.map(|at| format!(", column {at}")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The cell of the line, from 1, where one is at fault.
        column: Option<usize>,
        /// The fault, or what the parser expected.
        why: String,
    },
    /// The whole file or folder is of no form that this format knows.
    #[error("import `{}`: {why} (docs/importing.md describes the formats)", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// The search.
        why: String,
    },
    /// The words of the command line do not fit.
    #[error("import {0}")]
    Words(String),
    /// The run folders could not be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl ImportError {
    /// Wraps what the operating system said about that path.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ImportError {
        let path = path.to_owned();
        move |source| ImportError::Io { path, source }
    }

    /// A file that is not in the form that was expected.
    pub fn foreign(path: &Path, why: impl Into<String>) -> ImportError {
        ImportError::Foreign { path: path.to_owned(), why: echoed(&why.into()) }
    }
}

/// Characters of others' text that a message echoes.
const SHOWN_MAX: usize = 400;

/// A message that echoes text of a file: on one line, and cut in the middle where it is long.
pub(crate) fn echoed(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN_MAX {
        return escape::line(text).into_owned();
    }
    let half = SHOWN_MAX / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    let cut = count - 2 * half;
    format!("{} [… {cut} characters …] {}", escape::line(&begin), escape::line(&end))
}
