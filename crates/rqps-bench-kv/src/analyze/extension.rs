//! Metrics of the RocksDB sequence, from the library's statistics at the end of a step and from the
//! step's own counts. docs/kv.md has each formula, and the errors of the published ones.

use std::collections::BTreeSet;

use super::buckets::Buckets;
use super::samples::averages;
use super::stats::{self, Stats};
use rqps_analysis::Extension;
use rqps_analysis::caveat::{Caveat, Evidence, too_large};
use rqps_analysis::measurement::{MetricValue, SecondFigures};
use rqps_analysis::metrics::{Histogram, Latencies};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::metric::Metric;
use rqps_model::rocksdb::{KvOption, READAHEAD_BYTES, READAHEAD_OPTION};
use rqps_model::run::{RunRecord, StepRecord};
use rqps_stats::stability;

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
    let stats = stats::parse(text);
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
