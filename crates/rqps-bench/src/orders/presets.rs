//! Presets: number of warehouses and length of the step.

use crate::spec::StepSet;
use rqps_driver::workload::preset::{ScalePreset, named};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::orders::{OrdersShape, WarehouseSpread};

/// Sizes are numbers of warehouses. `standard` has the usual five, for two minutes.
const ALL: [ScalePreset; 3] = [
    ScalePreset { name: "quick", size: 1, clients: 2, seconds: 5.0, warmup_seconds: 1.0 },
    ScalePreset { name: "standard", size: 10, clients: 4, seconds: 300.0, warmup_seconds: 120.0 },
    ScalePreset { name: "full", size: 100, clients: 8, seconds: 300.0, warmup_seconds: 120.0 },
];

/// The workload of a preset.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let scale = named(&ALL, name)?;
    let shape = BenchmarkParameters::Orders(OrdersShape {
        warehouses: scale.size,
        spread: WarehouseSpread::Home,
        keying: false,
        partitions: 0,
        nurand: false,
        procedures: false,
    });
    Ok((scale.workload(shape), StepSet::default()))
}
