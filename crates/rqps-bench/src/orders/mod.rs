//! An order mix: wholesalers with warehouses, derived from TPC-C; its results are not comparable
//! with published TPC-C results.

mod driver;
mod report;
mod schema;
mod settings;
mod steps;

use crate::spec::{BenchmarkSpec, scaled};
use rqps_driver::part::DriverPart;
use rqps_driver::workload::preset::ScalePreset;
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::orders::{OrdersShape, WarehouseSpread};

/// Sizes are numbers of warehouses. `standard` has the usual five, for two minutes.
const SIZES: [ScalePreset; 3] = [
    ScalePreset { name: "quick", size: 1, clients: 2, seconds: 5.0, warmup_seconds: 1.0 },
    ScalePreset { name: "standard", size: 10, clients: 4, seconds: 300.0, warmup_seconds: 120.0 },
    ScalePreset { name: "full", size: 100, clients: 8, seconds: 300.0, warmup_seconds: 120.0 },
];

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "orders",
    workload: |name| {
        scaled(&SIZES, name, |warehouses| {
            BenchmarkParameters::Orders(OrdersShape {
                warehouses,
                spread: WarehouseSpread::Home,
                keying: false,
                partitions: 0,
                nurand: false,
                procedures: false,
            })
        })
    },
    set: settings::set,
    finish: settings::finish,
    check: steps::check,
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
