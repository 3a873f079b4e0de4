//! The RocksDB sequence as data: presets, settings and steps. docs/kv.md explains it.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analyze;
pub(crate) mod driver;
pub(crate) mod report;
pub mod rows;
mod settings;
mod steps;

pub use settings::set;
pub use settings::workload;
pub use steps::BLOCK_BYTES;

use rqps_bench::spec::{BenchmarkSpec, Interface, PresetFacts};
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::Placement;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "kv",
    workload: settings::workload,
    preset: |name| PresetFacts { config: None, is_published: settings::is_published(name) },
    set: settings::set,
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
