//! YCSB's core workloads over SQL: one table, operations on single records and scans.

mod driver;
mod presets;
mod report;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

use crate::spec::{BenchmarkSpec, OwnWords};
use rqps_driver::part::DriverPart;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "ycsb",
    workload: presets::workload,
    words: Some(OwnWords { take: settings::take, visits: |_| false, writes: |_| Vec::new() }),
    set: settings::set,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    placement: None,
    load: Some(driver::load),
    driver: DriverPart {
        benchmark: "ycsb",
        part_rows: Some(driver::part_rows),
        ..DriverPart::NONE
    },
    table_name: steps::TABLE,
    names_made: |_, _| vec![steps::TABLE.to_owned()],
    size: settings::data_size,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
