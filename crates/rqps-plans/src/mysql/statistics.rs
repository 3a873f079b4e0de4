//! Statistics of tables: copied from a source into a server whose tables are empty.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::mysql::server::{Private, Session, literal, name};
use crate::mysql::source::{Column, ReadRow, Table, granted};
use rqps_dbms::ControlRow;
use rqps_model::sql_name::Identifier;

/// Rows of the tables of statistics, without the columns that name the database.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    tables: Vec<ControlRow>,
    indexes: Vec<ControlRow>,
    /// Table, column and histogram of MySQL 8.
    histograms: Vec<ControlRow>,
    /// Rows of MariaDB's own statistics.
    own_tables: Vec<ControlRow>,
    own_indexes: Vec<ControlRow>,
    own_columns: Vec<ControlRow>,
    pub(super) notes: Vec<String>,
}

/// Reads them. Without consent, what holds values of rows stays where it is.
pub(super) fn read(session: &mut Session, tables: &[&Table], consent: bool) -> Result<Statistics> {
    const RIGHT: &str = "SELECT on mysql.innodb_table_stats and mysql.innodb_index_stats";
    let mut found = Statistics::default();
    for table in tables {
        let (own, parts) =
            (literal(&table.name), literal(&format!("{}#p#%", escaped(&table.name))));
        let rows = session.rows(&format!(
            "SELECT table_name, n_rows, clustered_index_size, sum_of_other_index_sizes \
             FROM mysql.innodb_table_stats WHERE database_name = DATABASE() \
             AND (table_name = {own} OR LOWER(table_name) LIKE LOWER({parts}))"
        ));
        let rows = rows.map_err(|error| granted(error, RIGHT))?;
        if rows.is_empty() {
            let name = &table.name;
            found.notes.push(format!("table `{name}` has no persistent statistics to copy"));
        }
        found.tables.extend(rows);
        let rows = session.rows(&format!(
            "SELECT table_name, index_name, stat_name, stat_value, sample_size, stat_description \
             FROM mysql.innodb_index_stats WHERE database_name = DATABASE() \
             AND (table_name = {own} OR LOWER(table_name) LIKE LOWER({parts}))"
        ));
        found.indexes.extend(rows.map_err(|error| granted(error, RIGHT))?);
        if session.is_mysql(&[8]) {
            found.read_histogram(session, table, consent)?;
        } else if session.is_mariadb {
            found.read_own(session, table, consent)?;
        }
    }
    Ok(found)
}

/// `%` and `_` of a name stand for themselves.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

impl Statistics {
    fn read_histogram(&mut self, session: &mut Session, table: &Table, yes: bool) -> Result<()> {
        let own = literal(&table.name);
        let rows = session.rows(&format!(
            "SELECT table_name, column_name, histogram FROM information_schema.column_statistics \
             WHERE schema_name = DATABASE() AND table_name = {own}"
        ));
        let rows = rows.map_err(|error| granted(error, "SELECT on the tables"))?;
        if yes {
            self.histograms.extend(rows);
        } else if !rows.is_empty() {
            self.notes.push(format!(
                "the histograms of table `{}` stay at the source: they hold values of rows",
                table.name
            ));
        }
        Ok(())
    }

    /// MariaDB's statistics of all engines, which change plans by themselves.
    fn read_own(&mut self, session: &mut Session, table: &Table, yes: bool) -> Result<()> {
        const RIGHT: &str = "SELECT on mysql.table_stats, mysql.column_stats and mysql.index_stats";
        let own = literal(&table.name);
        let mut ask = |sql: String| session.rows(&sql).map_err(|error| granted(error, RIGHT));
        self.own_tables.extend(ask(format!(
            "SELECT table_name, cardinality FROM mysql.table_stats \
             WHERE db_name = DATABASE() AND table_name = {own}"
        ))?);
        self.own_indexes.extend(ask(format!(
            "SELECT table_name, index_name, prefix_arity, avg_frequency FROM mysql.index_stats \
             WHERE db_name = DATABASE() AND table_name = {own}"
        ))?);
        let mut columns = ask(format!(
            "SELECT table_name, column_name, nulls_ratio, avg_length, avg_frequency, hist_size, \
             hist_type, HEX(min_value), HEX(max_value), HEX(histogram) FROM mysql.column_stats \
             WHERE db_name = DATABASE() AND table_name = {own}"
        ))?;
        if !yes && !columns.is_empty() {
            self.notes.push(format!(
                "least and greatest values and histograms of table `{}` stay at the source: they \
                 hold values of rows",
                table.name
            ));
            columns.iter_mut().for_each(|row| row.truncate(5));
        }
        self.own_columns.extend(columns);
        Ok(())
    }

    /// Writes them into a server with the same tables. They are in force after a restart.
    pub(super) fn write(&self, private: &mut Private) -> Result<Vec<String>> {
        // MySQL 8 names partitions in small letters.
        let lower = private.session.is_mysql(&[8]);
        let of_target = |rows: &[ControlRow]| -> Vec<ControlRow> {
            let mut rows = rows.to_vec();
            for row in rows.iter_mut().filter(|_| lower) {
                if let Some(Some(table)) = row.first_mut() {
                    *table = table.replace("#P#", "#p#").replace("#SP#", "#sp#");
                }
            }
            rows
        };
        private.run("DELETE FROM mysql.innodb_index_stats WHERE database_name = DATABASE()")?;
        private.run("DELETE FROM mysql.innodb_table_stats WHERE database_name = DATABASE()")?;
        for row in of_target(&self.tables) {
            let values = values(&row);
            private.run(&format!(
                "INSERT INTO mysql.innodb_table_stats (database_name, table_name, n_rows, \
                 clustered_index_size, sum_of_other_index_sizes) VALUES (DATABASE(), {values})"
            ))?;
        }
        for row in of_target(&self.indexes) {
            let values = values(&row);
            private.run(&format!(
                "INSERT INTO mysql.innodb_index_stats (database_name, table_name, index_name, \
                 stat_name, stat_value, sample_size, stat_description) \
                 VALUES (DATABASE(), {values})"
            ))?;
        }
        self.write_own(private)?;
        self.write_histograms(private)
    }

    fn write_own(&self, private: &mut Private) -> Result<()> {
        for row in &self.own_tables {
            private.run(&format!(
                "REPLACE INTO mysql.table_stats (db_name, table_name, cardinality) \
                 VALUES (DATABASE(), {})",
                values(row)
            ))?;
        }
        for row in &self.own_indexes {
            private.run(&format!(
                "REPLACE INTO mysql.index_stats (db_name, table_name, index_name, prefix_arity, \
                 avg_frequency) VALUES (DATABASE(), {})",
                values(row)
            ))?;
        }
        for row in &self.own_columns {
            let (plain, binary) = row.split_at(row.len().min(7));
            let (values, bytes) = (values(plain), bytes(binary));
            private.run(&if binary.is_empty() {
                format!(
                    "REPLACE INTO mysql.column_stats (db_name, table_name, column_name, \
                     nulls_ratio, avg_length, avg_frequency) VALUES (DATABASE(), {values})"
                )
            } else {
                format!(
                    "REPLACE INTO mysql.column_stats (db_name, table_name, column_name, \
                     nulls_ratio, avg_length, avg_frequency, hist_size, hist_type, min_value, \
                     max_value, histogram) VALUES (DATABASE(), {values}, {bytes})"
                )
            })?;
        }
        Ok(())
    }

    fn write_histograms(&self, private: &mut Private) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if !self.histograms.is_empty() && !private.session.is_mysql(&[8, 0, 31]) {
            notes.push(format!("{} takes no histograms from elsewhere", private.name));
            return Ok(notes);
        }
        for row in &self.histograms {
            let [Some(table), Some(column), Some(histogram)] = row.as_slice() else { continue };
            let (table, column, data) = (name(table), name(column), literal(histogram));
            let sql =
                format!("ANALYZE TABLE {table} UPDATE HISTOGRAM ON {column} USING DATA {data}");
            let told = private.session.rows(&sql).context("copy a histogram")?;
            for row in told.iter().filter(|row| row.get(2) == Some(&Some("Error".to_owned()))) {
                let words = row.get(3).cloned().flatten().unwrap_or_default();
                notes.push(format!("{} refuses a histogram of {table}: {words}", private.name));
            }
        }
        Ok(notes)
    }
}

/// Values as literals. The tables of statistics turn texts into numbers.
fn values(row: &[Option<String>]) -> String {
    let value = |cell: &Option<String>| match cell {
        Some(text) => literal(text).to_string(),
        None => "NULL".to_owned(),
    };
    row.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// Hexadecimal digits as bytes.
fn bytes(row: &[Option<String>]) -> String {
    let value = |cell: &Option<String>| match cell {
        Some(text) => format!("X'{}'", digits(text)),
        None => "NULL".to_owned(),
    };
    row.iter().map(value).collect::<Vec<_>>().join(", ")
}

/// What is not a hexadecimal digit is no part of bytes.
pub(super) fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_hexdigit).collect()
}

// A sample of the source's rows: the same fraction of every table, the rows of sampled parents
// with them, so that joins keep their sizes.

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
fn references(session: &mut Session, tables: &[&Table]) -> Result<Vec<Reference>> {
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
