//! Rows that a statement names by the whole of a unique key. The optimizer reads such a row while
//! it plans: without it, it would plan for no row at all. Their keys are values of the statement;
//! nothing of the source is in them.

use std::collections::BTreeMap;

use anyhow::Result;

use rqps_model::dialect::Dialect;
use rqps_text::{Token, TokenKind, tokens};

use super::server::Private;
use super::session::name;
use super::source::named;
use crate::statement::Statement;
use crate::tree::PlanNode;

/// Values of a column in one statement that are tried.
const MOST: usize = 16;

/// The patterns of regular expressions that a statement holds as literals. They are compiled only
/// when it runs, so EXPLAIN does not see one that a version has no more.
pub(super) fn patterns(sql: &str) -> Vec<&str> {
    let Ok(all) = tokens(Dialect::Mysql, sql.as_bytes()) else { return Vec::new() };
    let text = |token: &Token| sql.get(token.begin..token.end).unwrap_or_default();
    let pairs = all.windows(2).filter(|pair| {
        let word = text(&pair[0]).to_uppercase();
        ["REGEXP", "RLIKE"].contains(&word.as_str()) && pair[1].kind == TokenKind::Text
    });
    pairs.map(|pair| text(&pair[1])).take(MOST).collect()
}

/// The literals that a statement compares with each column by `=`.
fn compared(sql: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let Ok(all) = tokens(Dialect::Mysql, sql.as_bytes()) else { return found };
    let text = |at: usize| all.get(at).and_then(|t| sql.get(t.begin..t.end)).unwrap_or_default();
    let is_value = |at: usize| {
        all.get(at).is_some_and(|t| matches!(t.kind, TokenKind::Text | TokenKind::Number))
    };
    for at in (1..all.len()).filter(|at| text(*at) == "=") {
        // `column = value`, and `value = alias.column`.
        let (column, value) = if is_value(at + 1) {
            (at - 1, at + 1)
        } else if is_value(at - 1) {
            (if text(at + 2) == "." { at + 3 } else { at + 1 }, at - 1)
        } else {
            continue;
        };
        if all.get(column).is_none_or(|t| !matches!(t.kind, TokenKind::Word | TokenKind::Name)) {
            continue;
        }
        let column = text(column).trim_matches('`').to_lowercase();
        let values = found.entry(column).or_default();
        let value = text(value).to_owned();
        if values.len() < MOST && !values.contains(&value) {
            values.push(value);
        }
    }
    found
}

/// True if the plan reads one row of some table by this key.
fn reads_by(plan: &PlanNode, key: &str) -> bool {
    let is_it = plan.kind == "const" && plan.index.as_deref() == Some(key);
    is_it || plan.children.iter().any(|child| reads_by(child, key))
}

/// Unique keys of the tables: table, key, columns.
fn unique_keys(private: &mut Private) -> Result<Vec<(String, String, Vec<String>)>> {
    let rows = private.session.rows(
        "SELECT table_name, index_name, column_name FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND non_unique = 0 \
         ORDER BY table_name, index_name, seq_in_index",
    )?;
    let mut found: Vec<(String, String, Vec<String>)> = Vec::new();
    for row in rows {
        let [Some(table), Some(key), Some(column)] = row.as_slice() else { continue };
        match found.last_mut().filter(|last| last.0 == *table && last.1 == *key) {
            Some((_, _, columns)) => columns.push(column.clone()),
            None => found.push((table.clone(), key.clone(), vec![column.clone()])),
        }
    }
    Ok(found)
}

/// Inserts the rows that the source found. All other columns have the defaults of their types.
pub(super) fn insert(private: &mut Private, plans: &[(&Statement, &PlanNode)]) -> Result<()> {
    private.run("SET SESSION sql_mode = ''")?;
    private.run("SET SESSION foreign_key_checks = 0")?;
    for (table, key, columns) in unique_keys(private)? {
        for (statement, plan) in plans {
            let is_named = named(std::slice::from_ref(*statement)).contains(&table.to_lowercase());
            if !is_named || !reads_by(plan, &key) {
                continue;
            }
            let values = compared(&statement.text);
            let of_key: Vec<_> =
                columns.iter().map(|column| values.get(&column.to_lowercase())).collect();
            let Some(of_key) = of_key.into_iter().collect::<Option<Vec<_>>>() else { continue };
            let most = of_key.iter().map(|values| values.len()).max().unwrap_or(0);
            for number in 0..most {
                let row: Vec<&str> = of_key
                    .iter()
                    .map(|values| values[number.min(values.len() - 1)].as_str())
                    .collect();
                let names: Vec<_> = columns.iter().map(|column| name(column)).collect();
                let names = rqps_model::sql_name::Identifier::list(&names);
                let sql = format!(
                    "INSERT IGNORE INTO {} ({names}) VALUES ({})",
                    name(&table),
                    row.join(", ")
                );
                // A value that the column does not take names no row.
                private.session.client.simple(&sql).ok();
            }
        }
    }
    private.reconnect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_literals_of_regular_expressions() {
        let found = patterns("SELECT 'a' FROM t WHERE b NOT REGEXP '[[:<:]]x' OR c RLIKE d");
        assert_eq!(found, ["'[[:<:]]x'"]);
    }

    #[test]
    fn values_of_a_statement_are_found_by_their_columns() {
        let found = compared(
            "SELECT * FROM a JOIN b ON a.x = b.y WHERE a.`Id` = 17 AND 'it''s' = b.name AND z > 3",
        );
        let pairs: Vec<_> = found.iter().map(|(name, values)| (&**name, &*values[0])).collect();
        assert_eq!(pairs, [("id", "17"), ("name", "'it''s'")]);
    }
}
