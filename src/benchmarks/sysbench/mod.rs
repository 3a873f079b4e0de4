//! The sysbench microbenchmarks: 42 steps of one statement each, and the rows under them.

mod analyze;
pub mod driver;
pub mod import;
pub mod presets;
pub mod rows;
pub mod schema;
pub mod steps;
#[cfg(test)]
mod tests;

use crate::benchmarks::spec::{BenchmarkSpec, Counting, DefaultTurns};
use crate::driver::part::DriverPart;

/// As other scripts are counted, on rows that valgrind scans within seconds.
const COUNTING: Counting = Counting {
    settings: &[
        "rows=100000",
        "read_seconds=1",
        "write_seconds=1",
        "warmup_seconds=0",
        "settle_scale=0",
    ],
    ..Counting::SCRIPTS
};

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sysbench",
    workload: presets::workload,
    preset: presets::facts,
    phases: steps::phases,
    choose: steps::choose,
    turns: DefaultTurns::Within,
    placement: None,
    load: Some(driver::load),
    counting: COUNTING,
    driver: DriverPart { benchmark: "sysbench", rows: Some(driver::rows), ..DriverPart::NONE },
    table_name: "sbtest{table}",
    names_made: schema::names_made,
    extension: analyze::EXTENSION,
    imports: &[import::MYTOOLS, import::PLAIN],
    ..BenchmarkSpec::PLAIN
};
