//! Workloads of the user's own: `sql`, statements in a workload file.
//!
//! A front end turns what the user wrote into scripts (`domain/script.rs`), which the driver
//! carries out as it does those of the sysbench steps.

mod check;
pub mod driver;
mod presets;
pub mod settings;
pub mod steps;
#[cfg(test)]
mod tests;

use crate::spec::{BenchmarkSpec, WorkloadFile};
use rqps_driver::part::DriverPart;

/// The row of `--bench sql:FILE`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sql",
    workload: presets::workload,
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
        has_load: check::has_load,
        loads_on_servers: check::loads_on_servers,
    }),
    driver: DriverPart { benchmark: "sql", ..DriverPart::NONE },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};
