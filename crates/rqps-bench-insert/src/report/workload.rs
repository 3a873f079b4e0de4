//! Describes the workload of the Insert Benchmark.

use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::insert::Pacing;

/// The workload in one line; `None` for other benchmarks.
pub(super) fn workload_line(workload: &Workload, cache: &str) -> Option<String> {
    let BenchmarkParameters::Insert(shape) = &workload.shape else { return None };
    let commit = &shape.rows_per_commit;
    let mut parts = vec![
        format!("profile {}", shape.profile.name()),
        format!("{} tables for {} clients", workload.tables, workload.clients),
        format!("rows per client: {} in l.i0, {} in l.i1", workload.rows, shape.i1_rows),
    ];
    if !shape.profile.is_2021() {
        parts.push(format!("{} in l.i2", shape.i2_rows));
    }
    parts.push(if shape.deletes { "as many deletes" } else { "no deletes" }.to_owned());
    parts.push(format!("{} s a query step", shape.query_seconds));
    parts.push(format!("{}/{}/{}/{} rows a commit", commit.i0, commit.i1, commit.i2, commit.query));
    if shape.partitions > 1 {
        parts.push(format!("{} partitions", shape.partitions));
    }
    parts.push(match shape.pacing {
        Pacing::Open => "open pace".to_owned(),
        Pacing::Compat => "compat pace".to_owned(),
    });
    parts.push(format!("settle x {}", workload.settle_scale));
    parts.push(cache.to_owned());
    parts.extend(shape.memory_limit.map(|limit| format!("memory limit {} MiB", limit >> 20)));
    Some(parts.join(", "))
}
