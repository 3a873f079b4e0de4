//! The sysbench microbenchmarks: 42 steps of one statement each, and their tables.

pub mod steps;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use serde::Deserialize;

use crate::spec::{BenchmarkSpec, PresetFacts, StepSet};
use rqps_analysis::Extension;
use rqps_driver::part::{DriverPart, LoadRow, LoadRows};
use rqps_driver::request::{DriverRequest, LoadColumn, LoadRequest, LoadType, RequestBody};
use rqps_driver::workload;
use rqps_model::benchmark::{BenchmarkParameters, Placement, Workload};
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::Dialect;
use rqps_model::script::{Operation, Script};
use rqps_model::sql_name::Identifier;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sysbench",
    workload,
    preset: facts,
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

// Named shapes of the sysbench microbenchmarks.

/// A named shape.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SysbenchPreset {
    /// The name after `--preset`.
    pub name: String,
    /// Other names of the same shape.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line for lists.
    pub about: String,
    /// Its set of steps.
    pub order: StepSet,
    /// Number of tables.
    pub tables: u32,
    /// Rows per table.
    pub rows: u64,
    /// Concurrent connections.
    pub clients: u32,
    /// Measured seconds of read steps.
    pub read_seconds: f64,
    /// Measured seconds of write steps.
    pub write_seconds: f64,
    /// Seconds of warm-up before each window.
    pub warmup_seconds: f64,
    /// Share of the published waits after loading and writing.
    pub settle_scale: f64,
    /// Bytes of the DBMS's own cache; `None` derives them from the data.
    pub cache_bytes: Option<u64>,
    /// Default configuration of targets, if their DBMS has one of this name.
    pub config: Option<String>,
}

impl SysbenchPreset {
    /// True for the shape of published work.
    pub fn is_published(&self) -> bool {
        !["quick", "standard"].contains(&self.name.as_str())
    }

    /// The shape as a workload: closed pace, CPUs kept awake. Its placement is
    /// [`default_placement`] for one CPU; correct it when the number of CPUs is known.
    pub fn workload(&self) -> Workload {
        Workload {
            tables: self.tables,
            rows: self.rows,
            clients: self.clients,
            read_seconds: self.read_seconds,
            write_seconds: self.write_seconds,
            warmup_seconds: self.warmup_seconds,
            settle_scale: self.settle_scale,
            placement: default_placement(self.clients, 1),
            cache_bytes: self.cache_bytes,
            ..Workload::plain(BenchmarkParameters::Sysbench)
        }
    }
}

fn named(name: &str) -> Result<&'static SysbenchPreset, String> {
    workload::named(presets(), |preset| (&preset.name, &preset.aliases), name)
}

/// The workload of a preset, and its set of steps.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    named(name).map(|preset| (preset.workload(), preset.order))
}

/// Further facts about a preset.
pub(super) fn facts(name: &str) -> PresetFacts {
    match named(name) {
        Ok(preset) => {
            PresetFacts { config: preset.config.as_deref(), is_published: preset.is_published() }
        }
        Err(_) => PresetFacts::default(),
    }
}

/// Together while each client can have its own CPU, otherwise left to the operating system.
fn default_placement(clients: u32, cpus: u32) -> Placement {
    if clients <= cpus { Placement::Together } else { Placement::Os }
}

/// All presets in the order of lists.
pub fn presets() -> &'static [SysbenchPreset] {
    static PRESETS: LazyLock<Vec<SysbenchPreset>> =
        LazyLock::new(|| workload::presets(include_str!("presets.toml")).unwrap_or_default());
    &PRESETS
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

#[cfg(test)]
mod presets_tests {
    use super::*;

    #[test]
    fn presets_have_the_published_shapes() {
        let check = |name: &str, shape: (u32, u64, u32), seconds: (f64, f64)| {
            let preset = named(name).unwrap();
            assert_eq!((preset.tables, preset.rows, preset.clients), shape, "{name}");
            assert_eq!((preset.read_seconds, preset.write_seconds), seconds, "{name}");
            assert_eq!((preset.warmup_seconds, preset.settle_scale), (5.0, 1.0), "{name}");
        };
        check("nuc", (1, 10_000_000, 1), (180.0, 180.0));
        check("c2s60", (4, 50_000_000, 20), (600.0, 600.0));
        check("c2s60-4g", (4, 50_000_000, 20), (600.0, 600.0));
        check("c8r16", (1, 30_000_000, 1), (300.0, 600.0));
        check("c8r32", (1, 50_000_000, 1), (600.0, 900.0));
        check("c24r64", (8, 10_000_000, 16), (600.0, 900.0));
        check("c32r128", (8, 10_000_000, 24), (600.0, 900.0));
        check("hetz48", (8, 10_000_000, 40), (630.0, 930.0));
        check("ax162s", (8, 10_000_000, 40), (630.0, 930.0));
        check("c8r32-2025", (1, 50_000_000, 1), (300.0, 600.0));
        check("c24r64-2025", (8, 10_000_000, 16), (300.0, 600.0));
        check("c32r128-2025", (8, 10_000_000, 24), (300.0, 600.0));
        check("hetz48-2025", (8, 10_000_000, 40), (300.0, 600.0));
        check("gcp32", (8, 10_000_000, 12), (300.0, 600.0));
        assert_eq!(named("c2s60-4g").unwrap().workload().cache_bytes, Some(4 << 30));
        assert_eq!(named("nuc").unwrap().order, StepSet::Full);
        assert_eq!(named("quick").unwrap().order, StepSet::Abbreviated);
        assert!(named("slow").is_err());
    }

    #[test]
    fn names_of_presets_are_unique() {
        let mut names: Vec<&str> = Vec::new();
        for preset in presets() {
            names.push(&preset.name);
            names.extend(preset.aliases.iter().map(String::as_str));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn placement_is_together_while_clients_have_a_cpu_each() {
        assert_eq!(default_placement(1, 1), Placement::Together);
        assert_eq!(default_placement(2, 2), Placement::Together);
        assert_eq!(default_placement(3, 2), Placement::Os);
        assert_eq!(named("quick").unwrap().workload().placement, Placement::Together);
    }
}
