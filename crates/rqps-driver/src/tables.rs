//! Reads what the tables hold, as checksums.

use std::io::Write;
use std::time::Duration;

use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent, Stop};
use crate::loaders;
use crate::request::TableRead;
use rqps_model::dialect::Dialect;
use rqps_model::row_digest::{RowDigest, TableRecord};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::RowTexts;

/// The longest time for reading a table.
const LONGEST: Duration = Duration::from_secs(30);

/// Most tables.
const TABLES: usize = 200;

/// Of a table that has this many times the bytes, rows are not even counted.
const UNCOUNTED: u64 = 64;

/// Tables of the user with their bytes, and whether they are where a name without a schema leads
/// to. Those of an extension are its version's.
const POSTGRES_TABLES: &str = "SELECT n.nspname, c.relname, pg_catalog.pg_table_size(c.oid), \
    CASE WHEN n.nspname = pg_catalog.current_schema() THEN 1 ELSE 0 END FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'm') AND n.nspname <> 'information_schema' \
    AND n.nspname NOT LIKE 'pg\\_%' AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d \
    WHERE d.objid = c.oid AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass \
    AND d.deptype = 'e') ORDER BY 1, 2";
const MYSQL_TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, DATA_LENGTH, 1 \
    FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
    AND TABLE_TYPE = 'BASE TABLE' ORDER BY 1, 2";
const SQLITE_TABLES: &str = "SELECT NULL, name, sql FROM sqlite_master WHERE type = 'table' \
    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 2";

/// A table to read.
struct Found {
    schema: Option<String>,
    name: String,
    bytes: u64,
    /// True where its name without a schema leads to it.
    is_near: bool,
}

/// Sends a record of each table.
pub(super) fn read<W: Write>(
    connector: &Connector,
    task: &TableRead,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let dialect = connector.dialect();
    let mut session = connector.open(0)?;
    let _limit = loaders::limit(LONGEST);
    let failed = |error| format!("failed to list the tables: {error}");
    let mut found = list(&mut session, dialect).map_err(failed)?;
    if let Some(names) = &task.names {
        found.retain(|table| table.is_near && names.contains(&table.name));
    }
    found.truncate(TABLES);
    for table in &found {
        loaders::begin();
        let record = record(&mut session, (dialect, table), task.bytes_most);
        control.send(&DriverEvent::Table(Box::new(record)))?;
    }
    Ok(control.send(&DriverEvent::TablesRead)?)
}

fn list(session: &mut Connection, dialect: Dialect) -> Result<Vec<Found>, String> {
    let mut rows = |sql: &str| session.rows(sql).map_err(|error| error.to_string());
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    let sql = match dialect {
        Dialect::Postgres => POSTGRES_TABLES,
        Dialect::Mysql => MYSQL_TABLES,
        Dialect::Sqlite => {
            let mut of = |sql: &str| rows(sql).map(|rows| number(rows.concat().pop().flatten()));
            let bytes: u64 = of("PRAGMA page_count")? * of("PRAGMA page_size")?;
            return rows(SQLITE_TABLES).map(|rows| sqlite_tables(rows, bytes));
        }
        Dialect::KeyValue | Dialect::Fake => return Ok(Vec::new()),
    };
    let found = rows(sql)?.into_iter().filter_map(|row| {
        let [schema, name, bytes, near] = <[_; 4]>::try_from(row).ok()?;
        Some(Found { schema, name: name?, bytes: number(bytes), is_near: number(near) > 0 })
    });
    Ok(found.collect())
}

/// Without virtual tables and those in which they keep their content, which are their version's.
fn sqlite_tables(rows: Vec<Vec<Option<String>>>, bytes: u64) -> Vec<Found> {
    let named: Vec<(String, bool)> = rows
        .into_iter()
        .filter_map(|row| {
            let [_, name, sql] = <[_; 3]>::try_from(row).ok()?;
            let is_virtual = sql?.to_ascii_uppercase().starts_with("CREATE VIRTUAL");
            Some((name?, is_virtual))
        })
        .collect();
    let is_shadow = |name: &str| {
        let mut all = named.iter().filter(|(_, is_virtual)| *is_virtual);
        all.any(|(of, _)| name.strip_prefix(of.as_str()).is_some_and(|it| it.starts_with('_')))
    };
    let plain = named.iter().filter(|(name, is_virtual)| !is_virtual && !is_shadow(name));
    let found = |name: &String| Found { schema: None, name: name.clone(), bytes, is_near: true };
    plain.map(|(name, _)| found(name)).collect()
}

/// The record of a table; what went wrong is its note.
fn record(
    session: &mut Connection,
    (dialect, table): (Dialect, &Found),
    bytes_most: u64,
) -> TableRecord {
    let name = match &table.schema {
        Some(schema) if !table.is_near => format!("{schema}.{}", table.name),
        _ => table.name.clone(),
    };
    let mut record = TableRecord { name, rows: None, content: None, note: None };
    let quoted = |name: &String| Identifier::quoted(dialect, name);
    let own = quoted(&table.name);
    let place = table.schema.as_ref().map_or(own.clone(), |schema| quoted(schema).dot(&own));
    if table.bytes > bytes_most {
        let megabytes = table.bytes >> 20;
        record.note = Some(format!("{megabytes} MB: only its rows were counted"));
        if table.bytes / UNCOUNTED > bytes_most {
            record.note = Some(format!("{megabytes} MB: not read"));
            return record;
        }
        match session.rows(&format!("SELECT count(*) FROM {place}")) {
            Ok(rows) => {
                record.rows = rows.concat().pop().flatten().and_then(|it| it.parse().ok());
            }
            Err(error) => record.note = Some(error.to_string()),
        }
        return record;
    }
    match content(session, (dialect, table), &place) {
        Ok(digest) => {
            let content = digest.record();
            record.rows = Some(content.rows);
            record.content = Some(content);
        }
        Err(why) => record.note = Some(why),
    }
    record
}

/// All rows of a table.
fn content(
    session: &mut Connection,
    (dialect, table): (Dialect, &Found),
    place: &Identifier,
) -> Result<RowDigest, String> {
    let columns = columns(session, (dialect, table), place)?;
    let names: Vec<Identifier> =
        columns.iter().map(|(name, _)| Identifier::quoted(dialect, name)).collect();
    if names.is_empty() {
        return Err("it has no columns".to_owned());
    }
    let names = Identifier::list(&names);
    let mut rows = RowTexts::digesting(RowDigest::of_columns(columns));
    session
        .simple_rows(&format!("SELECT {names} FROM {place}"), &mut rows)
        .map_err(|error| error.to_string())?;
    rows.digest().cloned().ok_or_else(|| "no rows".to_owned())
}

/// Names and types of the columns.
fn columns(
    session: &mut Connection,
    (dialect, table): (Dialect, &Found),
    place: &Identifier,
) -> Result<Vec<(String, String)>, String> {
    let text = |text: &str| Literal::quoted(dialect, text);
    let schema = text(table.schema.as_deref().unwrap_or_default());
    let name = text(&table.name);
    let sql = match dialect {
        Dialect::Postgres => format!(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) \
             FROM pg_catalog.pg_attribute a \
             JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = {schema} AND c.relname = {name} AND a.attnum > 0 \
             AND NOT a.attisdropped ORDER BY a.attnum"
        ),
        Dialect::Mysql => format!(
            "SELECT COLUMN_NAME, COLUMN_TYPE FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} ORDER BY ORDINAL_POSITION"
        ),
        _ => format!("PRAGMA table_info({place})"),
    };
    let rows = session.rows(&sql).map_err(|error| error.to_string())?;
    let of = usize::from(dialect == Dialect::Sqlite);
    let column = |row: &Vec<Option<String>>| {
        let cell = |place: usize| row.get(place).cloned().flatten();
        Some((cell(of)?, cell(of + 1).unwrap_or_default()))
    };
    Ok(rows.iter().filter_map(column).collect())
}
