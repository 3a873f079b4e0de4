//! The load of the sysbench tables.

use crate::sysbench::rows::{C_LEN, PAD_LEN, SbtestTable};
use rqps_driver::part::{LoadRow, LoadRows};
use rqps_driver::request::{DriverRequest, LoadColumn, LoadRequest, LoadType, RequestBody};
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;

/// Opens the rows of a table.
pub(super) fn rows(request: &DriverRequest, table: u32) -> Box<dyn LoadRows> {
    Box::new(SbtestTable::new(request.seed, table, request.rows))
}

impl LoadRows for SbtestTable {
    fn row(&self, id: u64, row: &mut LoadRow) {
        row.text.resize(C_LEN + PAD_LEN, 0);
        let Some(text) = row.text.first_chunk_mut() else { return };
        let k = self.texts(id, text);
        row.numbers.clear();
        row.numbers.extend([id as i64, k as i64]);
    }
}

/// The columns of a table.
pub fn columns() -> Vec<LoadColumn> {
    let text = |bytes: usize| LoadType::Text { bytes: bytes as u32, width: bytes as u32 + 1 };
    let all =
        [("id", LoadType::Int), ("k", LoadType::Int), ("c", text(C_LEN)), ("pad", text(PAD_LEN))];
    all.map(|(name, holds)| LoadColumn { name: name.to_owned(), holds }).into()
}

/// Most tables loaded at the same time; more connections do not load faster.
const LOAD_PARALLEL_MAX: u32 = 4;

/// The load for a workload.
pub(super) fn load(dialect: Dialect, workload: &Workload, engine: Option<&str>) -> RequestBody {
    RequestBody::Load(load_task(dialect, workload, engine))
}

/// The load for these tables.
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
        (Dialect::Mysql, Some(engine)) => {
            format!(" ENGINE = {}", Identifier::plain(dialect, engine))
        }
        _ => String::new(),
    };
    let mut index_sql = vec!["CREATE INDEX k_{table} ON sbtest{table} (k)".to_string()];
    if dialect == Dialect::Postgres {
        // COPY supplied the ids, so the sequence is still at 1 and the first insert would collide.
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
        rows_of: "sysbench".to_owned(),
        columns: columns(),
        parallel: match dialect {
            // SQLite has one writer at a time.
            Dialect::Sqlite => 1,
            _ => workload.tables.clamp(1, LOAD_PARALLEL_MAX),
        },
    }
}
