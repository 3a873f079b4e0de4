//! A format of somebody else's results, and who reads it.

use super::error::ImportError;
use super::options::{ImportOptions, Named};
use super::published::Published;

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
    pub fn named(word: &str, formats: &[ImportFormat]) -> Result<ImportFormat, ImportError> {
        let found = formats.iter().find(|format| format.word == word);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = formats.iter().map(|format| format.word).collect();
            let known = known.join(", ");
            ImportError::Words(format!("`{word}`: unknown format (known: {known})"))
        })
    }
}
