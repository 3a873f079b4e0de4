//! Metrics and rules of the Insert Benchmark.

mod caveats;
pub mod columns;
pub mod metrics;
pub mod rules;
pub mod stalls;
mod write_rate;

use rqps_analysis::Extension;
use rqps_analysis::measurement::SecondFigures;
use rqps_model::benchmark::{BenchmarkParameters, Workload};

/// The hooks.
pub(crate) const EXTENSION: Extension = Extension {
    in_sequence: true,
    by_second: Some(|rows| SecondFigures {
        series: stalls::host_series(rows),
        ..Default::default()
    }),
    measure: |step, _| metrics::own_metrics(step),
    missed_rate: write_rate::missed,
    comparable,
    caveats: caveats::find,
    ..Extension::none("insert")
};

/// Removes the step limit: it changes no step below it, and a step that reaches it says so.
fn comparable(workload: &mut Workload) {
    if let BenchmarkParameters::Insert(shape) = &mut workload.shape {
        shape.step_limit = None;
    }
}
