//! YCSB's core workloads over SQL: one table, operations on single records and scans.

mod driver;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

use crate::spec::{BenchmarkSpec, OwnWords, StepSet};
use rqps_driver::part::DriverPart;
use rqps_driver::workload::preset::{ScalePreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::ycsb::{YcsbShape, YcsbWorkload};
use rqps_report::Sections;

/// Sizes are numbers of records.
const SIZES: [ScalePreset; 3] = [
    ScalePreset { name: "quick", size: 20_000, clients: 2, seconds: 2.0, warmup_seconds: 0.5 },
    ScalePreset {
        name: "standard",
        size: 1_000_000,
        clients: 4,
        seconds: 30.0,
        warmup_seconds: 3.0,
    },
    ScalePreset {
        name: "full",
        size: 10_000_000,
        clients: 8,
        seconds: 300.0,
        warmup_seconds: 10.0,
    },
];

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "ycsb",
    workload: |name| {
        let scale = named(&SIZES, name)?;
        let shape = BenchmarkParameters::Ycsb(YcsbShape {
            workloads: YcsbWorkload::ALL.to_vec(),
            fields: 10,
            field_bytes: 100,
            scan_rows: 100,
            keys: None,
        });
        let workload = Workload { rows: scale.size.into(), ..scale.workload(shape) };
        Ok((workload, StepSet::default()))
    },
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
    sections: Sections { workload: workload_line, ..Sections::NONE },
    ..BenchmarkSpec::PLAIN
};

fn workload_line(workload: &Workload, cache: &str) -> Option<String> {
    let BenchmarkParameters::Ycsb(shape) = &workload.shape else { return None };
    let (fields, bytes) = (shape.fields, shape.field_bytes);
    let data = workload.data_text();
    let clients = workload.clients_text();
    Some(format!(
        "core workloads of YCSB, by rqps over SQL; {data} of {fields} fields of {bytes} bytes, \
         {clients}, {} s reads, {} s writes, {} s warm-up, {cache}",
        workload.read_seconds, workload.write_seconds, workload.warmup_seconds
    ))
}
