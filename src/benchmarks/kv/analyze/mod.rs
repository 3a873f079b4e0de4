//! Metrics of the RocksDB sequence, from what the library said of itself at the end of a step, and
//! from the step's own counts. docs/kv.md has every formula, and where the published one is wrong.

mod buckets;
mod samples;
pub mod stats;

use crate::analyze::metrics::{Latencies, Values};
use crate::domain::metric::Metric;
use crate::domain::run::StepRecord;
use crate::stats::stability;

pub use self::buckets::Buckets;
pub use self::samples::averages;
pub use self::stats::Stats;

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// Name of the text with the library's statistics in a step's record.
pub const STATS: &str = "stats";

/// Adds the metrics of the RocksDB sequence, if the step is one of it.
pub(crate) fn put(values: &mut Values, step: &StepRecord, latencies: &Latencies) {
    let Some(text) = step.outcome.facts.get(STATS) else { return };
    let stats = stats::parse(text);
    let outcome = &step.outcome;
    if outcome.seconds > 0.0 {
        values.put(Metric::MbPerSecond, Ok(outcome.bytes as f64 / MIB / outcome.seconds));
    }
    put_tree(values, &stats, written_bytes(step));
    put_stalls(values, &stats);
    put_latency(values, latencies);
    if let Some(evenness) = stability::evenness(&step.per_second) {
        values.put(Metric::RateVariation, Ok(100.0 * evenness.cv));
    }
}

/// Bytes of the keys and values that the clients and the background writer put.
fn written_bytes(step: &StepRecord) -> f64 {
    let outcome = &step.outcome;
    let clients = if outcome.writes > 0 { outcome.bytes as f64 } else { 0.0 };
    let writer = outcome.roles.get("writer").map_or(0, |role| role.operations) as f64;
    let per_put = match &outcome.roles.get("writer") {
        // The writer's puts are as long as everybody's; a read counts key and value, too.
        Some(_) if outcome.rows > 0 => outcome.bytes as f64 / outcome.rows as f64,
        _ => 0.0,
    };
    clients + writer * per_put
}

fn put_tree(values: &mut Values, stats: &Stats, written_bytes: f64) {
    let mut put = |metric, value: Option<f64>| {
        if let Some(value) = value {
            values.put(metric, Ok(value));
        }
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
    // Fields of the line as awk counts them, name and both parts of the size included.
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
}

fn put_stalls(values: &mut Values, stats: &Stats) {
    if let Some(percent) = stats.stall_percent {
        values.put(Metric::StallPercent, Ok(percent));
    }
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
            values.put(metric, Ok(*count as f64));
            sum = Some(sum.unwrap_or(0.0) + *count as f64);
        }
    }
    // These are among the l0 counts, and so not added.
    let among = [
        (Metric::StallL0DelaysBusy, "cf-l0-file-count-limit-delays-with-ongoing-compaction"),
        (Metric::StallL0StopsBusy, "cf-l0-file-count-limit-stops-with-ongoing-compaction"),
    ];
    for (metric, name) in among {
        if let Some(count) = stats.stalls.get(name) {
            values.put(metric, Ok(*count as f64));
        }
    }
    if let Some(sum) = sum {
        values.put(Metric::StallCount, Ok(sum));
    }
}

fn put_latency(values: &mut Values, latencies: &Latencies) {
    let Ok(histogram) = latencies else { return };
    if histogram.total() == 0 {
        return;
    }
    let [p9999] = histogram.quantiles([0.9999]);
    if histogram.total() >= 10 * P9999_EVENTS {
        values.put(Metric::P9999, Ok(p9999 as f64 / 1e6));
    }
    let buckets = Buckets::of(histogram);
    let compat = [
        (Metric::P50Compat, 50.0),
        (Metric::P99Compat, 99.0),
        (Metric::P999Compat, 99.9),
        (Metric::P9999Compat, 99.99),
    ];
    for (metric, percent) in compat {
        values.put(metric, Ok(buckets.percentile(percent)));
    }
    values.put(Metric::MaxCompat, Ok(buckets.max()));
}

/// A 99.99th percentile rests on one event in so many.
const P9999_EVENTS: u64 = 10_000;

#[cfg(test)]
mod tests;
