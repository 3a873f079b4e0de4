//! Splits a statement into tokens as its server does. What servers of one dialect read in different
//! ways is a fault.

use rqps_model::dialect::Dialect;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Name,
    /// A literal in quotes.
    Text,
    /// A number.
    Number,
    /// A single sign.
    Sign,
}

/// A token of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: TokenKind,
    /// Its first byte.
    pub begin: usize,
    /// The byte after its last one.
    pub end: usize,
    /// The comment that holds it, if MySQL may execute that.
    pub comment: Option<VersionComment>,
}

/// A comment that MySQL or MariaDB executes from a version on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionComment {
    /// `/*M!`: only MariaDB.
    pub mariadb: bool,
    /// 0 without one.
    pub version: u32,
}

const CONTROL: &str = "it holds a control character, or a carriage return without a line feed";

/// Versions whose comments of MySQL's form MariaDB passes over.
const NOT_OF_MARIADB: std::ops::RangeInclusive<u32> = 50_700..=99_999;

/// All servers that rqps knows are newer.
const ANY_SERVER: u32 = 50_503;

impl VersionComment {
    /// True if every server executes it.
    pub(super) fn is_certain(self) -> bool {
        !self.mariadb && self.version <= ANY_SERVER
    }

    fn is_executed(self, by_mariadb: bool, version: u32) -> bool {
        let is_meant = if by_mariadb {
            self.mariadb || !NOT_OF_MARIADB.contains(&self.version)
        } else {
            !self.mariadb
        };
        is_meant && self.version <= version
    }
}

/// The statement as each version reads it that differs from others: one reading, unless it has
/// comments that MySQL executes.
pub(super) fn readings(tokens: &[Token]) -> Vec<Vec<Token>> {
    let mut versions: Vec<u32> =
        tokens.iter().filter_map(|token| Some(token.comment?.version)).collect();
    if versions.is_empty() {
        return vec![tokens.to_vec()];
    }
    // Before all of these versions, too.
    versions.push(0);
    versions.sort_unstable();
    versions.dedup();
    let mut readings: Vec<Vec<Token>> = Vec::new();
    for version in versions.into_iter().rev() {
        for by_mariadb in [false, true] {
            let is_read = |token: &&Token| {
                token.comment.is_none_or(|comment| comment.is_executed(by_mariadb, version))
            };
            let reading: Vec<Token> = tokens.iter().filter(is_read).copied().collect();
            let is_same = |known: &Vec<Token>| {
                known.len() == reading.len()
                    && known.iter().zip(&reading).all(|(one, other)| one.begin == other.begin)
            };
            if !readings.iter().any(is_same) {
                readings.push(reading);
            }
        }
    }
    readings
}

/// The tokens of a statement.
///
/// # Errors
/// Why nobody can tell where one ends.
pub fn tokens(dialect: Dialect, sql: &[u8]) -> Result<Vec<Token>, &'static str> {
    walked(Walk { sql, at: 0, mysql: dialect == Dialect::Mysql, comment: None, hints: true })
}

/// The same, but hints for the optimizer of MySQL, which may set variables, are an error.
///
/// # Errors
/// As [`tokens`].
pub(crate) fn without_hints(dialect: Dialect, sql: &[u8]) -> Result<Vec<Token>, &'static str> {
    walked(Walk { sql, at: 0, mysql: dialect == Dialect::Mysql, comment: None, hints: false })
}

fn walked(mut walk: Walk<'_>) -> Result<Vec<Token>, &'static str> {
    let sql = walk.sql;
    let mut tokens: Vec<Token> = Vec::new();
    while let Some(token) = walk.next()? {
        // Postgres reads both parts as one text with escapes.
        if let Some(last) = tokens.last()
            && token.kind == TokenKind::Text
            && last.kind == TokenKind::Text
            && matches!(sql[last.begin], b'e' | b'E')
        {
            return Err("a text with escapes is continued");
        }
        tokens.push(token);
    }
    Ok(tokens)
}

struct Walk<'a> {
    sql: &'a [u8],
    at: usize,
    mysql: bool,
    comment: Option<VersionComment>,
    hints: bool,
}

impl Walk<'_> {
    fn rest(&self) -> &[u8] {
        &self.sql[self.at..]
    }

    fn next(&mut self) -> Result<Option<Token>, &'static str> {
        self.pass_over()?;
        let Some(first) = self.sql.get(self.at).copied() else {
            return match self.comment {
                Some(_) => Err("a comment does not end"),
                None => Ok(None),
            };
        };
        let begin = self.at;
        let kind = match first {
            b'\'' => self.quoted(b'\'', self.mysql, TokenKind::Text)?,
            b'"' if self.mysql => self.quoted(b'"', true, TokenKind::Text)?,
            b'"' => self.quoted(b'"', false, TokenKind::Name)?,
            b'`' if self.mysql => self.quoted(b'`', false, TokenKind::Name)?,
            b'$' if !self.mysql => self.dollar()?,
            b'0'..=b'9' => self.number()?,
            first if first.is_ascii_alphabetic() || first == b'_' || first >= 0x80 => {
                self.word()?
            }
            b'\\' => return Err("a backslash stands outside of quotes"),
            first if first.is_ascii_graphic() => {
                self.at += 1;
                TokenKind::Sign
            }
            _ => return Err(CONTROL),
        };
        Ok(Some(Token { kind, begin, end: self.at, comment: self.comment }))
    }

    /// Passes over blanks and comments.
    fn pass_over(&mut self) -> Result<(), &'static str> {
        loop {
            let rest = self.rest();
            let Some(first) = rest.first() else { return Ok(()) };
            let is_line = if self.mysql {
                let is_blank = |byte: &u8| *byte == b' ' || byte.is_ascii_control();
                *first == b'#' || rest.starts_with(b"--") && rest.get(2).is_none_or(is_blank)
            } else {
                rest.starts_with(b"--")
            };
            if self.comment.is_some() && rest.starts_with(b"*/") {
                (self.comment, self.at) = (None, self.at + 2);
            } else if b" \t\n".contains(first) || rest.starts_with(b"\r\n") {
                self.at += 1;
            } else if is_line {
                if self.comment.is_some() {
                    return Err("a comment stands within a comment that is executed");
                }
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                let comment = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
                // Some of them end the comment, on some servers.
                if comment.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                    return Err(CONTROL);
                }
                self.at += end;
            } else if rest.starts_with(b"/*") {
                self.block_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Result<(), &'static str> {
        if self.comment.is_some() {
            return Err("a comment stands within a comment that is executed");
        }
        let rest = self.rest();
        if self.mysql && !self.hints && rest.starts_with(b"/*+") {
            return Err("it holds hints for the optimizer");
        }
        let mariadb = rest.starts_with(b"/*M!");
        if self.mysql && (mariadb || rest.starts_with(b"/*!")) {
            self.at += if mariadb { 4 } else { 3 };
            let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
            let sql = self.sql;
            let text = &sql[self.at..self.at + digits];
            let text = std::str::from_utf8(text).unwrap_or_default();
            self.at += digits;
            let follows = self.sql.get(self.at).is_none_or(u8::is_ascii_whitespace);
            let version = match digits {
                0 => 0,
                // Older servers take five digits of six: what is left is no statement.
                5 | 6 if follows => text.parse().unwrap_or(0),
                _ => return Err("the version of a comment that is executed is unclear"),
            };
            self.comment = Some(VersionComment { mariadb, version });
            return Ok(());
        }
        let mut depth = 0;
        while self.at < self.sql.len() {
            let rest = self.rest();
            if rest.starts_with(b"/*") && (depth == 0 || !self.mysql) {
                (depth, self.at) = (depth + 1, self.at + 2);
            } else if rest.starts_with(b"*/") {
                (depth, self.at) = (depth - 1, self.at + 2);
                if depth == 0 {
                    return Ok(());
                }
            } else {
                self.at += 1;
            }
        }
        Err("a comment does not end")
    }

    /// Passes what stands between quotes.
    fn quoted(
        &mut self,
        close: u8,
        backslash: bool,
        kind: TokenKind,
    ) -> Result<TokenKind, &'static str> {
        let begin = self.at;
        self.at += 1;
        loop {
            match self.sql.get(self.at).copied() {
                None => return Err("a text in quotes does not end"),
                Some(b'\\') if backslash => self.at += 2,
                Some(byte) if byte == close && self.sql.get(self.at + 1) == Some(&close) => {
                    self.at += 2;
                }
                Some(byte) if byte == close => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        // A server that does not execute the comment sees its end there.
        let inside = &self.sql[begin..self.at];
        if self.comment.is_some() && inside.windows(2).any(|pair| pair == b"*/") {
            return Err("a text holds the end of the comment around it");
        }
        Ok(kind)
    }

    /// A text between `$tag$` and `$tag$`.
    fn dollar(&mut self) -> Result<TokenKind, &'static str> {
        let rest = self.rest();
        let is_of_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        let length = rest[1..].iter().take_while(|byte| is_of_tag(byte)).count();
        let is_tag = rest.get(length + 1) == Some(&b'$') && !rest[1].is_ascii_digit();
        if rest.get(1).is_some_and(u8::is_ascii_digit) {
            // A parameter.
            let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.at += 1 + digits;
            return Ok(TokenKind::Sign);
        }
        if !is_tag {
            return Err("a `$` stands alone");
        }
        let tag = &rest[..length + 2];
        let found = rest[tag.len()..].windows(tag.len()).position(|window| window == tag);
        let found = found.ok_or("a text in dollar quotes does not end")?;
        self.at += found + 2 * (length + 2);
        Ok(TokenKind::Text)
    }

    fn number(&mut self) -> Result<TokenKind, &'static str> {
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if self.rest().starts_with(b"0x") {
            let hex = self.rest()[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            self.at += 2 + hex;
        } else {
            self.at += digits(self.rest());
            if self.rest().first() == Some(&b'.') {
                self.at += 1 + digits(&self.rest()[1..]);
            }
            if let [b'e' | b'E', rest @ ..] = self.rest() {
                let sign = usize::from(rest.first().is_some_and(|byte| b"+-".contains(byte)));
                let exponent = digits(&rest[sign..]);
                self.at += if exponent > 0 { 1 + sign + exponent } else { 0 };
            }
        }
        match self.rest().first() {
            Some(byte) if is_of_word(*byte) => Err("a number runs into a word"),
            _ => Ok(TokenKind::Number),
        }
    }

    /// A word, or a text with a prefix such as `E`.
    fn word(&mut self) -> Result<TokenKind, &'static str> {
        let length = self.rest().iter().take_while(|byte| is_of_word(**byte)).count();
        let word = &self.rest()[..length];
        // Whether such a byte is a letter or a blank depends on the character set.
        if self.mysql && !word.is_ascii() {
            return Err("a name that is not ASCII stands without quotes");
        }
        let next = self.sql.get(self.at + length).copied();
        if !self.mysql {
            let after = self.sql.get(self.at + length + 1).copied();
            if word.eq_ignore_ascii_case(b"u")
                && next == Some(b'&')
                && matches!(after, Some(b'\'' | b'"'))
            {
                return Err("it holds a text or name with Unicode escapes");
            }
            if word.eq_ignore_ascii_case(b"e") && next == Some(b'\'') {
                self.at += length;
                return self.quoted(b'\'', true, TokenKind::Text);
            }
        }
        self.at += length;
        Ok(TokenKind::Word)
    }
}

/// True for a byte of a word; all beyond ASCII are letters.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// True if a server reads the text as one statement, whatever stands in its literals and comments.
pub fn is_one_statement(dialect: Dialect, sql: &str) -> bool {
    let ends = |token: &Token| {
        token.comment.is_some() || sql.as_bytes().get(token.begin..token.end) == Some(b";")
    };
    tokens(dialect, sql.as_bytes()).is_ok_and(|all| !all.is_empty() && !all.iter().any(ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::dialect::Dialect::{Mysql, Postgres};

    fn seen(dialect: Dialect, sql: &str) -> Vec<&str> {
        let found = without_hints(dialect, sql.as_bytes()).unwrap();
        found.iter().map(|token| &sql[token.begin..token.end]).collect()
    }

    #[test]
    fn tokens_are_those_of_the_server() {
        let check = |dialect, sql: &str, want: &[&str]| assert_eq!(seen(dialect, sql), want);
        check(Postgres, r"a E'b\'', 'c\' d", &["a", r"E'b\''", ",", r"'c\'", "d"]);
        check(Mysql, r#"a 'b\'' "c;" `d``"` # e"#, &["a", r"'b\''", "\"c;\"", "`d``\"`"]);
        check(Postgres, "a/* b /* c */ */d--e\nf", &["a", "d", "f"]);
        check(Mysql, "a/* b /* c */d--e\n-- f", &["a", "d", "-", "-", "e"]);
        check(Postgres, "$a$ ' $b$ $a$ $$;$$", &["$a$ ' $b$ $a$", "$$;$$"]);
        check(Mysql, "/*!40101 SET a=1 */", &["SET", "a", "=", "1"]);
        check(Postgres, "1.5e3,0x1f .2", &["1.5e3", ",", "0x1f", ".", "2"]);
    }

    #[test]
    fn what_servers_read_in_different_ways_is_a_fault() {
        let check =
            |dialect, sql: &str| assert!(without_hints(dialect, sql.as_bytes()).is_err(), "{sql}");
        for sql in [
            "'a", "\"a", "/* a", "$a$ b", "E'a'\n'b\\''", "U&'a'", "u&\"a\"", "\\! a", "$ 1", "1a",
            "a\0b",
        ] {
            check(Postgres, sql);
        }
        for sql in [
            "/*!40101 a", "/*!40101 a /* b */ */", "/*!4010 a */", "/*!40101a */",
            "/*!40101 '*/' */", "/*!40101 -- a\n */", "/*+ a */", "a\u{a0}b", "/*!99999999 a */",
            "/*! a # b\n*/",
        ] {
            check(Mysql, sql);
        }
    }

    #[test]
    fn each_version_has_its_reading() {
        let check = |sql: &str, want: &[&str]| {
            let all = readings(&tokens(Mysql, sql.as_bytes()).unwrap());
            let words = |reading: &Vec<Token>| -> String {
                let words = reading.iter().map(|token| &sql[token.begin..token.end]);
                words.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(all.iter().map(words).collect::<Vec<_>>(), want);
        };
        check("a b", &["a b"]);
        check("a /*! b */", &["a b"]);
        check("a /*!50100 b */ /*!80016 c */", &["a b c", "a b", "a"]);
        check("a /*M!100100 b */ /*!40101 c */", &["a c", "a b c", "a"]);
    }

    #[test]
    fn a_second_statement_is_found_where_the_server_finds_it() {
        let check =
            |sql: &str, one| assert_eq!(is_one_statement(Dialect::Postgres, sql), one, "{sql}");
        check("SELECT a FROM t WHERE b = $1 AND c = ';' -- ;", true);
        check("SELECT $$;$$, \";\"", true);
        check("SELECT 1; DROP TABLE t", false);
        check("SELECT 1 FROM t;", false);
        // The server reads both parts as one text with escapes, which ends before the `;`.
        check("SELECT E'a'\n'\\''; DROP TABLE t; --'", false);
        check("SELECT 'a", false);
        check("", false);
    }
}
