//! Options as an object of the library, set key by key from text, so that a key that a version
//! does not take is known by its name.

use std::ptr;
use std::sync::Arc;

use crate::rocksdb::{Options, Rocksdb, RocksdbError, c_text};
use rqps_model::kv::KvOption;

/// Shards of a block cache as a power of two, as db_bench has it. Left to itself, a small hyper
/// clock cache gets two.
const SHARD_BITS: i32 = 6;

/// Kinds of block caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Least recently used, sharded, each shard under a lock.
    Lru,
    /// Hyper clock with a table of fixed size, for entries of about one block.
    FixedHyperClock,
    /// Hyper clock with a table that grows.
    AutoHyperClock,
}

/// An option that a version did not take and could go without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The option.
    pub option: KvOption,
    /// The library's words.
    pub said: String,
}

/// Options of a database that is to be opened.
pub struct RocksdbOptions {
    rocksdb: Arc<Rocksdb>,
    handle: *mut Options,
}

impl RocksdbOptions {
    /// The library's own defaults.
    pub fn new(rocksdb: &Arc<Rocksdb>) -> RocksdbOptions {
        // SAFETY: takes nothing, returns an object that belongs to the caller.
        let handle = unsafe { (rocksdb.functions.rocksdb_options_create)() };
        RocksdbOptions { rocksdb: Arc::clone(rocksdb), handle }
    }

    pub(super) fn rocksdb(&self) -> &Arc<Rocksdb> {
        &self.rocksdb
    }

    pub(super) fn handle(&self) -> *mut Options {
        self.handle
    }

    /// Sets options one by one, in order. Returns the optional ones that the library rejects.
    ///
    /// # Errors
    /// The first that was not optional and not taken, with the library's words.
    pub fn set_all(&mut self, options: &[KvOption]) -> Result<Vec<Rejected>, RocksdbError> {
        let mut rejected = Vec::new();
        for option in options {
            match self.apply(&spelled(option)) {
                Ok(()) => {}
                Err(RocksdbError::Refused { said, .. }) if option.optional => {
                    rejected.push(Rejected { option: option.clone(), said });
                }
                Err(RocksdbError::Refused { said, .. }) => {
                    return Err(RocksdbError::Option {
                        hint: hint(&option.key),
                        key: option.key.clone(),
                        value: option.value.clone(),
                        said,
                    });
                }
                Err(other) => return Err(other),
            }
        }
        Ok(rejected)
    }

    /// Gives the tables a block cache. To be called before options of tables are set, which keep
    /// it.
    ///
    /// # Errors
    /// The version has no such cache.
    pub fn set_cache(
        &mut self,
        kind: CacheKind,
        bytes: u64,
        block_bytes: u64,
        high_priority_share: f64,
    ) -> Result<(), RocksdbError> {
        let charge = match kind {
            CacheKind::Lru => {
                return self.apply(&format!(
                    "block_based_table_factory={{block_cache={{capacity={bytes};\
                     num_shard_bits={SHARD_BITS};high_pri_pool_ratio={high_priority_share}}}}}"
                ));
            }
            CacheKind::FixedHyperClock => block_bytes as usize,
            CacheKind::AutoHyperClock => 0,
        };
        let functions = &self.rocksdb.functions;
        let some = &self.rocksdb;
        let create = some.some(&functions.rocksdb_hyper_clock_cache_options_create)?;
        let destroy = some.some(&functions.rocksdb_hyper_clock_cache_options_destroy)?;
        let shards = some.some(&functions.rocksdb_hyper_clock_cache_options_set_num_shard_bits)?;
        let cache_of = some.some(&functions.rocksdb_cache_create_hyper_clock_opts)?;
        // SAFETY: each object is used while it lives and destroyed once. The table options copy
        // what they are given, the cache is counted, and the database options copy the table
        // options (rocksdb/c.cc).
        unsafe {
            let settings = create(bytes as usize, charge);
            shards(settings, SHARD_BITS);
            let cache = cache_of(settings);
            destroy(settings);
            let table = (functions.rocksdb_block_based_options_create)();
            (functions.rocksdb_block_based_options_set_block_cache)(table, cache);
            (functions.rocksdb_options_set_block_based_table_factory)(self.handle, table);
            (functions.rocksdb_block_based_options_destroy)(table);
            (functions.rocksdb_cache_destroy)(cache);
        }
        Ok(())
    }

    /// Lets the library read `key=value;…` over what is set already.
    fn apply(&mut self, text: &str) -> Result<(), RocksdbError> {
        let functions = &self.rocksdb.functions;
        let text = c_text(text)?;
        let mut fault = ptr::null_mut();
        // SAFETY: both objects are alive; the new one takes the old one's place or is destroyed.
        unsafe {
            let new = (functions.rocksdb_options_create)();
            (functions.rocksdb_get_options_from_string)(
                self.handle,
                text.as_ptr(),
                new,
                &raw mut fault,
            );
            let unwanted =
                if fault.is_null() { std::mem::replace(&mut self.handle, new) } else { new };
            (functions.rocksdb_options_destroy)(unwanted);
        }
        self.rocksdb.check("set options", fault)
    }
}

impl Drop for RocksdbOptions {
    fn drop(&mut self) {
        // SAFETY: alive, and destroyed only here.
        unsafe { (self.rocksdb.functions.rocksdb_options_destroy)(self.handle) }
    }
}

/// An option in the form of RocksDB's option strings.
fn spelled(option: &KvOption) -> String {
    let KvOption { key, value, .. } = option;
    if let Some(key) = key.strip_prefix("table.") {
        format!("block_based_table_factory={{{key}={value}}}")
    } else if let Some(key) = key.strip_prefix("universal.") {
        format!("compaction_options_universal={{{key}={value}}}")
    } else {
        format!("{key}={value}")
    }
}

/// Options that are asked for although older versions lack them: key, first version.
const SINCE: &[(&str, &str)] = &[
    ("table.index_shortening", "6.2"),
    ("table.prepopulate_block_cache", "6.22"),
    ("table.optimize_filters_for_memory", "6.11"),
    ("memtable_factory", "6.29"),
    ("bottommost_compression", "6.11"),
    ("force_consistency_checks", "6.0"),
];

/// A hint for an option that the library refused.
fn hint(key: &str) -> String {
    if let Some((_, since)) = SINCE.iter().find(|(known, _)| *known == key) {
        return format!(
            "\nhint: RocksDB has it since {since}; write `{key} ?= …` to skip it where a version \
             lacks it"
        );
    }
    if key.starts_with("use_dynamic_delay") || key.starts_with("use_spdb") {
        return "\nhint: only Speedb has it; write `?=` to skip it elsewhere".to_owned();
    }
    format!(
        "\nhint: this version lacks the option or the value; see its include/rocksdb/options.h, or \
         write `{key} ?= …` in the config to skip it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_spelled_in_their_groups() {
        let check = |key: &str, value: &str, spelling: &str| {
            assert_eq!(spelled(&KvOption::new(key, value)), spelling);
        };
        check("num_levels", "8", "num_levels=8");
        check("table.block_size", "8192", "block_based_table_factory={block_size=8192}");
        check("universal.size_ratio", "10", "compaction_options_universal={size_ratio=10}");
    }

    #[test]
    fn an_option_of_later_versions_is_told() {
        assert!(hint("table.index_shortening").contains("since 6.2"));
        assert!(hint("use_dynamic_delay").contains("Speedb"));
        assert!(hint("nonsense").contains("lacks the option"));
    }
}
