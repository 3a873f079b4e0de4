//! Vector search: steps as data. They load a table, build indexes on it one after another, and
//! query each with all widths; then they filter, write and restart.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(test)]
use rqps_driver::workload;

pub mod analyze;
pub mod data;
pub mod driver;
pub(crate) mod report;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use self::settings::set;
pub use settings::{check_target, workload};

use rqps_bench::spec::{BenchmarkSpec, StepSet};
use rqps_driver::part::DriverPart;
use rqps_model::dialect::Dialect;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "vector",
    workload: |preset| Ok((settings::workload(preset)?, StepSet::default())),
    set: settings::set,
    check: settings::check,
    check_target: settings::check_target,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    for_target: steps::for_target,
    choose: steps::choose,
    single_count: Some("list the client counts of its searches with --set ramp=1,4,16"),
    shared_clients: Some(steps::shared_clients),
    table_name: "items",
    names_made: |dialect, _| match dialect {
        Dialect::Mysql => vec!["items".to_owned()],
        _ => vec!["items".to_owned(), "items_v".to_owned()],
    },
    counting: steps::COUNTING,
    own_data: settings::own_data,
    driver: DriverPart {
        benchmark: "vector",
        step_loop: Some(driver::step_loop),
        ..DriverPart::NONE
    },
    extension: analyze::EXTENSION,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
