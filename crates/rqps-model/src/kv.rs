//! Parameters of the RocksDB sequence: its scale beyond the common one, and the work of a step.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::benchmark::Pace;
use crate::build::Version;

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

// Options of RocksDB as configs and steps spell them, and what configs ask of rqps beside them.

/// Bytes of a key, as in all published runs.
pub const KEY_BYTES: usize = 20;

/// The option for the readahead of compactions.
pub const READAHEAD_OPTION: &str = "compaction_readahead_size";

/// Readahead of compactions unless a config or the user says otherwise: the library's default since
/// 8.7, bytes.
pub const READAHEAD_BYTES: u64 = 2 << 20;

/// An option of RocksDB. `table.X` belongs into `block_based_table_factory`, `universal.X` into
/// `compaction_options_universal`; `rqps.X` is for the driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvOption {
    /// Its name.
    pub key: String,
    /// Its value in RocksDB's spelling.
    pub value: String,
    /// True if a version that does not know it may go without, which is noted then.
    pub optional: bool,
}

impl KvOption {
    /// The value that removes an option of an earlier layer, so that the library's own default
    /// holds.
    pub const UNSET: &str = "unset";

    /// One that every version must take.
    pub fn new(key: &str, value: impl ToString) -> KvOption {
        KvOption { key: key.to_owned(), value: value.to_string(), optional: false }
    }

    /// One that is left out where the version does not know it.
    pub fn optional(key: &str, value: impl ToString) -> KvOption {
        KvOption { optional: true, ..KvOption::new(key, value) }
    }

    /// A line of a config: `key = value`, or `key ?= value` for an optional one.
    ///
    /// # Errors
    /// The line has no `=`, or nothing on one side of it.
    pub fn parse(line: &str) -> Result<KvOption, String> {
        let wrong = || format!("understand the option `{line}`: write key = value");
        let (key, value) = line.split_once('=').ok_or_else(wrong)?;
        let (key, optional) = match key.trim_end().strip_suffix('?') {
            Some(key) => (key, true),
            None => (key, false),
        };
        let (key, value) = (key.trim(), value.trim());
        let odd = |c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c));
        if key.is_empty() || value.is_empty() || key.contains(odd) {
            return Err(wrong());
        }
        Ok(KvOption { key: key.to_owned(), value: value.to_owned(), optional })
    }

    /// The layers over one another: a later value takes the place of an earlier one of the same
    /// key, and [`KvOption::UNSET`] removes it.
    pub fn layered<'a>(layers: impl IntoIterator<Item = &'a [KvOption]>) -> Vec<KvOption> {
        let mut all: Vec<KvOption> = Vec::new();
        for option in layers.into_iter().flatten() {
            let place = all.iter().position(|other| other.key == option.key);
            match (place, option.value == KvOption::UNSET) {
                (Some(place), false) => all[place] = option.clone(),
                (None, false) => all.push(option.clone()),
                (Some(place), true) => {
                    all.remove(place);
                }
                (None, true) => {}
            }
        }
        all
    }
}

/// Settings in a config for the driver instead of the library: the options that begin with `rqps.`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriverSettings {
    /// `rqps.cache`: the kind of block cache.
    pub cache: CacheWord,
    /// `rqps.cache_mb`: its size, MiB.
    pub cache_mb: Option<u64>,
    /// `rqps.writer_mb`: the limit of the background writer instead of the workload's, MiB/s.
    pub writer_mb: Option<f64>,
    /// `rqps.version`: the version of RocksDB that the library is or was forked from, as numbers.
    pub version: Vec<u32>,
}

/// The kind of block cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheWord {
    /// `lru`.
    #[default]
    Lru,
    /// `hyper_clock`: growing where the version has it (8.6), else of fixed size (8.1).
    HyperClock,
    /// `fixed_hyper_clock`.
    FixedHyperClock,
    /// `best`: `hyper_clock` where there is one, else `lru`.
    Best,
}

impl DriverSettings {
    /// Parts options into those for the driver and those for the library.
    ///
    /// # Errors
    /// An `rqps.` option that there is not, or a value that it does not take.
    pub fn take(options: Vec<KvOption>) -> Result<(DriverSettings, Vec<KvOption>), String> {
        let mut settings = DriverSettings::default();
        let mut rest = Vec::new();
        for option in options {
            match option.key.strip_prefix("rqps.") {
                Some(key) => settings.set(key, &option.value)?,
                None => rest.push(option),
            }
        }
        Ok((settings, rest))
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("set rqps.{key} to `{value}`: {what}");
        match key {
            "cache" => {
                self.cache = match value {
                    "lru" => CacheWord::Lru,
                    "hyper_clock" => CacheWord::HyperClock,
                    "fixed_hyper_clock" => CacheWord::FixedHyperClock,
                    "best" => CacheWord::Best,
                    _ => {
                        return Err(wrong(
                            "write one of lru, hyper_clock, fixed_hyper_clock, best",
                        ));
                    }
                }
            }
            "cache_mb" => {
                let megabytes = value.parse().ok().filter(|mb| (1..=1 << 30).contains(mb));
                self.cache_mb =
                    Some(megabytes.ok_or_else(|| wrong("write a whole number of MiB"))?);
            }
            "writer_mb" => {
                let rate = value.parse().ok().filter(|mb: &f64| (0.0..=1e6).contains(mb));
                self.writer_mb = Some(rate.ok_or_else(|| wrong("write a number of MiB/s"))?);
            }
            "version" => self.version = Version::new(value).numbers(),
            _ => {
                return Err(wrong(
                    "unknown key; valid keys: rqps.cache, rqps.cache_mb, rqps.writer_mb",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_config_are_options() {
        let check = |line: &str, key: &str, value: &str, optional: bool| {
            let (key, value) = (key.to_owned(), value.to_owned());
            assert_eq!(KvOption::parse(line), Ok(KvOption { key, value, optional }), "{line}");
        };
        check("num_levels=8", "num_levels", "8", false);
        check("table.index_shortening ?= kNo", "table.index_shortening", "kNo", true);
        check("a = {b=c;d=e}", "a", "{b=c;d=e}", false);
        for line in ["num_levels", "=8", "num_levels=", "a b = 1", "a;b=c"] {
            assert!(KvOption::parse(line).unwrap_err().contains("key = value"), "{line}");
        }
    }

    #[test]
    fn settings_of_the_driver_are_taken_out() {
        let options = [("rqps.cache", "best"), ("num_levels", "8"), ("rqps.writer_mb", "0.5")];
        let options = options.map(|(key, value)| KvOption::new(key, value)).to_vec();
        let (settings, rest) = DriverSettings::take(options).unwrap();
        assert_eq!((settings.cache, settings.writer_mb), (CacheWord::Best, Some(0.5)));
        assert_eq!(rest, [KvOption::new("num_levels", 8)]);
        let wrong = |key: &str, value: &str| {
            DriverSettings::take(vec![KvOption::new(key, value)]).unwrap_err()
        };
        assert!(wrong("rqps.cache", "clock").contains("one of lru"));
        assert!(wrong("rqps.cash", "lru").contains("unknown key"));
        assert!(wrong("rqps.writer_mb", "-1").contains("MiB/s"));
    }

    #[test]
    fn later_layers_win_and_can_take_back() {
        let below = [KvOption::new("a", 1), KvOption::new("b", 2), KvOption::new("c", 3)];
        let above = [KvOption::new("b", 20), KvOption::new("c", "unset"), KvOption::new("d", 4)];
        let all = KvOption::layered([&below[..], &above[..]]);
        let pairs: Vec<_> = all.iter().map(|o| (o.key.as_str(), o.value.as_str())).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "20"), ("d", "4")]);
    }
}
