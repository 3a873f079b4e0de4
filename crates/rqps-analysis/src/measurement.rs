//! The measurement of one step of one run: its metrics, each a number or why it is missing.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;
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
