//! Notices of an importer: contradictions, omitted cells and remarks.

use std::fmt;
use std::path::Path;

use super::error::echoed;

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// Two published numbers that should follow from each other do not.
    Mismatch,
    /// Something was there and was not taken.
    Left,
    /// Something to know about the numbers.
    Note,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind.
    pub kind: NoticeKind,
    /// The file or folder.
    pub file: String,
    /// Its line from 1, if it is about one.
    pub line: Option<usize>,
    /// The text.
    pub text: String,
}

impl Notice {
    /// About a line.
    pub fn at(kind: NoticeKind, file: &Path, line: usize, text: impl Into<String>) -> Notice {
        let text = echoed(&text.into());
        Notice { kind, file: file.display().to_string(), line: Some(line), text }
    }

    /// About a whole file or folder.
    pub fn of(kind: NoticeKind, file: impl AsRef<Path>, text: impl Into<String>) -> Notice {
        let file = file.as_ref().display().to_string();
        Notice { kind, file, line: None, text: text.into() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NoticeKind::Mismatch => "mismatch: ",
            NoticeKind::Left => "not imported: ",
            NoticeKind::Note => "",
        };
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {kind}{}", self.file, self.text),
            None => write!(f, "{}: {kind}{}", self.file, self.text),
        }
    }
}
