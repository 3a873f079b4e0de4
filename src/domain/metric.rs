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
    // Vector search.
    /// Share of the true k nearest among the rows returned, by distance: a row as near as the true
    /// k-th counts (the rule of ann-benchmarks), a missing row is a miss. 0 to 1.
    Recall, "recall", "", Higher;
    /// The same by row ids: a tie with the k-th counts only if its id is in the exact answer.
    RecallIds, "recall_ids", "", Higher;
    /// While rows are inserted: recall against the rows that were committed before the query ended,
    /// the lower figure.
    RecallLow, "recall_low", "", Higher;
    /// Rows returned per query / k.
    RowsPerK, "rows/k", "", Higher;
    /// The smallest ef_search whose recall reaches the target of the step.
    EfSearch, "ef_search", "", Lower;
    /// Seconds to create the table and fill it.
    LoadSeconds, "load_s", "s", Lower;
    /// Seconds to build the index on the filled table, and nothing else.
    IndexSeconds, "index_s", "s", Lower;
    /// Seconds for table, rows and index together: the "isecs" of published work.
    BuildSeconds, "build_s", "s", Lower;
    /// Size of the vector index, MiB.
    IndexSize, "index_MB", "MiB", Lower;
    /// Size of the table without its indexes, MiB.
    TableSize, "table_MB", "MiB", Lower;
    /// Latency of the first query on a cache that has nothing of the index, ms.
    FirstQuery, "first_ms", "ms", Lower;
    /// Seconds until every query of the set was asked once after that.
    WarmSeconds, "warm_s", "s", Lower;
    /// Seconds of VACUUM or OPTIMIZE after deletes.
    CleanSeconds, "clean_s", "s", Lower;
    /// Bytes of write-ahead log or redo log per row inserted into the index.
    LogBytesPerRow, "log_B/row", "B/row", Lower;
}
