//! The measurement of one step of one run: its metrics, each a number or why it is missing, and the
//! hooks by which benchmarks add to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::caveat::{Caveat, Evidence};
use super::comparison::{Comparison, MissedRate, StepComparison, TargetResult};
use super::counted;
use super::metrics::{self, Histogram, Latencies};
use rqps_model::benchmark::Workload;
use rqps_model::metric::Metric;
use rqps_model::run::{ReadSeconds, Run, Second, Status, StepRecord};
use rqps_stats::stability::Stability;

/// Quantiles that are kept of every histogram, for charts of the distribution.
pub const QUANTILES: [f64; 12] =
    [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];

/// A metric with its number, or with why it has none.
pub type MetricValue = (Metric, Result<f64, String>);

/// One completed step of one run: the facts of its record, and the metrics that follow from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Place of the run in the comparison's list; 0 until it is compared.
    pub run: usize,
    /// Events in the window.
    pub events: u64,
    /// Statements in the window.
    pub statements: u64,
    /// Errors of all codes.
    pub errors: u64,
    /// Writes that met no row.
    pub no_ops: u64,
    /// In the order of [`Metric`]; most steps have a dozen of them.
    #[serde(rename = "values", serialize_with = "as_map")]
    numbers: Vec<(Metric, f64)>,
    /// Why others have no number, in the same order. Few, and kept for each step of each run.
    #[serde(skip)]
    missing: Vec<(Metric, String)>,
    /// Evenness of the rate, and whether it was steady; `None` without intervals.
    #[serde(rename = "course", skip_serializing_if = "Option::is_none")]
    pub stability: Option<Stability>,
    /// Distribution of the latencies; `None` if the histogram cannot be read.
    #[serde(skip)]
    pub distribution: Option<LatencyQuantiles>,
    /// The record; its latencies may have been removed ([`crate::digest`]).
    #[serde(skip)]
    pub record: Arc<StepRecord>,
}

/// Latencies of the events of one step of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyQuantiles {
    /// Events.
    pub events: u64,
    /// Nanoseconds at each of [`QUANTILES`].
    pub latencies_ns: [u64; QUANTILES.len()],
}

impl Measurement {
    /// The counts of a record, with no metric yet.
    pub fn of(record: Arc<StepRecord>) -> Measurement {
        let outcome = &record.outcome;
        Measurement {
            run: 0,
            events: outcome.events,
            statements: outcome.statements,
            errors: outcome.errors.values().sum(),
            no_ops: outcome.no_ops,
            numbers: Vec::new(),
            missing: Vec::new(),
            stability: None,
            distribution: None,
            record,
        }
    }

    /// The metric in its unit, `None` if it could not be computed.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        place_of(&self.numbers, metric).ok().map(|place| self.numbers[place].1)
    }

    /// The reason for which a metric has no value; `None` if it has one, or is not known.
    pub fn why_missing(&self, metric: Metric) -> Option<&str> {
        place_of(&self.missing, metric).ok().map(|place| self.missing[place].1.as_str())
    }

    /// The metrics with values, in the order of reports.
    pub fn numbers(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        self.numbers.iter().copied()
    }

    /// The metrics with values, then those with a reason for having none.
    pub(super) fn metrics(&self) -> impl Iterator<Item = Metric> {
        let there = self.numbers.iter().map(|(metric, _)| *metric);
        there.chain(self.missing.iter().map(|(metric, _)| *metric))
    }

    /// Adds metrics, each in place of an earlier value. A reason does not replace a number.
    pub(super) fn put(&mut self, values: impl IntoIterator<Item = MetricValue>) {
        let values = values.into_iter();
        self.numbers.reserve(values.size_hint().0);
        for (metric, value) in values {
            match value {
                Ok(number) if number.is_finite() => {
                    set(&mut self.numbers, metric, number);
                    if let Ok(place) = place_of(&self.missing, metric) {
                        self.missing.remove(place);
                    }
                }
                Ok(_) => set(&mut self.missing, metric, "division by zero".to_owned()),
                Err(why) => set(&mut self.missing, metric, why),
            }
        }
    }
}

/// The place of a metric in a list in the order of metrics, or else where it belongs.
fn place_of<T>(list: &[(Metric, T)], metric: Metric) -> Result<usize, usize> {
    list.binary_search_by_key(&metric, |(metric, _)| *metric)
}

fn set<T>(list: &mut Vec<(Metric, T)>, metric: Metric, value: T) {
    match place_of(list, metric) {
        Ok(place) => list[place].1 = value,
        Err(place) => list.insert(place, (metric, value)),
    }
}

fn as_map<S: Serializer>(numbers: &[(Metric, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(numbers.len()))?;
    for (metric, number) in numbers {
        map.serialize_entry(metric, number)?;
    }
    map.end()
}

// Measures the steps of a run: all that comparisons and charts need of its latency histograms,
// which are the largest part of its records.

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

// Hooks of a benchmark in the analysis. Each hook is asked about every step, run or comparison,
// and answers by the facts in it; hooks return what they find and change nothing.

/// Figures that follow from the seconds of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecondFigures {
    /// Means over the seconds.
    pub means: BTreeMap<Metric, f64>,
    /// Column → a number for each second.
    pub series: BTreeMap<String, Vec<f64>>,
}

/// The hooks of one benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// The benchmark, as run records name it.
    pub benchmark: &'static str,
    /// True if steps build on each other: reports keep their sequence.
    pub in_sequence: bool,
    /// True if a plan cannot know whether a step writes: its group is then that of what it did.
    pub groups_by_facts: bool,
    /// Metrics from the seconds of its own steps; `None` if their files need not be read.
    pub by_second: Option<fn(&[Second]) -> SecondFigures>,
    /// Returns the metrics of a step beside the common ones.
    pub measure: fn(&StepRecord, &Latencies) -> Vec<MetricValue>,
    /// Returns the write rate that a target of so many clients did not keep beside its queries.
    pub missed_rate: fn(&TargetResult, u32) -> Option<MissedRate>,
    /// Removes from a workload what makes no difference to its results.
    pub comparable: fn(&mut Workload),
    /// Returns steps that follow from the measured ones, without ratios.
    pub derive: fn(&Comparison) -> Vec<StepComparison>,
    /// Returns reasons for doubt.
    pub caveats: fn(&Evidence<'_>) -> Vec<Caveat>,
}

impl Extension {
    /// A benchmark that adds nothing.
    pub const fn none(benchmark: &'static str) -> Extension {
        Extension {
            benchmark,
            in_sequence: false,
            groups_by_facts: false,
            by_second: None,
            measure: |_, _| Vec::new(),
            missed_rate: |_, _| None,
            comparable: |_| {},
            derive: |_| Vec::new(),
            caveats: |_| Vec::new(),
        }
    }
}
