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

// References to parameters in SQL: `:name` outside literals, quoted names and comments.

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// SQL as it stands.
    Sql(String),
    /// A parameter by its name.
    Reference(String),
}

impl SqlPart {
    /// SQL as it stands; `None` for a parameter.
    pub fn sql(&self) -> Option<&str> {
        match self {
            SqlPart::Sql(sql) => Some(sql),
            SqlPart::Reference(_) => None,
        }
    }
}

/// Splits a statement at its references. `::`, `:=` and a colon before anything but a name are SQL.
///
/// # Errors
/// The text ends within a literal, a name or a comment, or it holds two statements.
pub fn parts(dialect: Dialect, sql: &str) -> Result<Vec<SqlPart>, String> {
    let text = sql.as_bytes();
    let mut lexer = SqlLexer::new(dialect);
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    let mut end = None;
    while at < text.len() {
        let (next, is_code) = lexer.step(text, at);
        if is_code && end.is_some() && !text[at].is_ascii_whitespace() && text[at] != b';' {
            return Err("two statements in one `sql`\nhint: write one \
                        [[step.event.statement]] for each"
                .to_owned());
        }
        if is_code && text[at] == b';' {
            end.get_or_insert(at);
        }
        match is_code.then(|| reference(text, at)).flatten() {
            Some(length) => {
                parts.push(SqlPart::Sql(sql[from..at].to_owned()));
                parts.push(SqlPart::Reference(sql[at + 1..at + 1 + length].to_owned()));
                at += 1 + length;
                from = at;
            }
            None => at = next,
        }
    }
    if let Some(open) = lexer.open() {
        return Err(format!("the SQL ends within {open}"));
    }
    let end = end.unwrap_or(text.len()).max(from);
    parts.push(SqlPart::Sql(sql[from..end].trim_end().to_owned()));
    parts.retain(|part| *part != SqlPart::Sql(String::new()));
    Ok(parts)
}

/// Length of the name after the colon at `at`, if that is a reference.
fn reference(text: &[u8], at: usize) -> Option<usize> {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    let follows_colon = at.checked_sub(1).is_some_and(|before| text[before] == b':');
    if text[at] != b':' || follows_colon || !text.get(at + 1).is_some_and(begins) {
        return None;
    }
    let is_of_reference = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    Some(text[at + 1..].iter().take_while(is_of_reference).count())
}

/// The words of the code of a statement in capitals, with `(` and `)` as words of their own.
pub fn words(dialect: Dialect, sql: &str) -> Vec<String> {
    let text = sql.as_bytes();
    let mut lexer = SqlLexer::new(dialect);
    let (mut words, mut at): (Vec<String>, usize) = (Vec::new(), 0);
    let mut in_word = false;
    while at < text.len() {
        let (next, is_code) = lexer.step(text, at);
        let byte = text[at];
        if is_code && is_of_name(byte) {
            if !in_word {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(char::from(byte.to_ascii_uppercase()));
            }
        } else if is_code && matches!(byte, b'(' | b')') {
            words.push(char::from(byte).to_string());
        }
        in_word = is_code && is_of_name(byte);
        at = next;
    }
    words
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

    fn names(dialect: Dialect, sql: &str) -> Vec<String> {
        let parts = parts(dialect, sql).unwrap().into_iter();
        parts
            .filter_map(|part| match part {
                SqlPart::Reference(name) => Some(name),
                SqlPart::Sql(_) => None,
            })
            .collect()
    }

    #[test]
    fn only_a_colon_before_a_name_in_code_is_a_reference() {
        let check = |sql: &str, want: &[&str]| {
            assert_eq!(names(Dialect::Postgres, sql), want, "{sql}");
        };
        check("SELECT * FROM t WHERE id = :id AND b=:b_2", &["id", "b_2"]);
        check("SELECT ':x', \":y\", $$ :z $$ -- :w", &[]);
        check("SELECT a::int, :b::text, x := 1, a[1:2]", &["b"]);
        check("SELECT :a:b", &["a", "b"]);
        check("SELECT :1, : a, ?", &[]);
        assert_eq!(names(Dialect::Mysql, r"SELECT '\':x', :y"), ["y"]);
    }

    #[test]
    fn parts_put_together_are_the_statement() {
        let whole = |sql: &str| {
            let text = |part| match part {
                SqlPart::Sql(sql) => sql,
                SqlPart::Reference(name) => format!(":{name}"),
            };
            parts(Dialect::Sqlite, sql).unwrap().into_iter().map(text).collect::<String>()
        };
        assert_eq!(
            whole("UPDATE t SET a = :a WHERE b = ':b' ; "),
            "UPDATE t SET a = :a WHERE b = ':b'"
        );
        assert_eq!(whole("SELECT :a"), "SELECT :a");
        assert_eq!(whole("SELECT ';' -- end ;"), "SELECT ';' -- end ;");
    }

    #[test]
    fn what_is_not_one_whole_statement_is_refused() {
        let fails = |sql: &str| parts(Dialect::Postgres, sql).unwrap_err();
        assert!(fails("SELECT 1; SELECT 2").starts_with("two statements"));
        assert_eq!(fails("SELECT 'a"), "the SQL ends within a text in quotes");
    }

    #[test]
    fn words_are_those_of_the_code() {
        let words = words(Dialect::Postgres, "/* a */ with x as (delete from t) select 'b'");
        assert_eq!(words, ["WITH", "X", "AS", "(", "DELETE", "FROM", "T", ")", "SELECT"]);
    }
}
