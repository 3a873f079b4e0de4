//! Tells statements that only read from those that may write, by their words.

use std::borrow::Cow;

use crate::lexer::SqlLexer;
use crate::references::{parts, words};
use rqps_model::dialect::Dialect;

/// What a statement does to data, as far as its words tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// It returns rows and changes none. The text is without the locks that it takes.
    Reads(Cow<'a, str>),
    /// It begins or ends a transaction, or sets a variable of the session.
    Frames,
    /// Anything else: it may write.
    Other,
}

/// Words of statements that write, within one that begins like a query.
const WRITES: [&str; 5] = ["INTO", "INSERT", "UPDATE", "DELETE", "MERGE"];

/// First words of statements that change no data.
const FRAMES: [&str; 9] =
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET"];

/// Words of variables that outlive the session, or that let it write.
const LASTING: [&str; 6] = [
    "GLOBAL",
    "PERSIST",
    "PERSIST_ONLY",
    "WRITE",
    "DEFAULT_TRANSACTION_READ_ONLY",
    "TRANSACTION_READ_ONLY",
];

/// What a statement does. Functions that it calls may write all the same.
pub fn effect(dialect: Dialect, sql: &str) -> Effect<'_> {
    if parts(dialect, sql).is_err() {
        return Effect::Other;
    }
    let read = without_locks(dialect, sql);
    let words = words(dialect, &read);
    let holds = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let first = words.iter().find(|word| *word != "(").map_or("", String::as_str);
    match first {
        "SELECT" | "WITH" | "VALUES" | "TABLE" if !holds(&WRITES) => Effect::Reads(read),
        first if FRAMES.contains(&first) && !holds(&LASTING) => Effect::Frames,
        _ => Effect::Other,
    }
}

/// The statement without FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE at its end: a session that
/// only reads may not lock, and gets the same rows without.
fn without_locks(dialect: Dialect, sql: &str) -> Cow<'_, str> {
    let text = sql.as_bytes();
    let (mut lexer, mut at, mut depth, mut cut) = (SqlLexer::new(dialect), 0, 0_i32, None);
    while at < text.len() {
        let (next, is_code) = lexer.step(text, at);
        if is_code {
            match text[at] {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ if depth == 0 && cut.is_none() && begins_lock(text, at) => cut = Some(at),
                _ => {}
            }
        }
        at = next;
    }
    cut.map_or(Cow::Borrowed(sql), |cut| Cow::Owned(sql[..cut].trim_end().to_owned()))
}

/// True if a locking clause begins at `at`.
fn begins_lock(text: &[u8], at: usize) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    if at.checked_sub(1).is_some_and(|before| is_of_word(text[before])) {
        return false;
    }
    let rest = String::from_utf8_lossy(&text[at..(at + 60).min(text.len())]).to_ascii_uppercase();
    let mut words = rest.split_ascii_whitespace().map(|word| word.trim_end_matches(';'));
    matches!(
        (words.next(), words.next(), words.next()),
        (Some("FOR"), Some("UPDATE" | "SHARE"), _)
            | (Some("FOR"), Some("NO" | "KEY"), Some("KEY" | "SHARE"))
            | (Some("LOCK"), Some("IN"), Some("SHARE"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_certainly_reads_is_a_read() {
        use Dialect::{Mysql, Postgres, Sqlite};
        let reads = |dialect, sql: &str, want: &str| {
            assert_eq!(effect(dialect, sql), Effect::Reads(want.into()), "{sql}");
        };
        let check = |dialect, sql: &str, want: Effect<'_>| {
            assert_eq!(effect(dialect, sql), want, "{sql}");
        };
        for sql in [
            "SELECT 1",
            " (select a from t) union select 2;",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "VALUES (1)",
            "SELECT 'insert into t' AS \"update\"",
        ] {
            reads(Postgres, sql, sql);
        }
        reads(
            Postgres,
            "SELECT a FROM t WHERE b = $1 FOR UPDATE OF t",
            "SELECT a FROM t WHERE b = $1",
        );
        reads(Postgres, "select a from t for no key update", "select a from t");
        reads(Mysql, "SELECT a FROM t LOCK IN SHARE MODE", "SELECT a FROM t");
        reads(Postgres, "SELECT substring(a FOR 2) FROM t", "SELECT substring(a FOR 2) FROM t");
        for sql in [
            "UPDATE t SET a = 1",
            "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
            "SELECT a INTO u FROM t",
            "SELECT 1; DROP TABLE t",
            "CALL p()",
            "EXPLAIN ANALYZE DELETE FROM t",
            "SELECT 'a",
            "",
        ] {
            check(Postgres, sql, Effect::Other);
        }
        check(Mysql, "SET GLOBAL x = 1", Effect::Other);
        check(Mysql, "SELECT a INTO @x FROM t", Effect::Other);
        check(Sqlite, "PRAGMA journal_mode = off", Effect::Other);
        check(Postgres, "BEGIN ISOLATION LEVEL SERIALIZABLE", Effect::Frames);
        check(Mysql, "SET autocommit = 0", Effect::Frames);
        check(Sqlite, "commit", Effect::Frames);
    }
}
