//! What benchmarks compute from the seconds of their steps. It is put beside what the driver
//! counted: in the place of what a folder of an older rqps stored, and for the same readers.

use std::sync::Arc;

use crate::benchmarks::insert::analyze::stalls::host_series;
use crate::benchmarks::kv::analyze::averages;
use crate::domain::benchmark::BenchmarkParameters;
use crate::domain::metric::Metric;
use crate::domain::run::{Outcome, ReadSeconds, Run, Second, StepRecord};

/// Why figures by the second are missing, in a step's `missing`.
const SECONDS: &str = "seconds";

/// Computes it for each step of a run that rqps measured. A step whose seconds cannot be read keeps
/// what is stored, or says why there is nothing.
pub(super) fn add(run: &mut Run, seconds: ReadSeconds) {
    let compute = match run.record.workload.shape {
        BenchmarkParameters::Kv(_) => kv_means,
        BenchmarkParameters::Insert(_) => insert_series,
        _ => return,
    };
    for place in 0..run.steps.len() {
        let step = &run.steps[place];
        if !was_measured(step) {
            continue;
        }
        let rows = seconds(run, step);
        let step = Arc::make_mut(&mut run.steps[place]);
        match rows {
            Ok(rows) => compute(&mut step.outcome, &rows),
            Err(_) if is_stored(&step.outcome) => {}
            Err(why) => {
                step.usage.missing.insert(SECONDS.to_owned(), why);
            }
        }
    }
}

/// Published means stay as they were published.
fn was_measured(step: &StepRecord) -> bool {
    step.imported.is_none() && step.outcome.seconds > 0.0
}

fn kv_means(outcome: &mut Outcome, rows: &[Second]) {
    outcome.extra.extend(averages(rows));
}

fn insert_series(outcome: &mut Outcome, rows: &[Second]) {
    outcome.series.extend(host_series(rows));
}

/// True for a record of an rqps that stored what is computed here.
fn is_stored(outcome: &Outcome) -> bool {
    outcome.extra.contains_key(&Metric::CpuIdle) || outcome.series.contains_key("host_iowait")
}
