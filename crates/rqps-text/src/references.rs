//! References to parameters in SQL: `:name` outside literals, quoted names and comments.

use crate::lexer::{SqlLexer, is_of_name};
use rqps_model::dialect::Dialect;

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// SQL as it stands.
    Sql(String),
    /// A parameter by its name.
    Reference(String),
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
