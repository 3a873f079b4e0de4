//! Parameters of the RocksDB sequence: its scale beyond the common one, and the work of a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::benchmark::Pace;
use crate::rocksdb::KvOption;

/// Scale and shape. Keys, clients, seconds and the block cache are in the common workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvShape {
    /// The compaction style.
    pub style: Style,
    /// The memory or disk that the data fit in; a label of the shape.
    pub data: Data,
    /// Compression of the deeper levels; of all in the load and with universal compaction.
    pub compression: Compression,
    /// O_DIRECT for reads, flushes and compactions.
    pub direct_io: bool,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries read after a seek.
    pub seek_nexts: u32,
    /// YCSB core workloads to run instead of the sequence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<CoreMix>,
    /// Steps without a writer (readrandom, fwdrange) are measured, too.
    pub reads: bool,
    /// So is multireadrandom.
    pub multireads: bool,
    /// Seconds of one idle client between load and reads, in which compaction catches up.
    pub drain_seconds: f64,
    /// Limit of the background writer of the steps while writing, MiB/s.
    pub writer_mb: f64,
    /// More limits of that writer: the steps while writing are repeated with each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writer_sweep: Vec<f64>,
    /// Share of the keys that overwritesome writes.
    pub overwrite_share: f64,
    /// Flushes and compactions at the same time.
    pub background_jobs: u32,
    /// Threads of one compaction, with universal compaction.
    pub subcompactions: u32,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Bytes of a table file.
    pub target_file_bytes: u64,
    /// Factor on the published limits of compaction debt (64 and 128 GiB).
    pub limits_scale: f64,
    /// Options of the user, which override those of the benchmark and the configs: key → value.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// Compaction styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Each level larger than the one above by a factor.
    Leveled,
    /// Sorted runs merged by size.
    Universal,
}

/// The memory that the data are to fit in, in the published words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// Cached by RocksDB.
    Byrx,
    /// Cached by the operating system.
    Byos,
    /// Larger than memory, buffered I/O.
    Iobuf,
    /// Larger than memory, O_DIRECT.
    Iodir,
}

impl Data {
    /// All of them.
    pub const ALL: [Data; 4] = [Data::Byrx, Data::Byos, Data::Iobuf, Data::Iodir];

    /// The field's word.
    pub fn name(self) -> &'static str {
        match self {
            Data::Byrx => "byrx",
            Data::Byos => "byos",
            Data::Iobuf => "iobuf",
            Data::Iodir => "iodir",
        }
    }
}

/// Compression of table files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// No compression.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// RocksDB's name of it in option strings.
    pub fn option(self) -> &'static str {
        match self {
            Compression::None => "kNoCompression",
            Compression::Lz4 => "kLZ4Compression",
            Compression::Zstd => "kZSTD",
        }
    }
}

/// The work of a step's clients. One driver process opens the database for it, so its block cache
/// is cold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvWork {
    /// The operation.
    pub action: KvOperation,
    /// Clients; the background writer comes on top.
    pub clients: u32,
    /// Operations of each client; `None` for a step that ends with its time.
    pub operations: Option<u64>,
    /// Keys of the database.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// False writes without a write-ahead log.
    pub write_ahead_log: bool,
    /// The pace of each client.
    pub pace: Pace,
    /// MiB/s of one more thread that overwrites random keys, apart from the clients.
    pub writer_mb: Option<f64>,
    /// True where the step is named after that rate: a config must not set another one.
    pub writer_named: bool,
    /// After the measured window, in the same process.
    pub after: Vec<KvMaintenance>,
    /// The benchmark's own options for this step; the config of the target comes over them.
    pub options: Vec<KvOption>,
    /// The user's options, over both.
    pub overrides: Vec<KvOption>,
}

impl KvWork {
    /// True if clients only read, one call after the other, with no writer beside them and no
    /// maintenance after.
    pub fn only_reads(&self) -> bool {
        let reads = match self.action {
            KvOperation::Read | KvOperation::MultiRead { .. } | KvOperation::Range { .. } => true,
            KvOperation::FillSequential | KvOperation::Overwrite | KvOperation::Maintain => false,
            KvOperation::Mix { mix } => mix == CoreMix::C,
        };
        let alone = self.writer_mb.is_none() && self.after.is_empty();
        reads && alone && self.operations.is_none() && self.pace == Pace::Closed
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvOperation {
    /// Makes the database: puts all keys in order.
    FillSequential,
    /// Puts a random key, in a batch of one.
    Overwrite,
    /// Gets a random key.
    Read,
    /// Gets that many random keys in one call; each counts.
    MultiRead {
        /// Keys of a call.
        batch: u32,
    },
    /// A new iterator, a seek, and that many entries from there.
    Range {
        /// Entries read.
        nexts: u32,
        /// Towards smaller keys.
        reverse: bool,
    },
    /// An operation of a core workload of YCSB.
    Mix {
        /// The workload.
        mix: CoreMix,
    },
    /// Nothing but the maintenance after it.
    Maintain,
}

/// A core workload of YCSB on keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreMix {
    /// Half gets, half puts.
    A,
    /// 95 % gets, 5 % puts.
    B,
    /// Gets.
    C,
    /// 95 % gets of the latest keys, 5 % puts of new ones.
    D,
    /// 95 % scans, 5 % puts of new keys.
    E,
    /// Half gets, half gets with a put of the same key.
    F,
}

impl CoreMix {
    /// All, with their letters.
    pub const ALL: [(&str, CoreMix); 6] = [
        ("a", CoreMix::A),
        ("b", CoreMix::B),
        ("c", CoreMix::C),
        ("d", CoreMix::D),
        ("e", CoreMix::E),
        ("f", CoreMix::F),
    ];

    /// Its letter.
    pub fn letter(self) -> &'static str {
        CoreMix::ALL.iter().find(|(_, mix)| *mix == self).map_or("", |(letter, _)| letter)
    }
}

/// Putting the tree in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvMaintenance {
    /// Memtables to files.
    Flush,
    /// The files of level 0 into the level below.
    CompactLevel0,
    /// Until no flush and no compaction runs or is due.
    Wait,
}
