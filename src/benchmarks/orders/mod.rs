//! An order mix: wholesalers with warehouses, derived from TPC-C; its results are not comparable
//! with published TPC-C results.

mod check;
mod driver;
mod presets;
mod report;
mod schema;
mod settings;
mod steps;

use crate::benchmarks::spec::BenchmarkSpec;
use crate::driver::part::DriverPart;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "orders",
    workload: presets::workload,
    set: settings::set,
    finish: settings::finish,
    check: check::check,
    phases: |_, _, workload| steps::phases(workload),
    placement: None,
    load: Some(driver::load),
    driver: DriverPart {
        benchmark: "orders",
        step_loop: Some(driver::step_loop),
        part_rows: Some(driver::part_rows),
        ..DriverPart::NONE
    },
    names_made: |dialect, workload| {
        let partitions = steps::shape(workload).map_or(0, |shape| shape.partitions);
        schema::names_made(dialect, partitions)
    },
    size: settings::data_size,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
