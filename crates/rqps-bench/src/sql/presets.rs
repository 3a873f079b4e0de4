//! Named lengths of the steps of a workload file.

use crate::spec::StepSet;
use rqps_driver::workload::preset::{ScalePreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};

const ALL: [ScalePreset; 3] = [
    ScalePreset::lasting("quick", 2.0, 0.5),
    ScalePreset::lasting("standard", 30.0, 3.0),
    ScalePreset::lasting("full", 300.0, 10.0),
];

/// The workload of a preset, without statements.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let shape = BenchmarkParameters::Sql(Box::default());
    Ok((named(&ALL, name)?.workload(shape), StepSet::default()))
}
