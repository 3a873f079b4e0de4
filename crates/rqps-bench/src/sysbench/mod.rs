//! The sysbench microbenchmarks: 42 steps of one statement each, and their tables.

pub mod presets;
pub mod statements;
pub mod steps;
#[cfg(test)]
mod tests;

use crate::spec::BenchmarkSpec;
use rqps_analysis::Extension;
use rqps_driver::part::{DriverPart, LoadRow, LoadRows};
use rqps_driver::request::{DriverRequest, LoadColumn, LoadRequest, LoadType, RequestBody};
use rqps_model::benchmark::Workload;
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::Dialect;
use rqps_model::script::{Operation, Script};
use rqps_model::sql_name::Identifier;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sysbench",
    workload: presets::workload,
    preset: presets::facts,
    phases: steps::phases,
    choose: steps::choose,
    placement: None,
    load: Some(load),
    counting: steps::COUNTING,
    driver: DriverPart { benchmark: "sysbench", rows: Some(rows), ..DriverPart::NONE },
    table_name: "sbtest{table}",
    names_made,
    extension: Extension::none("sysbench"),
    ..BenchmarkSpec::PLAIN
};

// The load of the sysbench tables.

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

// Names and rows of the tables sbtest1 … sbtestT. A row depends only on seed, table and id, so a
// load may be split in any way.

/// Bytes of column c: ten groups of eleven digits joined by `-`.
pub const C_LEN: usize = 119;
/// Bytes of column pad: five groups of eleven digits joined by `-`.
pub const PAD_LEN: usize = 59;

/// The rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct SbtestTable {
    key: StreamKey,
    rows: u64,
}

impl SbtestTable {
    /// Table `table` (from 1) with ids 1..=`rows`.
    pub fn new(seed: u64, table: u32, rows: u64) -> SbtestTable {
        SbtestTable { key: StreamKey::new(seed, "sbtest").and(u64::from(table)), rows: rows.max(1) }
    }

    /// Writes the texts c and pad of the row with this id into `text` and returns its k. Allocates
    /// nothing.
    #[inline]
    pub fn texts(&self, id: u64, text: &mut [u8; C_LEN + PAD_LEN]) -> u64 {
        let mut rng = self.key.at(id);
        let k = rng.uniform(1, self.rows);
        let (c, pad) = text.split_at_mut(C_LEN);
        rng.digit_groups(c);
        rng.digit_groups(pad);
        k
    }
}

/// Names of all tables, and of indexes that share a name space with tables.
pub(super) fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    let of_table = |table: u32| match dialect {
        Dialect::Mysql => vec![format!("sbtest{table}")],
        _ => vec![format!("sbtest{table}"), format!("k_{table}")],
    };
    (1..=workload.tables).flat_map(of_table).collect()
}

// Lists statements for readers: long lists are shortened, repetitions counted.

/// The statements of one event for readers, with BEGIN and COMMIT.
pub fn statements(dialect: Dialect, script: &Script) -> Vec<String> {
    let mut lines = operations(dialect, script);
    if script.has_transaction() {
        lines.insert(0, "BEGIN".to_string());
        lines.push("COMMIT".to_string());
    }
    lines
}

/// The statements of one event for readers, without BEGIN and COMMIT: one line per operation.
pub fn operations(dialect: Dialect, script: &Script) -> Vec<String> {
    let line = |operation: &Operation| {
        let sql = shortened(dialect, &operation.sql);
        let repeat = operation.repeat;
        if repeat > 1 { format!("{repeat} × {sql}") } else { sql }
    };
    script.operations().map(line).collect()
}

/// Shortens `IN (?, ?, … ?)` of more than three members to `IN (100 × ?)` or `IN ($1, …, $100)`.
fn shortened(dialect: Dialect, sql: &str) -> String {
    let parts = sql
        .split_once(" IN (")
        .and_then(|(head, rest)| rest.split_once(')').map(|(list, tail)| (head, list, tail)));
    let Some((head, list, tail)) = parts else { return sql.to_string() };
    let members: Vec<&str> = list.split(", ").collect();
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        return sql.to_string();
    };
    if members.len() <= 3 {
        return sql.to_string();
    }
    match dialect {
        Dialect::Postgres => format!("{head} IN ({first}, …, {last}){tail}"),
        _ => format!("{head} IN ({} × {first}){tail}", members.len()),
    }
}

#[cfg(test)]
mod rows_tests {
    use super::*;

    fn text(table: u32, id: u64) -> String {
        let mut texts = [0; C_LEN + PAD_LEN];
        let k = SbtestTable::new(1, table, 1000).texts(id, &mut texts);
        let (c, pad) = texts.split_at(C_LEN);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        format!("{id}\t{k}\t{}\t{}\n", text(c), text(pad))
    }

    #[test]
    fn rows_keep_their_text() {
        // From an independent program in another language.
        assert_eq!(
            text(1, 1),
            "1\t828\t\
             17082072816-05315275885-98975208171-12867295065-17722050019-\
             19504870913-67825309465-39968673758-76370017692-80316196777\t\
             36103809696-29772566121-51982980830-23298199492-30675610922\n"
        );
        assert_eq!(
            text(2, 1),
            "1\t934\t\
             74002573416-59537545985-79291995735-45195029203-70571264600-\
             99454134948-87185158969-36886660721-25171942479-42072172834\t\
             60381252003-38835415599-68471184535-20997676947-86941464682\n"
        );
        assert!(text(1, 1000).starts_with("1000\t799\t55296161130-29988064866-"));
    }

    #[test]
    fn k_is_uniform_over_the_rows() {
        let table = SbtestTable::new(1, 1, 20);
        let mut counts = [0u64; 20];
        let mut texts = [0; C_LEN + PAD_LEN];
        for id in 1..=20_000 {
            counts[table.texts(id, &mut texts) as usize - 1] += 1;
        }
        assert!(rqps_stats::goodness_of_fit(&counts, &[1.0; 20]) > 1e-5);
    }
}
