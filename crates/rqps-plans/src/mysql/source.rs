//! What a server of the user's tells by SELECT, SHOW and EXPLAIN: tables that the statements name,
//! their statistics, and the settings that plans depend on.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};

use rqps_dbms::ControlRow;
use rqps_model::dialect::Dialect;
use rqps_text::mysql_dump::{self, DumpedStatement};
use rqps_text::{TokenKind, tokens};
use rqps_wire::WireError;

use super::session::{Session, literal, name};
use crate::statement::Statement;

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
    pub(super) fn add_names_in_views(&self, names: &mut BTreeSet<String>) {
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
    let create = match mysql_dump::judge(create.as_bytes()) {
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
                let sql = match mysql_dump::judge(sql.as_bytes()) {
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

/// Values of the settings that this version knows.
pub(super) fn settings(session: &mut Session) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for row in session.rows("SHOW GLOBAL VARIABLES")? {
        if let [Some(name), Some(value)] = row.as_slice()
            && SETTINGS.contains(&name.as_str())
        {
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
