//! An order mix: wholesalers with warehouses, derived from TPC-C; its results are not comparable
//! with published TPC-C results.

mod check;
mod driver;
mod presets;
mod report;
mod schema;
mod settings;
mod steps;

use crate::spec::BenchmarkSpec;
use rqps_driver::part::DriverPart;

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
        answers: true,
        part_rows: Some(driver::part_rows),
        ..DriverPart::NONE
    },
    names_made: |dialect, workload| {
        let shape = steps::shape(workload);
        let (partitions, procedures) =
            shape.map_or((0, false), |shape| (shape.partitions, shape.procedures));
        schema::names_made(dialect, partitions, procedures)
    },
    size: settings::data_size,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
