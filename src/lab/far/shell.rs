//! Words of a shell.

use std::path::Path;

/// A path as a word of a shell.
pub(in crate::lab) fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as a word of a shell.
pub(in crate::lab) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
