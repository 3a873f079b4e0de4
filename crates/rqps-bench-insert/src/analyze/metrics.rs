//! Metrics of the Insert Benchmark: the columns of the published perf reports, and classes of
//! response times.

use crate::analyze::{stalls, write_rate};
use rqps_analysis::comparison::{Comparison, StepComparison};
use rqps_analysis::measurement::MetricValue;
use rqps_analysis::metrics::Histogram;
use rqps_model::benchmark::RateUnit;
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

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
