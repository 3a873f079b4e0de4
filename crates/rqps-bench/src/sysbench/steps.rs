//! The steps of the sysbench microbenchmarks as data: a table of test types, two orders of steps,
//! and their SQL by dialect.
//!
//! The test types of published work on relative QPS: a row per microbenchmark. docs/sysbench.md is
//! generated from this file.

use Entry::{Pre, Run, Settle, Warm, WarmPre};
use Lasts::{Read, Write};
use SbtestIndex::{Primary, Secondary};

use super::statements::script;
use crate::spec::{Counting, StepSet};
use rqps_driver::workload::{Companions, SelectError, select};
use rqps_model::benchmark::{Group, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::script::{StepParameters, StepPurpose};

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

/// An entry of an order; a test type stands for all its ranges.
enum Entry {
    Settle,
    /// Fills caches after the load or before the step of the same test; not reported.
    Warm(&'static str),
    /// Like `Warm`, before the reads that precede the writes.
    WarmPre(&'static str),
    /// Measured before the writes.
    Pre(&'static str),
    Run(&'static str),
}

/// From December 2020 to 2024, with the scan of January 2021. The original ran update-nonindex
/// twice in a row by mistake and kept the second result; here it runs once.
const FULL: &[Entry] = &[
    Warm("point-query"),
    Pre("point-query"),
    Pre("random-points"),
    Pre("read-only"),
    Pre("points-covered-pk"),
    Pre("points-notcovered-pk"),
    Pre("points-covered-si"),
    Pre("points-notcovered-si"),
    Pre("range-covered-pk"),
    Pre("range-notcovered-pk"),
    Pre("range-covered-si"),
    Pre("range-notcovered-si"),
    Run("update-inlist"),
    Run("update-index"),
    Run("update-nonindex"),
    Run("update-one"),
    Run("update-zipf"),
    Run("write-only"),
    Run("read-write"),
    Settle,
    Run("read-only"),
    Run("point-query"),
    Run("random-points"),
    Run("hot-points"),
    Run("points-covered-pk"),
    Run("points-notcovered-pk"),
    Run("points-covered-si"),
    Run("points-notcovered-si"),
    Run("range-covered-pk"),
    Run("range-notcovered-pk"),
    Run("range-covered-si"),
    Run("range-notcovered-si"),
    Run("scan"),
    Run("delete"),
    Run("insert"),
];

/// Since April 2025.
const ABBREVIATED: &[Entry] = &[
    Warm("point-query"),
    WarmPre("scan"),
    Pre("point-query"),
    Pre("range-notcovered-si"),
    Run("update-inlist"),
    Run("update-index"),
    Run("update-nonindex"),
    Run("update-one"),
    Run("update-zipf"),
    Run("write-only"),
    Run("read-write"),
    Settle,
    Warm("scan"),
    Run("scan"),
    Run("read-only"),
    Run("read-only-simple"),
    Run("read-only-sum"),
    Run("read-only-order"),
    Run("read-only-distinct"),
    Run("read-only-count"),
    Run("point-query"),
    Run("random-points"),
    Run("hot-points"),
    Run("points-covered-pk"),
    Run("points-notcovered-pk"),
    Run("range-covered-pk"),
    Run("range-notcovered-pk"),
    // MyRocks has evicted the secondary index by now.
    Warm("points-covered-si"),
    Run("points-covered-si"),
    Run("points-notcovered-si"),
    Run("range-covered-si"),
    Run("range-notcovered-si"),
    Run("delete"),
    Run("insert"),
];

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
    let entries = match order {
        StepSet::Full => FULL,
        StepSet::January2025 | StepSet::Abbreviated => ABBREVIATED,
    };
    let mut phases = Vec::new();
    for entry in entries {
        if let (StepSet::January2025, Run(test)) = (order, entry)
            && SINCE_MARCH_2025.contains(test)
        {
            continue;
        }
        let (test, suffix, purpose) = match entry {
            Settle => {
                phases.push(Phase::Settle);
                continue;
            }
            Warm(test) => (test, WARM, StepPurpose::Warming),
            WarmPre(test) => (test, WARM_PRE, StepPurpose::Warming),
            Pre(test) => (test, PRE, StepPurpose::BeforeWrites),
            Run(test) => (test, "", StepPurpose::Result),
        };
        let reported = match purpose {
            StepPurpose::Warming => false,
            // The published summaries of the abbreviated order leave these out.
            StepPurpose::BeforeWrites => order == StepSet::Full,
            _ => true,
        };
        for benchmark in MICROBENCHMARKS.iter().filter(|benchmark| benchmark.test == *test) {
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
