//! Distinguishes code, literals, quoted names and comments in a SQL text.

use rqps_model::dialect::Dialect;

/// Walks through SQL byte by byte and tells code from the rest.
#[derive(Clone, Debug)]
pub struct SqlLexer {
    dialect: Dialect,
    region: Region,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Region {
    Code,
    /// Between quotes: the closing one, and whether a backslash escapes it.
    Quoted {
        close: u8,
        backslash: bool,
    },
    LineComment,
    BlockComment {
        depth: u32,
    },
    /// Between `$tag$` and `$tag$`, the whole mark.
    Dollar(Vec<u8>),
}

impl SqlLexer {
    /// At the beginning of a text.
    pub fn new(dialect: Dialect) -> SqlLexer {
        SqlLexer { dialect, region: Region::Code }
    }

    /// True between tokens: not within a literal, a quoted name or a block comment.
    pub fn is_in_code(&self) -> bool {
        matches!(self.region, Region::Code | Region::LineComment)
    }

    /// True within a comment.
    pub(super) fn is_in_comment(&self) -> bool {
        matches!(self.region, Region::LineComment | Region::BlockComment { .. })
    }

    /// The open literal or comment, for an error about a text that ends within it.
    pub fn open(&self) -> Option<&'static str> {
        match &self.region {
            Region::Code | Region::LineComment => None,
            Region::Quoted { close: b'\'', .. } => Some("a text in quotes"),
            Region::Quoted { .. } => Some("a quoted name"),
            Region::BlockComment { .. } => Some("a comment"),
            Region::Dollar(_) => Some("a text in dollar quotes"),
        }
    }

    /// Passes the byte at `at` and what belongs to it. Returns the place after it, and true if it
    /// is code. `text` may be a line of a longer text whose earlier lines were passed before.
    pub fn step(&mut self, text: &[u8], at: usize) -> (usize, bool) {
        let rest = &text[at..];
        match &mut self.region {
            Region::Code => self.open_region(text, at),
            Region::LineComment => {
                let returns = self.dialect == Dialect::Postgres && rest[0] == b'\r';
                if rest[0] == b'\n' || returns {
                    self.region = Region::Code;
                }
                (at + 1, false)
            }
            Region::BlockComment { depth } => {
                if rest.starts_with(b"*/") {
                    *depth -= 1;
                    if *depth == 0 {
                        self.region = Region::Code;
                    }
                    return (at + 2, false);
                }
                if rest.starts_with(b"/*") && self.dialect == Dialect::Postgres {
                    *depth += 1;
                    return (at + 2, false);
                }
                (at + 1, false)
            }
            Region::Dollar(tag) => {
                if rest.starts_with(tag) {
                    let next = at + tag.len();
                    self.region = Region::Code;
                    return (next, false);
                }
                (at + 1, false)
            }
            Region::Quoted { close, backslash } => {
                if *backslash && rest[0] == b'\\' && rest.len() > 1 {
                    return (at + 2, false);
                }
                if rest[0] == *close {
                    // A doubled quote is one of the text.
                    if rest.get(1) == Some(close) {
                        return (at + 2, false);
                    }
                    self.region = Region::Code;
                }
                (at + 1, false)
            }
        }
    }

    fn open_region(&mut self, text: &[u8], at: usize) -> (usize, bool) {
        let rest = &text[at..];
        let (postgres, mysql) = (self.dialect == Dialect::Postgres, self.dialect == Dialect::Mysql);
        let quoted = |close, backslash| Region::Quoted { close, backslash };
        let region = match rest[0] {
            b'\'' => quoted(b'\'', mysql || (postgres && is_escape_string(text, at))),
            b'"' => quoted(b'"', mysql),
            b'`' if !postgres => quoted(b'`', false),
            b'[' if self.dialect == Dialect::Sqlite => quoted(b']', false),
            b'#' if mysql => Region::LineComment,
            b'-' if rest.starts_with(b"--") => {
                let is_blank = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control();
                let blank = rest.get(2).is_none_or(is_blank);
                if mysql && !blank {
                    return (at + 1, true);
                }
                Region::LineComment
            }
            b'/' if rest.starts_with(b"/*") => {
                self.region = Region::BlockComment { depth: 1 };
                return (at + 2, false);
            }
            b'$' if postgres => match dollar_tag(text, at) {
                Some(tag) => {
                    let next = at + tag.len();
                    self.region = Region::Dollar(tag.to_vec());
                    return (next, false);
                }
                None => return (at + 1, true),
            },
            _ => return (at + 1, true),
        };
        self.region = region;
        (at + 1, false)
    }
}

/// True for a byte of a name: letters, digits, `_`, `$`, and all beyond ASCII.
pub(super) fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// True if the quote at `at` follows an `E` that stands alone.
fn is_escape_string(text: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|place| text[place]);
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(is_of_name)
}

/// The mark `$tag$` at `at`, if it is one and not the middle of a name.
fn dollar_tag(text: &[u8], at: usize) -> Option<&[u8]> {
    if at.checked_sub(1).is_some_and(|before| is_of_name(text[before])) {
        return None;
    }
    let rest = &text[at + 1..];
    let end = rest.iter().position(|byte| *byte == b'$')?;
    let tag = &rest[..end];
    let is_name = tag.iter().all(|byte| is_of_name(*byte) && *byte != b'$')
        && !tag.first().is_some_and(u8::is_ascii_digit);
    is_name.then(|| &text[at..at + end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code of a text, with `_` for what is not.
    fn code(dialect: Dialect, text: &str) -> String {
        let (mut lexer, mut at, mut found) = (SqlLexer::new(dialect), 0, Vec::new());
        while at < text.len() {
            let (next, is_code) = lexer.step(text.as_bytes(), at);
            for place in at..next {
                found.push(if is_code { text.as_bytes()[place] } else { b'_' });
            }
            at = next;
        }
        String::from_utf8(found).unwrap()
    }

    #[test]
    fn each_dialect_has_literals_and_comments_of_its_own() {
        use Dialect::{Mysql, Postgres, Sqlite};
        let check = |dialect, text: &str, want: &str| assert_eq!(code(dialect, text), want);
        check(Postgres, "a 'b''c' d", "a ______ d");
        check(Postgres, r"a 'b\' d", "a ____ d");
        check(Postgres, r"a E'b\'' d", "a E_____ d");
        check(Mysql, r"a 'b\'' d", "a _____ d");
        check(Sqlite, r"a 'b\' d", "a ____ d");
        check(Mysql, "`a;` ; \"b;\" # c;\nd", "____ ; ____ _____d");
        check(Mysql, "1--1 -- x;\ny", "1--1 ______y");
        check(Postgres, "1--1\ny", "1____y");
        check(Postgres, "1--1\ry", "1____y");
        check(Mysql, "1--\x0b1\ny", "1_____y");
        check(Postgres, "/* a /* b */ ; */ c", "_________________ c");
        check(Mysql, "/* a /* b */ c", "____________ c");
        check(Postgres, "$1 $$;$$ $a$ $b$ $a$ x$1", "$1 _____ ___________ x$1");
        check(Mysql, "$$;$$", "$$;$$");
        check(Sqlite, "[a;b] ;", "_____ ;");
        check(Postgres, "a[1]", "a[1]");
    }

    #[test]
    fn a_text_that_ends_within_something_says_so() {
        let open = |text: &str| {
            let (mut lexer, mut at) = (SqlLexer::new(Dialect::Postgres), 0);
            while at < text.len() {
                at = lexer.step(text.as_bytes(), at).0;
            }
            lexer.open()
        };
        assert_eq!(open("SELECT 'a"), Some("a text in quotes"));
        assert_eq!(open("SELECT \"a"), Some("a quoted name"));
        assert_eq!(open("SELECT /* a"), Some("a comment"));
        assert_eq!(open("SELECT $a$ "), Some("a text in dollar quotes"));
        assert_eq!(open("SELECT 1 -- a"), None);
    }
}
