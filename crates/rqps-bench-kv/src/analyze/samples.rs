//! Means of iostat and vmstat columns as in the published tables: plain means over one-second
//! samples, not weighted by activity.

use std::collections::BTreeMap;

use rqps_model::metric::Metric;
use rqps_model::run::{DiskUsage, SECOND_MIN, Second, Usage};
use rqps_stats::summary;

/// The means over the seconds of a step; empty without samples.
pub fn averages(seconds: &[Second]) -> BTreeMap<Metric, f64> {
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
mod tests {
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
