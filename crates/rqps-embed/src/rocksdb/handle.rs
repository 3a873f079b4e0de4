//! Calls of a client thread. They allocate nothing, except in the library itself.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

use crate::rocksdb::{Batch, Database, ReadOptions, RocksdbError, Slice, WriteOptions};
use rqps_model::kv::KEY_BYTES;

/// Keys of one call of [`Handle::multi_get`] at most.
pub const BATCH_MAX: usize = 100;

/// Bytes of a value read after a seek, as in db_bench.
const READ_MAX: usize = 256;

/// `PerfLevel::kDisable` of rocksdb/perf_level.h, the same number in all versions.
const COUNT_NOTHING: c_int = 1;

/// The durability of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Into the write-ahead log, which is not synced.
    Log,
    /// Without a write-ahead log.
    NoLog,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Keys found, or entries read.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// One thread's access to a database.
pub struct Handle {
    database: Arc<Database>,
    read: *mut ReadOptions,
    write: *mut WriteOptions,
    batch: *mut Batch,
    scratch: [u8; READ_MAX],
}

// SAFETY: the objects belong to this session alone; RocksDB ties none of them to a thread.
unsafe impl Send for Handle {}

impl Handle {
    /// Ready to read and write. The thread that calls stops counting into the library's perf
    /// context, which nobody reads and which is on unless a thread asks otherwise: 3 % of the
    /// instructions of a get, 8 % of a put. db_bench's threads do without it, too.
    pub fn new(database: &Arc<Database>, durability: Durability) -> Handle {
        let functions = &database.rocksdb.functions;
        // SAFETY: objects are made and set while nobody else has them; `drop` destroys them. The
        // level is a number of this thread alone.
        unsafe {
            (functions.rocksdb_set_perf_level)(COUNT_NOTHING);
            let read = (functions.rocksdb_readoptions_create)();
            (functions.rocksdb_readoptions_set_verify_checksums)(read, 1);
            let write = (functions.rocksdb_writeoptions_create)();
            (functions.rocksdb_writeoptions_set_sync)(write, 0);
            let no_log = c_int::from(durability == Durability::NoLog);
            (functions.rocksdb_writeoptions_disable_WAL)(write, no_log);
            let batch = (functions.rocksdb_writebatch_create)();
            let database = Arc::clone(database);
            Handle { database, read, write, batch, scratch: [0; READ_MAX] }
        }
    }

    /// Puts one key in a batch of its own.
    ///
    /// # Errors
    /// RocksDB's words.
    #[inline]
    pub fn write(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        let Database { rocksdb, database, .. } = &*self.database;
        let functions = &rocksdb.functions;
        let mut fault = ptr::null_mut();
        // SAFETY: key and value are copied by the batch during the call.
        unsafe {
            (functions.rocksdb_writebatch_clear)(self.batch);
            (functions.rocksdb_writebatch_put)(
                self.batch,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
            (functions.rocksdb_write)(*database, self.write, self.batch, &raw mut fault);
        }
        rocksdb.check("write a batch", fault)
    }

    /// Puts one key.
    ///
    /// # Errors
    /// RocksDB's words.
    #[inline]
    pub fn put(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        let Database { rocksdb, database, .. } = &*self.database;
        let mut fault = ptr::null_mut();
        // SAFETY: key and value live through the call, which copies them.
        unsafe {
            (rocksdb.functions.rocksdb_put)(
                *database,
                self.write,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut fault,
            );
        }
        rocksdb.check("put", fault)
    }

    /// Gets one key without copying its value.
    ///
    /// # Errors
    /// RocksDB's words.
    #[inline]
    pub fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
        let Database { rocksdb, database, .. } = &*self.database;
        let functions = &rocksdb.functions;
        let mut fault = ptr::null_mut();
        let mut length = 0;
        // SAFETY: the key lives through the call; the slice is released before anything else.
        unsafe {
            let slice = (functions.rocksdb_get_pinned)(
                *database,
                self.read,
                key.as_ptr().cast(),
                key.len(),
                &raw mut fault,
            );
            if slice.is_null() {
                rocksdb.check("get", fault)?;
                return Ok(EntryCounts::default());
            }
            (functions.rocksdb_pinnableslice_value)(slice, &raw mut length);
            (functions.rocksdb_pinnableslice_destroy)(slice);
        }
        Ok(EntryCounts { entries: 1, bytes: (KEY_BYTES + length) as u64 })
    }

    /// Gets up to [`BATCH_MAX`] keys in one call: batched where the version can.
    ///
    /// # Errors
    /// RocksDB's words.
    pub fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
        let Database { rocksdb, database, default_family, .. } = &*self.database;
        let functions = &rocksdb.functions;
        let count = keys.len().min(BATCH_MAX);
        let mut places = [ptr::null::<c_char>(); BATCH_MAX];
        for (place, key) in places.iter_mut().zip(keys) {
            *place = key.as_ptr().cast();
        }
        let lengths = [KEY_BYTES; BATCH_MAX];
        let mut faults = [ptr::null_mut::<c_char>(); BATCH_MAX];
        let mut found = EntryCounts::default();
        let mut add = |length: usize| {
            found.entries += 1;
            found.bytes += (KEY_BYTES + length) as u64;
        };
        if let Ok(batched) = functions.rocksdb_batched_multi_get_cf {
            let mut slices: [*mut Slice; BATCH_MAX] = [ptr::null_mut(); BATCH_MAX];
            // SAFETY: `count` elements of each array are valid; each slice is released once.
            unsafe {
                batched(
                    *database,
                    self.read,
                    *default_family,
                    count,
                    places.as_ptr(),
                    lengths.as_ptr(),
                    slices.as_mut_ptr(),
                    faults.as_mut_ptr(),
                    0,
                );
                for slice in slices.iter().take(count).filter(|slice| !slice.is_null()) {
                    let mut length = 0;
                    (functions.rocksdb_pinnableslice_value)(*slice, &raw mut length);
                    (functions.rocksdb_pinnableslice_destroy)(*slice);
                    add(length);
                }
            }
        } else {
            let mut values = [ptr::null_mut::<c_char>(); BATCH_MAX];
            let mut sizes = [0; BATCH_MAX];
            // SAFETY: as above; the values are copies that belong to the caller.
            unsafe {
                (functions.rocksdb_multi_get)(
                    *database,
                    self.read,
                    count,
                    places.as_ptr(),
                    lengths.as_ptr(),
                    values.as_mut_ptr(),
                    sizes.as_mut_ptr(),
                    faults.as_mut_ptr(),
                );
                for (value, size) in values.iter().zip(sizes).filter(|(v, _)| !v.is_null()) {
                    (functions.rocksdb_free)(value.cast());
                    add(size);
                }
            }
        }
        let mut result = Ok(found);
        for fault in faults.into_iter().filter(|fault| !fault.is_null()) {
            result = Err(rocksdb.refused("get several keys", fault));
        }
        result
    }

    /// A new iterator, a seek to `key`, and up to `nexts` entries from there, forwards or
    /// backwards. Up to 256 bytes of each value are read.
    ///
    /// # Errors
    /// RocksDB's words.
    #[inline]
    pub fn scan(
        &mut self,
        key: &[u8; KEY_BYTES],
        nexts: u32,
        reverse: bool,
    ) -> Result<EntryCounts, RocksdbError> {
        let Database { rocksdb, database, .. } = &*self.database;
        let functions = &rocksdb.functions;
        let step = if reverse { functions.rocksdb_iter_prev } else { functions.rocksdb_iter_next };
        let mut found = EntryCounts::default();
        let mut fault = ptr::null_mut();
        // SAFETY: the iterator is used by this thread and destroyed once; a value is valid until
        // the iterator moves, and is read before that.
        unsafe {
            let iterator = (functions.rocksdb_create_iterator)(*database, self.read);
            (functions.rocksdb_iter_seek)(iterator, key.as_ptr().cast(), key.len());
            let mut left = nexts;
            while left > 0 && (functions.rocksdb_iter_valid)(iterator) != 0 {
                let (mut key_length, mut length) = (0, 0);
                (functions.rocksdb_iter_key)(iterator, &raw mut key_length);
                let value = (functions.rocksdb_iter_value)(iterator, &raw mut length);
                let place = self.scratch.as_mut_ptr();
                ptr::copy_nonoverlapping(value.cast(), place, length.min(READ_MAX));
                found.entries += 1;
                found.bytes += (key_length + length) as u64;
                step(iterator);
                left -= 1;
            }
            if left > 0 {
                (functions.rocksdb_iter_get_error)(iterator, &raw mut fault);
            }
            (functions.rocksdb_iter_destroy)(iterator);
        }
        std::hint::black_box(&self.scratch);
        rocksdb.check("scan", fault)?;
        Ok(found)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let functions = &self.database.rocksdb.functions;
        // SAFETY: alive, and destroyed only here.
        unsafe {
            (functions.rocksdb_readoptions_destroy)(self.read);
            (functions.rocksdb_writeoptions_destroy)(self.write);
            (functions.rocksdb_writebatch_destroy)(self.batch);
        }
    }
}
