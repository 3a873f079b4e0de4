//! Named lengths of the steps of scripts.

use rqps_bench::spec::StepSet;
use rqps_driver::workload::preset::{ScalePreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};

const ALL: [ScalePreset; 3] = [
    ScalePreset::lasting("quick", 3.0, 1.0),
    ScalePreset::lasting("standard", 30.0, 5.0),
    ScalePreset::lasting("full", 300.0, 30.0),
];

/// The workload of a preset, without scripts.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let shape = BenchmarkParameters::Lua(Box::default());
    Ok((named(&ALL, name)?.workload(shape), StepSet::default()))
}
