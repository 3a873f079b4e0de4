//! The measurement of one step of one run: its metrics, each a number or why it is missing, and the
//! hooks by which benchmarks add to it.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use base64::Engine;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::caveat::{Caveat, Evidence};
use super::comparison::{Comparison, MissedRate, StepComparison, TargetResult};
use super::{classes, counted};
use rqps_model::benchmark::{RateUnit, Workload};
use rqps_model::metric::Metric;
use rqps_model::run::{CpuEvents, DiskUsage, ReadSeconds, Run, Second, Status, StepRecord};
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
    classes::add(run);
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
        let mut values = common(step, &latencies);
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

// Metrics of one step of one run, from the facts of its record and its latency histogram.

/// Below this many events a 99.9th percentile rests on fewer than ten of them and is withheld.
pub const P999_EVENTS_MIN: u64 = 10_000;

const MIB: f64 = (1 << 20) as f64;

/// The latency histogram of a step, or why it cannot be read.
pub type Latencies = Result<Histogram, String>;

/// The unit of the rate in reports.
pub fn rate_unit(rate: RateUnit) -> &'static str {
    match rate {
        RateUnit::Queries => "qps",
        RateUnit::Transactions => "tps",
        RateUnit::RowsScanned => "Krows/s",
        RateUnit::RowsInserted => "ips",
        RateUnit::Operations => "ops/s",
        RateUnit::Relative => "of the baseline",
    }
}

/// The unit in which the operations of a step count.
pub(super) fn unit_of(step: &StepRecord) -> RateUnit {
    match step.imported {
        Some(_) => step.rate,
        None => step.rate.of_counts(step.outcome.events, step.outcome.statements),
    }
}

/// Operations per second of a step in [`rate_unit`]: statements / s; events / s; rows scanned / s /
/// 1000.
/// Seconds are those of the driver's window.
pub fn rate(step: &StepRecord) -> Result<f64, String> {
    let outcome = &step.outcome;
    if outcome.seconds.is_nan() || outcome.seconds <= 0.0 {
        return Err("the measured window has no length".to_owned());
    }
    let unit = unit_of(step);
    let operations = unit.operations(outcome.events, outcome.statements, outcome.rows_scanned);
    let operations = operations.ok_or("only ratios are published")?;
    Ok(operations / outcome.seconds)
}

/// Operations of a step as its rate counts them: statements, or thousands of rows scanned.
pub(crate) fn operations(step: &StepRecord) -> Option<f64> {
    rate(step).ok().map(|rate| rate * step.outcome.seconds)
}

/// The metrics that a step of any benchmark has. "Per operation" divides a rate per second by the
/// step's own rate, so windows of slightly different length do not matter, and an operation of
/// `scan` is 1000 rows.
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
/// - `server_instr/o`, `server_cycles/o`, `client_instr/o`, `client_cycles/o`: events that the CPU
///   counted in user space / s / rate, and `…_ipc` instructions / cycles; only where it counts.
/// - latencies in ms, from the histogram of events (response time under an open pace).
/// - `rss_MB`, `data_MB`: bytes / 2^20.
pub(super) fn common(step: &StepRecord, latencies: &Latencies) -> Vec<MetricValue> {
    match step.imported {
        Some(_) => imported(step, latencies),
        None => measured(step, latencies),
    }
}

/// Metrics from imported counts: a rate and latencies, if there are any. Other counts do not exist;
/// their zeros mean nothing.
fn imported(step: &StepRecord, latencies: &Latencies) -> Vec<MetricValue> {
    let absent = |metric| (metric, Err("not in the imported files".to_owned()));
    let mut values: Vec<MetricValue> = Metric::which(|spec| spec.common).map(absent).collect();
    if step.outcome.statements > 0 && step.rate == RateUnit::Queries {
        values.push((Metric::Rate, rate(step)));
    }
    if !step.outcome.latency.is_empty() {
        values.extend(quantiles(latencies));
    }
    values
}

fn measured(step: &StepRecord, latencies: &Latencies) -> Vec<MetricValue> {
    let rate = rate(step);
    let per_op = |per_second: Result<f64, String>| match (&rate, &per_second) {
        (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        (Ok(rate), _) if *rate <= 0.0 => Err("no completed operation".to_owned()),
        (Ok(rate), Ok(per_second)) => Ok(per_second / rate),
    };
    let client = step.outcome.client_cpu.total_us() / step.outcome.seconds;
    let switches = step.usage.host.context_switches as f64;
    let disk = |get: fn(&DiskUsage) -> f64| match &step.usage.disk {
        Some(disk) => sampled_rate(step, get(disk)),
        None => Err(missing_counter(step, "disk")),
    };
    let rss = step.usage.server_rss_bytes.map(|bytes| bytes as f64 / MIB);
    let data = step.data_bytes.map(|bytes| bytes as f64 / MIB);
    let mut values = vec![
        (Metric::Rate, rate.clone()),
        (Metric::CpuPerOp, per_op(busy_percent(step))),
        (Metric::ServerCpuPerOp, per_op(server_cpu_per_second(step))),
        (Metric::ClientCpuPerOp, per_op(Ok(client))),
        (Metric::ContextSwitchesPerOp, per_op(host_rate(step, switches))),
        (Metric::ReadsPerOp, per_op(disk(|disk| disk.reads as f64))),
        (Metric::ReadKbPerOp, per_op(disk(|disk| disk.read_kb))),
        (Metric::WriteKbPerOp, per_op(disk(|disk| disk.write_kb))),
        (Metric::ServerRss, rss.ok_or_else(|| missing_counter(step, "server_rss_bytes"))),
        (Metric::DataSize, data.ok_or_else(|| "not read".to_owned())),
    ];
    // A faster target runs out of rows sooner: then its rate counts more missed lookups.
    if step.outcome.no_ops > 0 && step.outcome.seconds > 0.0 {
        let effective = step.outcome.writes as f64 / step.outcome.seconds;
        values.push((Metric::EffectiveRate, Ok(effective)));
    }
    values.extend(cpu_events(step, &per_op));
    values.extend(quantiles(latencies));
    values
}

/// Events that the CPU counted. Most virtual machines hide its counters: then there are no values.
fn cpu_events(
    step: &StepRecord,
    per_op: &dyn Fn(Result<f64, String>) -> Result<f64, String>,
) -> Vec<MetricValue> {
    let server = [Metric::ServerInstructionsPerOp, Metric::ServerCyclesPerOp, Metric::ServerIpc];
    let client = [Metric::ClientInstructionsPerOp, Metric::ClientCyclesPerOp, Metric::ClientIpc];
    let usage = &step.usage;
    let sides = [(usage.server_events, server), (usage.client_events, client)];
    let values = |(events, [instructions, cycles, ipc]): (Option<CpuEvents>, [Metric; 3])| {
        let Some(events) = events else { return Vec::new() };
        let per_cycle = if events.cycles > 0.0 {
            Ok(events.instructions / events.cycles)
        } else {
            Err("the CPU counted no cycle".to_owned())
        };
        vec![
            (instructions, per_op(process_rate(step, events.instructions))),
            (cycles, per_op(process_rate(step, events.cycles))),
            (ipc, per_cycle),
        ]
    };
    sides.into_iter().flat_map(values).collect()
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
        Some(cpu) => process_rate(step, cpu.total_us()),
        None => Err(missing_counter(step, "server_cpu")),
    }
}

/// The change per second of a counter of this target's processes.
fn process_rate(step: &StepRecord, moved: f64) -> Result<f64, String> {
    match step.outcome.turns {
        // The window of all targets holds all operations of this one, and what its server did
        // while others had their turns belongs to it too.
        Some(_) => Ok(moved / step.outcome.seconds),
        None => sampled_rate(step, moved),
    }
}

/// A counter of the whole host, which reads as zero where it could not be sampled.
fn host_rate(step: &StepRecord, moved: f64) -> Result<f64, String> {
    if step.usage.host.cpus == 0 {
        return Err(missing_counter(step, "host"));
    }
    sampled_rate(step, moved)
}

/// The change of a counter per second between its two samples.
fn sampled_rate(step: &StepRecord, moved: f64) -> Result<f64, String> {
    if step.usage.seconds > 0.0 {
        Ok(moved / step.usage.seconds)
    } else {
        Err("counters not sampled".to_owned())
    }
}

fn missing_counter(step: &StepRecord, counter: &str) -> String {
    let reason = step.usage.missing.get(counter);
    reason.cloned().unwrap_or_else(|| "not sampled".to_owned())
}

fn quantiles(latencies: &Latencies) -> Vec<MetricValue> {
    let metrics = [Metric::P50, Metric::P95, Metric::P99, Metric::P999, Metric::Max];
    let histogram = match latencies {
        Ok(histogram) => histogram,
        Err(why) => return metrics.map(|metric| (metric, Err(why.clone()))).to_vec(),
    };
    let value = |metric, nanoseconds: u64| match histogram.total() {
        0 => Err("no completed event".to_owned()),
        events if metric == Metric::P999 && events < P999_EVENTS_MIN => {
            Err(format!("{events} events; a 99.9th percentile needs {P999_EVENTS_MIN}"))
        }
        _ => Ok(nanoseconds as f64 / 1e6),
    };
    let quantiles = histogram.quantiles([0.5, 0.95, 0.99, 0.999, 1.0]);
    let all = metrics.into_iter().zip(quantiles);
    all.map(|(metric, nanoseconds)| (metric, value(metric, nanoseconds))).collect()
}

// Quantiles of a stored latency histogram: HdrHistogram's V2 encoding, deflated or not, in base64.
//
// A report over many runs reads tens of thousands of these. The general reader fills an array of
// all the steps that the range could have (270 kB) for each; this one keeps those that hold
// something. The two are compared in the tests.

const PLAIN: u32 = 0x1c84_9313;
const DEFLATED: u32 = 0x1c84_9314;
const HEADER: usize = 40;
/// Every histogram in results has three significant digits, and then at most 55,000 steps.
const DIGITS_MAX: u32 = 3;
/// Most bytes of a histogram that is inflated.
const PLAIN_BYTES: u64 = 1 << 20;

/// A histogram: how many values fell on which step.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The largest value of each step that holds something, and how many values are no larger.
    steps: Vec<(u64, u64)>,
}

impl Histogram {
    /// Reads the base64 text of a step's record.
    pub fn from_base64(text: &str) -> Result<Histogram, String> {
        if text.is_empty() {
            return Err("no latencies were recorded".to_owned());
        }
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|fault| format!("the latency histogram is not base64: {fault}"))?;
        Histogram::from_bytes(&bytes)
            .map_err(|fault| format!("the latency histogram cannot be read: {fault}"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Histogram, String> {
        if be_u32(bytes, 0)? != DEFLATED {
            return Histogram::from_plain(bytes);
        }
        let packed = bytes.get(8..).unwrap_or_default();
        let mut plain = Vec::new();
        // No histogram of a step comes near this; a damaged one may claim anything, and a result
        // set has one for each step.
        let mut reader = flate2::read::ZlibDecoder::new(packed).take(PLAIN_BYTES);
        reader.read_to_end(&mut plain).map_err(|fault| fault.to_string())?;
        Histogram::from_plain(&plain)
    }

    fn from_plain(bytes: &[u8]) -> Result<Histogram, String> {
        if be_u32(bytes, 0)? != PLAIN {
            return Err("it is not version 2".to_owned());
        }
        let end = HEADER + be_u32(bytes, 4)? as usize;
        let layout = Layout::new(be_u32(bytes, 12)?, be_u64(bytes, 16)?)?;
        // Normalizing offset and ratio: features that no writer of ours uses.
        if be_u32(bytes, 8)? != 0 || f64::from_bits(be_u64(bytes, 32)?) != 1.0 {
            return Err("it is shifted or scaled".to_owned());
        }
        let mut counts = bytes.get(HEADER..end).ok_or("it is truncated")?;
        let places = layout.places();
        let mut steps = Vec::with_capacity(counts.len().min(places as usize));
        let (mut place, mut sum) = (0u64, 0u64);
        while !counts.is_empty() {
            // Zigzag: an even number is twice a count, and an odd one n stands for (n + 1) / 2
            // empty steps.
            let encoded = varint(&mut counts)?;
            let half = encoded >> 1;
            if encoded & 1 == 1 {
                place = place.saturating_add(half + 1);
                continue;
            }
            if half > 0 {
                if place >= places {
                    return Err("it has more steps than values".to_owned());
                }
                sum = sum.checked_add(half).ok_or("it counts more than possible")?;
                steps.push((layout.largest_on(place as u32), sum));
            }
            place = place.saturating_add(1);
        }
        Ok(Histogram { steps })
    }

    /// Number of recorded values.
    pub fn total(&self) -> u64 {
        self.steps.last().map_or(0, |(_, sum)| *sum)
    }

    /// The largest value of each step that holds something, and how many values fell on it.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        let before = std::iter::once(0).chain(self.steps.iter().map(|(_, sum)| *sum));
        self.steps.iter().zip(before).map(|((largest, sum), before)| (*largest, sum - before))
    }

    /// The largest values that count as equal to the quantiles, 0 to 1. All zero for an empty
    /// histogram.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let total = self.total();
        quantiles.map(|quantile| {
            let rank = (quantile.clamp(0.0, 1.0) * total as f64).ceil().max(1.0) as u64;
            let step = self.steps.partition_point(|(_, sum)| *sum < rank.min(total));
            self.steps.get(step).map_or(0, |(largest, _)| *largest)
        })
    }
}

/// The steps of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// Bits below the smallest distinguished value.
    unit_bits: u32,
    /// Each power of two above the linear part has two to this many steps.
    half_bits: u32,
}

impl Layout {
    /// For so many significant decimal digits, from a lowest distinguished value on.
    fn new(digits: u32, lowest: u64) -> Result<Layout, String> {
        if digits > DIGITS_MAX || lowest == 0 {
            return Err("its parameters are invalid".to_owned());
        }
        // Twice ten to the digits must be told apart in the linear part.
        let linear = (2 * 10u64.pow(digits)).next_power_of_two().trailing_zeros();
        let unit_bits = lowest.ilog2();
        if unit_bits + linear <= 62 {
            Ok(Layout { unit_bits, half_bits: linear - 1 })
        } else {
            Err("its parameters are invalid".to_owned())
        }
    }

    /// Bits by which the steps around a place are wider than one.
    fn shift(self, place: u32) -> u32 {
        (place >> self.half_bits).saturating_sub(1) + self.unit_bits
    }

    /// The number of steps with values of at most 63 bits: those whose [`Layout::shift`] and half
    /// bits together are below 63.
    fn places(self) -> u64 {
        u64::from(64 - self.unit_bits - self.half_bits) << self.half_bits
    }

    /// The largest value that falls on a step.
    fn largest_on(self, place: u32) -> u64 {
        let half = 1u64 << self.half_bits;
        let place_wide = u64::from(place);
        let within = if place_wide < half { place_wide } else { (place_wide & (half - 1)) + half };
        // Within the linear part the upper half is at its place already: both spellings agree.
        let shift = self.shift(place);
        (within << shift) + ((1u64 << shift) - 1)
    }
}

fn be_u32(bytes: &[u8], at: usize) -> Result<u32, String> {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    four.map(u32::from_be_bytes).ok_or_else(|| "it is truncated".to_owned())
}

fn be_u64(bytes: &[u8], at: usize) -> Result<u64, String> {
    let eight = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    eight.map(u64::from_be_bytes).ok_or_else(|| "it is truncated".to_owned())
}

/// Takes LEB128 of at most nine bytes, the ninth of which is taken whole.
fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(9).enumerate() {
        let is_last = index == 8;
        let bits = if is_last { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * index);
        if is_last || byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Ok(number);
        }
    }
    Err("it is truncated".to_owned())
}

#[cfg(test)]
mod metrics_tests {
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;

    const QUANTILES: [f64; 7] = [0.0001, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];

    fn check(values: &[u64], low: u64, high: u64, digits: u8) {
        let mut reference =
            hdrhistogram::Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
        values.iter().for_each(|value| reference.saturating_record(*value));
        let expected = QUANTILES.map(|quantile| reference.value_at_quantile(quantile));
        let recorded = reference.iter_recorded();
        let steps: Vec<(u64, u64)> =
            recorded.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        let (mut plain, mut deflated) = (Vec::new(), Vec::new());
        V2Serializer::new().serialize(&reference, &mut plain).unwrap();
        V2DeflateSerializer::new().serialize(&reference, &mut deflated).unwrap();
        for bytes in [plain, deflated] {
            let ours = Histogram::from_bytes(&bytes).unwrap();
            assert_eq!(ours.total(), values.len() as u64);
            assert_eq!(ours.quantiles(QUANTILES), expected);
            assert!(ours.steps().eq(steps.iter().copied()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn quantiles_are_those_of_the_reference(
            mut values in prop::collection::vec(prop_oneof![0..5000u64, 0..1u64 << 41], 0..300),
            // Steps side by side, with counts of one byte and of two.
            near in prop::collection::vec(2_000..2_040u64, 0..3_000),
            digits in 1..=3u8,
            low_bits in 0..4u32,
        ) {
            values.extend(near);
            check(&values, 1 << low_bits, (1 << 42) - 1, digits);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Histogram::from_bytes(&bytes);
            // The same behind a head that is in order, its length that of the rest.
            let mut head = PLAIN.to_be_bytes().to_vec();
            head.extend((bytes.len() as u32).to_be_bytes());
            head.extend([0, 0, 0, 0, 0, 0, 0, 3]);
            head.extend(1u64.to_be_bytes());
            head.extend(u64::MAX.to_be_bytes());
            head.extend(1f64.to_be_bytes());
            head.append(&mut bytes);
            if let Ok(histogram) = Histogram::from_bytes(&head) {
                let _ = histogram.quantiles(QUANTILES);
            }
        }
    }

    #[test]
    fn what_inflates_without_end_is_cut_off() {
        let mut packer =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let mut head = [PLAIN, 32 << 20, 0, 3].map(u32::to_be_bytes).concat();
        head.extend([1, 1 << 40, 1.0f64.to_bits()].map(u64::to_be_bytes).concat());
        std::io::Write::write_all(&mut packer, &head).unwrap();
        std::io::Write::write_all(&mut packer, &vec![0; 32 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        let bytes = [&DEFLATED.to_be_bytes()[..], &[0; 4], &packed].concat();
        assert!(bytes.len() < 64 << 10);
        assert_eq!(Histogram::from_bytes(&bytes).unwrap_err(), "it is truncated");
    }

    #[test]
    fn an_empty_histogram_has_zeros() {
        check(&[], 1, 1000, 3);
    }

    #[test]
    fn large_counts_need_nine_bytes() {
        let mut reference = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        reference.record_n(77, i64::MAX as u64 - 5).unwrap();
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&reference, &mut bytes).unwrap();
        let ours = Histogram::from_bytes(&bytes).unwrap();
        assert_eq!(ours.total(), i64::MAX as u64 - 5);
        assert_eq!(ours.quantiles([0.5]), [77]);
    }
}
