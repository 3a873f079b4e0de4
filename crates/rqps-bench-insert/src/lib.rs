//! The Insert Benchmark as data: the steps of its published versions, with all statements.
//!
//! Rows enter at one end in primary-key order; three secondary indexes receive them at random
//! places. In newer versions, as many rows leave at the other end, so that the table is a queue of
//! constant length. Query steps query as fast as possible while writers keep a rate.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analyze;
pub(crate) mod driver;
pub(crate) mod report;
pub mod rows;
mod schema;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use settings::{PRESETS, check, workload};
pub use settings::{finish, set, shape};
pub use steps::{choose, phases};

use rqps_bench::spec::{BenchmarkSpec, DefaultTurns, StepSet};
use rqps_driver::part::DriverPart;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "insert",
    workload: |preset| Ok((settings::workload(preset)?, StepSet::default())),
    set: settings::set,
    finish: settings::finish,
    check,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    choose: steps::choose,
    single_count: Some(
        "its steps build on each other, so it takes one client count; run it once per count",
    ),
    turns: DefaultTurns::Run,
    table_name: schema::TABLE,
    names_made: schema::names_made,
    size: schema::data_size,
    counting: steps::COUNTING,
    memory_limit: |workload| shape(workload)?.memory_limit,
    driver: DriverPart {
        benchmark: "insert",
        step_loop: Some(driver::step_loop),
        ..DriverPart::NONE
    },
    extension: analyze::EXTENSION,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
