//! Measures the steps of a run: all that comparisons and charts need of its latency histograms,
//! which are the largest part of its records.

use std::sync::Arc;

use super::extension::Extension;
use super::histogram::Histogram;
use super::measurement::{LatencyQuantiles, Measurement, MetricValue, QUANTILES};
use super::{counted, metrics};
use rqps_model::run::{ReadSeconds, Run, Status, StepRecord};
use rqps_stats::stability::Stability;

/// For each step of a run, in its order, what follows from it; `None` for steps that nothing is
/// computed from: those that only warm caches or did not come to their end.
pub fn measure(run: &Run, extensions: &[&Extension]) -> Vec<Option<Measurement>> {
    let of = |step: &Arc<StepRecord>| counts(step).then(|| measure_step(step, extensions));
    run.steps.iter().map(of).collect()
}

/// The measurement of one step, whether it counts or not.
pub fn measure_step(step: &Arc<StepRecord>, extensions: &[&Extension]) -> Measurement {
    Figures::of(step, extensions).with(step)
}

/// [`measure`] with the metrics that benchmarks compute from the seconds of their steps. Removes
/// the latencies of steps from the run to save memory, because nothing else uses them; those of
/// roles stay.
pub fn digest(
    run: &mut Run,
    read: ReadSeconds,
    extensions: &[&Extension],
) -> Vec<Option<Measurement>> {
    add_from_seconds(run, read, extensions);
    let of = |step: &mut Arc<StepRecord>| {
        let figures = counts(step).then(|| Figures::of(step, extensions));
        let outcome = &mut Arc::make_mut(step).outcome;
        outcome.latency = String::new();
        outcome.service = None;
        figures.map(|figures| figures.with(step))
    };
    run.steps.iter_mut().map(of).collect()
}

fn counts(step: &StepRecord) -> bool {
    step.reported && step.status == Status::Complete
}

/// All that follows from a step, before its record lets go of its latencies.
struct Figures {
    values: Vec<MetricValue>,
    stability: Option<Stability>,
    distribution: Option<LatencyQuantiles>,
}

impl Figures {
    /// The common metrics first, then those of benchmarks, then what a driver or importer stored.
    fn of(step: &StepRecord, extensions: &[&Extension]) -> Figures {
        let latencies = Histogram::from_base64(&step.outcome.latency);
        if let Some(counted) = &step.counted {
            let values = counted::metrics(step, counted);
            return Figures { values, stability: None, distribution: None };
        }
        let mut values = metrics::common(step, &latencies);
        values.extend(extensions.iter().flat_map(|own| (own.measure)(step, &latencies)));
        let stored = step.outcome.extra.iter();
        values.extend(stored.map(|(metric, number)| (*metric, Ok(*number))));
        Figures {
            values,
            stability: Stability::of(&step.per_second),
            distribution: latencies.ok().map(|histogram| LatencyQuantiles {
                events: histogram.total(),
                latencies_ns: histogram.quantiles(QUANTILES),
            }),
        }
    }

    fn with(self, record: &Arc<StepRecord>) -> Measurement {
        let mut measurement = Measurement::of(Arc::clone(record));
        measurement.stability = self.stability;
        measurement.distribution = self.distribution;
        measurement.put(self.values);
        measurement
    }
}

/// Key of the reason in a step's `missing` for metrics from seconds.
const SECONDS: &str = "seconds";

/// Computes a benchmark's metrics from the seconds of each step of a run that rqps measured. The
/// record of a step whose seconds cannot be read gets the reason.
fn add_from_seconds(run: &mut Run, seconds: ReadSeconds, extensions: &[&Extension]) {
    let benchmark = run.record.benchmark.as_str();
    let own = extensions.iter().find(|own| own.benchmark == benchmark);
    let Some(hook) = own.and_then(|own| own.by_second) else { return };
    for place in 0..run.steps.len() {
        let step = &run.steps[place];
        if !was_measured(step) {
            continue;
        }
        let rows = seconds(run, step);
        let step = Arc::make_mut(&mut run.steps[place]);
        match rows {
            Ok(rows) => {
                let found = hook(&rows);
                step.outcome.extra.extend(found.means);
                step.outcome.series.extend(found.series);
            }
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
