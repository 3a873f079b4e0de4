//! Rewrites placeholders: `?` in scripts, `$1` on Postgres, literals for statements that are not
//! prepared.

use std::fmt::Write;

use rqps_embed::lua::Binding;
use rqps_model::dialect::{Dialect, push_literal};

/// The SQL between placeholders: one more piece than placeholders.
pub(super) fn pieces(sql: &str) -> Vec<String> {
    let bytes = sql.as_bytes();
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'?' => {
                pieces.push(sql[start..at].to_owned());
                start = at + 1;
            }
            quote @ (b'\'' | b'"' | b'`') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    pieces.push(sql[start..].to_owned());
    pieces
}

/// The statement to prepare.
pub(super) fn prepared(pieces: &[String], dialect: Dialect) -> String {
    let mut sql = String::new();
    for (number, piece) in pieces.iter().enumerate() {
        if number > 0 {
            match dialect {
                // Writing to a string does not fail.
                Dialect::Postgres => drop(write!(sql, "${number}")),
                _ => sql.push('?'),
            }
        }
        sql.push_str(piece);
    }
    sql
}

/// The statement with literals.
pub(super) fn plain(pieces: &[String], values: &[Binding<'_>], backslash: bool) -> String {
    let mut sql = pieces.first().cloned().unwrap_or_default();
    for (piece, value) in pieces.iter().skip(1).zip(values) {
        match value {
            Binding::Null => sql.push_str("NULL"),
            // Writing to a string does not fail.
            Binding::Whole(number) => drop(write!(sql, "{number}")),
            Binding::Decimal(number) => drop(write!(sql, "{number}")),
            Binding::Text(text) => push_literal(&mut sql, text, backslash),
        }
        sql.push_str(piece);
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marks_outside_of_literals_are_placeholders() {
        let sql = "SELECT '?', \"a?\", `b?` FROM t WHERE a = ? AND b = ? -- why?\n AND c = ?";
        let pieces = pieces(sql);
        assert_eq!(pieces.len(), 4);
        assert_eq!(prepared(&pieces, Dialect::Mysql), sql);
        let numbered = prepared(&pieces, Dialect::Postgres);
        assert!(numbered.ends_with("a = $1 AND b = $2 -- why?\n AND c = $3"), "{numbered}");
    }

    #[test]
    fn literals_are_quoted_as_the_server_reads_them() {
        let pieces = pieces("VALUES (?, ?, ?, ?)");
        let values = [
            Binding::Whole(-3),
            Binding::Text(br"it's \ here"),
            Binding::Null,
            Binding::Decimal(0.5),
        ];
        let mysql = plain(&pieces, &values, true);
        assert_eq!(mysql, r"VALUES (-3, 'it''s \\ here', NULL, 0.5)");
        let postgres = plain(&pieces, &values, false);
        assert_eq!(postgres, r"VALUES (-3, 'it''s \ here', NULL, 0.5)");
    }
}
