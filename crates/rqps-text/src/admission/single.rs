//! Texts that must be one statement, because they become part of another one.

use crate::admission::tokens::{Token, tokens};
use rqps_model::dialect::Dialect;

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
