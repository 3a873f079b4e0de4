//! The 20 columns of the published perf reports.

use std::collections::BTreeMap;

use super::rules::counts_queries;
use rqps_analysis::comparison::{Comparison, StepComparison};
use rqps_analysis::measurement::Measurement;
use rqps_analysis::pairing::{PairKey, field_ratio, pair_key};
use rqps_model::metric::Metric;
use rqps_stats::summary::median;

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
