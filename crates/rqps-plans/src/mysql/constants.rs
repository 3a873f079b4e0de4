//! Rows that a statement names by the whole of a unique key. The optimizer reads such a row while
//! it plans: without it, it would plan for no row at all. Their keys are values of the statement;
//! nothing of the source is in them.

use std::collections::BTreeMap;

use anyhow::Result;

use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;
use rqps_text::{Token, TokenKind, tokens};

use super::server::Private;
use super::session::name;
use super::source::{Column, Facts, named};
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

/// What a statement and its plan on the source say about a row that the optimizer reads.
pub(super) struct ReadRow {
    pub(super) table: String,
    /// The columns of its unique key with their values, as SQL.
    pub(super) key: Vec<(String, String)>,
    /// Other columns that the statement compares.
    others: Vec<(String, String)>,
}

/// True if the plan reads one row of some table by this key.
fn reads_by(plan: &PlanNode, key: &str) -> bool {
    let is_it = plan.kind == "const" && plan.index.as_deref() == Some(key);
    is_it || plan.children.iter().any(|child| reads_by(child, key))
}

/// True if the plan is over once the ends of an index were read.
fn reads_ends(plan: &PlanNode) -> bool {
    plan.kind == "Select tables optimized away" || plan.children.iter().any(reads_ends)
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

/// The rows that the optimizer of the source reads for these statements. A value may reach a key by
/// way of another column that is equal to it, so all values of the statement may be meant.
pub(super) fn rows(
    private: &mut Private,
    (facts, columns): (&Facts, &[Column]),
    plans: &[(&Statement, &PlanNode)],
) -> Result<Vec<ReadRow>> {
    let mut found = Vec::new();
    for (table, key, of_key) in unique_keys(private)? {
        for (statement, plan) in plans {
            let mut names = named(std::slice::from_ref(*statement));
            facts.add_names_in_views(&mut names);
            let is_named = names.contains(&table.to_lowercase());
            let ends = reads_ends(plan);
            if !is_named || !(reads_by(plan, &key) || ends) {
                continue;
            }
            let values = compared(&statement.text);
            let is_other =
                |column: &&Column| column.table == table && !of_key.contains(&column.name);
            let others: Vec<(String, String)> = columns
                .iter()
                .filter(is_other)
                .filter_map(|column| {
                    let value = values.get(&column.name.to_lowercase())?.first()?;
                    Some((column.name.clone(), value.clone()))
                })
                .collect();
            let all: Vec<String> = values.values().flatten().take(MOST).cloned().collect();
            let of = |column: &String| values.get(&column.to_lowercase()).unwrap_or(&all);
            let most = of_key.iter().map(|column| of(column).len()).max().unwrap_or(0);
            for number in 0..most {
                let value = |column: &String| {
                    let values = of(column);
                    Some((column.clone(), values.get(number.min(values.len().max(1) - 1))?.clone()))
                };
                let row: Option<Vec<(String, String)>> = of_key.iter().map(value).collect();
                let (table, others) = (table.clone(), others.clone());
                found.extend(row.map(|key| ReadRow { table, key, others }));
            }
        }
    }
    Ok(found)
}

/// Inserts such rows, where they are not. All other columns have the defaults of their types.
pub(super) fn insert(private: &mut Private, rows: &[ReadRow]) -> Result<()> {
    private.run("SET SESSION sql_mode = ''")?;
    private.run("SET SESSION foreign_key_checks = 0")?;
    for row in rows {
        let cells = || row.key.iter().chain(&row.others);
        let names: Vec<Identifier> = cells().map(|(column, _)| name(column)).collect();
        let names = Identifier::list(&names);
        let values: Vec<&str> = cells().map(|(_, value)| value.as_str()).collect();
        let (table, values) = (name(&row.table), values.join(", "));
        let sql = format!("INSERT IGNORE INTO {table} ({names}) VALUES ({values})");
        // A value that the column does not take names no row.
        private.session.client.simple(&sql).ok();
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
