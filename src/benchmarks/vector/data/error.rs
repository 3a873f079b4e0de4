//! Why there are no vectors to search.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no data.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("{doing} {path}: {source}")]
    Io {
        /// "read the vectors of".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file has another form, or a feature that is not read.
    #[error("read the vectors of {path}: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The vectors cannot be searched.
    #[error("use the vectors of {name}: {what}")]
    Unfit {
        /// The set.
        name: String,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl DataError {
    pub(crate) fn form(path: &Path, what: impl Into<String>) -> DataError {
        DataError::Form { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DataError {
        let path = path.to_owned();
        move |source| DataError::Io { doing, path, source }
    }
}
