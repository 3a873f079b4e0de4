//! What follows from each step of a run alone: all that comparisons and charts need of its latency
//! histogram, which is the largest part of its record.

use std::sync::Arc;

use super::histogram::Histogram;
use super::metrics::{self, Values};
use super::seconds;
use crate::domain::run::{ReadSeconds, Run, Status, StepRecord};
use crate::stats::stability::Stability;

/// Quantiles that are kept of every histogram, for charts of the distribution.
pub const QUANTILES: [f64; 12] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// What follows from one completed step of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its metrics.
    pub values: Values,
    /// How evenly its rate was delivered, and whether it was steady; `None` where the record has no
    /// intervals.
    pub course: Option<Stability>,
    /// How its latencies are distributed; `None` where the histogram cannot be read.
    pub distribution: Option<Distribution>,
}

/// Latencies of the events of one step of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Events.
    pub events: u64,
    /// Nanoseconds at each of [`QUANTILES`].
    pub latencies_ns: [u64; QUANTILES.len()],
}

/// For each step of a run, in its order, what follows from it; `None` for steps that nothing is
/// computed from: those that only warm caches or did not come to their end.
pub fn measure(run: &Run) -> Vec<Option<Measured>> {
    let counts = |step: &&Arc<StepRecord>| step.reported && step.status == Status::Complete;
    run.steps.iter().map(|step| Some(step).filter(counts).map(|step| of_step(step))).collect()
}

/// The same with what benchmarks compute from the seconds of their steps. The run is without the
/// latencies of its steps then, so that it does not take much memory: nothing is computed from them
/// any more. Those of single kinds of workers stay.
pub fn digest(run: &mut Run, seconds: ReadSeconds) -> Vec<Option<Measured>> {
    seconds::add(run, seconds);
    let measured = measure(run);
    for step in &mut run.steps {
        let outcome = &mut Arc::make_mut(step).outcome;
        outcome.latency = String::new();
        outcome.service = None;
    }
    measured
}

fn of_step(step: &StepRecord) -> Measured {
    let histogram = Histogram::from_base64(&step.outcome.latency);
    Measured {
        values: metrics::with_latencies(step, &histogram),
        course: Stability::of(&step.per_second),
        distribution: histogram.ok().map(|histogram| Distribution {
            events: histogram.total(),
            latencies_ns: histogram.quantiles(QUANTILES),
        }),
    }
}
