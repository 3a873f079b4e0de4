//! What only the Insert Benchmark tells of a step: its own metrics, the 21 columns of the published
//! perf reports, and the classes of response times.

use std::collections::BTreeMap;

use crate::analyze::compare::{Comparison, PairKey, Sample, StepComparison, field_ratio, pair_key};
use crate::analyze::histogram::Histogram;
use crate::analyze::metrics::Values;
use crate::analyze::write_rate;
use crate::benchmarks::insert::analyze::rules::is_query_step;
use crate::benchmarks::insert::analyze::stalls;
use crate::domain::benchmark::RateUnit;
use crate::domain::metric::Metric;
use crate::domain::run::StepRecord;
use crate::stats::summary::median;

/// The columns of a metrics row, in their order; the last is the target.
pub const COLUMNS: [&str; 20] = [
    "ips", "qps", "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wpi", "wkbpi", "csps", "cpups",
    "cspq", "cpupq", "dbgb1", "dbgb2", "rss", "maxop", "p50", "p99",
];

/// What stands behind a column.
#[derive(Clone, Copy, Debug)]
pub struct Legend {
    /// Unit of its numbers.
    pub unit: &'static str,
    /// What they are, as a formula where they follow from others.
    pub told: &'static str,
}

/// Of each column, in their order. `rate` is ips in l steps and qps in q steps.
pub const LEGENDS: [Legend; 20] = [
    Legend { unit: "1/s", told: "rows inserted / s; in l.x rows indexed / s" },
    Legend { unit: "1/s", told: "queries / s; 0 in l steps" },
    Legend { unit: "1/s", told: "reads of the disk under the data / s" },
    Legend { unit: "MiB/s", told: "KiB read from it / 1024 / s" },
    Legend { unit: "1/s", told: "writes to it / s" },
    Legend { unit: "MiB/s", told: "KiB written to it / 1024 / s" },
    Legend { unit: "1/op", told: "rps / rate" },
    Legend { unit: "KiB/op", told: "rmbps x 1024 / rate" },
    Legend { unit: "1/row", told: "wps / ips, in q steps too" },
    Legend { unit: "KiB/row", told: "wmbps x 1024 / ips, in q steps too" },
    Legend { unit: "1/s", told: "context switches of the host / s" },
    Legend { unit: "%", told: "busy CPU of all CPUs of the host, client included, spinners not" },
    Legend { unit: "1/op", told: "csps / rate" },
    Legend { unit: "us/op", told: "cpups / 100 x CPUs x 1e6 / rate" },
    Legend { unit: "GiB", told: "tables and indexes at the end: by the server, or of their files" },
    Legend { unit: "GiB", told: "the data folder at the end, logs included" },
    Legend { unit: "GiB", told: "the server's memory, shared pages once" },
    Legend { unit: "s", told: "the longest insert (l steps), the longest query (q steps)" },
    Legend { unit: "1/s", told: "rate that half of the seconds reached; from 10 s on" },
    Legend { unit: "1/s", told: "rate that 99 of 100 seconds reached; from 10 s on" },
];

/// Digits after the point with which a column is printed.
pub const DIGITS: [usize; 20] = [0, 0, 0, 1, 1, 1, 3, 3, 3, 3, 0, 1, 3, 0, 1, 1, 1, 3, 0, 0];

/// Kinds of workers: the column of their rate, and what one operation is called.
pub const ROLES: [(&str, &str); 3] =
    [("inserts", "insert"), ("deletes", "delete"), ("queries", "query")];

/// Heads of the ten classes of response times.
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
pub fn own_metrics(step: &StepRecord) -> Vec<(Metric, Result<f64, String>)> {
    let roles = &step.outcome.roles;
    let Some(inserts) = roles.get("inserts") else { return Vec::new() };
    let mut metrics = Vec::new();
    // In l.x the published rate is that of indexed rows.
    let rows = match step.rate {
        RateUnit::RowsInserted => step.outcome.statements,
        _ => inserts.rows,
    };
    let per_second = rows as f64 / step.outcome.seconds;
    let disk = |get: fn(&crate::domain::run::DiskUsage) -> f64| match &step.usage.disk {
        Some(disk) if step.usage.seconds > 0.0 => Ok(get(disk) / step.usage.seconds / per_second),
        Some(_) => Err("counters were not sampled".to_owned()),
        None => Err("the disk was not sampled".to_owned()),
    };
    metrics.push((Metric::WritesPerInsert, disk(|disk| disk.writes as f64)));
    metrics.push((Metric::WriteKbPerInsert, disk(|disk| disk.write_kb)));
    let latencies = [
        ("inserts", Metric::InsertMax, Metric::InsertP99),
        ("deletes", Metric::DeleteMax, Metric::DeleteP99),
    ];
    for (name, max, p99) in latencies {
        let Some(role) = roles.get(name) else { continue };
        // Of classes alone no quantile is known; the longest is taken over by itself.
        if role.latency.is_empty() {
            continue;
        }
        let read = Histogram::from_base64(&role.latency).and_then(|all| match all.total() {
            0 => Err("no operation was completed".to_owned()),
            _ => Ok(all.quantiles([0.99, 1.0])),
        });
        let in_ms = |place: usize| read.clone().map(|values| values[place] as f64 / 1e6);
        metrics.push((p99, in_ms(0)));
        metrics.push((max, in_ms(1)));
    }
    let column = if step.rate == RateUnit::RowsInserted { "inserts" } else { "queries" };
    if let Some(seconds) = step.outcome.series.get(column) {
        metrics.extend(of_seconds(seconds));
        let stalled: std::collections::BTreeSet<usize> =
            ROLES.iter().flat_map(|(role, _)| stalls::stretches(step, role)).flatten().collect();
        if !stalls::makes_indexes(step) {
            metrics.push((Metric::StalledSeconds, Ok(stalled.len() as f64)));
        }
    }
    metrics
}

/// Fewer seconds have no quantiles (published).
const SECONDS_MIN: usize = 10;

fn of_seconds(seconds: &[f64]) -> Vec<(Metric, Result<f64, String>)> {
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

/// The numbers of a metrics row but for its target, as the published tables of the benchmark have
/// them. "Per operation" is per inserted row in steps that load and per query in query steps; `wpi`
/// and `wkbpi` are per inserted row always. The rate of `l.x` is that of indexed rows.
pub fn columns(values: &Values, is_query: bool, cpus: u32) -> [Option<f64>; 20] {
    let get = |metric| values.get(metric);
    let rate = get(Metric::Rate);
    let inserts = if is_query { get(Metric::InsertRate) } else { rate };
    let times = |a: Option<f64>, b: Option<f64>| Some(a? * b?);
    let per_operation = |metric| get(metric);
    let reads = per_operation(Metric::ReadsPerOp);
    let read_kb = per_operation(Metric::ReadKbPerOp);
    let mib = |kib: Option<f64>| kib.map(|kib| kib / 1024.0);
    let gib = |metric| mib(get(metric));
    // What was published as such stands above what follows from other columns.
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

/// Medians of [`columns`] over the samples of a target, in the order of the columns.
pub fn median_columns(
    comparison: &Comparison,
    step: &StepComparison,
    target: usize,
) -> [Option<f64>; 20] {
    let is_query = is_query_step(&step.name);
    let rows: Vec<[Option<f64>; 20]> = step.targets[target]
        .samples
        .iter()
        .map(|sample| columns(&sample.values, is_query, cpus_of(comparison, sample)))
        .collect();
    std::array::from_fn(|column| {
        let numbers: Vec<f64> = rows.iter().filter_map(|row| row[column]).collect();
        median(&numbers)
    })
}

fn cpus_of(comparison: &Comparison, sample: &Sample) -> u32 {
    let run = &comparison.runs[sample.run];
    comparison.hosts.get(&run.host_fingerprint).map_or(1, |host| host.cpus)
}

/// Ratios of [`columns`] to those of the base, in the order of the columns: over the pairs that the
/// comparison has, by the rules of its own ratios ([`crate::analyze::compare::compare`]).
pub fn relative_columns(
    comparison: &Comparison,
    step: &StepComparison,
    target: usize,
) -> [Option<f64>; 20] {
    let is_query = is_query_step(&step.name);
    let of = |target: usize| {
        step.targets[target].samples.iter().map(move |sample| {
            let values = columns(&sample.values, is_query, cpus_of(comparison, sample));
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
        let both = pairs.iter().filter_map(|(base, own)| Some((base[column]?, own[column]?)));
        paired_ratio(&both.collect::<Vec<_>>())
    })
}

/// Target / base over pairs of base and target.
fn paired_ratio(pairs: &[(f64, f64)]) -> Option<f64> {
    let medians = || {
        let (bases, targets): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(field_ratio(median(&targets)?, median(&bases)?))
    };
    if pairs.len() == 1 || pairs.iter().any(|(base, target)| *base <= 0.0 || *target <= 0.0) {
        return medians();
    }
    let sum: f64 = pairs.iter().map(|(base, target)| target.ln() - base.ln()).sum();
    (!pairs.is_empty()).then(|| (sum / pairs.len() as f64).exp())
}

/// The target rate of inserts of a query step, rows per second.
pub fn insert_target(comparison: &Comparison, step: &StepComparison, target: usize) -> Option<f64> {
    let workload = comparison.targets[target].workloads.first();
    let clients = workload.map_or(0, |workload| workload.clients);
    let samples = step.targets[target].samples.iter();
    samples.filter_map(|sample| write_rate::target(&sample.record, clients)).next()
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
