//! What a server of the user's tells by SELECT, SHOW and EXPLAIN: tables that the statements name,
//! their statistics, and the settings that plans depend on.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};

use crate::mysql::server::{Private, Session, literal, name};
use crate::rehearsal::{PlanNode, Statement};
use rqps_dbms::ControlRow;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;
use rqps_text::reading::{self, DumpedStatement};
use rqps_text::{Token, TokenKind, tokens};
use rqps_wire::WireError;

/// Tables and views that are copied.
const MOST_TABLES: usize = 10_000;

/// Settings by which the same version plans in another way.
const SETTINGS: [&str; 17] = [
    "optimizer_switch",
    "optimizer_search_depth",
    "optimizer_prune_level",
    "optimizer_use_condition_selectivity",
    "optimizer_selectivity_sampling_limit",
    "use_stat_tables",
    "eq_range_index_dive_limit",
    "range_optimizer_max_mem_size",
    "join_cache_level",
    "join_buffer_size",
    "sort_buffer_size",
    "max_heap_table_size",
    "tmp_table_size",
    "max_length_for_sort_data",
    "max_seeks_for_key",
    "sql_mode",
    "internal_tmp_mem_storage_engine",
];

/// A table of the source.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) name: String,
    /// The statement that makes it.
    pub(super) create: String,
    /// False for a view.
    pub(super) is_table: bool,
    /// Estimated rows and bytes.
    pub(super) rows: f64,
    pub(super) bytes: f64,
}

/// A column whose rows may be drawn.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) table: String,
    pub(super) name: String,
    pub(super) data_type: String,
    pub(super) is_generated: bool,
}

/// What the source told.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) character_set: String,
    pub(super) collation: String,
    pub(super) tables: Vec<Table>,
    /// Statements that make functions.
    pub(super) functions: Vec<(String, String)>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) notes: Vec<String>,
}

impl Facts {
    /// The tables that are no views.
    pub(super) fn base_tables(&self) -> Vec<&Table> {
        self.tables.iter().filter(|table| table.is_table).collect()
    }

    /// Adds what the views among these names name. A view comes after those that it needs.
    fn add_names_in_views(&self, names: &mut BTreeSet<String>) {
        for view in self.tables.iter().rev().filter(|table| !table.is_table) {
            if names.contains(&view.name.to_lowercase()) {
                add_names(&view.create, names);
            }
        }
    }
}

/// The words and names of all statements, in small letters.
pub(super) fn named(statements: &[Statement]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    statements.iter().for_each(|statement| add_names(&statement.text, &mut found));
    found
}

fn add_names(sql: &str, found: &mut BTreeSet<String>) {
    let Ok(all) = tokens(Dialect::Mysql, sql.as_bytes()) else { return };
    for token in all.iter().filter(|t| matches!(t.kind, TokenKind::Word | TokenKind::Name)) {
        let text = sql.get(token.begin..token.end).unwrap_or_default();
        found.insert(text.trim_matches(['`', '"']).to_lowercase());
    }
}

/// Reads all that the statements need.
pub(super) fn facts(session: &mut Session, statements: &[Statement]) -> Result<Facts> {
    let mut facts = Facts::default();
    let database = session.rows(
        "SELECT default_character_set_name, default_collation_name \
         FROM information_schema.schemata WHERE schema_name = DATABASE()",
    )?;
    let Some([Some(set), Some(collation)]) = database.first().map(Vec::as_slice) else {
        bail!("read the schema of the source: its DSN names no database; add /NAME to it");
    };
    (facts.character_set, facts.collation) = (set.clone(), collation.clone());
    let mut wanted = named(statements);
    tables(session, &mut wanted, &mut facts)?;
    functions(session, &wanted, &mut facts)?;
    facts.settings = settings(session)?;
    Ok(facts)
}

/// Tables and views that are named; a view names others.
fn tables(session: &mut Session, wanted: &mut BTreeSet<String>, facts: &mut Facts) -> Result<()> {
    // It opens no table, however many there are.
    let mut left: Vec<ControlRow> = session.rows("SHOW FULL TABLES")?;
    loop {
        let is_wanted = |row: &ControlRow| {
            let name = row.first().cloned().flatten().unwrap_or_default();
            wanted.contains(&name.to_lowercase())
        };
        let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(is_wanted);
        left = later;
        if now.is_empty() {
            break;
        }
        if facts.tables.len() + now.len() > MOST_TABLES {
            bail!("read the schema of the source: the statements name over {MOST_TABLES} tables");
        }
        for row in now {
            let table = table(session, &row, facts)?;
            if !table.is_table {
                add_names(&table.create, wanted);
            }
            facts.tables.push(table);
        }
    }
    // Views last, and each after those that it names: they were found before them.
    facts.tables.reverse();
    facts.tables.sort_by_key(|table| !table.is_table);
    Ok(())
}

fn table(session: &mut Session, row: &ControlRow, facts: &mut Facts) -> Result<Table> {
    let [Some(table), Some(kind)] = row.as_slice() else {
        return Err(anyhow!("the list of tables of the source has other columns"));
    };
    let is_table = kind == "BASE TABLE";
    let quoted = name(table);
    let sql = if is_table {
        format!("SHOW CREATE TABLE {quoted}")
    } else {
        format!("SHOW CREATE VIEW {quoted}")
    };
    let created = session.rows(&sql).map_err(|error| granted(error, "SELECT, SHOW VIEW"))?;
    let create = created.first().and_then(|row| row.get(1)).cloned().flatten();
    let create = create.with_context(|| format!("read how {table} is made"))?;
    let create = match reading::judge_dumped(create.as_bytes()) {
        DumpedStatement::WithoutDefiner(sql) => String::from_utf8_lossy(&sql).into_owned(),
        _ => create,
    };
    let of = literal(table);
    let size = session.rows(&format!(
        "SELECT engine, table_rows, data_length FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name = {of}"
    ))?;
    let size = size.into_iter().next().unwrap_or_default();
    let at = |column: usize| size.get(column).cloned().flatten();
    let engine = at(0);
    if is_table && !engine.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("innodb")) {
        let engine = engine.as_deref().unwrap_or("another engine");
        facts.notes.push(format!(
            "table `{table}` is of {engine}, whose statistics cannot be copied: an empty one is \
             planned as one of no rows"
        ));
    }
    let number = |column: usize| at(column).and_then(|text| text.parse().ok()).unwrap_or(0.0);
    Ok(Table { name: table.clone(), create, is_table, rows: number(1), bytes: number(2) })
}

/// Functions that the statements and views call.
fn functions(session: &mut Session, wanted: &BTreeSet<String>, facts: &mut Facts) -> Result<()> {
    let list = session.rows(
        "SELECT routine_name FROM information_schema.routines \
         WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION' ORDER BY routine_name",
    )?;
    for function in list.into_iter().flatten().flatten() {
        if !wanted.contains(&function.to_lowercase()) {
            continue;
        }
        let shown = session.rows(&format!("SHOW CREATE FUNCTION {}", name(&function)))?;
        match shown.first().and_then(|row| row.get(2)).cloned().flatten() {
            Some(sql) => {
                let sql = match reading::judge_dumped(sql.as_bytes()) {
                    DumpedStatement::WithoutDefiner(sql) => {
                        String::from_utf8_lossy(&sql).into_owned()
                    }
                    _ => sql,
                };
                facts.functions.push((function, sql));
            }
            None => facts.notes.push(format!(
                "function `{function}` does not show its text to this login (it needs SHOW_ROUTINE)"
            )),
        }
    }
    Ok(())
}

/// Values of the settings that this version knows and plans depend on.
pub(super) fn settings(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let mut found = variables(session)?;
    found.retain(|name, _| SETTINGS.contains(&name.as_str()));
    Ok(found)
}

/// Values of all settings that this version knows.
pub(super) fn variables(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for row in session.rows("SHOW GLOBAL VARIABLES")? {
        if let [Some(name), Some(value)] = row.as_slice() {
            found.insert(name.clone(), value.clone());
        }
    }
    Ok(found)
}

/// Settings of the source that are not those of its version; of switches only these.
pub(super) fn changed(
    source: &BTreeMap<String, String>,
    usual: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in source {
        let Some(before) = usual.get(name).filter(|before| *before != value) else { continue };
        if name == "optimizer_switch" {
            let usual: BTreeSet<&str> = before.split(',').collect();
            let switches = value.split(',').filter(|switch| !usual.contains(switch));
            found.extend(switches.map(|switch| (name.clone(), switch.to_owned())));
        } else {
            found.push((name.clone(), value.clone()));
        }
    }
    found
}

/// Names the right that is missing.
pub(super) fn granted(error: WireError, right: &str) -> anyhow::Error {
    let is_refusal = matches!(error.code(), Some("1142" | "1044" | "1227" | "1370" | "1045"));
    let error = anyhow::Error::from(error).context("read the source");
    if is_refusal {
        error.context(format!("the login of the source lacks a right\nhint: grant it {right}"))
    } else {
        error
    }
}

/// Columns of the tables, in their order.
pub(super) fn columns(session: &mut Session, tables: &[&Table]) -> Result<Vec<Column>> {
    let mut found = Vec::new();
    for table in tables {
        let of = literal(&table.name);
        let rows = session.rows(&format!(
            "SELECT column_name, data_type, extra FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = {of} ORDER BY ordinal_position"
        ))?;
        for row in rows {
            let [Some(name), Some(data_type), extra] = row.as_slice() else { continue };
            let extra = extra.as_deref().unwrap_or_default().to_uppercase();
            let is_generated = ["GENERATED", "VIRTUAL", "PERSISTENT"]
                .iter()
                .any(|word| extra.split(' ').any(|it| it == *word))
                && !extra.contains("DEFAULT_GENERATED");
            found.push(Column {
                table: table.name.clone(),
                name: name.clone(),
                data_type: data_type.to_lowercase(),
                is_generated,
            });
        }
    }
    Ok(found)
}

// Rows that a statement names by the whole of a unique key. The optimizer reads such a row while
// it plans: without it, it would plan for no row at all. Their keys are values of the statement;
// nothing of the source is in them.

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
pub(super) fn rows_to_read(
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
pub(super) fn insert_rows(private: &mut Private, rows: &[ReadRow]) -> Result<()> {
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
    fn only_what_the_user_set_is_copied() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let usual = map(&[("optimizer_switch", "mrr=on,bka=off"), ("join_buffer_size", "262144")]);
        let source = map(&[
            ("optimizer_switch", "mrr=on,bka=on"),
            ("join_buffer_size", "262144"),
            ("unknown_here", "1"),
        ]);
        let changed = changed(&source, &usual);
        assert_eq!(changed, [("optimizer_switch".to_owned(), "bka=on".to_owned())]);
    }
}

#[cfg(test)]
mod constants_tests {
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
