//! Prepares the opening of the database: options, block cache, and a check of the folder.

use std::path::PathBuf;
use std::sync::Arc;

use rqps_driver::request::DriverRequest;
use rqps_embed::rocksdb::marker::{Marker, State, database_folder};
use rqps_embed::rocksdb::{CacheKind, Database, Rocksdb, RocksdbOptions};
use rqps_host::proc;
use rqps_model::endpoint::Endpoint;
use rqps_model::kv::{KvOperation, KvWork};
use rqps_model::rocksdb::{CacheWord, DriverSettings, KvOption};

/// Share of the LRU cache for indexes and filters that are in the cache, as in db_bench.
const HIGH_PRIORITY: f64 = 0.5;

/// Everything that opening the database needs.
pub(super) struct Setup {
    /// The data folder, with rqps's marker.
    pub(super) data: PathBuf,
    /// The database's own folder in it.
    pub(super) database: PathBuf,
    /// Settings that could not be made, in words.
    pub(super) notes: Vec<String>,
    library: PathBuf,
    settings: DriverSettings,
    options: Vec<KvOption>,
}

impl Setup {
    /// Reads the request. Errors are complete messages, here and below.
    pub(super) fn of(request: &DriverRequest, work: &KvWork) -> Result<Setup, String> {
        let Endpoint::File { path: data, library: Some(library) } = &request.endpoint else {
            return Err("failed to measure: the benchmark kv needs RocksDB or Speedb".to_owned());
        };
        let mut config = Vec::new();
        for line in &request.session_setup {
            config.push(KvOption::parse(line).map_err(|error| format!("failed to {error}"))?);
        }
        let layers = [&work.options[..], &config[..], &work.overrides[..]];
        let (settings, options) = DriverSettings::take(KvOption::layered(layers))
            .map_err(|error| format!("failed to {error}"))?;
        let setup = Setup {
            data: data.clone(),
            database: database_folder(data),
            notes: Vec::new(),
            library: library.clone(),
            settings,
            options,
        };
        setup.check_folder(work.action)?;
        setup.check_memory()?;
        Ok(setup)
    }

    /// The limit of the background writer, MB/s: the config's, or else the workload's. A step that
    /// is named after its limit ignores the config.
    pub(super) fn writer_mb(&self, work: &KvWork) -> Option<f64> {
        let config = self.settings.writer_mb.filter(|_| !work.writer_named);
        work.writer_mb.map(|mb| config.unwrap_or(mb)).filter(|mb| *mb > 0.0)
    }

    /// Refuses a folder that rqps did not make, and a half-loaded database.
    fn check_folder(&self, action: KvOperation) -> Result<(), String> {
        let folder = self.data.display();
        let marker = Marker::read(&self.data)
            .map_err(|error| format!("failed to look into {folder}: {error}"))?;
        let state = match marker {
            Some(marker) => marker.state,
            None => {
                return Err(format!(
                    "failed to use {folder}: rqps did not make this database, and only uses its \
                     own; name another folder with --work"
                ));
            }
        };
        match (action, state) {
            (KvOperation::FillSequential, State::Empty) if !self.database.exists() => Ok(()),
            (KvOperation::FillSequential, _) => {
                Err(format!("failed to fill {folder}: it already holds a database"))
            }
            (_, State::Filled) => Ok(()),
            (_, State::Broken(why)) => Err(format!("failed to measure: no filled database: {why}")),
            (_, State::Empty | State::Filling) => {
                Err("failed to measure: no filled database; run fillseq first".to_owned())
            }
        }
    }

    fn check_memory(&self) -> Result<(), String> {
        let Some(megabytes) = self.settings.cache_mb else { return Ok(()) };
        let memory = std::fs::read_to_string("/proc/meminfo").ok();
        let memory = memory.and_then(|text| proc::memory(&text).ok());
        let total = memory.map_or(u64::MAX, |memory| memory.total_bytes >> 20);
        if megabytes < total {
            return Ok(());
        }
        Err(format!(
            "failed to make a block cache of {megabytes} MiB: this machine has {total} MiB of \
             memory; use --set cache=SIZE with a smaller size"
        ))
    }

    /// Loads the library and opens the database.
    pub(super) fn open(&mut self) -> Result<Database, String> {
        let failed = |error: rqps_embed::rocksdb::RocksdbError| format!("failed to {error}");
        let rocksdb = Arc::new(Rocksdb::load(&self.library).map_err(failed)?);
        let mut options = RocksdbOptions::new(&rocksdb);
        match self.settings.cache_mb {
            Some(megabytes) => {
                let kind = self.cache_kind()?;
                let block = self.value("table.block_size").and_then(|text| text.parse().ok());
                let in_cache = self.value("table.cache_index_and_filter_blocks") == Some("true");
                let share = if in_cache { HIGH_PRIORITY } else { 0.0 };
                options
                    .set_cache(kind, megabytes << 20, block.unwrap_or(4096), share)
                    .map_err(failed)?;
            }
            None => self.notes.push(
                "the config has no rqps.cache_mb, so the block cache is the library's default"
                    .to_owned(),
            ),
        }
        for rejected in options.set_all(&self.options).map_err(failed)? {
            self.notes.push(format!(
                "skipped the option {}={}: {}",
                rejected.option.key, rejected.option.value, rejected.said
            ));
        }
        Database::open(options, &self.database).map_err(failed)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|option| option.key == key).map(|option| option.value.as_str())
    }

    /// The kind of cache that this version supports.
    fn cache_kind(&mut self) -> Result<CacheKind, String> {
        let version = rqps_model::build::Version::new(
            self.settings.version.iter().map(u32::to_string).collect::<Vec<_>>().join("."),
        );
        let (auto, fixed) = (version.at_least(&[8, 6]), version.at_least(&[8, 1]));
        match self.settings.cache {
            CacheWord::Lru => Ok(CacheKind::Lru),
            CacheWord::HyperClock | CacheWord::Best if auto => Ok(CacheKind::AutoHyperClock),
            CacheWord::HyperClock | CacheWord::FixedHyperClock | CacheWord::Best if fixed => {
                Ok(CacheKind::FixedHyperClock)
            }
            CacheWord::Best => {
                self.notes.push(format!(
                    "the block cache is LRU: the C API of RocksDB {version} has no hyper clock \
                     cache"
                ));
                Ok(CacheKind::Lru)
            }
            CacheWord::HyperClock | CacheWord::FixedHyperClock => Err(format!(
                "failed to make a hyper clock cache: RocksDB {version} lacks it (the C API has it \
                 since 8.1, growing since 8.6); use the config lru or best-cache"
            )),
        }
    }
}
