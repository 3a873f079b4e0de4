//! Texts that are not UTF-8: what their errors say, whatever reads them.

/// The way out of such a text, after its error.
pub const UTF8_HINT: &str = "\nhint: convert the file, for instance by `iconv -f latin1 -t utf8`";
