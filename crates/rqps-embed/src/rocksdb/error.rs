//! Errors of RocksDB, with what to do about the frequent ones.

use std::path::PathBuf;

use thiserror::Error;

use crate::library::LibraryError;

/// An error of RocksDB.
#[derive(Debug, Error)]
pub enum RocksdbError {
    /// The library could not be loaded.
    #[error(transparent)]
    Library(LibraryError),
    /// It lacks a function that all versions since 6.0 have.
    #[error(
        "find the function {symbol} in {}: RocksDB since 6.0 and Speedb have it if built with the \
         C API; the benchmark kv needs it",
        .path.display()
    )]
    NoSymbol {
        /// The function.
        symbol: String,
        /// The file.
        path: PathBuf,
    },
    /// It lacks a function that only some versions have.
    #[error("{without}: {} lacks {symbol}, which {versions} have", .path.display())]
    Missing {
        /// The function.
        symbol: &'static str,
        /// The versions that have it.
        versions: &'static str,
        /// The operation that is not possible.
        without: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// An option that the version does not take.
    #[error("set the option {key}={value}: {said}{hint}")]
    Option {
        /// Its name.
        key: String,
        /// Its value.
        value: String,
        /// The library's words.
        said: String,
        /// A hint; begins with a line break.
        hint: String,
    },
    /// A path or an option holds a NUL byte.
    #[error("pass text to RocksDB: it holds a NUL byte: {0:?}")]
    Nul(String),
    /// RocksDB refused.
    #[error("{doing}: {said}{}", hint(.said))]
    Refused {
        /// "open the database", "put".
        doing: &'static str,
        /// RocksDB's words.
        said: String,
    },
}

/// A hint for RocksDB's more frequent errors; begins with a line break.
fn hint(said: &str) -> &'static str {
    let direct = said.contains("Direct I/O") || said.contains("direct I/O");
    if direct || (said.contains("Invalid argument") && said.contains("open")) {
        "\nhint: this filesystem does not support O_DIRECT (like tmpfs and overlays); name a \
         folder on a disk with --work, or leave direct_io off"
    } else if said.contains("No space left") {
        "\nhint: free space, name a folder on another disk with --work, or use fewer keys"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_have_their_hints() {
        assert!(hint("IO error: No space left on device: while appending").contains("--work"));
        assert!(hint("Direct I/O is not supported by the specified DB.").contains("O_DIRECT"));
        assert_eq!(hint("Corruption: bad block"), "");
    }
}
