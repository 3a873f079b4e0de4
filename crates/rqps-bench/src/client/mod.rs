//! A program of the user's in any language: `--bench client:redis_client.py`. It talks to whatever
//! it has a library for, and to rqps in lines of JSON (docs/clients.md).

pub mod driver;
mod settings;
mod steps;

use crate::spec::{BenchmarkSpec, Interface, LENGTHS, OwnWords, WorkloadFile, scaled};
use rqps_analysis::Extension;
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::{BenchmarkParameters, Placement, Workload};

/// The row of `--bench client:PROGRAM`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "client",
    workload: |name| {
        let (workload, set) =
            scaled(&LENGTHS, name, |_| BenchmarkParameters::Client(Box::default()))?;
        let rows = if name == "quick" { 10_000 } else { 1_000_000 };
        Ok((Workload { rows, ..workload }, set))
    },
    set: settings::set,
    speaks: Interface::Client,
    check: |workload, _| steps::check(workload),
    phases: |_, _, workload| steps::phases(workload),
    one_client_host: |_| Some("rqps starts the program here only"),
    // rqps cannot place what serves it.
    placement: Some(|_| Placement::Os),
    load: Some(driver::request),
    file: Some(WorkloadFile {
        read: |_, _| Err("a program is named after `client:`".to_owned()),
        files: settings::files,
        pin: settings::pin,
        folder: |_| None,
        writes: steps::writes,
        has_load: |_| true,
        loads_on_servers: steps::loads,
    }),
    words: Some(OwnWords { take: settings::take, visits: |_| true, writes: steps::writes }),
    counting: steps::COUNTING,
    driver: DriverPart {
        benchmark: "client",
        step_loop: Some(driver::step_loop),
        own_load: Some(driver::own_load),
        script: Some(driver::script),
        ..DriverPart::NONE
    },
    extension: Extension { groups_by_facts: true, ..Extension::none("client") },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};
