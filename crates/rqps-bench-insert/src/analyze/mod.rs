//! Metrics and rules of the Insert Benchmark.

pub mod rules;

use std::collections::BTreeMap;
use std::ops::Range;

use rqps_analysis::Extension;
use rqps_analysis::caveat::{
    Caveat, CaveatKind, Evidence, WRITE_BACK_MIN_KB, most, percent, worst,
};
use rqps_analysis::comparison::{Comparison, MissedRate, StepComparison, TargetResult};
use rqps_analysis::measurement::Histogram;
use rqps_analysis::measurement::{Measurement, MetricValue, SecondFigures};
use rqps_analysis::pairing::{PairKey, field_ratio, pair_key};
use rqps_model::benchmark::{BenchmarkParameters, RateUnit, Workload};
use rqps_model::metric::Metric;
use rqps_model::run::{DiskUsage, HostUsage, SECOND_MIN, Second, ServerEvent, StepRecord, Usage};
use rqps_stats::stability;
use rqps_stats::summary::median;
use rules::{SLA_SHARE, counts_queries, meets_sla, target_rate};

/// The hooks.
pub(crate) const EXTENSION: Extension = Extension {
    in_sequence: true,
    by_second: Some(|rows| SecondFigures { series: host_series(rows), ..Default::default() }),
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
/// - `stall_s`: seconds in which inserts, deletes or queries stalled ([`stretches`]).
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
        let stalled: std::collections::BTreeSet<usize> =
            ROLES.iter().flat_map(|(role, _)| stretches(step, role)).flatten().collect();
        if !makes_indexes(step) {
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

// Stalls and longest operations with their times, and the activity of server and host then: from
// the server's log, its counters of each second, and the host's counters.

/// Roles: the column of their rate, and the name of one operation.
pub const ROLES: [(&str, &str); 3] =
    [("inserts", "insert"), ("deletes", "delete"), ("queries", "query")];

/// Consecutive seconds with hardly any operations of a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// `inserts`, `deletes`, `queries`.
    pub role: &'static str,
    /// Its first second, from 0.
    pub from: usize,
    /// Its length in whole seconds.
    pub seconds: usize,
    /// The longest operation that ended in the stall or in the second after it, ms.
    pub longest_ms: f64,
    /// Activity of server and host until the end of the stall, from its start or from the start of
    /// that operation if earlier.
    pub activity: String,
}

/// The stalls of a role in a step, as ranges of seconds from 0. None in a step that makes indexes,
/// because it inserts nothing meanwhile.
pub fn stretches(step: &StepRecord, role: &str) -> Vec<Range<usize>> {
    match step.outcome.series.get(role) {
        Some(series) if !makes_indexes(step) => stability::stalls(series),
        _ => Vec::new(),
    }
}

/// True for a step that makes indexes.
pub fn makes_indexes(step: &StepRecord) -> bool {
    step.outcome.extra.contains_key(&Metric::IndexSeconds)
}

/// All stalls of a sample in time order.
pub fn stalls(sample: &Measurement) -> Vec<Stall> {
    let mut stalls = Vec::new();
    for (role, _) in ROLES {
        for stall in stretches(&sample.record, role) {
            let longest = longest_in(sample, role, stall.start, stall.end + 1);
            let begun = longest.map_or(f64::MAX, |(second, ms)| begun(second, ms));
            stalls.push(Stall {
                role,
                from: stall.start,
                seconds: stall.len(),
                longest_ms: longest.map_or(0.0, |(_, ms)| ms),
                activity: activity(sample, begun.min(stall.start as f64), stall.end as f64),
            });
        }
    }
    stalls.sort_by_key(|stall| stall.from);
    stalls
}

/// Earliest start, in seconds, of an operation of `ms` milliseconds that ended in `second` (from
/// 0).
pub fn begun(second: usize, ms: f64) -> f64 {
    second as f64 - ms / 1e3
}

/// The second in which the longest operation of a role ended, from 0, and its length in ms.
pub fn longest(sample: &Measurement, role: &str) -> Option<(usize, f64)> {
    longest_in(sample, role, 0, usize::MAX)
}

fn longest_in(sample: &Measurement, role: &str, from: usize, to: usize) -> Option<(usize, f64)> {
    let series = sample.record.outcome.series.get(&format!("{role}_max_us"))?;
    let seconds = from.min(series.len())..to.min(series.len());
    let place = seconds.max_by(|a, b| series[*a].total_cmp(&series[*b]))?;
    Some((place, series[place] / 1e3))
}

/// The longest operation of a role by its metric, s. Steps of less than a second have no series.
pub fn longest_of(sample: &Measurement, role: &str) -> f64 {
    let metric = match role {
        "inserts" => Metric::InsertMax,
        "deletes" => Metric::DeleteMax,
        _ => Metric::Max,
    };
    sample.get(metric).unwrap_or(0.0) / 1e3
}

/// Checkpoints and flushing in the server's log: start and end in seconds of the window, and kind.
/// Without vacuum, which never rests.
pub fn flushing(sample: &Measurement) -> Vec<(f64, f64, &str)> {
    let mut spans = Vec::new();
    for event in &sample.record.outcome.server_log {
        if let Some(took) = event.took_seconds
            && ["checkpoint", "flush"].contains(&event.kind.as_str())
        {
            spans.push(((event.at_seconds - took).max(0.0), event.at_seconds, &*event.kind));
        }
    }
    spans
}

/// Activity of server and host in the seconds `from` to `to` of the window; counters only if they
/// are unusual.
pub fn activity(sample: &Measurement, from: f64, to: f64) -> String {
    let outcome = &sample.record.outcome;
    let from = from.max(0.0);
    let mut all = logged(&outcome.server_log, from, to);
    all.extend(counted(&outcome.series, from as usize, to.ceil() as usize));
    if all.is_empty() { "no known cause".to_owned() } else { all.join("; ") }
}

/// The start of Postgres's log line about the start of a checkpoint; its end has its own line.
const CHECKPOINT_BEGINS: &str = "checkpoint starting";

fn logged(events: &[ServerEvent], from: f64, to: f64) -> Vec<String> {
    let begun = |event: &ServerEvent| event.at_seconds - event.took_seconds.unwrap_or(0.0);
    // A checkpoint whose end is not in the log of this step has only a start.
    let is_under_way = |place: usize| {
        events[place].text.starts_with(CHECKPOINT_BEGINS)
            && !events[place..]
                .iter()
                .any(|later| later.kind == events[place].kind && later.took_seconds.is_some())
    };
    let mut all = Vec::new();
    for (place, event) in events.iter().enumerate().filter(|(_, event)| begun(event) < to) {
        let (kind, at) = (&event.kind, event.at_seconds);
        let text = match event.took_seconds {
            Some(took) if at >= from => format!("{kind} of {took:.1} s ending at {at:.1} s"),
            None if is_under_way(place) => format!("{kind} under way since {at:.1} s"),
            None if at >= from && !event.text.starts_with(CHECKPOINT_BEGINS) => {
                format!("{kind} at {at:.1} s ({})", event.text)
            }
            _ => continue,
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// Smallest reported share of all CPUs that waits or is stolen.
const NOTABLE_SHARE: f64 = 0.05;
/// Smallest reported mean time of a disk read or write, ms.
const DISK_NOTABLE_MS: f64 = 0.05;
/// Smallest reported share of the redo log in use. The fuller it is, the more InnoDB flushes; when
/// it is full, InnoDB stops writes.
const REDO_NOTABLE: f64 = 0.7;

/// The condition for reporting a counter.
#[derive(Clone, Copy, PartialEq)]
enum Worth {
    /// If it moved at all.
    Moved,
    /// If its highest second is more than twice the median second, and at least this.
    Unusual(f64),
}

/// A counter in the seconds of a stall.
#[derive(Clone, Copy)]
struct Reading {
    /// The sum over those seconds.
    sum: f64,
    /// The highest second.
    top: f64,
    /// The median second of the step.
    usual: f64,
}

/// Makes the text about a counter.
type Words = fn(Reading) -> String;

/// Columns that show background work, with their texts.
const TOLD: [(&str, Worth, Words); 12] = [
    ("min_key_s", Worth::Unusual(0.1), |it| {
        format!("writers waited {:.1} s for the smallest key", it.sum)
    }),
    ("server_autovacuum_workers", Worth::Moved, |it| match it.top {
        1.0 => "autovacuum active".to_owned(),
        most => format!("{most:.0} autovacuum workers"),
    }),
    ("server_checkpoint_pages", Worth::Moved, |it| format!("checkpoint wrote {:.0} pages", it.sum)),
    ("server_backend_pages", Worth::Moved, |it| format!("backends wrote {:.0} pages", it.sum)),
    ("server_log_waits", Worth::Moved, |it| format!("{:.0} waits for the log buffer", it.sum)),
    ("server_free_page_waits", Worth::Moved, |it| format!("{:.0} waits for a free page", it.sum)),
    ("server_write_stall_us", Worth::Moved, |it| {
        format!("writes throttled for {:.1} s in total", it.sum / 1e6)
    }),
    ("server_pages_flushed", Worth::Unusual(1.0), |it| {
        format!("{:.0} pages flushed in a second (usually {:.0})", it.top, it.usual)
    }),
    ("disk_read_ms", Worth::Unusual(DISK_NOTABLE_MS), |it| {
        format!("a disk read took {:.2} ms ({})", it.top, usually_ms(it.usual))
    }),
    ("disk_write_ms", Worth::Unusual(DISK_NOTABLE_MS), |it| {
        format!("a disk write took {:.2} ms ({})", it.top, usually_ms(it.usual))
    }),
    ("host_iowait", Worth::Unusual(NOTABLE_SHARE), |it| {
        let (top, usual) = (rounded_percent(it.top), rounded_percent(it.usual));
        format!("CPUs waited for a disk {top} of the time (usually {usual})")
    }),
    ("host_steal", Worth::Unusual(NOTABLE_SHARE), |it| {
        let (top, usual) = (rounded_percent(it.top), rounded_percent(it.usual));
        format!("the hypervisor took {top} of the CPUs (usually {usual})")
    }),
];

fn counted(series: &BTreeMap<String, Vec<f64>>, from: usize, to: usize) -> Vec<String> {
    let within = |values: &[f64]| values[from.min(values.len())..to.min(values.len())].to_vec();
    let top = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let told = |(column, worth, words): &(&str, Worth, Words)| {
        let all = series.get(*column)?;
        let within = within(all);
        let it = Reading { sum: within.iter().sum(), top: top(&within), usual: median(all)? };
        let is_told = match worth {
            Worth::Moved => it.top > 0.0,
            Worth::Unusual(least) => it.top > 2.0 * it.usual && it.top >= *least,
        };
        is_told.then(|| words(it))
    };
    let redo = redo_in_use(series).map(|shares| top(&within(&shares)));
    let redo = redo.filter(|share| *share >= REDO_NOTABLE);
    let redo = redo.map(|share| format!("redo log {} in use", rounded_percent(share)));
    redo.into_iter().chain(TOLD.iter().filter_map(told)).collect()
}

/// The share of the redo log in use in each second, if the server reported both numbers.
fn redo_in_use(series: &BTreeMap<String, Vec<f64>>) -> Option<Vec<f64>> {
    let (used, capacity) = (series.get("server_redo_used")?, series.get("server_redo_capacity")?);
    let share = |(used, capacity): (&f64, &f64)| used / capacity.max(1.0);
    Some(used.iter().zip(capacity).map(share).collect())
}

/// A mean time per operation; 0 in a median second without operations.
fn usually_ms(usual: f64) -> String {
    if usual > 0.0 { format!("usually {usual:.2}") } else { "usually none".to_owned() }
}

fn rounded_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The host's activity in each second of a step, to explain its stalls: shares of all CPUs that
/// waited for a disk and that the hypervisor took, and mean milliseconds per read and write of the
/// data's disk. Empty if any of them was not sampled. Without partial seconds, like other series.
pub fn host_series(seconds: &[Second]) -> BTreeMap<String, Vec<f64>> {
    let whole = seconds.iter().filter(|second| second.seconds >= SECOND_MIN);
    let sampled: Option<Vec<&Usage>> = whole.map(|second| second.usage.as_ref()).collect();
    let Some(sampled) = sampled else { return BTreeMap::new() };
    let mut columns = BTreeMap::new();
    let mut add = |name: &str, values: Vec<f64>| {
        let rounded = values.into_iter().map(|value| (value * 1e4).round() / 1e4);
        columns.insert(name.to_owned(), rounded.collect());
    };
    let of_host = |part: fn(&HostUsage) -> f64| {
        let share = |usage: &&Usage| {
            let cpu_seconds = f64::from(usage.host.cpus) * usage.seconds;
            if cpu_seconds > 0.0 { part(&usage.host) / cpu_seconds } else { 0.0 }
        };
        sampled.iter().map(share).collect()
    };
    add("host_iowait", of_host(|host| host.iowait));
    add("host_steal", of_host(|host| host.steal));
    let disks: Option<Vec<&DiskUsage>> = sampled.iter().map(|usage| usage.disk.as_ref()).collect();
    if let Some(disks) = disks {
        let each = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        add("disk_read_ms", disks.iter().map(|disk| each(disk.read_ms, disk.reads)).collect());
        add("disk_write_ms", disks.iter().map(|disk| each(disk.write_ms, disk.writes)).collect());
    }
    columns
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

#[cfg(test)]
mod stalls_tests {
    use super::*;
    use rqps_model::benchmark::{Group, RateUnit};
    use rqps_model::run::Outcome;

    fn sample(series: &[(&str, Vec<f64>)], server_log: Vec<ServerEvent>) -> Measurement {
        let series = series.iter().map(|(name, values)| ((*name).to_owned(), values.clone()));
        let outcome = Outcome { series: series.collect(), server_log, ..Outcome::default() };
        let empty = StepRecord::empty(1, "l.i1", Group::Load, RateUnit::RowsInserted);
        let record = StepRecord { outcome, ..empty };
        Measurement::of(record.into())
    }

    #[test]
    fn a_stall_is_dated_and_told_with_the_servers_work() {
        let mut inserts = vec![1000.0; 30];
        inserts[10] = 0.0;
        inserts[11] = 50.0;
        inserts[20] = 99.0;
        let mut longest_us = vec![2_000.0; 30];
        longest_us[12] = 2_345_000.0;
        let mut pages = vec![0.0; 30];
        pages[11] = 700.0;
        let checkpoint = ServerEvent {
            at_seconds: 12.5,
            took_seconds: Some(4.0),
            kind: "checkpoint".to_owned(),
            text: "checkpoint complete".to_owned(),
        };
        let series = [
            ("inserts", inserts),
            ("inserts_max_us", longest_us),
            ("server_checkpoint_pages", pages),
        ];
        let sample = sample(&series, vec![checkpoint]);
        let found = stalls(&sample);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].role, found[0].from, found[0].seconds), ("inserts", 10, 2));
        assert_eq!(found[0].longest_ms, 2345.0);
        assert_eq!(
            found[0].activity,
            "checkpoint of 4.0 s ending at 12.5 s; checkpoint wrote 700 pages"
        );
        assert_eq!((found[1].from, found[1].activity.as_str()), (20, "no known cause"));
        assert_eq!(longest(&sample, "inserts"), Some((12, 2345.0)));
    }

    #[test]
    fn a_step_without_work_has_no_stalls() {
        assert_eq!(stalls(&sample(&[("inserts", vec![0.0; 20])], vec![])), []);
        assert_eq!(stalls(&sample(&[("queries", vec![])], vec![])), []);
    }

    fn event(at_seconds: f64, took_seconds: Option<f64>, kind: &str, text: &str) -> ServerEvent {
        ServerEvent { at_seconds, took_seconds, kind: kind.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_checkpoint_is_told_by_its_end_or_as_under_way() {
        let begins = event(3.0, None, "checkpoint", "checkpoint starting: wal");
        let ends = event(7.0, Some(4.0), "checkpoint", "checkpoint complete: wrote 47 buffers");
        let told = |events: &[ServerEvent]| logged(events, 5.0, 6.0);
        assert_eq!(
            told(&[begins.clone(), ends.clone()]),
            ["checkpoint of 4.0 s ending at 7.0 s"],
            "its beginning is part of it"
        );
        assert_eq!(told(std::slice::from_ref(&begins)), ["checkpoint under way since 3.0 s"]);
        let vacuum = event(8.0, Some(0.5), "vacuum", "automatic vacuum of table");
        assert_eq!(told(&[begins, vacuum]), ["checkpoint under way since 3.0 s"]);
        let often = event(5.5, None, "checkpoint", "checkpoints are occurring too frequently");
        assert_eq!(
            told(&[often]),
            ["checkpoint at 5.5 s (checkpoints are occurring too frequently)"]
        );
        let before = event(4.9, Some(2.0), "checkpoint", "checkpoint complete");
        assert_eq!(told(&[before]), Vec::<String>::new());
    }

    #[test]
    fn of_counters_the_unusual_is_told() {
        let with_peak = |usual: f64, peak: f64| {
            let mut values = vec![usual; 9];
            values[4] = peak;
            values
        };
        let series: BTreeMap<String, Vec<f64>> = [
            ("server_pages_flushed", with_peak(5000.0, 9000.0)),
            ("server_redo_used", with_peak(60.0, 95.0)),
            ("server_redo_capacity", vec![100.0; 9]),
            ("disk_write_ms", with_peak(0.02, 0.31)),
            ("disk_read_ms", with_peak(0.0, 0.2)),
            ("host_iowait", with_peak(0.05, 0.43)),
            ("host_steal", with_peak(0.0, 0.04)),
            ("min_key_s", with_peak(0.0, 0.9)),
        ]
        .map(|(name, values)| (name.to_owned(), values))
        .into();
        assert_eq!(
            counted(&series, 3, 6),
            [
                "redo log 95 % in use",
                "writers waited 0.9 s for the smallest key",
                "a disk read took 0.20 ms (usually none)",
                "a disk write took 0.31 ms (usually 0.02)",
                "CPUs waited for a disk 43 % of the time (usually 5 %)",
            ]
        );
        assert_eq!(counted(&series, 5, 9), Vec::<String>::new());
        assert_eq!(counted(&series, 20, 30), Vec::<String>::new(), "after the last second");
    }

    #[test]
    fn columns_of_the_host_are_shares_and_means() {
        let host = HostUsage { cpus: 2, iowait: 0.5, steal: 0.1, ..HostUsage::default() };
        let disk = DiskUsage { writes: 200, write_ms: 62, ..DiskUsage::default() };
        let usage = Usage { seconds: 1.0, host, disk: Some(disk), ..Usage::default() };
        let second = Second { seconds: 1.0, usage: Some(usage), ..Second::default() };
        let remnant = Second { seconds: 0.2, ..Second::default() };
        let columns = host_series(&[second.clone(), remnant]);
        assert_eq!(columns["host_iowait"], [0.25]);
        assert_eq!(columns["host_steal"], [0.05]);
        assert_eq!((columns["disk_write_ms"][0], columns["disk_read_ms"][0]), (0.31, 0.0));
        let unsampled = Second { usage: None, ..second.clone() };
        assert_eq!(host_series(&[second, unsampled]), BTreeMap::new());
    }
}
