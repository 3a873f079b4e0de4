//! Metrics of one step of one run, from the facts of its record.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::histogram::Histogram;
use crate::domain::benchmark::RateUnit;
use crate::domain::metric::Metric;
use crate::domain::run::StepRecord;

/// Below this many events a 99.9th percentile rests on fewer than ten of them and is withheld.
pub const P999_EVENTS_MIN: u64 = 10_000;

const MIB: f64 = (1 << 20) as f64;

/// What every step that rqps measured has, or has a reason to lack.
const COMMON: [Metric; 15] = [
    Metric::Rate,
    Metric::CpuPerOp,
    Metric::ServerCpuPerOp,
    Metric::ClientCpuPerOp,
    Metric::ContextSwitchesPerOp,
    Metric::ReadsPerOp,
    Metric::ReadKbPerOp,
    Metric::WriteKbPerOp,
    Metric::P50,
    Metric::P95,
    Metric::P99,
    Metric::P999,
    Metric::Max,
    Metric::ServerRss,
    Metric::DataSize,
];

/// The latency histogram of a step, or why it cannot be read.
pub(crate) type Latencies = Result<Histogram, String>;

/// The metrics of one step of one run, and why some are missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// In the order of [`Metric`]; most steps have a dozen of them.
    numbers: Vec<(Metric, f64)>,
    missing: BTreeMap<Metric, String>,
}

impl Values {
    /// The metric in its unit, `None` if it could not be computed.
    pub fn get(&self, metric: Metric) -> Option<f64> {
        let place = self.numbers.binary_search_by_key(&metric, |(metric, _)| *metric);
        place.ok().map(|place| self.numbers[place].1)
    }

    /// Why a metric is missing.
    pub fn why_missing(&self, metric: Metric) -> Option<&str> {
        self.missing.get(&metric).map(String::as_str)
    }

    /// Those that it has, in the order of reports, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> + '_ {
        self.numbers.iter().copied()
    }

    /// Those that it has, and those that are missing for a reason.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> {
        let there = self.numbers.iter().map(|(metric, _)| *metric);
        there.chain(self.missing.keys().copied())
    }

    pub(crate) fn put(&mut self, metric: Metric, value: Result<f64, String>) {
        match value {
            Ok(number) if number.is_finite() => {
                match self.numbers.binary_search_by_key(&metric, |(metric, _)| *metric) {
                    Ok(place) => self.numbers[place].1 = number,
                    Err(place) => self.numbers.insert(place, (metric, number)),
                }
                self.missing.remove(&metric);
            }
            Ok(_) => {
                self.missing.insert(metric, "it would be a division by zero".to_owned());
            }
            Err(why) => {
                self.missing.insert(metric, why);
            }
        }
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (metric, number) in &self.numbers {
            map.serialize_entry(metric, number)?;
        }
        map.end()
    }
}

/// What the rate counts, as a unit of reports.
pub fn rate_unit(rate: RateUnit) -> &'static str {
    match rate {
        RateUnit::Queries => "qps",
        RateUnit::RowsScanned => "Krows/s",
        RateUnit::RowsInserted => "ips",
        RateUnit::Operations => "ops/s",
        RateUnit::Relative => "of the base",
        RateUnit::Unknown(word) => word.text(),
    }
}

/// Operations per second of a step in [`rate_unit`]: statements / s; rows scanned / s / 1000.
/// Seconds are those of the driver's window.
pub fn rate(step: &StepRecord) -> Result<f64, String> {
    let outcome = &step.outcome;
    match step.rate {
        _ if outcome.seconds.is_nan() || outcome.seconds <= 0.0 => {
            Err("the measured window has no length".to_owned())
        }
        RateUnit::Queries | RateUnit::RowsInserted | RateUnit::Operations => {
            Ok(outcome.statements as f64 / outcome.seconds)
        }
        RateUnit::RowsScanned => Ok(outcome.rows_scanned as f64 / outcome.seconds / 1000.0),
        RateUnit::Relative => Err("only ratios were published".to_owned()),
        RateUnit::Unknown(word) => Err(format!(
            "this rqps does not know what the rate counts: {}; take the rqps that measured",
            word.text()
        )),
    }
}

/// Operations of a step as its rate counts them: statements, or thousands of rows scanned.
pub(crate) fn operations(step: &StepRecord) -> Option<f64> {
    rate(step).ok().map(|rate| rate * step.outcome.seconds)
}

/// All metrics of a step. "Per operation" divides a rate per second by the step's own rate, so
/// windows of slightly different length do not matter, and an operation of `scan` is 1000 rows.
///
/// - `o/s`: [`rate`].
/// - `cpu/o`: busy / rate, where busy is per cent of the whole host, 100 × (user + system −
///   spinners) / (CPUs × s). User includes nice, as vmstat's `us`; system includes irq and softirq
///   as its `sy`. Waiting and stolen time are not busy.
/// - `server_cpu_us/o`, `client_cpu_us/o`: CPU µs / s / rate. The server's by its process tree,
///   the client's by the driver process. Where targets took turns: all CPU in the window of all
///   targets / own operations.
/// - `cs/o`, `r/o`, `rKB/o`, `wKB/o`: context switches of the host, reads, KiB read and KiB
///   written of the disk under the data, each / s / rate.
/// - `effective_o/s`: statements that changed a row / s, where some met no row.
/// - latencies in ms, from the histogram of events (response time under an open pace).
/// - `rss_MB`, `data_MB`: bytes / 2^20.
///
/// What the benchmark measured itself or an importer took over ([`Outcome::extra`]) stands above
/// what would be computed here.
///
/// [`Outcome::extra`]: crate::domain::run::Outcome::extra
pub fn values(step: &StepRecord) -> Values {
    with_latencies(step, &Histogram::from_base64(&step.outcome.latency))
}

/// The same, from the step's histogram or why it cannot be read.
pub(crate) fn with_latencies(step: &StepRecord, latencies: &Latencies) -> Values {
    let mut values = Values::default();
    if step.imported.is_some() {
        put_imported(&mut values, step, latencies);
    } else {
        put_measured(&mut values, step, latencies);
    }
    for (metric, value) in crate::benchmarks::insert::analyze::metrics::own_metrics(step) {
        values.put(metric, value);
    }
    for (metric, number) in &step.outcome.extra {
        values.put(*metric, Ok(*number));
    }
    values
}

/// What may be computed from somebody else's counts: a rate and latencies, if they have those.
/// Nothing else was counted, and zeros stand for nothing.
fn put_imported(values: &mut Values, step: &StepRecord, latencies: &Latencies) {
    for metric in COMMON {
        values.put(metric, Err("not in the imported files".to_owned()));
    }
    if step.outcome.statements > 0 && step.rate == RateUnit::Queries {
        values.put(Metric::Rate, rate(step));
    }
    if !step.outcome.latency.is_empty() {
        put_latencies(values, latencies);
    }
}

fn put_measured(values: &mut Values, step: &StepRecord, latencies: &Latencies) {
    let rate = rate(step);
    values.put(Metric::Rate, rate.clone());
    let per_op = |per_second: Result<f64, String>| match (&rate, &per_second) {
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        (Ok(rate), _) if *rate <= 0.0 => Err("no operation was completed".to_owned()),
        (Ok(rate), Ok(per_second)) => Ok(per_second / rate),
    };
    let client = step.outcome.client_cpu.total_us() / step.outcome.seconds;
    values.put(Metric::CpuPerOp, per_op(busy_percent(step)));
    values.put(Metric::ServerCpuPerOp, per_op(server_cpu_per_second(step)));
    values.put(Metric::ClientCpuPerOp, per_op(Ok(client)));
    let switches = step.usage.host.context_switches as f64;
    values.put(Metric::ContextSwitchesPerOp, per_op(host_rate(step, switches)));
    let disk = |get: fn(&crate::domain::run::DiskUsage) -> f64| match &step.usage.disk {
        Some(disk) => sampled_rate(step, get(disk)),
        None => Err(missing_counter(step, "disk")),
    };
    values.put(Metric::ReadsPerOp, per_op(disk(|disk| disk.reads as f64)));
    values.put(Metric::ReadKbPerOp, per_op(disk(|disk| disk.read_kb)));
    values.put(Metric::WriteKbPerOp, per_op(disk(|disk| disk.write_kb)));
    // A faster target runs out of rows sooner: then its rate counts more missed lookups.
    if step.outcome.no_ops > 0 && step.outcome.seconds > 0.0 {
        let effective = step.outcome.writes as f64 / step.outcome.seconds;
        values.put(Metric::EffectiveRate, Ok(effective));
    }
    put_latencies(values, latencies);
    let rss = step.usage.server_rss_bytes.map(|bytes| bytes as f64 / MIB);
    values.put(Metric::ServerRss, rss.ok_or_else(|| missing_counter(step, "server_rss_bytes")));
    let data = step.data_bytes.map(|bytes| bytes as f64 / MIB);
    values.put(Metric::DataSize, data.ok_or_else(|| "it was not read".to_owned()));
    crate::benchmarks::kv::analyze::put(values, step, latencies);
}

/// Busy CPU of the whole host without the spinners, per cent of all CPUs.
fn busy_percent(step: &StepRecord) -> Result<f64, String> {
    let usage = &step.usage;
    let spinners = usage.spinner_cpu.total_us() / 1e6;
    let busy = (usage.host.user + usage.host.system - spinners).max(0.0);
    Ok(100.0 * host_rate(step, busy)? / f64::from(usage.host.cpus))
}

fn server_cpu_per_second(step: &StepRecord) -> Result<f64, String> {
    match step.usage.server_cpu {
        // The window of all targets holds all operations of this one, and what its server did
        // while others had their turns belongs to it too.
        Some(cpu) if step.outcome.turns.is_some() => Ok(cpu.total_us() / step.outcome.seconds),
        Some(cpu) => sampled_rate(step, cpu.total_us()),
        None => Err(missing_counter(step, "server_cpu")),
    }
}

/// A counter of the whole host, which reads as zero where it could not be sampled.
fn host_rate(step: &StepRecord, moved: f64) -> Result<f64, String> {
    if step.usage.host.cpus == 0 {
        return Err(missing_counter(step, "host"));
    }
    sampled_rate(step, moved)
}

/// How far a counter moved, per second between its two samples.
fn sampled_rate(step: &StepRecord, moved: f64) -> Result<f64, String> {
    if step.usage.seconds > 0.0 {
        Ok(moved / step.usage.seconds)
    } else {
        Err("counters were not sampled".to_owned())
    }
}

fn missing_counter(step: &StepRecord, counter: &str) -> String {
    let reason = step.usage.missing.get(counter);
    reason.cloned().unwrap_or_else(|| "it was not sampled".to_owned())
}

fn put_latencies(values: &mut Values, latencies: &Latencies) {
    let metrics = [Metric::P50, Metric::P95, Metric::P99, Metric::P999, Metric::Max];
    match latencies {
        Err(why) => {
            for metric in metrics {
                values.put(metric, Err(why.clone()));
            }
        }
        Ok(histogram) => {
            let quantiles = histogram.quantiles([0.5, 0.95, 0.99, 0.999, 1.0]);
            for (metric, nanoseconds) in metrics.into_iter().zip(quantiles) {
                let value = match histogram.total() {
                    0 => Err("no event was completed".to_owned()),
                    events if metric == Metric::P999 && events < P999_EVENTS_MIN => {
                        Err(format!("{events} events; a 99.9th percentile needs {P999_EVENTS_MIN}"))
                    }
                    _ => Ok(nanoseconds as f64 / 1e6),
                };
                values.put(metric, value);
            }
        }
    }
}
