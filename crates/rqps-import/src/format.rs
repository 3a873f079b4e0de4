//! A format of somebody else's results, and who reads it.

use super::error::ImportError;
use super::options::{ImportOptions, Named};
use super::published::Published;
use super::{hammerdb, insert, kv, series, sysbench, vector};

/// All formats, in the order of lists.
pub const FORMATS: [ImportFormat; 7] = [
    sysbench::MYTOOLS,
    sysbench::PLAIN,
    insert::MYTOOLS,
    kv::DB_BENCH,
    vector::ANN_BENCHMARKS,
    series::FORMAT,
    hammerdb::FORMAT,
];

/// One row: a word of the command line with its reader.
#[derive(Clone, Copy, Debug)]
pub struct ImportFormat {
    /// The word of the command line.
    pub word: &'static str,
    /// Reads files and folders.
    pub read: fn(&[Named], &ImportOptions) -> Result<Published, ImportError>,
}

impl ImportFormat {
    /// Finds the format of a word.
    ///
    /// # Errors
    /// [`ImportError::Words`] with the words there are.
    pub fn named(word: &str) -> Result<ImportFormat, ImportError> {
        let found = FORMATS.iter().find(|format| format.word == word);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.word).collect();
            let known = known.join(", ");
            ImportError::Words(format!("`{word}`: unknown format (known: {known})"))
        })
    }
}
