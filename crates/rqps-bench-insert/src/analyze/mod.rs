//! Metrics and rules of the Insert Benchmark.

pub mod rules;
pub mod stalls;

use std::collections::BTreeMap;

use self::rules::{SLA_SHARE, counts_queries, meets_sla, target_rate};
use rqps_analysis::Extension;
use rqps_analysis::caveat::{
    Caveat, CaveatKind, Evidence, WRITE_BACK_MIN_KB, most, percent, worst,
};
use rqps_analysis::comparison::{Comparison, MissedRate, StepComparison, TargetResult};
use rqps_analysis::measurement::{Measurement, MetricValue, SecondFigures};
use rqps_analysis::metrics::Histogram;
use rqps_analysis::pairing::{PairKey, field_ratio, pair_key};
use rqps_model::benchmark::{BenchmarkParameters, RateUnit, Workload};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;
use rqps_stats::summary::median;

/// The hooks.
pub(crate) const EXTENSION: Extension = Extension {
    in_sequence: true,
    by_second: Some(|rows| SecondFigures {
        series: stalls::host_series(rows),
        ..Default::default()
    }),
    measure: |step, _| own_metrics(step),
    missed_rate: missed,
    comparable,
    caveats: find,
    ..Extension::none("insert")
};

/// Removes the step limit: it changes no step below it, and a step that reaches it says so.
fn comparable(workload: &mut Workload) {
    if let BenchmarkParameters::Insert(shape) = &mut workload.shape {
        shape.step_limit = None;
    }
}

// Metrics of the Insert Benchmark: the columns of the published perf reports, and classes of
// response times.

/// Heads of the ten response-time classes.
pub const CLASSES: [&str; 10] =
    ["256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt"];

/// True if the comparison is one of this benchmark.
pub fn is_insert(comparison: &Comparison) -> bool {
    let mut runs = comparison.runs.iter().peekable();
    runs.peek().is_some() && runs.all(|run| run.benchmark == "insert")
}

/// Metrics that follow from what the record of a step of this benchmark holds; nothing for others.
///
/// - `w/i`, `wKB/i`: writes and KiB written of the disk per second / rows inserted per second.
/// - `max_…_ms`, `p99_…_ms`: from the histogram of the role: response time from the schedule where
///   there is one.
/// - `p50_o/s`, `p99_o/s`: the rate that 50 and 99 of 100 seconds reached: seconds sorted
///   descending, element round(p / 100 × seconds) (published; withheld below 10 seconds).
/// - `cv_o/s`: standard deviation / mean of the seconds' rates.
/// - `stall_s`: seconds in which inserts, deletes or queries stalled ([`stalls::stretches`]).
pub fn own_metrics(step: &StepRecord) -> Vec<MetricValue> {
    let roles = &step.outcome.roles;
    let Some(inserts) = roles.get("inserts") else { return Vec::new() };
    let mut metrics = Vec::new();
    // In l.x the published rate is that of indexed rows.
    let rows = match step.rate {
        RateUnit::RowsInserted => step.outcome.statements,
        _ => inserts.rows,
    };
    let per_second = rows as f64 / step.outcome.seconds;
    let disk = |get: fn(&rqps_model::run::DiskUsage) -> f64| match &step.usage.disk {
        Some(disk) if step.usage.seconds > 0.0 => Ok(get(disk) / step.usage.seconds / per_second),
        Some(_) => Err("counters not sampled".to_owned()),
        None => Err("disk not sampled".to_owned()),
    };
    metrics.push((Metric::WritesPerInsert, disk(|disk| disk.writes as f64)));
    metrics.push((Metric::WriteKbPerInsert, disk(|disk| disk.write_kb)));
    let latencies = [
        ("inserts", Metric::InsertMax, Metric::InsertP99),
        ("deletes", Metric::DeleteMax, Metric::DeleteP99),
    ];
    for (name, max, p99) in latencies {
        let Some(role) = roles.get(name) else { continue };
        // Classes alone give no quantiles; the longest time is taken as published.
        if role.latency.is_empty() {
            continue;
        }
        let read = Histogram::from_base64(&role.latency).and_then(|all| match all.total() {
            0 => Err("no completed operation".to_owned()),
            _ => Ok(all.quantiles([0.99, 1.0])),
        });
        let in_ms = |place: usize| read.clone().map(|values| values[place] as f64 / 1e6);
        metrics.push((p99, in_ms(0)));
        metrics.push((max, in_ms(1)));
    }
    let column = if step.rate == RateUnit::RowsInserted { "inserts" } else { "queries" };
    if let Some(seconds) = step.outcome.series.get(column) {
        metrics.extend(of_seconds(seconds));
        let stalled: std::collections::BTreeSet<usize> = stalls::ROLES
            .iter()
            .flat_map(|(role, _)| stalls::stretches(step, role))
            .flatten()
            .collect();
        if !stalls::makes_indexes(step) {
            metrics.push((Metric::StalledSeconds, Ok(stalled.len() as f64)));
        }
    }
    metrics
}

/// Fewer seconds have no quantiles (published).
const SECONDS_MIN: usize = 10;

fn of_seconds(seconds: &[f64]) -> Vec<MetricValue> {
    let few = || Err(format!("{} s; quantiles of seconds need {SECONDS_MIN}", seconds.len()));
    if seconds.len() < SECONDS_MIN {
        return vec![(Metric::SecondsP50, few()), (Metric::SecondsP99, few())];
    }
    let n = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / n;
    let square = seconds.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (n - 1.0);
    vec![
        (Metric::SecondsP50, Ok(reached(seconds, 50.0))),
        (Metric::SecondsP99, Ok(reached(seconds, 99.0))),
        (Metric::SecondsVariation, Ok(square.sqrt() / mean)),
    ]
}

/// The rate that `percent` of the seconds reached (published): sorted descending, element
/// round(percent / 100 × seconds), counted from 1.
fn reached(seconds: &[f64], percent: f64) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let place = (percent / 100.0 * sorted.len() as f64).round() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

/// The target rate of inserts in a query step, rows per second.
pub fn insert_target(comparison: &Comparison, step: &StepComparison, target: usize) -> Option<f64> {
    let workload = comparison.targets[target].workloads.first();
    let clients = workload.map_or(0, |workload| workload.clients);
    let samples = step.targets[target].samples.iter();
    samples.filter_map(|sample| rate_asked(&sample.record, clients)).next()
}

// The 20 columns of the published perf reports.

/// A column of a metrics row.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// The head of the column.
    pub head: &'static str,
    /// Digits after the decimal point.
    pub digits: usize,
    /// The unit of its numbers.
    pub unit: &'static str,
    /// Its metric, which may have another unit.
    pub metric: Metric,
    /// The meaning of its numbers, as a formula if they follow from others. `rate` is ips in l
    /// steps and qps in q steps.
    pub legend: &'static str,
}

const fn column(
    head: &'static str,
    digits: usize,
    unit: &'static str,
    metric: Metric,
    legend: &'static str,
) -> ColumnSpec {
    ColumnSpec { head, digits, unit, metric, legend }
}

/// The columns of a metrics row in order; the target follows them.
#[rustfmt::skip]
pub const COLUMNS: [ColumnSpec; 20] = [
    column("ips", 0, "1/s", Metric::InsertRate, "rows inserted / s; in l.x rows indexed / s"),
    column("qps", 0, "1/s", Metric::Rate, "queries / s; 0 in l steps"),
    column("rps", 0, "1/s", Metric::DiskReadsPerSecond, "reads of the disk under the data / s"),
    column("rmbps", 1, "MiB/s", Metric::DiskReadMbPerSecond, "KiB read from it / 1024 / s"),
    column("wps", 1, "1/s", Metric::DiskWritesPerSecond, "writes to it / s"),
    column("wmbps", 1, "MiB/s", Metric::DiskWriteMbPerSecond, "KiB written to it / 1024 / s"),
    column("rpq", 3, "1/op", Metric::ReadsPerOp, "rps / rate"),
    column("rkbpq", 3, "KiB/op", Metric::ReadKbPerOp, "rmbps x 1024 / rate"),
    column("wpi", 3, "1/row", Metric::WritesPerInsert, "wps / ips, in q steps too"),
    column("wkbpi", 3, "KiB/row", Metric::WriteKbPerInsert, "wmbps x 1024 / ips, in q steps too"),
    column("csps", 0, "1/s", Metric::ContextSwitchesPerSecond, "context switches of the host / s"),
    column("cpups", 1, "%", Metric::CpuBusy,
        "busy share of the host's CPUs, with the client, without spinners"),
    column("cspq", 3, "1/op", Metric::ContextSwitchesPerOp, "csps / rate"),
    column("cpupq", 0, "us/op", Metric::HostCpuPerOp, "cpups / 100 x CPUs x 1e6 / rate"),
    column("dbgb1", 1, "GiB", Metric::DatabaseSize,
        "tables and indexes at the end, from the server or their files"),
    column("dbgb2", 1, "GiB", Metric::DataSize, "the data folder at the end, including logs"),
    column("rss", 1, "GiB", Metric::ServerRss, "the server's memory; shared pages count once"),
    column("maxop", 3, "s", Metric::Max,
        "the longest insert (l steps), the longest query (q steps)"),
    column("p50", 0, "1/s", Metric::SecondsP50, "median rate of single seconds; windows from 10 s"),
    column("p99", 0, "1/s", Metric::SecondsP99,
        "rate that 99 of 100 seconds reached; windows from 10 s"),
];

/// The numbers of a metrics row without its target, as in published tables. "Per operation" means
/// per inserted row in l steps and per query in query steps; `wpi` and `wkbpi` are always per
/// inserted row. The rate of `l.x` is that of indexed rows.
pub fn columns(values: &Measurement, is_query: bool, cpus: u32) -> [Option<f64>; 20] {
    let get = |metric| values.get(metric);
    let rate = get(Metric::Rate);
    let inserts = if is_query { get(Metric::InsertRate) } else { rate };
    let times = |a: Option<f64>, b: Option<f64>| Some(a? * b?);
    let per_operation = |metric| get(metric);
    let reads = per_operation(Metric::ReadsPerOp);
    let read_kb = per_operation(Metric::ReadKbPerOp);
    let mib = |kib: Option<f64>| kib.map(|kib| kib / 1024.0);
    let gib = |metric| mib(get(metric));
    // A published value takes precedence over a computed one.
    let published = |metric, computed: Option<f64>| get(metric).or(computed);
    let cpu = per_operation(Metric::CpuPerOp);
    let switches = per_operation(Metric::ContextSwitchesPerOp);
    let (writes, write_kb) = if is_query || get(Metric::WritesPerInsert).is_some() {
        (get(Metric::WritesPerInsert), get(Metric::WriteKbPerInsert))
    } else {
        (None, get(Metric::WriteKbPerOp))
    };
    let longest = if is_query { Metric::Max } else { Metric::InsertMax };
    [
        inserts,
        if is_query { rate } else { Some(0.0) },
        published(Metric::DiskReadsPerSecond, times(reads, rate)),
        published(Metric::DiskReadMbPerSecond, mib(times(read_kb, rate))),
        published(Metric::DiskWritesPerSecond, times(writes, inserts)),
        published(Metric::DiskWriteMbPerSecond, mib(times(write_kb, inserts))),
        reads,
        read_kb,
        writes,
        write_kb,
        published(Metric::ContextSwitchesPerSecond, times(switches, rate)),
        published(Metric::CpuBusy, times(cpu, rate)),
        switches,
        published(Metric::HostCpuPerOp, cpu.map(|cpu| cpu * f64::from(cpus) * 1e4)),
        get(Metric::DatabaseSize),
        gib(Metric::DataSize),
        gib(Metric::ServerRss),
        get(longest).or_else(|| get(Metric::Max)).map(|ms| ms / 1e3),
        get(Metric::SecondsP50),
        get(Metric::SecondsP99),
    ]
}

/// Medians of [`columns`] over the samples of a target.
pub fn median_columns(
    comparison: &Comparison,
    step: &StepComparison,
    target: usize,
) -> [Option<f64>; 20] {
    let is_query = counts_queries(step.rate);
    let rows: Vec<[Option<f64>; 20]> = step.targets[target]
        .samples
        .iter()
        .map(|sample| columns(sample, is_query, cpus_of(comparison, sample)))
        .collect();
    std::array::from_fn(|column| {
        let numbers: Vec<f64> = rows.iter().filter_map(|row| row[column]).collect();
        median(&numbers)
    })
}

fn cpus_of(comparison: &Comparison, sample: &Measurement) -> u32 {
    let run = &comparison.runs[sample.run];
    comparison.hosts.get(&run.host_fingerprint).map_or(1, |host| host.cpus)
}

/// Ratios of [`columns`] to those of the baseline, over the pairs of the comparison, by the rules
/// of its own ratios ([`rqps_analysis::compare`]).
pub fn relative_columns(
    comparison: &Comparison,
    step: &StepComparison,
    target: usize,
) -> [Option<f64>; 20] {
    let is_query = counts_queries(step.rate);
    let of = |target: usize| {
        step.targets[target].samples.iter().map(move |sample| {
            let values = columns(sample, is_query, cpus_of(comparison, sample));
            (pair_key(&comparison.runs[sample.run]), values)
        })
    };
    let bases: BTreeMap<PairKey<'_>, [Option<f64>; 20]> = of(0).collect();
    let pairs: Vec<_> =
        of(target).filter_map(|(key, values)| Some((bases.get(&key)?, values))).collect();
    if pairs.is_empty() {
        let medians = [0, target].map(|side| median_columns(comparison, step, side));
        return std::array::from_fn(|column| {
            Some(field_ratio(medians[1][column]?, medians[0][column]?))
        });
    }
    std::array::from_fn(|column| {
        let both =
            pairs.iter().filter_map(|(baseline, own)| Some((baseline[column]?, own[column]?)));
        paired_ratio(&both.collect::<Vec<_>>())
    })
}

/// Target / baseline over pairs (baseline, target).
fn paired_ratio(pairs: &[(f64, f64)]) -> Option<f64> {
    let medians = || {
        let (bases, targets): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(field_ratio(median(&targets)?, median(&bases)?))
    };
    if pairs.len() == 1 || pairs.iter().any(|(baseline, target)| *baseline <= 0.0 || *target <= 0.0)
    {
        return medians();
    }
    let sum: f64 = pairs.iter().map(|(baseline, target)| target.ln() - baseline.ln()).sum();
    (!pairs.is_empty()).then(|| (sum / pairs.len() as f64).exp())
}

// The write rate beside the queries of a step, and whether the writers kept it.

/// Rows per second requested of the inserters in a query step, from the record of their role.
/// Published tables have no roles; there it is the rate in the step's name times the clients.
fn rate_asked(step: &StepRecord, clients: u32) -> Option<f64> {
    if !counts_queries(step.rate) {
        return None;
    }
    let of_role = step.outcome.roles.get("inserts").and_then(|role| {
        // The role's target counts batches.
        let rows_per_batch = role.rows as f64 / role.operations as f64;
        Some(role.target_per_second? * rows_per_batch).filter(|rate| rate.is_finite())
    });
    // Published tables may not tell the clients.
    of_role.or_else(|| target_rate(&step.name, clients).filter(|_| clients > 0))
}

/// The write rate that a target missed in a step; `None` if it was met or not set.
pub(super) fn missed(target_step: &TargetResult, clients: u32) -> Option<MissedRate> {
    let rates = target_step.samples.iter().filter_map(|sample| {
        let wanted = rate_asked(&sample.record, clients)?;
        let inserts = sample.record.outcome.roles.get("inserts");
        // A step without inserts has no insert rate.
        let none = inserts.filter(|role| role.operations == 0).map(|_| 0.0);
        Some((wanted, sample.get(Metric::InsertRate).or(none)?))
    });
    let rates: Vec<(f64, f64)> = rates.collect();
    let missed = rates.iter().filter(|(wanted, inserted)| !meets_sla(*inserted, *wanted)).count();
    let lowest = rates.iter().copied().min_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    (missed > 0).then_some(MissedRate {
        target: lowest.0,
        lowest: lowest.1,
        missed,
        blocks: rates.len(),
    })
}

// Caveats of the Insert Benchmark.

/// Caveats on missed write rates and on dirty pages of the step before.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let of_target = |(target, label)| {
        let found = [missed_pace(evidence, target, label), dirty_pages(evidence, target, label)];
        found.into_iter().flatten()
    };
    evidence.targets().flat_map(of_target).collect()
}

/// Missed rates in steps without queries. In steps with queries, the write rate decides whether
/// targets can be compared (write_rate.rs).
fn missed_pace(evidence: &Evidence<'_>, target: usize, label: &str) -> Option<Caveat> {
    let found = evidence.each_step(target, |records| {
        most(records, 0.0, |record| missed_target(record).filter(|_| !counts_queries(record.rate)))
    });
    worst(CaveatKind::MissedPace, label, found, |missed| {
        format!("only {} of the scheduled events completed", percent(1.0 - missed))
    })
}

/// The share of the operations that inserters failed to make in time, if it exceeds the published
/// limit.
fn missed_target(record: &StepRecord) -> Option<f64> {
    let inserts = record.outcome.roles.get("inserts")?;
    let due = inserts.target_per_second? * record.outcome.seconds;
    let missed = 1.0 - inserts.operations as f64 / due;
    (missed > 1.0 - SLA_SHARE).then_some(missed)
}

/// Query steps in which the server wrote back dirty pages of earlier steps: it ended with fewer
/// than it began with.
fn dirty_pages(evidence: &Evidence<'_>, target: usize, label: &str) -> Option<Caveat> {
    /// Default size of an InnoDB page, KiB.
    const PAGE_KB: f64 = 16.0;
    let found = evidence.each_step(target, |records| {
        most(records, WRITE_BACK_MIN_KB, |record| {
            let pages = record.outcome.series.get("server_pages_dirty")?;
            let fell = pages.first()? - pages.last()?;
            let seconds = record.outcome.seconds;
            (counts_queries(record.rate) && seconds > 0.0).then(|| PAGE_KB * fell / seconds)
        })
    });
    worst(CaveatKind::WriteBack, label, found, |kb| {
        format!("writeback of the previous step's dirty pages, up to {kb:.0} KB/s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_quantiles_of_seconds_are_floors() {
        let seconds: Vec<f64> = (1..=200).map(f64::from).collect();
        // Descending: 200, 199 …; the 100th is 101, the 198th is 3.
        assert_eq!((reached(&seconds, 50.0), reached(&seconds, 99.0)), (101.0, 3.0));
        let few = of_seconds(&seconds[..9]);
        assert!(few.iter().all(|(_, value)| value.is_err()));
    }
}
