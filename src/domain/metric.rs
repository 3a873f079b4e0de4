//! What is computed per operation: name, unit, direction.

use serde::{Deserialize, Serialize};

use crate::domain::unknown::Word;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Context (load or volume): neither direction is better, so it gets no verdict.
    Neither,
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
            /// A metric of a newer rqps: its key. It is shown, and never judged.
            #[serde(untagged)]
            Unknown(Word),
        }

        impl Metric {
            /// All that are known, in the order of reports.
            pub const ALL: &[Metric] = &[$(Metric::$metric),*];

            /// The field's name, as a column head.
            pub fn name(self) -> &'static str {
                match self { $(Metric::$metric => $name,)* Metric::Unknown(word) => word.text() }
            }

            /// The unit of its values; that of the rate is the step's own.
            pub fn unit(self) -> &'static str {
                match self { $(Metric::$metric => $unit,)* Metric::Unknown(_) => "" }
            }

            /// Which way is better.
            pub fn better(self) -> Direction {
                match self {
                    $(Metric::$metric => Direction::$better,)*
                    Metric::Unknown(_) => Direction::Neither,
                }
            }

            /// False for a metric of a newer rqps.
            pub fn is_known(self) -> bool {
                !matches!(self, Metric::Unknown(_))
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

    /// Statements per second that changed a row, where others met none: deletes without no-ops.
    EffectiveRate, "effective_o/s", "1/s", Higher;

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
    /// Longest question for the smallest key, ms: inserts and deletes wait for it.
    MinKeyQuery, "min_key_ms", "ms", Lower;
    /// Rows that a query returned, on average.
    RowsPerQuery, "rows/q", "1/op", Higher;

    // kv: the columns of db_bench's report (docs/kv.md has the formulas). Where the published
    // formula is wrong, `…_compat` is as published.
    /// Keys and values moved per second: bytes / 2^20 / s.
    MbPerSecond, "mb_sec", "MiB/s", Higher;
    /// Size of the LSM tree at the end of the step.
    LsmSize, "lsm_sz", "GiB", Lower;
    /// Size of the blob files at the end of the step.
    BlobSize, "blob_sz", "GiB", Lower;
    /// Written by flushes and compactions together.
    CompactionWritten, "c_wgb", "GiB", Neither;
    /// Written to the tree / bytes that clients put: each byte counts once.
    WriteAmp, "w_amp", "ratio", Lower;
    /// As published: flushes count twice.
    WriteAmpCompat, "w_amp_compat", "ratio", Lower;
    /// Flushes and compactions write so much per second of uptime.
    CompactionMbPerSecond, "c_mbps", "MiB/s", Neither;
    /// Wall clock of flushes and compactions, summed over threads.
    CompactionWallSeconds, "c_wsecs", "s", Neither;
    /// CPU of compactions.
    CompactionCpuSeconds, "c_csecs", "s", Neither;
    /// As published: by position, which is another column since RocksDB 10.3.
    CompactionWallSecondsCompat, "c_wsecs_compat", "s", Neither;
    /// As published: by position, which is another column since RocksDB 10.3.
    CompactionCpuSecondsCompat, "c_csecs_compat", "s", Neither;
    /// Read from blob files.
    BlobRead, "b_rgb", "GiB", Neither;
    /// Written to blob files.
    BlobWritten, "b_wgb", "GiB", Neither;
    /// As published: by position, which is another column since RocksDB 10.3.
    BlobReadCompat, "b_rgb_compat", "GiB", Neither;
    /// As published: by position, which is another column since RocksDB 10.3.
    BlobWrittenCompat, "b_wgb_compat", "GiB", Neither;
    /// Time of all clients / operations.
    MicrosPerOp, "usec_op", "us/op", Lower;
    /// Median by db_bench's histogram: interpolated between 109 limits.
    P50Compat, "p50_compat", "us", Lower;
    /// 99th percentile by db_bench's histogram.
    P99Compat, "p99_compat", "us", Lower;
    /// 99.9th percentile by db_bench's histogram.
    P999Compat, "p99.9_compat", "us", Lower;
    /// 99.99th percentile by db_bench's histogram.
    P9999Compat, "p99.99_compat", "us", Lower;
    /// Largest latency in whole microseconds.
    MaxCompat, "pmax", "us", Lower;
    /// 99.99th percentile, ms.
    P9999, "p99.99_ms", "ms", Lower;
    /// How long the database was open.
    Uptime, "uptime", "s", Neither;
    /// Share of the uptime in which writes were stalled.
    StallPercent, "stall%", "%", Lower;
    /// How often a condition for stalling writes was found, of all kinds.
    StallCount, "Nstall", "1", Neither;
    /// Of these: writes delayed for the files of level 0.
    StallL0Delays, "stall_l0_delays", "1", Neither;
    /// Of these: writes stopped for the files of level 0.
    StallL0Stops, "stall_l0_stops", "1", Neither;
    /// Of the delays for level 0: those while it was being compacted.
    StallL0DelaysBusy, "cf_l0_delays_busy", "1", Neither;
    /// Of the stops for level 0: those while it was being compacted.
    StallL0StopsBusy, "cf_l0_stops_busy", "1", Neither;
    /// Of these: writes delayed for memtables that were not flushed yet.
    StallMemtableDelays, "stall_memtable_delays", "1", Neither;
    /// Of these: writes stopped for memtables that were not flushed yet.
    StallMemtableStops, "stall_memtable_stops", "1", Neither;
    /// Of these: writes delayed for the bytes that compaction owes.
    StallPendingDelays, "stall_pending_delays", "1", Neither;
    /// Of these: writes stopped for the bytes that compaction owes.
    StallPendingStops, "stall_pending_stops", "1", Neither;
    /// User CPU of the client's process with the database in it, thousands of seconds.
    UserCpu, "u_cpu", "ks", Neither;
    /// System CPU of the client's process with the database in it, thousands of seconds.
    SystemCpu, "s_cpu", "ks", Neither;
    /// Largest resident memory of the client's process with the database in it.
    PeakRss, "rss", "GiB", Lower;
    /// After the timed part, until flushes and compactions were done.
    DrainSeconds, "drain_s", "s", Lower;
    /// Standard deviation / mean of the operations per second: evenness of service.
    RateVariation, "rate_cv", "%", Lower;
    /// Operations per second of the background writer.
    WriterRate, "writer_o/s", "o/s", Higher;
    /// The client's own time per operation, outside of the library.
    ClientOverhead, "client_ns/o", "ns/op", Neither;
    /// iostat: reads per second; this and those below are plain means over one-second samples.
    DiskReadsPerSecond, "rps", "1/s", Neither;
    /// iostat: read per second.
    DiskReadMbPerSecond, "rmbps", "MiB/s", Neither;
    /// iostat: time of a read.
    DiskReadAwait, "rawait", "ms", Lower;
    /// iostat: size of a read; larger is fewer requests for the same bytes.
    DiskReadSize, "rareqsz", "KiB", Neither;
    /// iostat: writes per second.
    DiskWritesPerSecond, "wps", "1/s", Neither;
    /// iostat: written per second.
    DiskWriteMbPerSecond, "wmbps", "MiB/s", Neither;
    /// iostat: time of a write.
    DiskWriteAwait, "wawait", "ms", Lower;
    /// iostat: size of a write.
    DiskWriteSize, "wareqsz", "KiB", Neither;
    /// vmstat: context switches per second.
    ContextSwitchesPerSecond, "cs", "1/s", Neither;
    /// vmstat: user and nice.
    CpuUser, "us", "%", Neither;
    /// vmstat: system, irq and softirq.
    CpuSystem, "sy", "%", Neither;
    /// vmstat: idle.
    CpuIdle, "id", "%", Neither;
    /// vmstat: waiting for I/O.
    CpuWait, "wa", "%", Neither;
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
    /// Answers with a row that the transaction must not see, or without one that not even a scan
    /// shows it though it must, per 100,000 probes.
    Violations, "violations", "1e-5", Lower;
    /// Share of the probes in which a row that lies where the query asks, and is to be seen, came
    /// back. 0 to 1.
    Found, "found", "", Higher;
    /// Rows that an indexed table had taken when it was full or the time was over.
    Capacity, "capacity", "rows", Higher;

    // Of imported perf reports.
    /// Busy CPU of the whole host, per cent of all CPUs: vmstat's us + sy.
    CpuBusy, "cpups", "%", Neither;
    /// CPU of the whole host, client included, microseconds per operation.
    HostCpuPerOp, "cpupq", "us/op", Lower;
    /// Size of the database's own files, without logs.
    DatabaseSize, "dbgb1", "GiB", Lower;
}
