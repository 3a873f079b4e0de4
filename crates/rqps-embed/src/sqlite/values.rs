//! Values bound in SQLite, and values read from it.

use thiserror::Error;

use crate::library::LibraryError;

/// An error of SQLite.
#[derive(Debug, Error)]
pub enum SqliteError {
    /// The library could not be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// It is not built to be used by several threads.
    #[error(
        "use SQLite {version} from several threads: this build has SQLITE_THREADSAFE=0; use one \
         without that option"
    )]
    NotThreadSafe {
        /// Its version.
        version: String,
    },
    /// A path or a statement holds a NUL byte.
    #[error("pass text to SQLite: it holds a NUL byte: {0:?}")]
    Nul(String),
    /// SQLite refused.
    #[error("{message} (SQLite result code {code})")]
    Refused {
        /// Extended result code.
        code: i32,
        /// SQLite's words.
        message: String,
    },
}

/// The result of one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub changed: u64,
    /// Bytes of all columns returned; an integer counts 8.
    pub bytes: u64,
    /// True if the statement returns rows, be it none.
    pub result_set: bool,
}

/// Takes a value as text (`None` is NULL), and the number of values of its row.
pub type KeepValue<'a> = &'a mut dyn FnMut(Option<&[u8]>, usize);

/// A value for a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteValue<'a> {
    /// INTEGER.
    Int(i64),
    /// TEXT.
    Text(&'a [u8]),
    /// NULL.
    Null,
}
