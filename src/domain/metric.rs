//! What is computed per operation: name, unit, direction.

use serde::{Deserialize, Serialize};

/// A number that a report can show for one step of one run, and compare between targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations per second: statements, thousands of rows scanned, or rows inserted.
    Rate,
    /// Busy CPU of the whole host, per cent of all CPUs, per operation per second: vmstat (us+sy) /
    /// rate.
    CpuPerOp,
    /// CPU of the server's processes, microseconds per operation.
    ServerCpuPerOp,
    /// CPU of the driver process, microseconds per operation.
    ClientCpuPerOp,
    /// Context switches of the whole host per operation.
    ContextSwitchesPerOp,
    /// Disk reads per operation.
    ReadsPerOp,
    /// KiB read from disk per operation.
    ReadKbPerOp,
    /// KiB written to disk per operation.
    WriteKbPerOp,
    /// Median event latency, ms.
    P50,
    /// 95th percentile, ms.
    P95,
    /// 99th percentile, ms.
    P99,
    /// 99.9th percentile, ms.
    P999,
    /// Largest, ms.
    Max,
    /// Resident memory of the server's processes, MiB.
    ServerRss,
    /// Size of the data folder, MiB.
    DataSize,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl Metric {
    /// In the order of reports.
    pub const ALL: [Metric; 15] = [
        Metric::Rate,
        Metric::CpuPerOp,
        Metric::ServerCpuPerOp,
        Metric::ClientCpuPerOp,
        Metric::ContextSwitchesPerOp,
        Metric::ReadsPerOp,
        Metric::ReadKbPerOp,
        Metric::WriteKbPerOp,
        Metric::P50,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::Max,
        Metric::ServerRss,
        Metric::DataSize,
    ];

    /// The field's name, as a column head.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Rate => "o/s",
            Metric::CpuPerOp => "cpu/o",
            Metric::ServerCpuPerOp => "server_cpu_us/o",
            Metric::ClientCpuPerOp => "client_cpu_us/o",
            Metric::ContextSwitchesPerOp => "cs/o",
            Metric::ReadsPerOp => "r/o",
            Metric::ReadKbPerOp => "rKB/o",
            Metric::WriteKbPerOp => "wKB/o",
            Metric::P50 => "p50_ms",
            Metric::P95 => "p95_ms",
            Metric::P99 => "p99_ms",
            Metric::P999 => "p99.9_ms",
            Metric::Max => "max_ms",
            Metric::ServerRss => "rss_MB",
            Metric::DataSize => "data_MB",
        }
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        if self == Metric::Rate { Better::Higher } else { Better::Lower }
    }
}
