//! Unmodified sysbench scripts: `--bench lua:oltp_read_write.lua -- --tables=4`.
//!
//! rqps does not use sysbench: LuaJIT runs the scripts in the driver process, and the functions
//! that they call are written from the documented behaviour. rqps ships none of sysbench's scripts.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod driver;
pub mod settings;

use rqps_analysis::Extension;
use rqps_bench::spec::{BenchmarkSpec, OwnWords, WorkloadFile, scaled};
use rqps_driver::part::DriverPart;
use rqps_driver::workload::ScalePreset;
use rqps_model::benchmark::BenchmarkParameters;

const LENGTHS: [ScalePreset; 3] = [
    ScalePreset::lasting("quick", 3.0, 1.0),
    ScalePreset::lasting("standard", 30.0, 5.0),
    ScalePreset::lasting("full", 300.0, 30.0),
];

/// The row of `--bench lua:SCRIPT,...`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "lua",
    workload: |name| scaled(&LENGTHS, name, |_| BenchmarkParameters::Lua(Box::default())),
    set: |workload, said| settings::SETTINGS.set(workload, said),
    check: settings::check,
    phases: |_, _, workload| settings::phases(workload),
    one_client_host: settings::one_client_host,
    placement: None,
    load: Some(driver::request),
    file: Some(WorkloadFile {
        read: settings::no_file,
        files: settings::files,
        pin: settings::pin,
        folder: |_| None,
        writes: settings::writes,
        has_load: |_| true,
        loads_on_servers: |_| false,
    }),
    words: Some(OwnWords {
        take: settings::take,
        visits: |_| true,
        brings: |_| true,
        writes: settings::writes,
    }),
    counting: settings::COUNTING,
    driver: DriverPart {
        benchmark: "lua",
        step_loop: Some(driver::step_loop),
        answers: true,
        own_load: Some(driver::own_load),
        script: Some(driver::script),
        ..DriverPart::NONE
    },
    extension: Extension { groups_by_facts: true, ..Extension::none("lua") },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};
