//! Errors of vector data.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error of vector data.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The action: "read the vectors of".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file has an unknown form or an unsupported feature.
    #[error("read the vectors of {path}: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The problem, and the valid form.
        what: String,
    },
    /// The vectors are unsuitable for a search.
    #[error("use the vectors of {name}: {what}")]
    Unfit {
        /// The set.
        name: String,
        /// The problem and a way out.
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
