//! The RocksDB sequence in the analysis: metrics from the library's statistics and from seconds,
//! and caveats.
//!
//! Metrics of the RocksDB sequence, from the library's statistics at the end of a step and from the
//! step's own counts. docs/kv.md has each formula, and the errors of the published ones.

use std::collections::{BTreeMap, BTreeSet};

use rqps_analysis::Extension;
use rqps_analysis::caveat::{Caveat, Evidence, too_large};
use rqps_analysis::measurement::{Histogram, Latencies};
use rqps_analysis::measurement::{MetricValue, SecondFigures};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::kv::{KvOption, READAHEAD_BYTES, READAHEAD_OPTION};
use rqps_model::metric::Metric;
use rqps_model::run::{DiskUsage, RunRecord, SECOND_MIN, Second, StepRecord, Usage};
use rqps_stats::{stability, summary};

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// Name of the library's statistics in the texts of a step's record.
pub const STATS: &str = "stats";

/// The hooks.
pub(crate) const EXTENSION: Extension = Extension {
    by_second: Some(|rows| SecondFigures { means: averages(rows), ..Default::default() }),
    measure: own_metrics,
    caveats,
    ..Extension::none("kv")
};

/// The metrics of a step; none for other benchmarks and for imported results.
fn own_metrics(step: &StepRecord, latencies: &Latencies) -> Vec<MetricValue> {
    let text = step.outcome.facts.get(STATS).filter(|_| step.imported.is_none());
    let Some(text) = text else { return Vec::new() };
    let stats = parse(text);
    let outcome = &step.outcome;
    let mut values = Vec::new();
    if outcome.seconds > 0.0 {
        values.push((Metric::MbPerSecond, outcome.bytes as f64 / MIB / outcome.seconds));
    }
    values.extend(tree(&stats, written_bytes(step)));
    values.extend(stalls(&stats));
    if let Ok(histogram) = latencies {
        values.extend(latency(histogram));
    }
    if let Some(evenness) = stability::evenness(&step.per_second) {
        values.push((Metric::RateVariation, 100.0 * evenness.cv));
    }
    let stopped = outcome.turns.as_ref().is_some_and(|turns| turns.stopped);
    let one = |(metric, number)| match metric {
        _ if stopped && BY_ITS_CLOCK.contains(&metric) => (metric, Err(RAN_ON.to_owned())),
        _ => (metric, Ok(number)),
    };
    values.into_iter().map(one).collect()
}

/// What the library measures by its own clock, which no page of ours can correct.
const BY_ITS_CLOCK: [Metric; 3] = [
    Metric::CompactionMbPerSecond,
    Metric::CompactionWallSeconds,
    Metric::CompactionWallSecondsCompat,
];

const RAN_ON: &str = "the library's clock ran on while the process stood still in the turns of \
                      other targets";

/// Bytes of the keys and values put by the clients and the background writer.
fn written_bytes(step: &StepRecord) -> f64 {
    let outcome = &step.outcome;
    let clients = if outcome.writes > 0 { outcome.bytes as f64 } else { 0.0 };
    let writer = outcome.roles.get("writer").map_or(0, |role| role.operations) as f64;
    let per_put = match &outcome.roles.get("writer") {
        // The writer's puts are as long as those of clients; `bytes` of a read counts key and value
        // too.
        Some(_) if outcome.rows > 0 => outcome.bytes as f64 / outcome.rows as f64,
        _ => 0.0,
    };
    clients + writer * per_put
}

/// Metrics of the tree, of which the clients wrote so many bytes.
pub fn tree(stats: &Stats, written_bytes: f64) -> Vec<(Metric, f64)> {
    let mut values = Vec::new();
    let mut put = |metric, value: Option<f64>| {
        values.extend(value.map(|value| (metric, value)));
    };
    let sum = stats.sum.as_ref();
    put(Metric::LsmSize, sum.map(|sum| sum.bytes / GIB));
    put(Metric::BlobSize, stats.blob_gb);
    put(Metric::CompactionWritten, stats.compaction_written_gb);
    put(Metric::CompactionMbPerSecond, stats.compaction_mb_per_second);
    put(Metric::CompactionWallSeconds, sum.and_then(|sum| sum.get("Comp(sec)")));
    put(Metric::CompactionCpuSeconds, sum.and_then(|sum| sum.get("CompMergeCPU(sec)")));
    put(Metric::BlobRead, sum.and_then(|sum| sum.get("Rblob(GB)")));
    put(Metric::BlobWritten, sum.and_then(|sum| sum.get("Wblob(GB)")));
    // Field positions as awk counts them, with the name and both parts of the size.
    put(Metric::CompactionWallSecondsCompat, sum.and_then(|sum| sum.field(15)));
    put(Metric::CompactionCpuSecondsCompat, sum.and_then(|sum| sum.field(16)));
    put(Metric::BlobReadCompat, sum.and_then(|sum| sum.field(21)));
    put(Metric::BlobWrittenCompat, sum.and_then(|sum| sum.field(22)));
    let tree = stats.compaction_written_gb;
    if written_bytes > 0.0 {
        put(Metric::WriteAmp, tree.map(|tree| tree * GIB / written_bytes));
    }
    let ingest = stats.ingest_gb.filter(|ingest| *ingest > 0.0);
    let compat = |((tree, flush), ingest)| (tree + flush) / ingest;
    put(Metric::WriteAmpCompat, tree.zip(stats.flush_gb).zip(ingest).map(compat));
    values
}

/// Metrics of stalled writes.
pub fn stalls(stats: &Stats) -> Vec<(Metric, f64)> {
    let mut values = Vec::new();
    values.extend(stats.stall_percent.map(|percent| (Metric::StallPercent, percent)));
    let counts = [
        (Metric::StallL0Delays, "l0-file-count-limit-delays"),
        (Metric::StallL0Stops, "l0-file-count-limit-stops"),
        (Metric::StallMemtableDelays, "memtable-limit-delays"),
        (Metric::StallMemtableStops, "memtable-limit-stops"),
        (Metric::StallPendingDelays, "pending-compaction-bytes-delays"),
        (Metric::StallPendingStops, "pending-compaction-bytes-stops"),
    ];
    let mut sum = None;
    for (metric, name) in counts {
        if let Some(count) = stats.stalls.get(name) {
            values.push((metric, *count as f64));
            sum = Some(sum.unwrap_or(0.0) + *count as f64);
        }
    }
    // They are part of the l0 counts, and so not added.
    let among = [
        (Metric::StallL0DelaysBusy, "cf-l0-file-count-limit-delays-with-ongoing-compaction"),
        (Metric::StallL0StopsBusy, "cf-l0-file-count-limit-stops-with-ongoing-compaction"),
    ];
    for (metric, name) in among {
        if let Some(count) = stats.stalls.get(name) {
            values.push((metric, *count as f64));
        }
    }
    values.extend(sum.map(|sum| (Metric::StallCount, sum)));
    values
}

fn latency(histogram: &Histogram) -> Vec<(Metric, f64)> {
    let mut values = Vec::new();
    if histogram.total() == 0 {
        return values;
    }
    let [p9999] = histogram.quantiles([0.9999]);
    if histogram.total() >= 10 * P9999_EVENTS {
        values.push((Metric::P9999, p9999 as f64 / 1e6));
    }
    let buckets = Buckets::of(histogram);
    let compat = [
        (Metric::P50Compat, 50.0),
        (Metric::P99Compat, 99.0),
        (Metric::P999Compat, 99.9),
        (Metric::P9999Compat, 99.99),
    ];
    values.extend(compat.map(|(metric, percent)| (metric, buckets.percentile(percent))));
    values.push((Metric::MaxCompat, buckets.max()));
    values
}

/// Fewest events for a 99.99th percentile.
const P9999_EVENTS: u64 = 10_000;

/// The caveat on compaction readahead that exceeds one request of the disk.
fn caveats(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    let mut seen = BTreeSet::new();
    for run in &evidence.dataset.runs {
        let Some(tuning) = evidence.dataset.tunings.get(&run.result_set) else { continue };
        let limit = tuning.max_sectors_kb.zip(readahead_kb(&run.record));
        let Some((limit_kb, kb)) = limit.filter(|(limit_kb, kb)| kb > limit_kb) else { continue };
        let label = &run.record.key.label;
        if seen.insert((label, kb, limit_kb)) {
            caveats.push(too_large(Some(label.clone()), READAHEAD_OPTION, kb, limit_kb));
        }
    }
    caveats
}

/// The readahead of the settings or else the configuration, KiB; `None` for other benchmarks.
fn readahead_kb(record: &RunRecord) -> Option<u64> {
    let BenchmarkParameters::Kv(shape) = &record.workload.shape else { return None };
    let user = shape.options.get(READAHEAD_OPTION).cloned();
    let mut lines = record.config.text.lines().filter_map(|line| KvOption::parse(line).ok());
    let config = lines.rfind(|option| option.key == READAHEAD_OPTION);
    // Without a setting, the library's default holds, which differs by version.
    let bytes = match user.or(config.map(|option| option.value)) {
        Some(text) => text.parse().ok()?,
        None => READAHEAD_BYTES,
    };
    Some(bytes >> 10)
}

// Reads RocksDB's statistics text (property `rocksdb.stats`) of all versions since 6.0. Columns
// are found by their heads, because 10.3 inserted one.

const KIB: f64 = 1024.0;

/// RocksDB's statistics; `None` for values that the text does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Rows of the compaction table by level, without its sums.
    pub levels: Vec<TreeLevel>,
    /// The row ` Sum`.
    pub sum: Option<TreeLevel>,
    /// Written by flushes and compactions since opening, GiB.
    pub compaction_written_gb: Option<f64>,
    /// Rate of these writes, MiB per second of uptime.
    pub compaction_mb_per_second: Option<f64>,
    /// Written by flushes alone, GiB.
    pub flush_gb: Option<f64>,
    /// Put by clients, GiB, to two digits.
    pub ingest_gb: Option<f64>,
    /// Size of the blob files, GiB.
    pub blob_gb: Option<f64>,
    /// Seconds since opening.
    pub uptime_seconds: Option<f64>,
    /// Share of the uptime in which the leader of a write group was delayed or stopped, per cent.
    pub stall_percent: Option<f64>,
    /// Number of delays and stops of writes by cause, with the names of 8.1 and later. Neither
    /// their time nor the affected writes.
    pub stalls: BTreeMap<String, u64>,
}

/// A row of the compaction table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeLevel {
    /// `L0`, `Sum`.
    pub name: String,
    /// Number of files, and how many of them are being compacted: `4/0`.
    pub files: String,
    /// Bytes of the files.
    pub bytes: f64,
    /// Numbers by head, from `Score` on.
    columns: Vec<(String, f64)>,
    /// All fields of the line.
    fields: Vec<String>,
}

impl TreeLevel {
    /// A number by the head of its column: `Comp(sec)`.
    pub fn get(&self, head: &str) -> Option<f64> {
        self.columns.iter().find(|(name, _)| name == head).map(|(_, value)| *value)
    }

    /// A field by its position in the line, from 1, as published scripts read it.
    pub fn field(&self, place: usize) -> Option<f64> {
        number(self.fields.get(place.checked_sub(1)?)?)
    }
}

/// Reads the text. Skips lines of an unknown form; the last line of a kind counts.
pub fn parse(text: &str) -> Stats {
    let (mut stats, mut heads) = (Stats::default(), Vec::new());
    text.lines().for_each(|line| stats.take(line, &mut heads));
    stats
}

impl Stats {
    /// Takes a line. `heads` are those of the table of levels that it may be of.
    pub fn take(&mut self, line: &str, heads: &mut Vec<String>) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Level", "Files", "Size", rest @ ..] => {
                *heads = rest.iter().map(|head| (*head).to_owned()).collect();
            }
            ["Priority", ..] => heads.clear(),
            [name, files, size, unit, ..] if !heads.is_empty() && files.contains('/') => {
                if let Some(bytes) = scaled(size, unit) {
                    let level = level(name, files, bytes, heads, &words);
                    match *name {
                        "Sum" => self.sum = Some(level),
                        "Int" => {}
                        _ => self.levels.push(level),
                    }
                }
            }
            _ => facts(self, line),
        }
    }
}

fn level(name: &str, files: &str, bytes: f64, heads: &[String], words: &[&str]) -> TreeLevel {
    let values = words.iter().skip(4).map(|word| number(word));
    let columns = heads.iter().cloned().zip(values);
    TreeLevel {
        name: name.to_owned(),
        files: files.to_owned(),
        bytes,
        columns: columns.filter_map(|(head, value)| Some((head, value?))).collect(),
        fields: words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

fn facts(stats: &mut Stats, line: &str) {
    if let Some(rest) = line.strip_prefix("Cumulative compaction: ") {
        stats.compaction_written_gb = before(rest, " write").and_then(gigabytes);
        let speed = rest.split(", ").nth(1).and_then(|part| part.split_whitespace().next());
        stats.compaction_mb_per_second = speed.and_then(number);
    } else if let Some(rest) = line.strip_prefix("Flush(GB): cumulative ") {
        stats.flush_gb = before(rest, ",").and_then(number);
    } else if line.starts_with("Cumulative writes: ") {
        let ingest = line.split_once("ingest: ").and_then(|(_, rest)| before(rest, ","));
        stats.ingest_gb = ingest.and_then(gigabytes);
    } else if let Some(rest) = line.strip_prefix("Blob file count: ") {
        let size = rest.split_once("total size: ").and_then(|(_, rest)| before(rest, ","));
        stats.blob_gb = size.and_then(gigabytes);
    } else if let Some(rest) = line.strip_prefix("Uptime(secs): ") {
        stats.uptime_seconds = before(rest, " total").and_then(number);
    } else if line.starts_with("Cumulative stall: ") {
        let percent = line.split_once("H:M:S, ").and_then(|(_, rest)| before(rest, " percent"));
        stats.stall_percent = percent.and_then(number);
    } else if let Some(rest) = line.strip_prefix("Write Stall (count): ") {
        stats.stalls.extend(new_stalls(rest));
    } else if let Some(rest) = line.strip_prefix("Stalls(count): ") {
        stats.stalls.extend(old_stalls(rest));
    }
}

fn before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    text.split_once(end).map(|(before, _)| before)
}

/// Reads causes of write stalls as `name: n, name: n, …`, the form since 8.1.
fn new_stalls(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.split(", ").filter_map(|part| {
        let (name, count) = part.split_once(": ")?;
        Some((name.trim().to_owned(), count.trim().parse().ok()?))
    })
}

/// Causes before 8.1 in the order of their line, and their names since.
const OLD_STALLS: [(&str, &str); 8] = [
    ("level0_slowdown", "l0-file-count-limit-delays"),
    ("level0_slowdown_with_compaction", "cf-l0-file-count-limit-delays-with-ongoing-compaction"),
    ("level0_numfiles", "l0-file-count-limit-stops"),
    ("level0_numfiles_with_compaction", "cf-l0-file-count-limit-stops-with-ongoing-compaction"),
    ("stop for pending_compaction_bytes", "pending-compaction-bytes-stops"),
    ("slowdown for pending_compaction_bytes", "pending-compaction-bytes-delays"),
    ("memtable_compaction", "memtable-limit-stops"),
    ("memtable_slowdown", "memtable-limit-delays"),
];

/// Reads causes of write stalls as `n name, n name, …`, the form until 8.0.
fn old_stalls(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.split(", ").filter_map(|part| {
        let (count, name) = part.trim().split_once(' ')?;
        let (_, new) = OLD_STALLS.iter().find(|(old, _)| *old == name)?;
        Some(((*new).to_owned(), count.parse().ok()?))
    })
}

/// Reads `12`, `12K`, `3M`, `1G`: counts are shortened by powers of 1000.
fn number(word: &str) -> Option<f64> {
    let (digits, factor) = match word.as_bytes().last()? {
        b'K' => (&word[..word.len() - 1], 1e3),
        b'M' => (&word[..word.len() - 1], 1e6),
        b'G' => (&word[..word.len() - 1], 1e9),
        _ => (word, 1.0),
    };
    digits.parse::<f64>().ok().map(|value| value * factor)
}

/// Reads `0.28 GB`, `1.5 TB`, `512.00 MB` as GiB.
fn gigabytes(text: &str) -> Option<f64> {
    let (size, unit) = text.trim().split_once(' ')?;
    scaled(size, unit).map(|bytes| bytes / KIB.powi(3))
}

fn scaled(size: &str, unit: &str) -> Option<f64> {
    let power = match unit {
        "B" | "bytes" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    size.parse::<f64>().ok().map(|size| size * KIB.powi(power))
}

// db_bench's histogram: 109 limits in whole microseconds, with percentiles by linear interpolation
// between them. It is coarse, and published percentiles come from it.

/// Counts by db_bench's limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    limits: Vec<u64>,
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

/// The limits, µs: 1, 2, then each 1.5 times the one before, cut to two leading digits.
fn limits() -> Vec<u64> {
    let mut limits = vec![1, 2];
    let mut exact = 2.0f64;
    loop {
        exact *= 1.5;
        if exact > u64::MAX as f64 {
            return limits;
        }
        let whole = exact as u64;
        let power = 10u64.pow((whole.max(1).ilog10() + 1).saturating_sub(2));
        limits.push(whole / power * power);
    }
}

impl Buckets {
    /// Converts latencies to db_bench's form: nanoseconds become whole microseconds.
    pub fn of(histogram: &Histogram) -> Buckets {
        let limits = limits();
        let mut buckets =
            Buckets { counts: vec![0; limits.len()], limits, total: 0, min: u64::MAX, max: 0 };
        for (nanoseconds, count) in histogram.steps() {
            let value = nanoseconds / 1000;
            let place = buckets.limits.partition_point(|limit| *limit < value);
            buckets.counts[place.min(buckets.limits.len() - 1)] += count;
            buckets.total += count;
            buckets.min = buckets.min.min(value);
            buckets.max = buckets.max.max(value);
        }
        buckets
    }

    /// A percentile (0 to 100), µs; 0 without events.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = self.total as f64 * percent / 100.0;
        let mut below = 0.0;
        for (place, count) in self.counts.iter().enumerate() {
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                let left = if place == 0 { 0 } else { self.limits[place - 1] } as f64;
                let right = self.limits[place] as f64;
                let value = left + (right - left) * (wanted - below) / count;
                return value.clamp(self.min as f64, self.max as f64);
            }
            below += count;
        }
        self.max as f64
    }

    /// The largest latency, whole µs.
    pub fn max(&self) -> f64 {
        self.max as f64
    }
}

// Means of iostat and vmstat columns as in the published tables: plain means over one-second
// samples, not weighted by activity.

/// The means over the seconds of a step; empty without samples.
fn averages(seconds: &[Second]) -> BTreeMap<Metric, f64> {
    let mut columns: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
    let sampled = seconds.iter().filter_map(|second| second.usage.as_ref());
    for usage in sampled.filter(|usage| usage.seconds >= SECOND_MIN) {
        let disk = usage.disk.iter().flat_map(|disk| disk_columns(disk, usage.seconds));
        for (metric, value) in disk.chain(host_columns(usage)) {
            columns.entry(metric).or_default().push(value);
        }
    }
    columns.into_iter().map(|(metric, values)| (metric, summary::mean(&values))).collect()
}

fn disk_columns(disk: &DiskUsage, seconds: f64) -> [(Metric, f64); 8] {
    let each = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
    [
        (Metric::DiskReadsPerSecond, disk.reads as f64 / seconds),
        (Metric::DiskReadMbPerSecond, disk.read_kb / 1024.0 / seconds),
        (Metric::DiskReadAwait, each(disk.read_ms as f64, disk.reads)),
        (Metric::DiskReadSize, each(disk.read_kb, disk.reads)),
        (Metric::DiskWritesPerSecond, disk.writes as f64 / seconds),
        (Metric::DiskWriteMbPerSecond, disk.write_kb / 1024.0 / seconds),
        (Metric::DiskWriteAwait, each(disk.write_ms as f64, disk.writes)),
        (Metric::DiskWriteSize, each(disk.write_kb, disk.writes)),
    ]
}

/// vmstat's columns in per cent of all CPUs. Processes that only keep CPUs awake count as idle.
fn host_columns(usage: &Usage) -> Vec<(Metric, f64)> {
    let host = &usage.host;
    if host.cpus == 0 {
        return Vec::new();
    }
    let spinner = usage.spinner_cpu.total_us() / 1e6;
    let percent = |time: f64| 100.0 * time / (f64::from(host.cpus) * usage.seconds);
    vec![
        (Metric::ContextSwitchesPerSecond, host.context_switches as f64 / usage.seconds),
        (Metric::CpuUser, percent((host.user - spinner).max(0.0))),
        (Metric::CpuSystem, percent(host.system)),
        (Metric::CpuIdle, percent(host.idle + spinner)),
        (Metric::CpuWait, percent(host.iowait)),
    ]
}

#[cfg(test)]
mod buckets_tests {
    use super::*;

    fn buckets(values: &[(u64, u64)]) -> Buckets {
        let limits = limits();
        let mut counts = vec![0; limits.len()];
        for (value, count) in values {
            counts[limits.partition_point(|limit| limit < value)] += count;
        }
        let total = values.iter().map(|(_, count)| count).sum();
        let (min, max) = (values[0].0, values[values.len() - 1].0);
        Buckets { limits, counts, total, min, max }
    }

    #[test]
    fn limits_are_those_of_db_bench() {
        let head = [
            1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300, 1900, 2900,
            4400, 6600, 9900, 14_000, 22_000, 33_000, 50_000, 75_000, 110_000, 170_000, 250_000,
            380_000, 570_000, 860_000, 1_200_000, 1_900_000, 2_900_000, 4_300_000, 6_500_000,
        ];
        assert_eq!(limits()[..head.len()], head);
        assert_eq!(limits().len(), 109);
    }

    #[test]
    fn percentiles_are_interpolated_between_limits() {
        // 100 values in (2, 3], 100 in (6, 10]: the 50th percentile ends the first bucket.
        let some = buckets(&[(3, 100), (9, 100)]);
        assert_eq!(some.percentile(50.0), 3.0);
        assert_eq!(some.percentile(75.0), 8.0);
        // (6, 10] at 100 % is 10, but nothing was above 9.
        assert_eq!(some.percentile(100.0), 9.0);
        // All below a microsecond: db_bench shows 0.5 for the median of (0, 1].
        assert_eq!(buckets(&[(0, 50), (1, 50)]).percentile(50.0), 0.5);
    }
}

#[cfg(test)]
mod samples_tests {
    use super::*;
    use rqps_model::run::HostUsage;

    fn second(reads: u64, read_kb: f64, read_ms: u64) -> Second {
        let disk = DiskUsage { reads, read_kb, read_ms, ..DiskUsage::default() };
        let host = HostUsage { cpus: 2, user: 1.0, idle: 0.5, ..HostUsage::default() };
        let usage = Usage { seconds: 1.0, disk: Some(disk), host, ..Usage::default() };
        Second { usage: Some(usage), ..Second::default() }
    }

    #[test]
    fn means_are_plain() {
        // Two seconds of 100 reads of 4 KiB and of 10 reads of 100 KiB: 52 KiB, not 12.7.
        let means = averages(&[second(100, 400.0, 50), second(10, 1000.0, 10)]);
        assert_eq!(means[&Metric::DiskReadSize], 52.0);
        assert_eq!(means[&Metric::DiskReadsPerSecond], 55.0);
        assert_eq!(means[&Metric::DiskReadAwait], 0.75);
        assert_eq!(means[&Metric::DiskWriteSize], 0.0);
        assert_eq!((means[&Metric::CpuUser], means[&Metric::CpuIdle]), (50.0, 25.0));
        assert_eq!(averages(&[Second::default()]), BTreeMap::new());
    }
}

#[cfg(test)]
mod tests {
    //! Tests with the statistics of three generations of RocksDB.
    use std::collections::BTreeMap;

    use crate::analyze::{parse, stalls};
    use rqps_model::metric::Metric;

    /// Since 10.3 there is a column WPreComp(GB) after Write(GB).
    const NEW: &str = "\
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) WPreComp(GB) Wnew(GB) \
Moved(GB) W-Amp Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop \
Rblob(GB) Wblob(GB)
  L0      2/0   15.00 MB   0.5      0.0     0.0      0.0       0.1       0.1       0.1       0.0   \
1.0      0.0    256.4      0.46              0.19        10    0.046       0  \
0       0.0       0.0
  L7      5/1    1.50 GB   0.0      0.2     0.1      0.1       0.3       0.3       0.1       0.0   \
1.2    514.1    280.4     12.50              8.25         4    0.056     70K  \
31K       0.0       0.0
 Sum      7/1    1.51 GB   0.0      0.2     0.1      0.1       0.4       0.4       0.2       0.0   \
2.4    205.8    238.5     12.96              8.44        14    0.086    607K \
194K       0.5       0.7
 Int      0/0    0.00 KB   0.0      0.2     0.1      0.1       0.3       0.3       0.2       0.0   \
2.5    208.7    238.7      1.19              0.42        13    0.092    607K \
194K       0.0       0.0

** Compaction Stats [default] **
Priority    Files   Size     Score Read(GB)  Rn(GB)
 Low      0/0    0.00 KB   0.0      0.2     0.1
Blob file count: 3, total size: 2.5 GB, garbage size: 0.0 GB, space amp: 0.0

Uptime(secs): 2.7 total, 2.6 interval
Flush(GB): cumulative 0.116, interval 0.113
Cumulative compaction: 1.28 TB write, 107.33 MB/s write, 0.24 GB read, 92.60 MB/s read, 1.2 seconds
Write Stall (count): cf-l0-file-count-limit-delays-with-ongoing-compaction: 7, \
cf-l0-file-count-limit-stops-with-ongoing-compaction: 0, l0-file-count-limit-delays: 1429, \
l0-file-count-limit-stops: 0, memtable-limit-delays: 0, memtable-limit-stops: 0, \
pending-compaction-bytes-delays: 1131, pending-compaction-bytes-stops: 0, total-delays: 2560, \
total-stops: 0, interval: 3 total count

** DB Stats **
Uptime(secs): 2.7 total, 2.6 interval
Cumulative writes: 307K writes, 307K keys, 307K commit groups, 1.0 writes per commit group, \
ingest: 0.13 GB, 47.72 MB/s
Cumulative stall: 00:00:0.600 H:M:S, 22.2 percent
Write Stall (count): write-buffer-manager-limit-stops: 0
";

    #[test]
    fn columns_are_found_by_their_heads() {
        let stats = parse(NEW);
        let sum = stats.sum.as_ref().unwrap();
        assert_eq!((sum.get("Comp(sec)"), sum.get("CompMergeCPU(sec)")), (Some(12.96), Some(8.44)));
        assert_eq!((sum.get("Rblob(GB)"), sum.get("Wblob(GB)")), (Some(0.5), Some(0.7)));
        // Fields as the published scripts read them: Wr(MB/s) and Comp(sec), KeyDrop and Rblob.
        assert_eq!((sum.field(15), sum.field(16)), (Some(238.5), Some(12.96)));
        assert_eq!((sum.field(21), sum.field(22)), (Some(194e3), Some(0.5)));
        let names: Vec<&str> = stats.levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(names, ["L0", "L7"]);
        assert_eq!(stats.levels[1].files, "5/1");
        assert_eq!(stats.levels[1].bytes, 1.5 * f64::from(1 << 30));
        assert_eq!(stats.levels[1].get("KeyIn"), Some(70e3));
    }

    #[test]
    fn facts_have_their_units() {
        let stats = parse(NEW);
        assert_eq!(stats.compaction_written_gb, Some(1.28 * 1024.0));
        assert_eq!(stats.compaction_mb_per_second, Some(107.33));
        assert_eq!((stats.flush_gb, stats.ingest_gb), (Some(0.116), Some(0.13)));
        assert_eq!((stats.uptime_seconds, stats.stall_percent), (Some(2.7), Some(22.2)));
        assert_eq!(stats.blob_gb, Some(2.5));
    }

    #[test]
    fn stalls_of_old_and_new_versions_have_one_name() {
        let new = parse(NEW).stalls;
        assert_eq!(new["total-delays"], 2560);
        // Published (iobuf, Speedb): l0 1429 + memtable 0 + pending 1131 = 2560.
        let delays = ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes"];
        let sum: u64 = delays.iter().map(|name| new[&format!("{name}-delays")]).sum();
        assert_eq!(sum, 2560);
        assert_eq!(new["write-buffer-manager-limit-stops"], 0);
        let old = parse(
            "Stalls(count): 5 level0_slowdown, 4 level0_slowdown_with_compaction, 3 level0_numfiles, \
             2 level0_numfiles_with_compaction, 6 stop for pending_compaction_bytes, 7 slowdown for \
             pending_compaction_bytes, 8 memtable_compaction, 9 memtable_slowdown, interval 1 total \
             count\n",
        );
        let of = |name: &str| old.stalls[name];
        assert_eq!((of("l0-file-count-limit-delays"), of("l0-file-count-limit-stops")), (5, 3));
        assert_eq!(of("pending-compaction-bytes-stops"), 6);
        assert_eq!(of("pending-compaction-bytes-delays"), 7);
        assert_eq!((of("memtable-limit-stops"), of("memtable-limit-delays")), (8, 9));
        assert_eq!(of("cf-l0-file-count-limit-delays-with-ongoing-compaction"), 4);
    }

    #[test]
    fn stalls_while_level_0_is_compacted_are_columns_and_in_no_sum() {
        let values = BTreeMap::from_iter(stalls(&parse(NEW)));
        assert_eq!(values[&Metric::StallL0DelaysBusy], 7.0);
        assert_eq!(values[&Metric::StallL0StopsBusy], 0.0);
        assert_eq!(values[&Metric::StallCount], 2560.0);
    }

    #[test]
    fn a_text_of_another_kind_gives_nothing() {
        assert_eq!(parse("nothing\nL0 is here\n"), super::Stats::default());
    }
}
