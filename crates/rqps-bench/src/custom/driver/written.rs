//! Finds the column in which a statement stores a value: by its place in VALUES, or by SET.

use super::facts::TableFacts;
use super::names::{bare, places_of_words};

/// The column that stores the value after `before`, the text of the statement up to there: indexes
/// of its table and its column. `None` if the value is not stored as it is.
pub(super) fn written(before: &str, tables: &[TableFacts]) -> Option<(usize, usize)> {
    let words = places_of_words(before);
    let upper: Vec<String> = words.iter().map(|(_, word)| word.to_uppercase()).collect();
    let named = match upper.first()?.as_str() {
        "INSERT" | "REPLACE" => "INTO",
        "UPDATE" => "UPDATE",
        _ => return None,
    };
    let mut at = upper.iter().position(|word| word == named)? + 1;
    while ["ONLY", "IGNORE", "LOW_PRIORITY"].contains(&upper.get(at)?.as_str()) {
        at += 1;
    }
    let end = |index: usize| words[index].0 + words[index].1.len();
    // `schema.table`: the last part counts.
    while let Some((next, _)) = words.get(at + 1)
        && before[end(at)..*next].trim_matches(['"', '`', ' ']) == "."
    {
        at += 1;
    }
    let table = tables.iter().position(|table| same(bare(&table.name), words[at].1))?;
    let of_table = |column: Option<usize>| column.map(|column| (table, column));
    let facts = &tables[table];
    let later = |word: &str| upper.iter().skip(at + 1).rposition(|other| other == word);
    if named == "UPDATE" || later("UPDATE").is_some() {
        // After SET, or after ON DUPLICATE KEY UPDATE.
        let clause = later("SET").or_else(|| later("UPDATE"))?;
        let is_over = ["WHERE", "FROM"].iter().any(|word| later(word) > Some(clause));
        let name = before.trim_end().strip_suffix('=')?.trim_end().trim_end_matches(['"', '`']);
        let (_, name) = *places_of_words(name).last()?;
        return of_table(facts.column(name).filter(|_| !is_over));
    }
    let values = upper.iter().skip(at + 1).position(|word| word == "VALUES" || word == "VALUE")?;
    let values = at + 1 + values;
    let place = place_in_row(&before[end(values)..])?;
    let names = before[end(at)..words[values].0].trim_matches(['"', '`', ' ', '\n']);
    let column = match names.strip_prefix('(').and_then(|names| names.split_once(')')) {
        Some((names, _)) => {
            let name = names.split(',').nth(place)?.trim().trim_matches(['"', '`']);
            facts.column(name)
        }
        None => Some(place).filter(|place| *place < facts.columns.len()),
    };
    of_table(column)
}

fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The place in its row, from 0, of the value that follows this text after VALUES. `None` if the
/// text ends outside of a row or within an expression.
fn place_in_row(text: &str) -> Option<usize> {
    let (mut depth, mut place, mut is_begin, mut quote) = (0_u32, 0, false, None);
    for letter in text.chars() {
        if quote.is_some() {
            quote = quote.filter(|open| *open != letter);
            continue;
        }
        match letter {
            '(' if depth == 0 => (depth, place, is_begin) = (1, 0, true),
            '(' => (depth, is_begin) = (depth + 1, false),
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 1 => (place, is_begin) = (place + 1, true),
            '\'' | '"' | '`' => (quote, is_begin) = (Some(letter), false),
            letter if letter.is_whitespace() => {}
            _ => is_begin = false,
        }
    }
    (depth == 1 && is_begin).then_some(place)
}

/// A statement of MySQL's statistics with values where they abbreviate a list: a value for each
/// column in `VALUES (...)`, and `IN (?...)` for a list of any length.
pub(super) fn with_lists(sql: &str, tables: &[TableFacts]) -> String {
    // A column `day` is a unit of time to the statistics.
    let sql = sql.replace("SQL_TSI_", "").replace("/* , ... */", "");
    let mut sql = sql.trim_end().to_owned();
    while let Some((before, after)) = sql.split_once("(...)") {
        let words: Vec<&str> = places_of_words(before).into_iter().map(|(_, word)| word).collect();
        let is_row = words.last().is_some_and(|last| same(last, "VALUES") || same(last, "VALUE"));
        let mut row = String::from("?");
        // As many as there are columns to store them in.
        while is_row && written(&format!("{before}({row},"), tables).is_some() {
            row.push_str(", ?");
        }
        let list = if is_row { row } else { "?...".to_owned() };
        sql = format!("{before}({list}){after}");
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::super::facts::ColumnFacts;
    use super::*;

    fn tables() -> Vec<TableFacts> {
        let table = |name: &str, columns: &[&str]| {
            let column =
                |name: &&str| ColumnFacts { name: (*name).to_owned(), ..ColumnFacts::default() };
            let columns = columns.iter().map(column).collect();
            TableFacts { name: name.to_owned(), columns, ..TableFacts::default() }
        };
        vec![
            table("customer", &["id", "city"]),
            table("shop.\"Order\"", &["id", "customer_id", "\"Total sum\""]),
        ]
    }

    #[test]
    fn a_stored_value_has_the_column_of_its_place() {
        let check = |before: &str, want: Option<(usize, usize)>| {
            assert_eq!(written(before, &tables()), want, "{before}");
        };
        check("INSERT INTO customer VALUES (", Some((0, 0)));
        check("INSERT INTO customer VALUES (~, ", Some((0, 1)));
        check("INSERT INTO customer VALUES (~, ~, ", None);
        check("insert into shop.\"Order\" (customer_id, \"Total sum\") values (~,", Some((1, 2)));
        check("REPLACE INTO `shop` . `Order` ( `id` , `customer_id` ) VALUES ( ~ , ", Some((1, 1)));
        check("INSERT INTO customer (city) VALUES (~), (", Some((0, 1)));
        check("INSERT INTO customer (city, id) VALUES (concat('(', ~), ", Some((0, 0)));
        check("INSERT INTO customer (city, id) VALUES (concat(", None);
        check("INSERT INTO customer (city, id) VALUES (1 + ", None);
        check("INSERT INTO customer (id) VALUES (~) ON CONFLICT (id) DO NOTHING LIMIT ", None);
        let upsert = "INSERT INTO customer (id) VALUES (~) ON CONFLICT (id) DO UPDATE SET city = ";
        check(upsert, Some((0, 1)));
        check(&format!("{upsert}~ WHERE id = "), None);
        check("INSERT INTO customer VALUES (~) ON DUPLICATE KEY UPDATE `city` = ", Some((0, 1)));
        check("UPDATE ONLY shop.\"Order\" SET id = ~, customer_id = ", Some((1, 1)));
        check("UPDATE customer SET id = id + ", None);
        check("UPDATE customer SET city = ~ WHERE id = ", None);
        check("INSERT INTO other VALUES (", None);
        check("DELETE FROM customer WHERE id = ", None);
        check("SELECT id FROM customer WHERE id = ", None);
    }

    #[test]
    fn lists_get_as_many_values_as_there_are_columns() {
        let check = |sql: &str, want: &str| assert_eq!(with_lists(sql, &tables()), want, "{sql}");
        check("INSERT INTO `customer` VALUES (...)", "INSERT INTO `customer` VALUES (?, ?)");
        check(
            "INSERT INTO `customer` ( `city` , `id` ) VALUES (...) /* , ... */",
            "INSERT INTO `customer` ( `city` , `id` ) VALUES (?, ?)",
        );
        check(
            "INSERT INTO `customer` ( `id` ) VALUES (?)",
            "INSERT INTO `customer` ( `id` ) VALUES (?)",
        );
        check("SELECT SQL_TSI_DAY FROM `customer`", "SELECT DAY FROM `customer`");
        check(
            "SELECT * FROM `customer` WHERE `id` IN (...) AND `city` = ?",
            "SELECT * FROM `customer` WHERE `id` IN (?...) AND `city` = ?",
        );
    }
}
