//! The metrics of rqps: one row each, with all that verdicts, reports and files ask about it.

use serde::{Deserialize, Serialize};

use crate::units::Digits;

// One row for each metric.

macro_rules! flag {
    ($row:ident.$flag:ident) => {
        $row.$flag = true
    };
    ($row:ident.$flag:ident $place:literal) => {
        $row.$flag = Some($place)
    };
}

macro_rules! metrics {
    ($($owner:literal => { $(
        $(#[doc = $doc:literal])*
        $metric:ident, $key:literal, $head:literal, $unit:literal,
        $better:ident, $class:ident, $digits:ident($number:literal),
        [$($flag:ident$(($place:literal))?),*];
    )* })*) => {
        /// A number that a report can show for one step of one run, and compare between targets.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum Metric {
            $($($(#[doc = $doc])* #[serde(rename = $key)] $metric,)*)*
        }

        impl Metric {
            /// All, in the order of reports.
            pub const ALL: &[Metric] = &[$($(Metric::$metric),*),*];

            /// Its row.
            pub fn spec(self) -> &'static MetricSpec {
                match self {
                    $($(Metric::$metric => {
                        const ROW: MetricSpec = {
                            #[allow(unused_mut, reason = "a metric may have no flag")]
                            let mut row = MetricSpec {
                            key: $key,
                            head: $head,
                            unit: $unit,
                            better: Direction::$better,
                            class: Class::$class,
                            digits: Digits::$digits($number),
                            owner: $owner,
                            meaning: concat!($($doc),*).trim_ascii(),
                            common: false,
                            explains: None,
                            counted: false,
                            aside: false,
                            of_writers: false,
                            adds_up: false,
                            exact: false,
                            place: None,
                            };
                            $(flag!(row.$flag $($place)?);)*
                            row
                        };
                        &ROW
                    })*)*
                }
            }
        }
    };
}

// Rows are only added, each at the end of its block or in a new one: reports follow this order.
//
//     variant, key in files, column head, unit, better direction, class, digits,
//         [common: every step has it, or says why not; explains(n): a cost that may explain the
//         rate, the n-th of those with an equal change; counted: its verdicts are counted; aside:
//         not in the overview; of_writers: judged even if its target was missed; adds_up: of
//         several client hosts, the sum counts; exact: a count that depends neither on time nor on
//         the layout of a build; place(n): the n-th published column of costs per operation];
//
// A block belongs to the benchmark that it names; "" is every benchmark's. A metric that no section
// of a report selects is in the section "Other metrics".
metrics! {
    "" => {
        /// Operations per second: statements, thousands of rows scanned, or rows inserted.
        Rate, "rate", "o/s", "", Higher, Rate, Fixed(0), [common, place(6)];
        /// Busy CPU of the whole host, per cent of all CPUs, per operation per second.
        CpuPerOp, "cpu_per_op", "cpu/o", "% s/op",
            Lower, Cost, Fixed(6), [common, explains(3), counted, place(1)];
        /// CPU time of the server's processes per operation.
        ServerCpuPerOp, "server_cpu_per_op", "server_cpu_us/o", "us/op",
            Lower, Cost, Fixed(2), [common, explains(1), counted];
        /// CPU time of the driver process per operation.
        ClientCpuPerOp, "client_cpu_per_op", "client_cpu_us/o", "us/op",
            Lower, Cost, Fixed(2), [common, explains(2), counted];
        /// Context switches of the whole host per operation.
        ContextSwitchesPerOp, "context_switches_per_op", "cs/o", "1/op",
            Lower, Cost, Fixed(3), [common, explains(4), counted, place(2)];
        /// Disk reads per operation.
        ReadsPerOp, "reads_per_op", "r/o", "1/op",
            Lower, Cost, Significant(6), [common, explains(5), counted, place(3)];
        /// KiB read from disk per operation.
        ReadKbPerOp, "read_kb_per_op", "rKB/o", "KiB/op",
            Lower, Cost, Significant(6), [common, explains(6), counted, place(4)];
        /// KiB written to disk per operation.
        WriteKbPerOp, "write_kb_per_op", "wKB/o", "KiB/op",
            Lower, Cost, Significant(6), [common, explains(7), counted, place(5)];
        /// Median latency of events.
        P50, "p50", "p50_ms", "ms", Lower, Latency, Fixed(3), [common];
        /// 95th percentile of the latency of events.
        P95, "p95", "p95_ms", "ms", Lower, Latency, Fixed(3), [common, aside];
        /// 99th percentile of the latency of events.
        P99, "p99", "p99_ms", "ms", Lower, Latency, Fixed(3), [common, counted];
        /// 99.9th percentile of the latency of events.
        P999, "p999", "p99.9_ms", "ms", Lower, Latency, Fixed(3), [common, aside];
        /// Longest latency of an event.
        Max, "max", "max_ms", "ms", Lower, Latency, Fixed(3), [common, aside];
        /// Resident memory of the server's processes.
        ServerRss, "server_rss", "rss_MB", "MiB", Lower, Size, Fixed(0), [common, counted, aside];
        /// Size of the data folder.
        DataSize, "data_size", "data_MB", "MiB", Lower, Size, Fixed(1), [common, aside];
        /// Statements per second that changed a row, without deletes and updates of missing rows.
        EffectiveRate, "effective_rate", "effective_o/s", "1/s", Higher, Rate, Fixed(0), [counted];
        /// Instructions per operation of the thread or process that serves the client, in user
        /// space; only in counted runs.
        InstructionsPerOp, "instructions_per_op", "instr/o", "1/op",
            Lower, Cost, Fixed(0), [exact];
        /// Instructions per operation of the other threads of the same process, in user space; only
        /// in counted runs.
        BackgroundInstructionsPerOp, "background_instructions_per_op", "instr_bg/o", "1/op",
            Neither, Activity, Fixed(0), [exact];
        /// Simulated misses of the first level of caches per operation, of the same thread; only in
        /// counted runs with a simulation.
        SimulatedFirstLevelMisses, "simulated_first_level_misses_per_op", "sim_l1_misses/o",
            "1/op", Neither, Activity, Fixed(1), [];
        /// Simulated misses of the last level of caches per operation.
        SimulatedLastLevelMisses, "simulated_last_level_misses_per_op", "sim_ll_misses/o", "1/op",
            Neither, Activity, Fixed(1), [];
        /// Simulated branches per operation that were predicted wrongly.
        SimulatedMispredictions, "simulated_mispredictions_per_op", "sim_mispredictions/o", "1/op",
            Neither, Activity, Fixed(1), [];
        /// Instructions per operation of the server's processes, in user space, counted by the CPU.
        ServerInstructionsPerOp, "server_instructions_per_op", "server_instr/o", "1/op",
            Lower, Cost, Fixed(0), [explains(8), counted];
        /// Cycles per operation of the server's processes, in user space, counted by the CPU.
        ServerCyclesPerOp, "server_cycles_per_op", "server_cycles/o", "1/op",
            Lower, Cost, Fixed(0), [explains(9), counted];
        /// Instructions per cycle of the server's processes, in user space.
        ServerIpc, "server_ipc", "server_ipc", "instr/cycle", Neither, Activity, Fixed(3), [];
        /// Instructions per operation of the driver process, in user space, counted by the CPU.
        ClientInstructionsPerOp, "client_instructions_per_op", "client_instr/o", "1/op",
            Lower, Cost, Fixed(0), [explains(10), counted];
        /// Cycles per operation of the driver process, in user space, counted by the CPU.
        ClientCyclesPerOp, "client_cycles_per_op", "client_cycles/o", "1/op",
            Lower, Cost, Fixed(0), [explains(11), counted];
        /// Instructions per cycle of the driver process, in user space.
        ClientIpc, "client_ipc", "client_ipc", "instr/cycle", Neither, Activity, Fixed(3), [];
    }
    // The Insert Benchmark.
    "insert" => {
        /// Rows inserted per second during the queries of a query step.
        InsertRate, "insert_rate", "ips", "rows/s", Higher, Rate, Fixed(0), [of_writers, adds_up];
        /// Rows deleted per second.
        DeleteRate, "delete_rate", "dps", "rows/s", Higher, Rate, Fixed(0), [of_writers, adds_up];
        /// Disk writes per inserted row, whatever else the step does.
        WritesPerInsert, "writes_per_insert", "w/i", "1/row", Lower, Cost, Fixed(3), [];
        /// KiB written to disk per inserted row, whatever else the step does.
        WriteKbPerInsert, "write_kb_per_insert", "wKB/i", "KiB/row", Lower, Cost, Fixed(3), [];
        /// Longest INSERT.
        InsertMax, "insert_max", "max_insert_ms", "ms", Lower, Stability, Fixed(1), [counted];
        /// 99th percentile of the latency of INSERTs.
        InsertP99, "insert_p99", "p99_insert_ms", "ms", Lower, Stability, Fixed(3), [];
        /// Longest DELETE.
        DeleteMax, "delete_max", "max_delete_ms", "ms", Lower, Stability, Fixed(1), [counted];
        /// 99th percentile of the latency of DELETEs.
        DeleteP99, "delete_p99", "p99_delete_ms", "ms", Lower, Stability, Fixed(3), [];
        /// Rate that half of the seconds reached.
        SecondsP50, "seconds_p50", "p50_o/s", "1/s", Higher, Rate, Fixed(0), [];
        /// Rate that 99 of 100 seconds reached.
        SecondsP99, "seconds_p99", "p99_o/s", "1/s", Higher, Stability, Fixed(0), [];
        /// Coefficient of variation of the rates of single seconds.
        SecondsVariation, "seconds_variation", "cv_o/s", "", Lower, Stability, Fixed(3), [counted];
        /// Seconds with a rate below a tenth of the median second.
        StalledSeconds, "stalled_seconds", "stall_s", "s", Lower, Stability, Fixed(0), [];
        /// Longest query for the smallest key. Inserts and deletes wait for it.
        MinKeyQuery, "min_key_query", "min_key_ms", "ms", Lower, Latency, Fixed(3), [];
        /// Mean number of rows that a query returned.
        RowsPerQuery, "rows_per_query", "rows/q", "1/op", Higher, Quality, Fixed(1), [];
    }
    // The columns of db_bench's report (docs/kv.md has the formulas). Where the published formula
    // is wrong, `…_compat` is as published.
    "kv" => {
        /// Keys and values moved per second.
        MbPerSecond, "mb_per_second", "mb_sec", "MiB/s", Higher, Rate, Fixed(1), [];
        /// Size of the LSM tree at the end of the step.
        LsmSize, "lsm_size", "lsm_sz", "GiB", Lower, Size, Fixed(3), [];
        /// Size of the blob files at the end of the step.
        BlobSize, "blob_size", "blob_sz", "GiB", Lower, Size, Fixed(3), [];
        /// Bytes written by flushes and compactions.
        CompactionWritten, "compaction_written", "c_wgb", "GiB", Neither, Activity, Fixed(2), [];
        /// Bytes written to the LSM tree / bytes that clients put. Each byte counts once.
        WriteAmp, "write_amp", "w_amp", "ratio", Lower, Cost, Fixed(2), [];
        /// Write amplification as published: flushes count twice.
        WriteAmpCompat, "write_amp_compat", "w_amp_compat", "ratio", Lower, Published, Fixed(2), [];
        /// Bytes written by flushes and compactions per second of uptime.
        CompactionMbPerSecond, "compaction_mb_per_second", "c_mbps", "MiB/s",
            Neither, Activity, Fixed(1), [];
        /// Wall-clock time of flushes and compactions, summed over threads.
        CompactionWallSeconds, "compaction_wall_seconds", "c_wsecs", "s",
            Neither, Activity, Fixed(1), [];
        /// CPU time of compactions.
        CompactionCpuSeconds, "compaction_cpu_seconds", "c_csecs", "s",
            Neither, Activity, Fixed(1), [];
        /// Compaction time as published: by position, a different column since RocksDB 10.3.
        CompactionWallSecondsCompat, "compaction_wall_seconds_compat", "c_wsecs_compat", "s",
            Neither, Published, Fixed(1), [];
        /// Compaction CPU as published: by position, a different column since RocksDB 10.3.
        CompactionCpuSecondsCompat, "compaction_cpu_seconds_compat", "c_csecs_compat", "s",
            Neither, Published, Fixed(1), [];
        /// Bytes read from blob files.
        BlobRead, "blob_read", "b_rgb", "GiB", Neither, Activity, Fixed(1), [];
        /// Bytes written to blob files.
        BlobWritten, "blob_written", "b_wgb", "GiB", Neither, Activity, Fixed(1), [];
        /// Blob reads as published: by position, a different column since RocksDB 10.3.
        BlobReadCompat, "blob_read_compat", "b_rgb_compat", "GiB", Neither, Published, Fixed(1), [];
        /// Blob writes as published: by position, a different column since RocksDB 10.3.
        BlobWrittenCompat, "blob_written_compat", "b_wgb_compat", "GiB",
            Neither, Published, Fixed(1), [];
        /// Time of all clients / operations.
        MicrosPerOp, "micros_per_op", "usec_op", "us/op", Lower, Cost, Fixed(2), [];
        /// Median latency by db_bench's histogram, interpolated between its 109 limits.
        P50Compat, "p50_compat", "p50_compat", "us", Lower, Latency, Fixed(1), [];
        /// 99th percentile of latency by db_bench's histogram.
        P99Compat, "p99_compat", "p99_compat", "us", Lower, Latency, Fixed(0), [];
        /// 99.9th percentile of latency by db_bench's histogram.
        P999Compat, "p999_compat", "p99.9_compat", "us", Lower, Latency, Fixed(0), [];
        /// 99.99th percentile of latency by db_bench's histogram.
        P9999Compat, "p9999_compat", "p99.99_compat", "us", Lower, Latency, Fixed(0), [];
        /// Longest latency in whole microseconds.
        MaxCompat, "max_compat", "pmax", "us", Lower, Latency, Fixed(0), [];
        /// 99.99th percentile of the latency of events.
        P9999, "p9999", "p99.99_ms", "ms", Lower, Latency, Fixed(3), [];
        /// Time that the database was open.
        Uptime, "uptime", "uptime", "s", Neither, Activity, Fixed(1), [];
        /// Share of the uptime in which writes were stalled.
        StallPercent, "stall_percent", "stall%", "%", Lower, Stall, Fixed(1), [];
        /// Conditions for stalling writes that RocksDB found, of all kinds.
        StallCount, "stall_count", "Nstall", "1", Neither, Stall, Fixed(0), [];
        /// Delays of writes because of the files in level 0.
        StallL0Delays, "stall_l0_delays", "stall_l0_delays", "1", Neither, Stall, Fixed(0), [];
        /// Stops of writes because of the files in level 0.
        StallL0Stops, "stall_l0_stops", "stall_l0_stops", "1", Neither, Stall, Fixed(0), [];
        /// Delays because of level 0 during its compaction.
        StallL0DelaysBusy, "stall_l0_delays_busy", "cf_l0_delays_busy", "1",
            Neither, Stall, Fixed(0), [];
        /// Stops because of level 0 during its compaction.
        StallL0StopsBusy, "stall_l0_stops_busy", "cf_l0_stops_busy", "1",
            Neither, Stall, Fixed(0), [];
        /// Delays of writes because of memtables not yet flushed.
        StallMemtableDelays, "stall_memtable_delays", "stall_memtable_delays", "1",
            Neither, Stall, Fixed(0), [];
        /// Stops of writes because of memtables not yet flushed.
        StallMemtableStops, "stall_memtable_stops", "stall_memtable_stops", "1",
            Neither, Stall, Fixed(0), [];
        /// Delays of writes because of bytes that await compaction.
        StallPendingDelays, "stall_pending_delays", "stall_pending_delays", "1",
            Neither, Stall, Fixed(0), [];
        /// Stops of writes because of bytes that await compaction.
        StallPendingStops, "stall_pending_stops", "stall_pending_stops", "1",
            Neither, Stall, Fixed(0), [];
        /// User CPU time of the client process, which contains the database.
        UserCpu, "user_cpu", "u_cpu", "ks", Neither, Activity, Fixed(4), [];
        /// System CPU time of the client process, which contains the database.
        SystemCpu, "system_cpu", "s_cpu", "ks", Neither, Activity, Fixed(4), [];
        /// Peak resident memory of the client process, which contains the database.
        PeakRss, "peak_rss", "rss", "GiB", Lower, Size, Fixed(2), [];
        /// Time after the timed part until flushes and compactions were done.
        DrainSeconds, "drain_seconds", "drain_s", "s", Lower, Time, Fixed(1), [];
        /// Standard deviation / mean of the operations per second.
        RateVariation, "rate_variation", "rate_cv", "%", Lower, Stability, Fixed(1), [];
        /// Operations per second of the background writer.
        WriterRate, "writer_rate", "writer_o/s", "o/s", Higher, Rate, Fixed(0), [];
        /// Time of the client's own code per operation, outside the library.
        ClientOverhead, "client_overhead", "client_ns/o", "ns/op", Neither, Activity, Fixed(0), [];
    }
    // Host and disk.
    "" => {
        /// iostat: reads per second. This and the following are means over one-second samples.
        DiskReadsPerSecond, "disk_reads_per_second", "rps", "1/s", Neither, Host, Fixed(0), [];
        /// iostat: bytes read per second.
        DiskReadMbPerSecond, "disk_read_mb_per_second", "rmbps", "MiB/s",
            Neither, Host, Fixed(1), [];
        /// iostat: time of a read.
        DiskReadAwait, "disk_read_await", "rawait", "ms", Lower, Host, Fixed(2), [];
        /// iostat: size of a read. Larger means fewer requests for the same bytes.
        DiskReadSize, "disk_read_size", "rareqsz", "KiB", Neither, Host, Fixed(1), [];
        /// iostat: writes per second.
        DiskWritesPerSecond, "disk_writes_per_second", "wps", "1/s", Neither, Host, Fixed(0), [];
        /// iostat: bytes written per second.
        DiskWriteMbPerSecond, "disk_write_mb_per_second", "wmbps", "MiB/s",
            Neither, Host, Fixed(1), [];
        /// iostat: time of a write.
        DiskWriteAwait, "disk_write_await", "wawait", "ms", Lower, Host, Fixed(2), [];
        /// iostat: size of a write.
        DiskWriteSize, "disk_write_size", "wareqsz", "KiB", Neither, Host, Fixed(1), [];
        /// vmstat: context switches per second.
        ContextSwitchesPerSecond, "context_switches_per_second", "cs", "1/s",
            Neither, Host, Fixed(0), [];
        /// vmstat: user and nice CPU.
        CpuUser, "cpu_user", "us", "%", Neither, Host, Fixed(1), [];
        /// vmstat: system, irq and softirq CPU.
        CpuSystem, "cpu_system", "sy", "%", Neither, Host, Fixed(1), [];
        /// vmstat: idle CPU.
        CpuIdle, "cpu_idle", "id", "%", Neither, Host, Fixed(1), [];
        /// vmstat: CPU waiting for I/O.
        CpuWait, "cpu_wait", "wa", "%", Neither, Host, Fixed(1), [];
    }
    // Vector search.
    "vector" => {
        /// Share of the true k nearest among the rows returned, by distance: a row as near as the
        /// true k-th counts (the rule of ann-benchmarks), a missing row is a miss.
        Recall, "recall", "recall", "", Higher, Quality, Fixed(4), [];
        /// Recall by row ids: a tie with the k-th counts only if its id is in the exact answer.
        RecallIds, "recall_ids", "recall_ids", "", Higher, Quality, Fixed(4), [];
        /// Recall during inserts against the rows that were committed before the query ended: the
        /// lower bound.
        RecallLow, "recall_low", "recall_low", "", Higher, Quality, Fixed(4), [];
        /// Rows returned per query / k.
        RowsPerK, "rows_per_k", "rows/k", "", Higher, Quality, Fixed(3), [];
        /// Smallest ef_search whose recall reaches the target of the step.
        EfSearch, "ef_search", "ef_search", "", Lower, Quality, Fixed(0), [];
        /// Time to create and fill the table.
        LoadSeconds, "load_seconds", "load_s", "s", Lower, Time, Fixed(2), [];
    }
    "" => {
        /// Time to build the indexes on the filled table, without anything else.
        IndexSeconds, "index_seconds", "index_s", "s", Lower, Time, Fixed(2), [];
    }
    "vector" => {
        /// Time for table, rows and index together: the isecs of published work.
        BuildSeconds, "build_seconds", "build_s", "s", Lower, Time, Fixed(1), [];
        /// Size of the vector index.
        IndexSize, "index_size", "index_MB", "MiB", Lower, Size, Fixed(1), [];
        /// Size of the table without its indexes.
        TableSize, "table_size", "table_MB", "MiB", Lower, Size, Fixed(1), [];
        /// Latency of the first query on a cache without any page of the index.
        FirstQuery, "first_query", "first_ms", "ms", Lower, Latency, Fixed(1), [];
        /// Time from then until every query of the set ran once.
        WarmSeconds, "warm_seconds", "warm_s", "s", Lower, Time, Fixed(2), [];
        /// Time of VACUUM or OPTIMIZE after deletes.
        CleanSeconds, "clean_seconds", "clean_s", "s", Lower, Time, Fixed(2), [];
        /// Bytes of write-ahead or redo log per row inserted into the index.
        LogBytesPerRow, "log_bytes_per_row", "log_B/row", "B/row", Lower, Cost, Fixed(0), [];
        /// Answers with an invisible row, or without a visible row that even a scan misses, per
        /// 100,000 probes.
        Violations, "violations", "violations", "1e-5", Lower, Quality, Fixed(1), [];
        /// Share of the probes that returned a visible row that lies where the query asks.
        Found, "found", "found", "", Higher, Quality, Fixed(4), [];
        /// Rows in an indexed table when it was full or the time was over.
        Capacity, "capacity", "capacity", "rows", Higher, Quality, Fixed(0), [];
    }
    "orders" => {
        /// New orders that were committed, per minute of all clients.
        NewOrdersPerMinute, "nopm", "nopm", "1/min", Higher, Rate, Fixed(0), [adds_up];
        /// Transactions of all kinds that were carried out, per minute of all clients.
        TransactionsPerMinute, "tpm", "tpm", "1/min", Higher, Rate, Fixed(0), [adds_up];
    }
    // Published perf reports.
    "" => {
        /// Busy CPU of the whole host, per cent of all CPUs: vmstat's us + sy.
        CpuBusy, "cpu_busy", "cpups", "%", Neither, Published, Fixed(1), [];
        /// CPU time of the whole host, including the client, per operation.
        HostCpuPerOp, "host_cpu_per_op", "cpupq", "us/op", Lower, Published, Fixed(0), [];
        /// Size of the database's own files, without logs.
        DatabaseSize, "database_size", "dbgb1", "GiB", Lower, Size, Fixed(1), [];
    }
}

impl Metric {
    /// The metrics with a wanted row, in the order of reports.
    pub fn which(wanted: impl Fn(&MetricSpec) -> bool) -> impl Iterator<Item = Metric> {
        Metric::ALL.iter().copied().filter(move |metric| wanted(metric.spec()))
    }

    /// Percentiles of the latency of events, the longest one last.
    pub fn percentiles() -> impl Iterator<Item = Metric> {
        Metric::which(|spec| spec.common && spec.class == Class::Latency)
    }

    /// Its column head.
    pub fn name(self) -> &'static str {
        self.spec().head
    }

    /// The unit of its values; that of the rate is the step's own.
    pub fn unit(self) -> &'static str {
        self.spec().unit
    }

    /// The digits of its values in tables.
    pub fn digits(self) -> Digits {
        self.spec().digits
    }

    /// The better direction.
    pub fn better(self) -> Direction {
        self.spec().better
    }
}

// The row of a metric.

/// The better direction of a metric.
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

/// The class of a metric. Reports select their columns by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Work done per second.
    Rate,
    /// Resources that an operation or a row takes.
    Cost,
    /// Time that one operation takes.
    Latency,
    /// Effects that averages hide: the longest operations, slow seconds.
    Stability,
    /// Delays of writes by the DBMS: number and time.
    Stall,
    /// Space in memory or on disk.
    Size,
    /// Duration of a phase that is not measured by its rate.
    Time,
    /// Quality of answers.
    Quality,
    /// Volume of work inside the DBMS or the client.
    Activity,
    /// Activity of host and disk, as iostat and vmstat show it.
    Host,
    /// A number as others publish it, beside the corrected one.
    Published,
}

/// The row of a metric.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpec {
    /// Name in files.
    pub key: &'static str,
    /// Column head, also its name on the command line.
    pub head: &'static str,
    /// Unit of its values; that of the rate is the step's own.
    pub unit: &'static str,
    /// The better direction.
    pub better: Direction,
    /// The class of the metric.
    pub class: Class,
    /// The digits of its values in tables.
    pub digits: Digits,
    /// The benchmark that it belongs to; empty for a metric of all benchmarks.
    pub owner: &'static str,
    /// The meaning in a sentence or two.
    pub meaning: &'static str,
    /// True if every step has it, or has a reason to lack it.
    pub common: bool,
    /// For a cost that may explain the rate, its place among those with an equal change: the more
    /// specific comes first. Latencies are not among them: with a fixed number of clients they are
    /// the rate, seen from the other side.
    pub explains: Option<u8>,
    /// True if the table of verdicts counts it beside the rate.
    pub counted: bool,
    /// True if the overview omits it.
    pub aside: bool,
    /// True for a rate of writers with a target: it stays comparable where a missed target makes
    /// the rest of the step incomparable.
    pub of_writers: bool,
    /// True for a figure of the clients of each host whose sum is that of all clients.
    pub adds_up: bool,
    /// True for counts that depend neither on time nor on the layout of a build.
    pub exact: bool,
    /// Place among the published columns of costs per operation, if it is one of them.
    pub place: Option<u8>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_and_heads_are_unique_and_keys_are_those_of_files() {
        let mut names = BTreeSet::new();
        for (metric, spec) in Metric::ALL.iter().map(|metric| (metric, metric.spec())) {
            assert_eq!(serde_json::to_value(metric).unwrap(), spec.key);
            assert_eq!(serde_json::from_value::<Metric>(spec.key.into()).unwrap(), *metric);
            assert!(names.insert(spec.key), "{} names two metrics", spec.key);
            assert!(names.insert(spec.head) || spec.head == spec.key, "{}: two heads", spec.head);
            assert!(spec.meaning.ends_with('.'), "{}: {}", spec.key, spec.meaning);
        }
        assert_eq!(names.len(), 2 * Metric::ALL.len() - same_heads());
    }

    /// Metrics whose head is their key.
    fn same_heads() -> usize {
        Metric::which(|spec| spec.head == spec.key).count()
    }

    #[test]
    fn places_are_in_a_row() {
        fn check(place: fn(&MetricSpec) -> Option<u8>) {
            let mut places: Vec<u8> =
                Metric::ALL.iter().filter_map(|metric| place(metric.spec())).collect();
            places.sort_unstable();
            assert_eq!(places, (1..=places.len() as u8).collect::<Vec<u8>>());
            assert!(!places.is_empty());
        }
        check(|spec| spec.place);
        check(|spec| spec.explains);
    }
}
