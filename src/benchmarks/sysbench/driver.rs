//! How the driver makes and fills the tables.

use crate::domain::benchmark::Workload;
use crate::domain::dialect::Dialect;
use crate::driver::request::LoadRequest;

/// Tables loaded at the same time at most: more connections than that do not load faster.
const LOAD_PARALLEL_MAX: u32 = 4;

/// How the tables are made and filled.
pub fn load_task(
    dialect: Dialect,
    workload: &Workload,
    storage_engine: Option<&str>,
) -> LoadRequest {
    let (id, key) = match dialect {
        Dialect::Postgres => ("SERIAL", ", PRIMARY KEY (id)"),
        Dialect::Sqlite => ("INTEGER PRIMARY KEY", ""),
        Dialect::Mysql | Dialect::KeyValue | Dialect::Fake => {
            ("INTEGER NOT NULL AUTO_INCREMENT", ", PRIMARY KEY (id)")
        }
    };
    let engine = match (dialect, storage_engine) {
        (Dialect::Mysql, Some(engine)) => format!(" ENGINE = {engine}"),
        _ => String::new(),
    };
    let mut index_sql = vec!["CREATE INDEX k_{table} ON sbtest{table} (k)".to_string()];
    if dialect == Dialect::Postgres {
        // COPY supplied the ids, so the sequence still stands at 1 and the first insert would
        // collide.
        index_sql.push(format!(
            "SELECT setval(pg_get_serial_sequence('sbtest{{table}}', 'id'), {})",
            workload.rows
        ));
    }
    LoadRequest {
        drop_sql: "DROP TABLE IF EXISTS sbtest{table}".to_string(),
        create_sql: format!(
            "CREATE TABLE sbtest{{table}} (id {id}, k INTEGER DEFAULT 0 NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key}){engine}"
        ),
        index_sql,
        table: "sbtest{table}".to_string(),
        columns: "id, k, c, pad".to_string(),
        parallel: match dialect {
            // One writer at a time.
            Dialect::Sqlite => 1,
            _ => workload.tables.clamp(1, LOAD_PARALLEL_MAX),
        },
    }
}
