//! A sample of the source's rows: the same fraction of every table, the rows of sampled parents
//! with them, so that joins keep their sizes.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use rqps_model::sql_name::Identifier;

use super::constants::ReadRow;
use super::session::{Session, literal, name};
use super::source::{Column, Table};
use super::statistics::digits;

/// Rows that a sample should have in its largest table: an index of them still has some levels.
const WANTED_ROWS: f64 = 40_000.0;

/// Bytes that a sample may have.
const MOST_BYTES: f64 = (16 << 20) as f64;

/// Bytes of a statement that inserts: servers take 1 MB in all versions.
const STATEMENT: usize = 400_000;

/// Rows of a table that are drawn because statements name them.
const MOST_READ: usize = 500;

/// Parents of parents that are followed.
const DEEPEST: usize = 4;

/// A reference of a table to another: its columns and those of the other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reference {
    pub(super) child: String,
    pub(super) parent: String,
    pub(super) columns: Vec<(String, String)>,
}

/// One row in so many is drawn.
pub(super) fn fraction(tables: &[&Table]) -> u64 {
    let most = tables.iter().map(|table| table.rows).fold(0.0, f64::max);
    let bytes: f64 = tables.iter().map(|table| table.bytes).sum();
    let wanted = (most / WANTED_ROWS).max(bytes / MOST_BYTES).max(1.0);
    let mut fraction = 1u64;
    while (fraction as f64) < wanted {
        fraction *= 10;
    }
    fraction
}

/// The foreign keys between the tables, each table's first one.
pub(super) fn references(session: &mut Session, tables: &[&Table]) -> Result<Vec<Reference>> {
    let mut found: Vec<Reference> = Vec::new();
    let known: BTreeSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    for table in tables {
        let of = literal(&table.name);
        let rows = session.rows(&format!(
            "SELECT constraint_name, column_name, referenced_table_name, referenced_column_name \
             FROM information_schema.key_column_usage WHERE table_schema = DATABASE() \
             AND table_name = {of} AND referenced_table_schema = DATABASE() \
             ORDER BY constraint_name, ordinal_position"
        ))?;
        let mut first: Option<String> = None;
        for row in rows {
            let [Some(key), Some(column), Some(parent), Some(to)] = row.as_slice() else {
                continue;
            };
            if !known.contains(parent.as_str()) || *parent == table.name {
                continue;
            }
            if first.get_or_insert_with(|| key.clone()) != key {
                continue;
            }
            let pair = (column.clone(), to.clone());
            match found.last_mut().filter(|last| last.child == table.name) {
                Some(reference) => reference.columns.push(pair),
                None => found.push(Reference {
                    child: table.name.clone(),
                    parent: parent.clone(),
                    columns: vec![pair],
                }),
            }
        }
    }
    Ok(found)
}

/// The columns of the primary key of each table, or all.
fn keys(session: &mut Session, table: &Table, columns: &[&Column]) -> Result<Vec<String>> {
    let of = literal(&table.name);
    let rows = session.rows(&format!(
        "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE() \
         AND table_name = {of} AND index_name = 'PRIMARY' ORDER BY seq_in_index"
    ))?;
    let keys: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let all = || columns.iter().map(|column| column.name.clone()).collect();
    Ok(if keys.is_empty() { all() } else { keys })
}

/// Makes the conditions of the rows that are drawn.
struct Drawing<'a> {
    fraction: u64,
    references: Vec<Reference>,
    /// Table and columns of its key.
    keys: Vec<(String, Vec<String>)>,
    /// Rows that are drawn in any case.
    read: &'a [ReadRow],
}

impl Drawing<'_> {
    /// True for one row in `fraction`, and the same rows each time.
    fn by_key(&self, table: &str, alias: &Identifier) -> String {
        let keys = self.keys.iter().find(|(name, _)| name == table);
        let columns: Vec<Identifier> = keys
            .map(|(_, columns)| columns.iter().map(|column| alias.dot(&name(column))).collect())
            .unwrap_or_default();
        let columns = Identifier::list(&columns);
        format!("CRC32(CONCAT_WS('|', {columns})) % {} = 0", self.fraction)
    }

    /// The rows that the optimizer of the source reads.
    fn read(&self, table: &str, alias: &Identifier) -> String {
        let mut condition = String::new();
        for row in self.read.iter().filter(|row| row.table == table).take(MOST_READ) {
            let equal = row
                .key
                .iter()
                .map(|(column, value)| format!("{} = {value}", alias.dot(&name(column))));
            condition.push_str(&format!(" OR ({})", equal.collect::<Vec<_>>().join(" AND ")));
        }
        condition
    }

    /// The condition of a table's rows; those of a child are those of the parents that are drawn.
    fn condition(&self, table: &str, depth: usize) -> String {
        let alias = name(&format!("t{depth}"));
        let by_key = self.by_key(table, &alias);
        let reference = self.references.iter().find(|reference| reference.child == table);
        let Some(reference) = reference.filter(|_| depth < DEEPEST) else { return by_key };
        let parent_alias = name(&format!("t{}", depth + 1));
        let parent = name(&reference.parent);
        let pairs = reference.columns.iter().map(|(from, to)| {
            format!("{} = {}", alias.dot(&name(from)), parent_alias.dot(&name(to)))
        });
        let joined = pairs.collect::<Vec<_>>().join(" AND ");
        let missing = reference.columns.iter().map(|(from, _)| alias.dot(&name(from)));
        let missing = missing.map(|column| format!("{column} IS NULL")).collect::<Vec<_>>();
        let drawn = self.condition(&reference.parent, depth + 1);
        format!(
            "(EXISTS (SELECT 1 FROM {parent} AS {parent_alias} WHERE {joined} AND {drawn}) \
             OR (({}) AND {by_key}))",
            missing.join(" OR ")
        )
    }
}

/// Draws the sample of each table and hands its rows on, as parts of INSERT statements.
pub(super) fn draw(
    session: &mut Session,
    tables: &[&Table],
    columns: &[Column],
    (fraction, read): (u64, &[ReadRow]),
    take: &mut dyn FnMut(&str) -> Result<()>,
) -> Result<()> {
    let references = references(session, tables)?;
    let mut drawing = Drawing { fraction, references, keys: Vec::new(), read };
    let of = |table: &Table| -> Vec<&Column> {
        let is_own = |column: &&Column| column.table == table.name && !column.is_generated;
        columns.iter().filter(is_own).collect()
    };
    for table in tables {
        let keys = keys(session, table, &of(table))?;
        drawing.keys.push((table.name.clone(), keys));
    }
    for table in tables {
        let own = of(table);
        let alias = name("t0");
        let selected: Vec<String> = own.iter().map(|column| selected(column, &alias)).collect();
        let condition = drawing.condition(&table.name, 0);
        let read = drawing.read(&table.name, &alias);
        let sql = format!(
            "SELECT {} FROM {} AS {alias} WHERE {condition}{read}",
            selected.join(", "),
            name(&table.name)
        );
        let rows = session.rows(&sql);
        let rows = rows.with_context(|| format!("draw a sample of table {}", table.name))?;
        let names: Vec<Identifier> = own.iter().map(|column| name(&column.name)).collect();
        let (into, names) = (name(&table.name), Identifier::list(&names));
        let head = format!("INSERT IGNORE INTO {into} ({names}) VALUES ");
        let mut sql = String::new();
        for row in rows {
            let cells = row.iter().zip(&own).map(|(cell, column)| value(column, cell.as_deref()));
            sql.push_str(if sql.is_empty() { &head } else { ", " });
            sql.push_str(&format!("({})", cells.collect::<Vec<_>>().join(", ")));
            if sql.len() > STATEMENT {
                take(&sql)?;
                sql.clear();
            }
        }
        if !sql.is_empty() {
            take(&sql)?;
        }
    }
    Ok(())
}

/// True for texts and bytes, which travel as their bytes.
fn is_bytes(data_type: &str) -> bool {
    ["char", "text", "binary", "blob"].iter().any(|word| data_type.contains(word))
        || ["geometry", "point", "polygon", "linestring", "geometrycollection", "vector"]
            .iter()
            .any(|word| data_type.ends_with(word))
}

fn selected(column: &Column, alias: &Identifier) -> String {
    let from = alias.dot(&name(&column.name));
    match column.data_type.as_str() {
        "bit" => format!("LPAD(HEX({from} + 0), 16, '0')"),
        data_type if is_bytes(data_type) => format!("HEX({from})"),
        _ => from.to_string(),
    }
}

fn value(column: &Column, cell: Option<&str>) -> String {
    match cell {
        None => "NULL".to_owned(),
        Some(text) if column.data_type == "bit" || is_bytes(&column.data_type) => {
            format!("X'{}'", digits(text))
        }
        Some(text) => literal(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_drawn_with_their_parents() {
        let reference = |child: &str, parent: &str| Reference {
            child: child.to_owned(),
            parent: parent.to_owned(),
            columns: vec![("of".to_owned(), "id".to_owned())],
        };
        let drawing = |references| Drawing {
            fraction: 10,
            references,
            keys: vec![("a".to_owned(), vec!["id".to_owned()]), ("b".to_owned(), Vec::new())],
            read: &[],
        };
        assert_eq!(drawing(vec![]).condition("a", 0), "CRC32(CONCAT_WS('|', `t0`.`id`)) % 10 = 0");
        let child = drawing(vec![reference("b", "a")]).condition("b", 0);
        assert!(
            child.starts_with(
                "(EXISTS (SELECT 1 FROM `a` AS `t1` WHERE `t0`.`of` = `t1`.`id` AND \
                 CRC32(CONCAT_WS('|', `t1`.`id`)) % 10 = 0) OR ((`t0`.`of` IS NULL) AND "
            ),
            "{child}"
        );
        // A circle ends.
        let circle = drawing(vec![reference("a", "b"), reference("b", "a")]).condition("a", 0);
        assert_eq!(circle.matches("EXISTS").count(), DEEPEST);
    }

    #[test]
    fn the_same_fraction_fits_the_largest_table_and_all_bytes() {
        let check = |rows: f64, bytes: f64, want: u64| {
            let table = Table { rows, bytes, ..Table::default() };
            assert_eq!(fraction(&[&table, &Table::default()]), want);
        };
        check(1000.0, 1e5, 1);
        check(262_144.0, 2e7, 10);
        check(500_000.0, 2e7, 100);
        check(1000.0, 1e9, 100);
    }
}
