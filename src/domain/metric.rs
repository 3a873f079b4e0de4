//! What is computed per operation: name, unit, direction.

use serde::{Deserialize, Serialize};

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

macro_rules! metrics {
    ($($(#[doc = $doc:literal])* $metric:ident, $name:literal, $unit:literal, $better:ident;)*) => {
        /// A number that a report can show for one step of one run, and compare between targets.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $($(#[doc = $doc])* $metric,)*
        }

        impl Metric {
            /// In the order of reports.
            pub const ALL: &[Metric] = &[$(Metric::$metric),*];

            /// The field's name, as a column head.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$metric => $name,)* }
            }

            /// The unit of its values; that of the rate is the step's own.
            pub fn unit(self) -> &'static str {
                match self { $(Metric::$metric => $unit,)* }
            }

            /// Which way is better.
            pub fn better(self) -> Better {
                match self { $(Metric::$metric => Better::$better,)* }
            }
        }
    };
}

// Rows are only added, each benchmark's below the common ones: reports follow this order.
metrics! {
    /// Operations per second: statements, thousands of rows scanned, or rows inserted.
    Rate, "o/s", "", Higher;
    /// Busy CPU of the whole host, per cent of all CPUs, per operation per second: vmstat (us+sy) /
    /// rate.
    CpuPerOp, "cpu/o", "% s/op", Lower;
    /// CPU of the server's processes, microseconds per operation.
    ServerCpuPerOp, "server_cpu_us/o", "us/op", Lower;
    /// CPU of the driver process, microseconds per operation.
    ClientCpuPerOp, "client_cpu_us/o", "us/op", Lower;
    /// Context switches of the whole host per operation.
    ContextSwitchesPerOp, "cs/o", "1/op", Lower;
    /// Disk reads per operation.
    ReadsPerOp, "r/o", "1/op", Lower;
    /// KiB read from disk per operation.
    ReadKbPerOp, "rKB/o", "KiB/op", Lower;
    /// KiB written to disk per operation.
    WriteKbPerOp, "wKB/o", "KiB/op", Lower;
    /// Median event latency, ms.
    P50, "p50_ms", "ms", Lower;
    /// 95th percentile, ms.
    P95, "p95_ms", "ms", Lower;
    /// 99th percentile, ms.
    P99, "p99_ms", "ms", Lower;
    /// 99.9th percentile, ms.
    P999, "p99.9_ms", "ms", Lower;
    /// Largest, ms.
    Max, "max_ms", "ms", Lower;
    /// Resident memory of the server's processes, MiB.
    ServerRss, "rss_MB", "MiB", Lower;
    /// Size of the data folder, MiB.
    DataSize, "data_MB", "MiB", Lower;

    // The Insert Benchmark.
    /// Rows inserted per second beside the queries of a query step.
    InsertRate, "ips", "rows/s", Higher;
    /// Rows deleted per second.
    DeleteRate, "dps", "rows/s", Higher;
    /// Disk writes per inserted row, whatever else the step does.
    WritesPerInsert, "w/i", "1/row", Lower;
    /// KiB written to disk per inserted row, whatever else the step does.
    WriteKbPerInsert, "wKB/i", "KiB/row", Lower;
    /// Longest INSERT, ms.
    InsertMax, "max_insert_ms", "ms", Lower;
    /// 99th percentile of INSERTs, ms.
    InsertP99, "p99_insert_ms", "ms", Lower;
    /// Longest DELETE, ms.
    DeleteMax, "max_delete_ms", "ms", Lower;
    /// 99th percentile of DELETEs, ms.
    DeleteP99, "p99_delete_ms", "ms", Lower;
    /// The rate that half of all seconds reached, operations per second.
    SecondsP50, "p50_o/s", "1/s", Higher;
    /// The rate that 99 of 100 seconds reached, operations per second.
    SecondsP99, "p99_o/s", "1/s", Higher;
    /// Coefficient of variation of the rate from second to second.
    SecondsVariation, "cv_o/s", "", Lower;
    /// Seconds in which less was written than a tenth of the median second.
    StalledSeconds, "stall_s", "s", Lower;
    /// Seconds that making the secondary indexes took.
    IndexSeconds, "index_s", "s", Lower;
    /// Longest question for the smallest key, ms: inserts and deletes wait for it.
    MinKeyQuery, "min_key_ms", "ms", Lower;
}
