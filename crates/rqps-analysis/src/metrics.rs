//! Metrics of one step of one run, from the facts of its record.

use super::histogram::Histogram;
use super::measurement::MetricValue;
use rqps_model::benchmark::RateUnit;
use rqps_model::metric::Metric;
use rqps_model::run::{CpuEvents, DiskUsage, StepRecord};

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
