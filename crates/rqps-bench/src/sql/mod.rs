//! Workloads of the user's own: `sql`, statements in a workload file.
//!
//! A front end turns what the user wrote into scripts (`domain/script.rs`), which the driver
//! carries out as it does those of the sysbench steps.

pub mod driver;
pub mod settings;
pub mod steps;
#[cfg(test)]
mod tests;

use crate::spec::{BenchmarkSpec, LENGTHS, WorkloadFile, scaled};
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::BenchmarkParameters;

/// The row of `--bench sql:FILE`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sql",
    workload: |name| scaled(&LENGTHS, name, |_| BenchmarkParameters::Sql(Box::default())),
    set: settings::set,
    finish: settings::finish,
    of_dbms: steps::of_dbms,
    check: steps::check,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    placement: None,
    load: Some(driver::load),
    file: Some(WorkloadFile {
        read: settings::read,
        files: settings::files,
        pin: settings::pin,
        folder: settings::folder,
        writes: steps::writes,
        has_load: steps::has_load,
        loads_on_servers: steps::loads_on_servers,
    }),
    driver: DriverPart { benchmark: "sql", ..DriverPart::NONE },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};
