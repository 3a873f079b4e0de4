//! The part of RocksDB's C API that is used: names, types, and since which version each exists.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use crate::library::{Library, LibraryError};

/// An object of the library. What kind it is, is in the names of the functions.
pub(super) type Object = *mut c_void;
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
        rocksdb_options_create: fn() -> Object;
        rocksdb_options_destroy: fn(Object);
        rocksdb_get_options_from_string: fn(Object, *const c_char, Object, Fault);
        rocksdb_options_set_block_based_table_factory: fn(Object, Object);
        rocksdb_block_based_options_create: fn() -> Object;
        rocksdb_block_based_options_destroy: fn(Object);
        rocksdb_block_based_options_set_block_cache: fn(Object, Object);
        rocksdb_cache_destroy: fn(Object);
        rocksdb_open_column_families: fn(
            Object, *const c_char, c_int, *const *const c_char, *const Object, *mut Object, Fault
        ) -> Object;
        rocksdb_column_family_handle_destroy: fn(Object);
        rocksdb_close: fn(Object);
        rocksdb_put: fn(Object, Object, Bytes, usize, Bytes, usize, Fault);
        rocksdb_writebatch_create: fn() -> Object;
        rocksdb_writebatch_destroy: fn(Object);
        rocksdb_writebatch_clear: fn(Object);
        rocksdb_writebatch_put: fn(Object, Bytes, usize, Bytes, usize);
        rocksdb_write: fn(Object, Object, Object, Fault);
        rocksdb_writeoptions_create: fn() -> Object;
        rocksdb_writeoptions_destroy: fn(Object);
        rocksdb_writeoptions_set_sync: fn(Object, c_uchar);
        rocksdb_writeoptions_disable_WAL: fn(Object, c_int);
        rocksdb_readoptions_create: fn() -> Object;
        rocksdb_readoptions_destroy: fn(Object);
        rocksdb_readoptions_set_verify_checksums: fn(Object, c_uchar);
        rocksdb_set_perf_level: fn(c_int);
        rocksdb_get_pinned: fn(Object, Object, Bytes, usize, Fault) -> Object;
        rocksdb_pinnableslice_value: fn(Object, *mut usize) -> Bytes;
        rocksdb_pinnableslice_destroy: fn(Object);
        rocksdb_multi_get: fn(
            Object, Object, usize, *const Bytes, *const usize,
            *mut *mut c_char, *mut usize, *mut *mut c_char
        );
        rocksdb_create_iterator: fn(Object, Object) -> Object;
        rocksdb_iter_destroy: fn(Object);
        rocksdb_iter_seek: fn(Object, Bytes, usize);
        rocksdb_iter_valid: fn(Object) -> c_uchar;
        rocksdb_iter_next: fn(Object);
        rocksdb_iter_prev: fn(Object);
        rocksdb_iter_key: fn(Object, *mut usize) -> Bytes;
        rocksdb_iter_value: fn(Object, *mut usize) -> Bytes;
        rocksdb_iter_get_error: fn(Object, Fault);
        rocksdb_flushoptions_create: fn() -> Object;
        rocksdb_flushoptions_destroy: fn(Object);
        rocksdb_flushoptions_set_wait: fn(Object, c_uchar);
        rocksdb_flush: fn(Object, Object, Fault);
        rocksdb_set_options: fn(Object, c_int, *const *const c_char, *const *const c_char, Fault);
        rocksdb_property_value: fn(Object, *const c_char) -> *mut c_char;
        rocksdb_property_int: fn(Object, *const c_char, *mut u64) -> c_int;
        rocksdb_free: fn(*mut c_void);
    }
    some {
        rocksdb_batched_multi_get_cf, "RocksDB 7.3 and later", "no batched reads":
            fn(Object, Object, Object, usize, *const Bytes, *const usize,
                *mut Object, *mut *mut c_char, c_uchar);
        rocksdb_hyper_clock_cache_options_create, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(usize, usize) -> Object;
        rocksdb_hyper_clock_cache_options_destroy, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(Object);
        rocksdb_hyper_clock_cache_options_set_num_shard_bits, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(Object, c_int);
        rocksdb_cache_create_hyper_clock_opts, "RocksDB 8.1 and later",
            "no hyper clock cache": fn(Object) -> Object;
    }
}
