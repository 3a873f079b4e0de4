//! Converts columns of published db_bench reports, and values of its output, to metrics.

use crate::kv::output::DbBench;
use crate::number::number;
use crate::published::untagged;
use crate::tag::Tag;
use rqps_bench_kv::analyze::{stalls, tree};
use rqps_model::benchmark::Group;
use rqps_model::build::{Dbms, Version};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

/// From this version on, the published values of the compaction table are those of neighbouring
/// columns.
const SHIFTED_SINCE: [u32; 2] = [10, 3];

pub(crate) fn tag_of(label: &str, version: Option<&str>) -> Tag {
    let speedb = label.to_lowercase().contains("speedb");
    let name = if speedb { "speedb" } else { "rocksdb" };
    let mut tag = untagged(label, Dbms::from_name(name).unwrap_or(Dbms::Other));
    tag.version = version.map(Version::new);
    tag
}

pub(crate) fn group(step: &str) -> Group {
    if step.starts_with("fill") {
        Group::Load
    } else if step.starts_with("overwrite") || step.starts_with("update") {
        Group::Write
    } else if step.contains("range") || step.contains("seek") || step.starts_with("readseq") {
        Group::Range
    } else {
        Group::Point
    }
}

/// Columns of a report without numbers, which describe the run.
const IDENTITY: [&str; 5] = ["test", "date", "version", "job_id", "githash"];

/// Columns of a report with metrics: the metric of the head, and the metric for a value with the
/// wrong formula or position.
const COLUMNS: [(&str, Option<Metric>, Option<Metric>); 23] = [
    ("ops_sec", Some(Metric::Rate), None),
    ("mb_sec", Some(Metric::MbPerSecond), None),
    ("lsm_sz", Some(Metric::LsmSize), None),
    ("blob_sz", Some(Metric::BlobSize), None),
    ("c_wgb", Some(Metric::CompactionWritten), None),
    ("w_amp", None, Some(Metric::WriteAmpCompat)),
    ("c_mbps", Some(Metric::CompactionMbPerSecond), None),
    ("c_wsecs", Some(Metric::CompactionWallSeconds), Some(Metric::CompactionWallSecondsCompat)),
    ("c_csecs", Some(Metric::CompactionCpuSeconds), Some(Metric::CompactionCpuSecondsCompat)),
    ("b_rgb", Some(Metric::BlobRead), Some(Metric::BlobReadCompat)),
    ("b_wgb", Some(Metric::BlobWritten), Some(Metric::BlobWrittenCompat)),
    ("usec_op", Some(Metric::MicrosPerOp), None),
    ("p50", None, Some(Metric::P50Compat)),
    ("p99", None, Some(Metric::P99Compat)),
    ("p99.9", None, Some(Metric::P999Compat)),
    ("p99.99", None, Some(Metric::P9999Compat)),
    ("pmax", None, Some(Metric::MaxCompat)),
    ("uptime", Some(Metric::Uptime), None),
    ("stall%", Some(Metric::StallPercent), None),
    ("Nstall", Some(Metric::StallCount), None),
    ("u_cpu", Some(Metric::UserCpu), None),
    ("s_cpu", Some(Metric::SystemCpu), None),
    ("rss", Some(Metric::PeakRss), None),
];

/// The meaning of a cell of a report.
pub(crate) enum ReportCell {
    /// Values of metrics. A value with the wrong formula or position has the `_compat` metric, and
    /// also the plain one if it is right.
    Values(Vec<(Metric, f64)>),
    /// No number: empty, `NA`, or `-1` for a server that was not found.
    Absent,
    /// A size below zero.
    Impossible,
    /// A description of the run.
    Identity,
    /// An unknown column.
    Unknown,
}

/// The meaning of a cell under this head.
pub(crate) fn report_cell(column: &str, cell: &str, version: Option<&str>) -> ReportCell {
    if IDENTITY.contains(&column) {
        return ReportCell::Identity;
    }
    let Some((_, plain, compat)) = COLUMNS.into_iter().find(|(head, _, _)| *head == column) else {
        return if cell.is_empty() { ReportCell::Absent } else { ReportCell::Unknown };
    };
    let value = match column {
        "lsm_sz" | "blob_sz" => gib(cell),
        _ => number(cell),
    };
    let Some(value) = value else {
        let is_below_zero = column.ends_with("_sz") && cell.starts_with('-') && cell.len() > 1;
        return if is_below_zero { ReportCell::Impossible } else { ReportCell::Absent };
    };
    let shifted = version.is_none_or(|version| Version::new(version).at_least(&SHIFTED_SINCE));
    let plain = plain.filter(|_| compat.is_none() || !shifted);
    ReportCell::Values(compat.into_iter().chain(plain).map(|metric| (metric, value)).collect())
}

/// Heads of columns with metrics.
pub(crate) fn known_heads() -> Vec<&'static str> {
    COLUMNS.iter().map(|(head, _, _)| *head).collect()
}

/// Sets the metrics from db_bench's output. Its compaction table has heads, so values are in their
/// columns; the write amplification follows its definition.
pub(crate) fn fill(record: &mut StepRecord, result: &DbBench) {
    let stats = &result.stats;
    let outcome = &mut record.outcome;
    outcome.seconds = result.seconds.unwrap_or(0.0);
    outcome.events = result.operations.or(result.observed).unwrap_or(0);
    outcome.statements = result.operations.unwrap_or(0);
    let percentile =
        |which: f64| result.percentiles.iter().find(|(p, _)| *p == which).map(|(_, value)| *value);
    let values = [
        (Metric::Rate, Some(result.ops_per_second)),
        (Metric::MicrosPerOp, Some(result.micros_per_op)),
        (Metric::MbPerSecond, result.mb_per_second),
        (Metric::P50Compat, percentile(50.0)),
        (Metric::P99Compat, percentile(99.0)),
        (Metric::P999Compat, percentile(99.9)),
        (Metric::P9999Compat, percentile(99.99)),
        (Metric::MaxCompat, result.max_micros),
        (Metric::Uptime, stats.uptime_seconds),
    ];
    let printed = values.into_iter().filter_map(|(metric, value)| Some((metric, value?)));
    // The columns by position are of tables alone.
    let by_position = [
        Metric::CompactionWallSecondsCompat,
        Metric::CompactionCpuSecondsCompat,
        Metric::BlobReadCompat,
        Metric::BlobWrittenCompat,
    ];
    let tree = tree(stats, stats.ingest_gb.unwrap_or(0.0) * f64::from(1 << 30));
    let tree = tree.into_iter().filter(|(metric, _)| !by_position.contains(metric));
    let all = printed.chain(tree).chain(stalls(stats));
    let is_possible = |value: &f64| (0.0..=1e18).contains(value);
    outcome.extra.extend(all.filter(|(_, value)| is_possible(value)));
    // Before RocksDB 8.1 and in its forks, the line has no totals.
    let count = |name: &str| stats.stalls.get(name).map(|count| *count as f64);
    if let Some((delays, stops)) = count("total-delays").zip(count("total-stops")) {
        outcome.extra.insert(Metric::StallCount, delays + stops);
    }
}

/// A size such as `439GB` in GiB: RocksDB's units are powers of two.
pub(crate) fn gib(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number_text, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "KB" => 1.0 / (1024.0 * 1024.0),
        "MB" => 1.0 / 1024.0,
        "GB" => 1.0,
        "TB" => 1024.0,
        "B" | "" => 1.0 / (1024.0 * 1024.0 * 1024.0),
        _ => return None,
    };
    number(number_text).map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_group() {
        let check = |step: &str, expected: Group| assert_eq!(group(step), expected, "{step}");
        check("fillseq.wal_disabled.v400", Group::Load);
        check("fwdrangewhilewriting.t8", Group::Range);
        check("readwhilewriting.t8", Group::Point);
        check("overwriteandwait.t8.s0", Group::Write);
    }

    #[test]
    fn sizes_are_in_gib() {
        assert_eq!(
            (gib("439GB"), gib("2TB"), gib("512MB")),
            (Some(439.0), Some(2048.0), Some(0.5))
        );
        assert_eq!((gib("x"), gib("1XB")), (None, None));
    }
}
