//! The part of RocksDB's C API that is used: names, types, and since which version each exists.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use crate::library::{Library, LibraryError};

macro_rules! opaque {
    ($($name:ident)*) => { $(
        /// An object of the library, by its pointer.
        #[repr(C)]
        pub(super) struct $name([u8; 0]);
    )* };
}

opaque! {
    Db Family Options TableOptions Cache CacheOptions ReadOptions
    WriteOptions FlushOptions Batch Slice Cursor
}

type Fault = *mut *mut c_char;
type Bytes = *const c_char;

/// A function that some versions lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub symbol: &'static str,
    /// Versions that have it: "RocksDB 8.1 and later".
    pub versions: &'static str,
    /// The consequence of a missing function.
    pub without: &'static str,
}

macro_rules! functions {
    (
        all { $($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)* }
        some { $(
            $other:ident, $versions:literal, $without:literal:
            fn($($other_argument:ty),*) $(-> $other_result:ty)?;
        )* }
    ) => {
        #[expect(non_snake_case, reason = "the names are those of the C API")]
        /// Bound once; `Option` for functions that some versions lack.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub(super) $other:
                Result<unsafe extern "C" fn($($other_argument),*) $(-> $other_result)?, Missing>,)*
        }

        impl Functions {
            pub(super) fn of(library: &Library) -> Result<Functions, LibraryError> {
                Ok(Functions {
                    $(
                        // SAFETY: the type is that of rocksdb/c.h, the same from 6.0 on (docs/kv.md
                        // lists the functions whose type changed; none is used).
                        $name: unsafe { library.function(stringify!($name))? },
                    )*
                    $(
                        // SAFETY: as above.
                        $other: unsafe { library.function(stringify!($other)) }.map_err(|_| {
                            Missing {
                                symbol: stringify!($other),
                                versions: $versions,
                                without: $without,
                            }
                        }),
                    )*
                })
            }
        }
    };
}

functions! {
    all {
        rocksdb_options_create: fn() -> *mut Options;
        rocksdb_options_destroy: fn(*mut Options);
        rocksdb_get_options_from_string: fn(*mut Options, *const c_char, *mut Options, Fault);
        rocksdb_options_set_block_based_table_factory: fn(*mut Options, *mut TableOptions);
        rocksdb_block_based_options_create: fn() -> *mut TableOptions;
        rocksdb_block_based_options_destroy: fn(*mut TableOptions);
        rocksdb_block_based_options_set_block_cache: fn(*mut TableOptions, *mut Cache);
        rocksdb_cache_destroy: fn(*mut Cache);
        rocksdb_open_column_families: fn(
            *mut Options, *const c_char, c_int, *const *const c_char, *const *mut Options,
            *mut *mut Family, Fault
        ) -> *mut Db;
        rocksdb_column_family_handle_destroy: fn(*mut Family);
        rocksdb_close: fn(*mut Db);
        rocksdb_put: fn(*mut Db, *mut WriteOptions, Bytes, usize, Bytes, usize, Fault);
        rocksdb_writebatch_create: fn() -> *mut Batch;
        rocksdb_writebatch_destroy: fn(*mut Batch);
        rocksdb_writebatch_clear: fn(*mut Batch);
        rocksdb_writebatch_put: fn(*mut Batch, Bytes, usize, Bytes, usize);
        rocksdb_write: fn(*mut Db, *mut WriteOptions, *mut Batch, Fault);
        rocksdb_writeoptions_create: fn() -> *mut WriteOptions;
        rocksdb_writeoptions_destroy: fn(*mut WriteOptions);
        rocksdb_writeoptions_set_sync: fn(*mut WriteOptions, c_uchar);
        rocksdb_writeoptions_disable_WAL: fn(*mut WriteOptions, c_int);
        rocksdb_readoptions_create: fn() -> *mut ReadOptions;
        rocksdb_readoptions_destroy: fn(*mut ReadOptions);
        rocksdb_readoptions_set_verify_checksums: fn(*mut ReadOptions, c_uchar);
        rocksdb_set_perf_level: fn(c_int);
        rocksdb_get_pinned: fn(*mut Db, *mut ReadOptions, Bytes, usize, Fault) -> *mut Slice;
        rocksdb_pinnableslice_value: fn(*mut Slice, *mut usize) -> Bytes;
        rocksdb_pinnableslice_destroy: fn(*mut Slice);
        rocksdb_multi_get: fn(
            *mut Db, *mut ReadOptions, usize, *const Bytes, *const usize,
            *mut *mut c_char, *mut usize, *mut *mut c_char
        );
        rocksdb_create_iterator: fn(*mut Db, *mut ReadOptions) -> *mut Cursor;
        rocksdb_iter_destroy: fn(*mut Cursor);
        rocksdb_iter_seek: fn(*mut Cursor, Bytes, usize);
        rocksdb_iter_valid: fn(*mut Cursor) -> c_uchar;
        rocksdb_iter_next: fn(*mut Cursor);
        rocksdb_iter_prev: fn(*mut Cursor);
        rocksdb_iter_key: fn(*mut Cursor, *mut usize) -> Bytes;
        rocksdb_iter_value: fn(*mut Cursor, *mut usize) -> Bytes;
        rocksdb_iter_get_error: fn(*mut Cursor, Fault);
        rocksdb_flushoptions_create: fn() -> *mut FlushOptions;
        rocksdb_flushoptions_destroy: fn(*mut FlushOptions);
        rocksdb_flushoptions_set_wait: fn(*mut FlushOptions, c_uchar);
        rocksdb_flush: fn(*mut Db, *mut FlushOptions, Fault);
        rocksdb_set_options: fn(*mut Db, c_int, *const *const c_char, *const *const c_char, Fault);
        rocksdb_property_value: fn(*mut Db, *const c_char) -> *mut c_char;
        rocksdb_property_int: fn(*mut Db, *const c_char, *mut u64) -> c_int;
        rocksdb_free: fn(*mut c_void);
    }
    some {
        rocksdb_batched_multi_get_cf, "RocksDB 7.3 and later", "no batched reads":
            fn(*mut Db, *mut ReadOptions, *mut Family, usize, *const Bytes, *const usize,
                *mut *mut Slice, *mut *mut c_char, c_uchar);
        rocksdb_hyper_clock_cache_options_create, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(usize, usize) -> *mut CacheOptions;
        rocksdb_hyper_clock_cache_options_destroy, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(*mut CacheOptions);
        rocksdb_hyper_clock_cache_options_set_num_shard_bits, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(*mut CacheOptions, c_int);
        rocksdb_cache_create_hyper_clock_opts, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(*mut CacheOptions) -> *mut Cache;
    }
}
