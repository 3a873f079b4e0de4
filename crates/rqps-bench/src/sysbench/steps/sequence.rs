//! The two published orders of steps, and the steps of a workload in these orders.

use super::microbenchmarks::{Lasts, MICROBENCHMARKS, Microbenchmark, StatementShape, detail};
use super::statements::script;
use crate::spec::{Counting, StepSet};
use rqps_driver::workload::select::{Companions, SelectError, select};
use rqps_model::benchmark::{Group, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::step_parameters::{StepParameters, StepPurpose};

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

use Entry::{Pre, Run, Settle, Warm, WarmPre};

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
