//! The steps of the sysbench microbenchmarks as data: a table of test types, two orders of steps,
//! and their SQL by dialect.
//!
//! The test types of published work on relative QPS: a row per microbenchmark. docs/sysbench.md is
//! generated from this file.

use Lasts::{Read, Write};
use SbtestIndex::{Primary, Secondary};

use crate::spec::{Counting, StepSet};
use crate::sysbench::{C_LEN, PAD_LEN};
use rqps_driver::workload::{Companions, SelectError, select};
use rqps_model::benchmark::{Group, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::script::{
    Distribution, Operation, Parameter, Protocol, Script, StepParameters, StepPurpose, TableChoice,
};

/// A test type with its range; a microbenchmark in the words of the published work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Microbenchmark {
    /// Name of the test type: `random-points`.
    pub test: &'static str,
    /// The number in its label. It is a parameter only if [`StatementShape`] says so.
    pub range: u32,
    /// Group of the report.
    pub group: Group,
    /// Its duration: one of the two of the workload.
    pub lasts: Lasts,
    /// Its statements.
    pub kind: StatementShape,
}

/// A duration of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// `read_seconds`.
    Read,
    /// `write_seconds`.
    Write,
}

/// The statements of one event. N is the range of the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementShape {
    /// Select one row by id.
    PointQuery,
    /// Select N random ids in a list.
    RandomPoints,
    /// Select the same N adjacent ids in the middle of the table.
    HotPoints,
    /// Select N random values in a list on an index.
    Points {
        /// The index.
        on: SbtestIndex,
        /// True if the index has all selected columns.
        covered: bool,
    },
    /// Select the N + 1 keys m … m + N on an index.
    Range {
        /// The index.
        on: SbtestIndex,
        /// True if the index has all selected columns.
        covered: bool,
    },
    /// Scan a table; no row passes the filter.
    Scan,
    /// Ten point selects and these ranges of N rows in a transaction.
    ReadOnly(&'static [Ranged]),
    /// Count N rows, without a transaction.
    Count,
    /// The statements of read-only and write-only in one transaction.
    ReadWrite,
    /// Four writes in a transaction.
    WriteOnly,
    /// k = k + 1.
    UpdateIndex,
    /// Update c by a uniform id.
    UpdateNonindex,
    /// Update c of id 1.
    UpdateOne,
    /// Update c by a Zipf distributed id.
    UpdateZipf,
    /// Update c of ten random ids; N is only the label.
    UpdateInlist,
    /// Delete by a uniform id, drawn with replacement.
    Delete,
    /// Insert one row at the end.
    Insert,
}

/// The two indexes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SbtestIndex {
    /// The primary key, on id.
    Primary,
    /// The secondary index, on k.
    Secondary,
}

/// A range query of read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranged {
    /// Select the rows.
    Simple,
    /// SUM(k).
    Sum,
    /// ORDER BY c.
    Order,
    /// DISTINCT c, ordered.
    Distinct,
}

/// Ids of one update-inlist statement. The published scripts label it 100 but never pass that on,
/// so all published figures measure the default of ten.
pub const UPDATE_INLIST_IDS: u32 = 10;
/// Exponent of update-zipf's distribution.
pub const ZIPF_EXPONENT: f64 = 0.8;
/// Point selects in a transaction of read-only and read-write.
pub(super) const POINT_SELECTS: u32 = 10;

pub(super) const ALL_RANGES: &[Ranged] =
    &[Ranged::Simple, Ranged::Sum, Ranged::Order, Ranged::Distinct];

/// All test types of the published suites by group; ranges of one test type ascend.
pub const MICROBENCHMARKS: &[Microbenchmark] = &[
    point("point-query", 100, StatementShape::PointQuery),
    point("random-points", 10, StatementShape::RandomPoints),
    point("random-points", 100, StatementShape::RandomPoints),
    point("random-points", 1000, StatementShape::RandomPoints),
    point("hot-points", 100, StatementShape::HotPoints),
    point("points-covered-pk", 100, StatementShape::Points { on: Primary, covered: true }),
    point("points-notcovered-pk", 100, StatementShape::Points { on: Primary, covered: false }),
    point("points-covered-si", 100, StatementShape::Points { on: Secondary, covered: true }),
    point("points-notcovered-si", 100, StatementShape::Points { on: Secondary, covered: false }),
    range("range-covered-pk", 100, StatementShape::Range { on: Primary, covered: true }),
    range("range-notcovered-pk", 100, StatementShape::Range { on: Primary, covered: false }),
    range("range-covered-si", 100, StatementShape::Range { on: Secondary, covered: true }),
    range("range-notcovered-si", 100, StatementShape::Range { on: Secondary, covered: false }),
    range("scan", 100, StatementShape::Scan),
    range("read-only", 10, StatementShape::ReadOnly(ALL_RANGES)),
    range("read-only", 100, StatementShape::ReadOnly(ALL_RANGES)),
    range("read-only", 10_000, StatementShape::ReadOnly(ALL_RANGES)),
    range("read-only-simple", 1000, StatementShape::ReadOnly(&[Ranged::Simple])),
    range("read-only-sum", 1000, StatementShape::ReadOnly(&[Ranged::Sum])),
    range("read-only-order", 1000, StatementShape::ReadOnly(&[Ranged::Order])),
    range("read-only-distinct", 1000, StatementShape::ReadOnly(&[Ranged::Distinct])),
    range("read-only-count", 1000, StatementShape::Count),
    write("update-inlist", 100, Write, StatementShape::UpdateInlist),
    write("update-index", 100, Write, StatementShape::UpdateIndex),
    write("update-nonindex", 100, Write, StatementShape::UpdateNonindex),
    write("update-one", 100, Write, StatementShape::UpdateOne),
    write("update-zipf", 100, Write, StatementShape::UpdateZipf),
    // The published scripts give it the read duration.
    write("write-only", 10_000, Read, StatementShape::WriteOnly),
    write("read-write", 10, Write, StatementShape::ReadWrite),
    write("read-write", 100, Write, StatementShape::ReadWrite),
    write("delete", 100, Write, StatementShape::Delete),
    write("insert", 100, Write, StatementShape::Insert),
];

const fn point(test: &'static str, range: u32, kind: StatementShape) -> Microbenchmark {
    Microbenchmark { test, range, group: Group::Point, lasts: Read, kind }
}

const fn range(test: &'static str, range: u32, kind: StatementShape) -> Microbenchmark {
    Microbenchmark { test, range, group: Group::Range, lasts: Read, kind }
}

const fn write(
    test: &'static str,
    range: u32,
    lasts: Lasts,
    kind: StatementShape,
) -> Microbenchmark {
    Microbenchmark { test, range, group: Group::Write, lasts, kind }
}

/// The parameters of a test type, which its label may not tell.
pub(super) fn detail(benchmark: &Microbenchmark) -> String {
    let n = benchmark.range;
    match benchmark.kind {
        StatementShape::PointQuery => "1 row by id".to_string(),
        StatementShape::RandomPoints => format!("{n} random ids in a list"),
        StatementShape::HotPoints => {
            format!("the same {n} adjacent ids in a list, of a random table")
        }
        StatementShape::Points { on: SbtestIndex::Primary, .. } => {
            format!("{n} random ids in a list")
        }
        StatementShape::Points { on: SbtestIndex::Secondary, .. } => {
            format!("{n} random k in a list, 1 row each on average")
        }
        StatementShape::Range { on: SbtestIndex::Primary, .. } => format!("{} ids", n + 1),
        StatementShape::Range { on: SbtestIndex::Secondary, .. } => {
            format!("{} values of k, 1 row each on average", n + 1)
        }
        StatementShape::Scan => {
            "full scan, 0 rows returned; client i always scans table i mod T; the rate counts rows \
             scanned by all clients"
                .to_string()
        }
        StatementShape::ReadOnly(ranges) => {
            let statements = POINT_SELECTS as usize + ranges.len() + 2;
            let count = ranges.len();
            let plural = if count == 1 { "range" } else { "ranges" };
            format!(
                "{POINT_SELECTS} point selects, {count} {plural} of {n} rows, BEGIN and COMMIT: \
                 {statements} statements"
            )
        }
        StatementShape::Count => format!("1 aggregate over {n} rows"),
        StatementShape::ReadWrite => format!(
            "{POINT_SELECTS} point selects, 4 ranges of {n} rows, 4 writes, BEGIN and COMMIT: \
             20 statements"
        ),
        StatementShape::WriteOnly => {
            "2 updates, delete and insert of one id, BEGIN and COMMIT: 6 statements; \
                            runs for the read duration; its published label says 10000"
                .to_string()
        }
        StatementShape::UpdateIndex => "1 row by id, indexed column".to_string(),
        StatementShape::UpdateNonindex => "1 row by id, column without index".to_string(),
        StatementShape::UpdateOne => "id 1 of a random table, so one hot row per table".to_string(),
        StatementShape::UpdateZipf => {
            format!("1 row by zipfian id, exponent {ZIPF_EXPONENT}, hottest id 1")
        }
        StatementShape::UpdateInlist => {
            format!("{UPDATE_INLIST_IDS} random ids in a list; its published label says {n}")
        }
        StatementShape::Delete => {
            "1 id, drawn with replacement and never inserted again, so no-ops increase over time"
                .to_string()
        }
        StatementShape::Insert => "1 row with a new id, text protocol".to_string(),
    }
}

// The two published orders of steps, and the steps of a workload in these orders.

/// Counting of scripts, on so few rows that a scan under valgrind takes seconds.
pub(crate) const COUNTING: Counting = Counting {
    settings: &[
        "rows=100000", "read_seconds=1", "write_seconds=1", "warmup_seconds=0", "settle_scale=0",
    ],
    ..Counting::SCRIPTS
};

/// Longest warm-up scan, seconds.
const SCAN_WARM_SECONDS_MAX: f64 = 60.0;

/// The entries of an order: what is done, and the test type, which stands for all its ranges.
/// `settle` waits; `warm` fills caches after the load or before the step of the same test, and
/// `warmpre` before the reads that precede the writes, and both are not reported; `pre` is measured
/// before the writes.
fn entries(order: StepSet) -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = match order {
        StepSet::Full => include_str!("full.txt"),
        StepSet::January2025 | StepSet::Abbreviated => include_str!("abbreviated.txt"),
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// Test types added to the abbreviated order on 23 March 2025, between reads that they do not
/// affect.
const SINCE_MARCH_2025: [&str; 5] = [
    "read-only-simple", "read-only-sum", "read-only-order", "read-only-distinct", "read-only-count",
];

/// Ending of the names of warm-up steps.
const WARM: &str = ".warm";
/// Ending of the names of warm-up steps before the writes.
const WARM_PRE: &str = ".warmpre";
/// Ending of the names of steps before the writes.
const PRE: &str = ".pre";

/// Warm-up steps, with patterns of the steps that they warm.
const WARM_UPS: &[(&str, &[&str])] = &[
    ("point-query.warm", &["*"]),
    ("scan.warmpre", &["*.pre*"]),
    ("scan.warm", &["scan"]),
    ("points-covered-si.warm", &["points-*-si", "range-*-si"]),
];

/// Keeps the steps that `globs` select, and the steps that warm them.
///
/// # Errors
///
/// As [`select`].
pub fn choose(phases: Vec<Phase>, globs: &[String]) -> Result<Vec<Phase>, SelectError> {
    select(phases, globs, &Companions { warm_ups: WARM_UPS, ..Companions::NONE })
}

/// See [`crate::phases`].
pub fn phases(dialect: Dialect, order: StepSet, workload: &Workload) -> Vec<Phase> {
    let mut phases = Vec::new();
    for (entry, test) in entries(order) {
        if order == StepSet::January2025 && entry == "run" && SINCE_MARCH_2025.contains(&test) {
            continue;
        }
        let (suffix, purpose) = match entry {
            "settle" => {
                phases.push(Phase::Settle);
                continue;
            }
            "warm" => (WARM, StepPurpose::Warming),
            "warmpre" => (WARM_PRE, StepPurpose::Warming),
            "pre" => (PRE, StepPurpose::BeforeWrites),
            _ => ("", StepPurpose::Result),
        };
        let reported = match purpose {
            StepPurpose::Warming => false,
            // The published summaries of the abbreviated order leave these out.
            StepPurpose::BeforeWrites => order == StepSet::Full,
            _ => true,
        };
        for benchmark in MICROBENCHMARKS.iter().filter(|benchmark| benchmark.test == test) {
            let name = step_name(benchmark, suffix);
            let step = Step { reported, ..step(dialect, benchmark, name, purpose, workload) };
            phases.push(Phase::Measure(Box::new(step)));
        }
    }
    phases
}

/// `test` + suffix, and the range if the test type has several: the latest published labels.
fn step_name(benchmark: &Microbenchmark, suffix: &str) -> String {
    let Microbenchmark { test, range, .. } = benchmark;
    let ranges = MICROBENCHMARKS.iter().filter(|other| other.test == *test).count();
    if ranges > 1 { format!("{test}{suffix}_range={range}") } else { format!("{test}{suffix}") }
}

fn step(
    dialect: Dialect,
    benchmark: &Microbenchmark,
    name: String,
    purpose: StepPurpose,
    workload: &Workload,
) -> Step {
    let warms = purpose == StepPurpose::Warming;
    let scans = benchmark.kind == StatementShape::Scan;
    let seconds = match benchmark.lasts {
        Lasts::Read => workload.read_seconds,
        Lasts::Write => workload.write_seconds,
    };
    let rate = if scans { RateUnit::RowsScanned } else { RateUnit::Queries };
    let script = script(dialect, benchmark, workload.plain_statements);
    Step {
        seconds: if warms && scans { seconds.min(SCAN_WARM_SECONDS_MAX) } else { seconds },
        // A warm-up step needs no warm-up of its own.
        warmup_seconds: if warms { 0.0 } else { workload.warmup_seconds },
        detail: detail(benchmark),
        parameters: StepParameters { purpose, ..StepParameters::default() },
        turns: StepTurns::Clients,
        only_reads: matches!(benchmark.group, Group::Point | Group::Range),
        ..Step::new(&name, benchmark.group, rate, script)
    }
}

// The statements of each microbenchmark by dialect.

/// A new text for column c.
pub const COLUMN_C: Parameter = Parameter::Digits { bytes: C_LEN as u32 };
/// A new text for column pad.
pub const COLUMN_PAD: Parameter = Parameter::Digits { bytes: PAD_LEN as u32 };

/// The statements of a microbenchmark: prepared like those of sysbench, or all as text.
pub(super) fn script(dialect: Dialect, benchmark: &Microbenchmark, as_text: bool) -> Script {
    let script = prepared_script(dialect, benchmark);
    if as_text { plain(dialect, script) } else { script }
}

fn prepared_script(dialect: Dialect, benchmark: &Microbenchmark) -> Script {
    let n = benchmark.range;
    let transaction = matches!(
        benchmark.kind,
        StatementShape::ReadOnly(_) | StatementShape::ReadWrite | StatementShape::WriteOnly
    );
    let distribution = match benchmark.kind {
        StatementShape::UpdateZipf => Distribution::Zipfian { exponent: ZIPF_EXPONENT },
        _ => Distribution::Uniform,
    };
    let operations = match benchmark.kind {
        StatementShape::PointQuery => vec![point_select(dialect)],
        StatementShape::RandomPoints => {
            vec![in_list(dialect, "random_points", "c", "id", vec![Parameter::Id; n as usize])]
        }
        StatementShape::HotPoints => {
            let ids = (1..=n).map(|offset| Parameter::HotId { offset }).collect();
            vec![in_list(dialect, "hot_points", "c", "id", ids)]
        }
        StatementShape::Points { on, covered } => vec![index_points(dialect, on, covered, n)],
        StatementShape::Range { on, covered } => vec![index_range(dialect, on, covered, n)],
        StatementShape::Scan => vec![scan()],
        StatementShape::ReadOnly(ranges) => read_only(dialect, ranges, n),
        StatementShape::Count => {
            let sql = "SELECT count(c) FROM sbtest{table} WHERE id BETWEEN ? AND ?";
            vec![prepared(dialect, "count_ranges", sql, rows_range(n))]
        }
        StatementShape::ReadWrite => {
            let mut operations = read_only(dialect, ALL_RANGES, n);
            operations.extend(write_only(dialect));
            operations
        }
        StatementShape::WriteOnly => write_only(dialect),
        StatementShape::UpdateIndex => vec![index_update(dialect)],
        StatementShape::UpdateNonindex | StatementShape::UpdateZipf => {
            vec![non_index_update(dialect, Parameter::Id)]
        }
        StatementShape::UpdateOne => vec![non_index_update(dialect, Parameter::FirstId)],
        StatementShape::UpdateInlist => vec![update_in_list(dialect)],
        StatementShape::Delete => vec![delete(dialect)],
        StatementShape::Insert => vec![insert_text(dialect)],
    };
    Script::of(transaction, operations, distribution)
}

fn point_select(dialect: Dialect) -> Operation {
    let sql = "SELECT c FROM sbtest{table} WHERE id=?";
    prepared(dialect, "point_selects", sql, vec![Parameter::Id])
}

fn in_list(
    dialect: Dialect,
    kind: &str,
    columns: &str,
    on: &str,
    parameters: Vec<Parameter>,
) -> Operation {
    let list = vec!["?"; parameters.len()].join(", ");
    let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE {on} IN ({list})");
    prepared(dialect, kind, &sql, parameters)
}

fn index_points(dialect: Dialect, on: SbtestIndex, covered: bool, n: u32) -> Operation {
    let (column, columns) = index_columns(on, covered);
    let value = match on {
        SbtestIndex::Primary => Parameter::Id,
        SbtestIndex::Secondary => Parameter::Key,
    };
    in_list(dialect, "points", columns, column, vec![value; n as usize])
}

fn index_range(dialect: Dialect, on: SbtestIndex, covered: bool, n: u32) -> Operation {
    let (column, columns) = index_columns(on, covered);
    let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE {column} BETWEEN ? AND ?");
    let parameters = vec![Parameter::RangeStart, Parameter::RangeEnd { span: n }];
    prepared(dialect, "ranges", &sql, parameters)
}

/// The searched column and the selected columns.
fn index_columns(on: SbtestIndex, covered: bool) -> (&'static str, &'static str) {
    match (on, covered) {
        (SbtestIndex::Primary, true) => ("id", "id"),
        (SbtestIndex::Primary, false) => ("id", "id, c"),
        (SbtestIndex::Secondary, true) => ("k", "k"),
        (SbtestIndex::Secondary, false) => ("k", "k, c"),
    }
}

fn scan() -> Operation {
    Operation {
        kind: "scan".to_string(),
        sql: "SELECT * FROM sbtest{table} WHERE LENGTH(c) < 0".to_string(),
        protocol: Protocol::Text,
        parameters: Vec::new(),
        repeat: 1,
        table: TableChoice::ByClient,
        ..Operation::PLAIN
    }
}

fn read_only(dialect: Dialect, ranges: &[Ranged], n: u32) -> Vec<Operation> {
    let mut operations = vec![Operation { repeat: POINT_SELECTS, ..point_select(dialect) }];
    for range in ranges {
        let (kind, columns, tail) = match range {
            Ranged::Simple => ("simple_ranges", "c", ""),
            Ranged::Sum => ("sum_ranges", "SUM(k)", ""),
            Ranged::Order => ("order_ranges", "c", " ORDER BY c"),
            Ranged::Distinct => ("distinct_ranges", "DISTINCT c", " ORDER BY c"),
        };
        let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE id BETWEEN ? AND ?{tail}");
        operations.push(prepared(dialect, kind, &sql, rows_range(n)));
    }
    operations
}

/// The parameters of BETWEEN a AND a + n - 1: n rows.
fn rows_range(n: u32) -> Vec<Parameter> {
    vec![Parameter::RangeStart, Parameter::RangeEnd { span: n - 1 }]
}

fn write_only(dialect: Dialect) -> Vec<Operation> {
    let sql = "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)";
    let row = vec![Parameter::SameId, Parameter::Key, COLUMN_C, COLUMN_PAD];
    let insert = prepared(dialect, "inserts", sql, row);
    vec![
        index_update(dialect),
        non_index_update(dialect, Parameter::Id),
        delete(dialect),
        Operation { table: TableChoice::SameAsPrevious, ..insert },
    ]
}

fn index_update(dialect: Dialect) -> Operation {
    let sql = "UPDATE sbtest{table} SET k=k+1 WHERE id=?";
    prepared(dialect, "index_updates", sql, vec![Parameter::Id])
}

fn non_index_update(dialect: Dialect, id: Parameter) -> Operation {
    let sql = "UPDATE sbtest{table} SET c=? WHERE id=?";
    prepared(dialect, "non_index_updates", sql, vec![COLUMN_C, id])
}

fn update_in_list(dialect: Dialect) -> Operation {
    let ids = UPDATE_INLIST_IDS as usize;
    let list = vec!["?"; ids].join(", ");
    let sql = format!("UPDATE sbtest{{table}} SET c=? WHERE id IN ({list})");
    let mut parameters = vec![COLUMN_C];
    parameters.resize(1 + ids, Parameter::Id);
    prepared(dialect, "inlist_updates", &sql, parameters)
}

fn delete(dialect: Dialect) -> Operation {
    let sql = "DELETE FROM sbtest{table} WHERE id=?";
    prepared(dialect, "deletes", sql, vec![Parameter::Id])
}

fn insert_text(dialect: Dialect) -> Operation {
    let sql = match dialect {
        Dialect::Postgres => "INSERT INTO sbtest{table} (k, c, pad) VALUES ({1}, {2}, {3})",
        Dialect::Sqlite => "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (NULL, {1}, {2}, {3})",
        Dialect::Mysql | Dialect::KeyValue | Dialect::Fake => {
            "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (0, {1}, {2}, {3})"
        }
    };
    Operation {
        kind: "inserts".to_string(),
        sql: sql.to_string(),
        protocol: Protocol::Text,
        parameters: vec![Parameter::Key, COLUMN_C, COLUMN_PAD],
        ..Operation::PLAIN
    }
}

/// A prepared statement on a table that it draws; `?` becomes the dialect's placeholder.
fn prepared(dialect: Dialect, kind: &str, sql: &str, parameters: Vec<Parameter>) -> Operation {
    Operation {
        kind: kind.to_string(),
        sql: placeholders(dialect, sql),
        protocol: Protocol::Prepared,
        parameters,
        ..Operation::PLAIN
    }
}

fn placeholders(dialect: Dialect, sql: &str) -> String {
    if dialect != Dialect::Postgres {
        return sql.to_string();
    }
    let mut numbered = String::with_capacity(sql.len() * 2);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            numbered.push_str(&format!("${index}"));
        }
        numbered.push_str(part);
    }
    numbered
}

/// The statements as text with literals, which the server parses and plans each time, like
/// `--db-ps-mode=disable` of sysbench.
fn plain(dialect: Dialect, mut script: Script) -> Script {
    for operation in script.events.iter_mut().flat_map(|event| &mut event.operations) {
        if operation.protocol == Protocol::Prepared {
            let count = operation.parameters.len();
            operation.sql = match dialect {
                // From the last number down, so that `$1` does not match the beginning of `$12`.
                Dialect::Postgres => {
                    (1..=count).rev().fold(operation.sql.clone(), |sql, number| {
                        sql.replace(&format!("${number}"), &format!("{{{number}}}"))
                    })
                }
                _ => (1..=count).fold(operation.sql.clone(), |sql, number| {
                    sql.replacen('?', &format!("{{{number}}}"), 1)
                }),
            };
            operation.protocol = Protocol::Text;
        }
    }
    script
}
