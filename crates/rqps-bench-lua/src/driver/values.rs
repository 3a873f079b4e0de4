//! Converts values of placeholders and names of dialects between scripts and the wire.

use std::fmt::Write;

use rqps_embed::lua::Binding;
use rqps_model::dialect::{Dialect, push_literal};
use rqps_model::lua::LuaWork;
use rqps_wire::{Value, ValueType};

/// Most values of a statement that need no allocation.
const FEW: usize = 16;

/// True for a statement that changes the rows that it finds.
#[inline]
pub(super) fn may_miss(sql: &str) -> bool {
    let word = sql.trim_start().get(..6).unwrap_or_default();
    ["UPDATE", "DELETE", "INSERT", "REPLAC"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The name of a dialect in scripts.
pub(super) fn driver_name(dialect: Dialect, work: &LuaWork) -> &str {
    match dialect {
        Dialect::Postgres => "pgsql",
        Dialect::Sqlite if work.driver.is_empty() => "sqlite",
        Dialect::Sqlite => &work.driver,
        _ => "mysql",
    }
}

/// The type of a placeholder for such a value.
pub(super) fn type_of(value: Binding<'_>) -> ValueType {
    match value {
        Binding::Whole(_) => ValueType::Int,
        Binding::Decimal(_) => ValueType::AnyText,
        Binding::Text(_) | Binding::Null => ValueType::Text,
    }
}

/// Calls `act` with the values in wire form.
#[inline]
pub(super) fn with_values<'a, R>(
    given: impl ExactSizeIterator<Item = Binding<'a>>,
    act: impl FnOnce(&[Binding<'a>], &[Value<'_>]) -> R,
) -> R {
    let count = given.len();
    let (mut few, mut many) = ([Binding::Null; FEW], Vec::new());
    if count <= FEW {
        few.iter_mut().zip(given).for_each(|(place, value)| *place = value);
    } else {
        many.extend(given);
    }
    let bindings = if count <= FEW { &few[..count] } else { &many[..] };
    let decimals: Vec<String> = if bindings.iter().any(|one| matches!(one, Binding::Decimal(_))) {
        bindings.iter().map(decimal_text).collect()
    } else {
        Vec::new()
    };
    let value = |(number, binding): (usize, &Binding<'a>)| match *binding {
        Binding::Null => Value::Null,
        Binding::Whole(whole) => Value::Int(whole),
        Binding::Decimal(_) => Value::Text(decimals[number].as_bytes()),
        Binding::Text(text) => Value::Text(text),
    };
    if count <= FEW {
        let mut values = [Value::Null; FEW];
        let places = values.iter_mut().zip(bindings.iter().enumerate());
        places.for_each(|(place, one)| *place = value(one));
        return act(bindings, &values[..count]);
    }
    let values: Vec<Value<'_>> = bindings.iter().enumerate().map(value).collect();
    act(bindings, &values)
}

fn decimal_text(binding: &Binding<'_>) -> String {
    match binding {
        Binding::Decimal(number) => number.to_string(),
        _ => String::new(),
    }
}

// Rewrites placeholders: `?` in scripts, `$1` on Postgres, literals for statements that are not
// prepared.

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
