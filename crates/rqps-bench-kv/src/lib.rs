//! The RocksDB sequence as data: presets, settings and steps. docs/kv.md explains it.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analyze;
pub(crate) mod driver;
pub(crate) mod report;
mod steps;

use rqps_bench::spec::{BenchmarkSpec, Interface, PresetFacts};
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::Placement;
pub use steps::{BLOCK_BYTES, set, workload};

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "kv",
    workload: steps::workload,
    preset: |name| PresetFacts { config: None, is_published: steps::is_published(name) },
    set: steps::set,
    speaks: Interface::KeyValue,
    phases: |_, _, workload| steps::phases(workload),
    // Clients are threads of the library's process, so nothing is placed.
    placement: Some(|_| Placement::Os),
    choose: steps::choose,
    size: steps::size,
    counting: steps::COUNTING,
    driver: DriverPart { benchmark: "kv", step_loop: Some(driver::step_loop), ..DriverPart::NONE },
    extension: analyze::EXTENSION,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};
