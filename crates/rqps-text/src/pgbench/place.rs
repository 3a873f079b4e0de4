//! Positions in a script.

use std::fmt;

/// A fault in a script, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The problem, and a way out.
    pub what: String,
}

impl ScriptFault {
    /// A fault at a byte of the text.
    pub(super) fn at(text: &str, place: usize, what: impl Into<String>) -> ScriptFault {
        let before = &text.as_bytes()[..place.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        // A character begins with a byte that continues none.
        let letters = before[begin..].iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32;
        ScriptFault { line, column: letters + 1, what: what.into() }
    }
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}
