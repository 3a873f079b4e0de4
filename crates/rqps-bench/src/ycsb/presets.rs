//! Presets of YCSB: number of records and length of steps.

use crate::spec::StepSet;
use rqps_driver::workload::preset::{ScalePreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::ycsb::{YcsbShape, YcsbWorkload};

/// Sizes are numbers of records.
const ALL: [ScalePreset; 3] = [
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

/// The workload of a preset.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let scale = named(&ALL, name)?;
    let shape = BenchmarkParameters::Ycsb(YcsbShape {
        workloads: YcsbWorkload::ALL.to_vec(),
        fields: 10,
        field_bytes: 100,
        scan_rows: 100,
        keys: None,
    });
    let workload = Workload { rows: scale.size.into(), ..scale.workload(shape) };
    Ok((workload, StepSet::default()))
}
