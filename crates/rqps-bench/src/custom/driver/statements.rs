//! Finds the column of each value in statements from a server's statistics.

use super::facts::{DatabaseSurvey, TableFacts, TopStatement};
use super::names::{bare, places_of_words};
use super::written::written;
use crate::domain::dialect::Dialect;
use crate::user_text::words;

/// A name in each statement by which a draft reads tables, so that the next draft does not take it
/// for one of the user's. Comments do not stay in the server's statistics.
pub(super) const OWN: &str = "rqps_draft";

/// The meaning of a value in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueGuess {
    /// A value of a column: indexes of its table and its column.
    Column(usize, usize),
    /// A value that the statement stores in a column: indexes of its table and its column.
    Stored(usize, usize),
    /// A number of rows.
    Limit,
    /// Unknown.
    Unknown,
}

/// A part of a statement of the statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatementPart {
    Sql(String),
    /// The value of this number, from 0.
    Value(usize),
    /// Several values in the place of one.
    Values(usize),
}

/// The statement that `PREPARE name AS` prepares: so the statistics of Postgres name what EXECUTE
/// executes.
pub(super) fn prepared(sql: &str) -> &str {
    let is_prepare =
        sql.get(.."PREPARE ".len()).is_some_and(|start| start.eq_ignore_ascii_case("PREPARE "));
    let upper = sql.to_ascii_uppercase();
    match upper.find(" AS ").filter(|_| is_prepare) {
        Some(at) => &sql[at + " AS ".len()..],
        None => sql,
    }
}

/// True for a statement that uses the user's tables.
pub(super) fn is_of_tables(sql: &str) -> bool {
    const FIRST: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"];
    let words = words(Dialect::Fake, sql);
    let is_dml = words.first().is_some_and(|first| FIRST.contains(&first.as_str()));
    let from = ["FROM", "INTO", "UPDATE", "JOIN"];
    let lower = sql.to_lowercase();
    let is_internal =
        ["pg_", "information_schema", "performance_schema"].iter().any(|part| lower.contains(part));
    is_dml && !is_internal && words.iter().any(|word| from.contains(&word.as_str()))
}

/// The statement cut at its values: `$n`, `?`, or `?...` for several.
pub(super) fn parts(sql: &str) -> Vec<StatementPart> {
    let (mut parts, mut from, mut unnamed) = (Vec::new(), 0, 0);
    for (at, letter) in sql.char_indices() {
        if at < from {
            continue;
        }
        let rest = &sql[at + letter.len_utf8()..];
        let digits: usize = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = match letter {
            '$' if digits > 0 => {
                rest[..digits].parse::<usize>().ok().map(|number| number.max(1) - 1)
            }
            '?' => {
                unnamed += 1;
                Some(unnamed - 1)
            }
            _ => None,
        };
        if let Some(number) = number {
            parts.push(StatementPart::Sql(sql[from..at].to_owned()));
            let is_list = letter == '?' && rest.starts_with("...");
            parts.push(match is_list {
                true => StatementPart::Values(number),
                false => StatementPart::Value(number),
            });
            let rest = match (letter, is_list) {
                ('$', _) => digits,
                (_, true) => "...".len(),
                (_, false) => 0,
            };
            from = at + letter.len_utf8() + rest;
        }
    }
    parts.push(StatementPart::Sql(sql[from..].to_owned()));
    parts
}

/// Reads the values of the columns with which statements compare, and in which they store.
pub(super) fn learn_columns(
    found: &mut DatabaseSurvey,
    learn: &mut dyn FnMut(&mut TableFacts, usize),
) {
    for statement in found.statements.clone() {
        for guess in guesses(&statement, &found.tables) {
            if let ValueGuess::Column(table, column) | ValueGuess::Stored(table, column) = guess {
                learn(&mut found.tables[table], column);
            }
        }
    }
}

/// The meaning of each value of a statement, in order.
pub(super) fn guesses(statement: &TopStatement, tables: &[TableFacts]) -> Vec<ValueGuess> {
    let mentioned: Vec<usize> =
        (0..tables.len()).filter(|index| mentions(&statement.sql, &tables[*index].name)).collect();
    let mut guesses: Vec<ValueGuess> = Vec::new();
    let mut before = String::new();
    for part in parts(&statement.sql) {
        match part {
            StatementPart::Sql(sql) => before.push_str(&sql),
            StatementPart::Value(number) | StatementPart::Values(number) => {
                guesses.resize(guesses.len().max(number + 1), ValueGuess::Unknown);
                if guesses[number] == ValueGuess::Unknown {
                    guesses[number] = match written(&before, tables) {
                        Some((table, column)) => ValueGuess::Stored(table, column),
                        None => guess(&before, &mentioned, tables),
                    };
                }
                // The next value of a list belongs to the same column.
                before.push('~');
            }
        }
    }
    guesses
}

/// A statement of Postgres that casts each value to the type of the column that it belongs to.
/// Types with a length stay away: the catalog tells them without it, and the cast would cut values.
pub(super) fn with_casts(statement: &TopStatement, tables: &[TableFacts]) -> String {
    let guesses = guesses(statement, tables);
    let cast = |number: usize| {
        let type_name = match guesses.get(number) {
            Some(ValueGuess::Column(table, column)) => &tables[*table].columns[*column].type_name,
            _ => return String::new(),
        };
        let has_length = ["char", "bit"].iter().any(|part| type_name.starts_with(part));
        if has_length { String::new() } else { format!("::{type_name}") }
    };
    let spelled = parts(&statement.sql).into_iter().map(|part| match part {
        StatementPart::Sql(text) => text,
        StatementPart::Value(number) | StatementPart::Values(number) => {
            format!("${}{}", number + 1, cast(number))
        }
    });
    spelled.collect()
}

/// True if a statement has the name of a table, with any schema.
pub(super) fn mentions(sql: &str, table: &str) -> bool {
    let (sql, table) = (sql.to_lowercase(), bare(table).to_lowercase());
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    sql.split(|letter: char| !is_of_name(letter)).any(|word| word == table)
}

/// By the words before a value.
fn guess(before: &str, mentioned: &[usize], tables: &[TableFacts]) -> ValueGuess {
    const BETWEEN: [&str; 8] = ["AND", "BETWEEN", "IN", "LIKE", "ILIKE", "ANY", "NOT", "ARRAY"];
    let words = places_of_words(before);
    let Some(&(last_at, last)) = words.last() else { return ValueGuess::Unknown };
    let upper = last.to_uppercase();
    if ["LIMIT", "OFFSET"].contains(&upper.as_str()) {
        return ValueGuess::Limit;
    }
    // A value that is added to a column, or that names a member of a document, is not a value of
    // the column.
    let operator = before[last_at + last.len()..].trim_matches(['~', ' ', '(', ',', '\n']);
    // MySQL's statistics have names in quotes, with a space before the operator.
    let compares = operator.chars().all(|letter| "=<>!\"`)[ ".contains(letter));
    let is_member = operator.contains("->") || operator.contains("#>");
    if !compares
        || is_member
        || (operator.is_empty()
            && !BETWEEN.contains(&upper.as_str())
            && !before.trim_end().ends_with(['(', ',', '~']))
    {
        return ValueGuess::Unknown;
    }
    let is_column = |(_, word): &&(usize, &str)| !BETWEEN.contains(&word.to_uppercase().as_str());
    let Some(&(at, name)) = words.iter().rev().find(is_column) else {
        return ValueGuess::Unknown;
    };
    let qualifier = before[..at].trim_end_matches(['"', '`']).strip_suffix('.').and_then(|rest| {
        let word = places_of_words(rest).last().map(|(_, word)| *word)?;
        Some(word.to_owned())
    });
    for &table in mentioned {
        let facts = &tables[table];
        if qualifier.as_ref().is_some_and(|alias| !is_called(before, &facts.name, alias)) {
            continue;
        }
        if let Some(column) = facts.column(name) {
            return ValueGuess::Column(table, column);
        }
    }
    ValueGuess::Unknown
}

/// True if a statement calls a table by this name: its own, or `TABLE AS ALIAS`, `TABLE ALIAS`.
fn is_called(sql: &str, table: &str, alias: &str) -> bool {
    let own = bare(table);
    if own.eq_ignore_ascii_case(alias) {
        return true;
    }
    let words: Vec<&str> = places_of_words(sql).into_iter().map(|(_, word)| word).collect();
    words.iter().enumerate().any(|(index, word)| {
        let mut after = words[index + 1..].iter();
        let mut next = after.next();
        if next.is_some_and(|word| word.eq_ignore_ascii_case("as")) {
            next = after.next();
        }
        word.eq_ignore_ascii_case(own) && next.is_some_and(|next| next.eq_ignore_ascii_case(alias))
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::ColumnFacts;
    use super::*;

    fn table(name: &str, columns: &[&str]) -> TableFacts {
        let column = |name: &&str| ColumnFacts { name: (*name).to_owned(), ..Default::default() };
        let columns = columns.iter().map(column).collect();
        TableFacts { name: name.to_owned(), columns, ..TableFacts::default() }
    }

    #[test]
    fn values_are_cast_to_the_types_of_their_columns() {
        let mut tables = [table("line", &["product", "code"])];
        tables[0].columns[0].type_name = "integer".to_owned();
        tables[0].columns[1].type_name = "character".to_owned();
        let sql =
            "SELECT 1 FROM line WHERE code = $1 AND product BETWEEN $2 AND $3 + $4".to_owned();
        let statement = TopStatement { sql, ..TopStatement::default() };
        let wanted = "SELECT 1 FROM line WHERE code = $1 AND product BETWEEN $2::integer \
                      AND $3::integer + $4";
        assert_eq!(with_casts(&statement, &tables), wanted);
    }

    #[test]
    fn what_prepare_prepares_is_the_statement() {
        let plain = "SELECT name AS n FROM customer WHERE id = $1";
        for begin in ["PREPARE c AS ", "prepare \"c d\" (integer) as ", ""] {
            assert_eq!(prepared(&format!("{begin}{plain}")), plain);
        }
    }

    #[test]
    fn a_value_is_of_the_column_that_it_is_compared_with() {
        let tables = [
            table("orders", &["id", "customer_id", "day"]),
            table("customer", &["id", "city", "\"Shelf No\""]),
        ];
        let check = |sql: &str, want: &[ValueGuess]| {
            let statement = TopStatement { sql: sql.to_owned(), ..TopStatement::default() };
            assert_eq!(guesses(&statement, &tables), want, "{sql}");
        };
        let (column, stored) = (ValueGuess::Column, ValueGuess::Stored);
        check("SELECT * FROM customer WHERE id = $1", &[column(1, 0)]);
        check(
            "SELECT 1 FROM orders o JOIN customer AS c ON c.id = o.customer_id \
             WHERE c.id = $1 AND o.id>$2 AND day >= $3 LIMIT $4",
            &[column(1, 0), column(0, 0), column(0, 2), ValueGuess::Limit],
        );
        check(
            "SELECT `id` FROM `customer` WHERE `city` IN (?, ?) AND `id` BETWEEN ? AND ?",
            &[column(1, 1), column(1, 1), column(1, 0), column(1, 0)],
        );
        check(
            "UPDATE orders SET day = day + $2 WHERE id = $1",
            &[column(0, 0), ValueGuess::Unknown],
        );
        check("SELECT city ->> $1 FROM customer", &[ValueGuess::Unknown]);
        check("DELETE FROM `customer` WHERE `id` = ?", &[column(1, 0)]);
        check("INSERT INTO orders VALUES ($1, $2)", &[stored(0, 0), stored(0, 1)]);
        check("UPDATE customer SET city = $2 WHERE id = $1", &[column(1, 0), stored(1, 1)]);
        check("INSERT INTO orders SELECT $1", &[ValueGuess::Unknown]);
    }

    #[test]
    fn statements_on_the_server_itself_are_left_out() {
        assert!(is_of_tables("SELECT 1 FROM t"));
        assert!(is_of_tables("WITH x AS (SELECT 1) UPDATE t SET a = 1"));
        for sql in ["SELECT 1", "VACUUM t", "SELECT * FROM pg_class", "BEGIN", "SET x = 1"] {
            assert!(!is_of_tables(sql), "{sql}");
        }
    }

    #[test]
    fn parts_are_cut_at_values() {
        use StatementPart::{Sql, Value, Values};
        let sql = |text: &str| Sql(text.to_owned());
        assert_eq!(parts("a $2 b $10"), [sql("a "), Value(1), sql(" b "), Value(9), sql("")]);
        assert_eq!(parts("a=? AND b=?"), [sql("a="), Value(0), sql(" AND b="), Value(1), sql("")]);
        assert_eq!(parts("a IN (?...)"), [sql("a IN ("), Values(0), sql(")")]);
    }
}
