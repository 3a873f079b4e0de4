//! Describes a YCSB workload in reports.

use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_report::Sections;

/// The hooks.
pub(super) const SECTIONS: Sections = Sections { workload: line, ..Sections::NONE };

fn line(workload: &Workload, cache: &str) -> Option<String> {
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
