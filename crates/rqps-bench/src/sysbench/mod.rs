//! The sysbench microbenchmarks: 42 steps of one statement each, and their tables.

pub mod driver;
pub mod presets;
pub mod rows;
pub mod steps;
#[cfg(test)]
mod tests;

use crate::spec::BenchmarkSpec;
use rqps_analysis::Extension;
use rqps_driver::part::DriverPart;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sysbench",
    workload: presets::workload,
    preset: presets::facts,
    phases: steps::phases,
    choose: steps::choose,
    placement: None,
    load: Some(driver::load),
    counting: steps::COUNTING,
    driver: DriverPart { benchmark: "sysbench", rows: Some(driver::rows), ..DriverPart::NONE },
    table_name: "sbtest{table}",
    names_made: rows::names_made,
    extension: Extension::none("sysbench"),
    ..BenchmarkSpec::PLAIN
};
