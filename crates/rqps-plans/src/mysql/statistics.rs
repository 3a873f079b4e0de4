//! Statistics of tables: copied from a source into a server whose tables are empty.

use anyhow::{Context, Result};

use rqps_dbms::ControlRow;

use super::server::Private;
use super::session::{Session, literal, name};
use super::source::{Table, granted};

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
