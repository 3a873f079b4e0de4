//! RocksDB and its fork Speedb through their C API, from a shared library of any version since 6.0.
//!
//! One version per process: the loader merges these libraries' unique symbols even where they are
//! loaded apart, so a second version would run with parts of the first.

#![allow(unsafe_code)]

mod handle;
pub mod marker;
mod options;

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, ptr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::library::{Library, LibraryError};

pub use self::handle::{BATCH_MAX, Durability, EntryCounts, Handle};
pub use self::options::{CacheKind, Rejected, RocksdbOptions};

// A loaded version of the library.

/// A version of RocksDB, ready to open databases.
pub struct Rocksdb {
    functions: Functions,
    path: PathBuf,
    /// Keeps the functions mapped.
    _library: Library,
}

impl Rocksdb {
    /// The version in the shared library at `path`.
    ///
    /// # Errors
    /// It cannot be loaded or lacks a function of the C API.
    pub fn load(path: &Path) -> Result<Rocksdb, RocksdbError> {
        let library = Library::load(path).map_err(RocksdbError::Library)?;
        let functions = Functions::of(&library).map_err(|error| match error {
            LibraryError::Symbol { symbol, path, .. } => RocksdbError::NoSymbol { symbol, path },
            other => RocksdbError::Library(other),
        })?;
        Ok(Rocksdb { functions, path: path.to_owned(), _library: library })
    }

    /// A function that only some versions have.
    fn some<F: Copy>(&self, function: &Result<F, Missing>) -> Result<F, RocksdbError> {
        function.map_err(|missing| RocksdbError::Missing {
            symbol: missing.symbol,
            versions: missing.versions,
            without: missing.without,
            path: self.path.clone(),
        })
    }

    /// Turns what a function left in its error argument into a result.
    #[inline]
    fn check(&self, doing: &'static str, fault: *mut c_char) -> Result<(), RocksdbError> {
        if fault.is_null() { Ok(()) } else { Err(self.refused(doing, fault)) }
    }

    #[cold]
    fn refused(&self, doing: &'static str, fault: *mut c_char) -> RocksdbError {
        RocksdbError::Refused { doing, said: self.text(fault) }
    }

    /// A text that the library gave away.
    fn text(&self, text: *mut c_char) -> String {
        // SAFETY: a NUL-terminated text that belongs to the caller, as c.h says of errors and
        // property values; it is freed here and not used again.
        unsafe {
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.functions.rocksdb_free)(text.cast());
            owned
        }
    }
}

/// Text as the library takes it.
fn c_text(text: &str) -> Result<CString, RocksdbError> {
    CString::new(text).map_err(|_| RocksdbError::Nul(text.to_owned()))
}

// The part of RocksDB's C API that is used: names, types, and since which version each exists.

macro_rules! opaque {
    ($($name:ident)*) => { $(
        /// An object of the library, by its pointer.
        #[repr(C)]
        struct $name([u8; 0]);
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
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $($other:
                Result<unsafe extern "C" fn($($other_argument),*) $(-> $other_result)?, Missing>,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, LibraryError> {
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

// An open database: what is asked of it as a whole.

/// An open database. Dropping it closes it; all sessions must be gone by then, which their
/// reference to it ensures.
pub struct Database {
    rocksdb: Arc<Rocksdb>,
    database: *mut Db,
    default_family: *mut Family,
    /// The options own the block cache.
    _options: RocksdbOptions,
}

// SAFETY: RocksDB's database and column family handle may be used by any thread, several at the
// same time (rocksdb/db.h: "A DB is safe for concurrent access from multiple threads without any
// external synchronization"). The options are not touched after opening.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Opens the database in `folder`.
    ///
    /// # Errors
    /// RocksDB's words.
    pub fn open(options: RocksdbOptions, folder: &Path) -> Result<Database, RocksdbError> {
        let rocksdb = Arc::clone(options.rocksdb());
        let name = c_text(&folder.to_string_lossy())?;
        let names = [c"default".as_ptr()];
        let families = [options.handle()];
        let mut handles = [ptr::null_mut()];
        let mut fault = ptr::null_mut();
        // SAFETY: the texts and arrays have one element as announced and live through the call;
        // the options are alive.
        let database = unsafe {
            (rocksdb.functions.rocksdb_open_column_families)(
                options.handle(),
                name.as_ptr(),
                1,
                names.as_ptr(),
                families.as_ptr(),
                handles.as_mut_ptr(),
                &raw mut fault,
            )
        };
        rocksdb.check("open the database", fault)?;
        Ok(Database { rocksdb, database, default_family: handles[0], _options: options })
    }

    /// A property by its whole name; `None` if this version has no such one.
    pub fn property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the database is open, the name is NUL-terminated.
        let text = unsafe {
            (self.rocksdb.functions.rocksdb_property_value)(self.database, name.as_ptr())
        };
        (!text.is_null()).then(|| self.rocksdb.text(text))
    }

    /// A property that is a number.
    pub fn number(&self, name: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: as above; `value` receives the number.
        let code = unsafe {
            (self.rocksdb.functions.rocksdb_property_int)(
                self.database,
                name.as_ptr(),
                &raw mut value,
            )
        };
        (code == 0).then_some(value)
    }

    /// Writes the memtables to files and waits for it.
    ///
    /// # Errors
    /// RocksDB's words.
    pub fn flush(&self) -> Result<(), RocksdbError> {
        let functions = &self.rocksdb.functions;
        let mut fault = ptr::null_mut();
        // SAFETY: the flush options live through the call and are destroyed once.
        unsafe {
            let options = (functions.rocksdb_flushoptions_create)();
            (functions.rocksdb_flushoptions_set_wait)(options, 1);
            (functions.rocksdb_flush)(self.database, options, &raw mut fault);
            (functions.rocksdb_flushoptions_destroy)(options);
        }
        self.rocksdb.check("flush", fault)
    }

    /// Changes an option of the running database.
    ///
    /// # Errors
    /// RocksDB's words.
    pub fn set_option(&self, key: &CStr, value: &CStr) -> Result<(), RocksdbError> {
        let (keys, values) = ([key.as_ptr()], [value.as_ptr()]);
        let mut fault = ptr::null_mut();
        // SAFETY: one key and one value as announced, alive through the call.
        unsafe {
            (self.rocksdb.functions.rocksdb_set_options)(
                self.database,
                1 as c_int,
                keys.as_ptr(),
                values.as_ptr(),
                &raw mut fault,
            );
        }
        self.rocksdb.check("change an option", fault)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: both are alive and used by nobody else: sessions hold the database.
        unsafe {
            (self.rocksdb.functions.rocksdb_column_family_handle_destroy)(self.default_family);
            (self.rocksdb.functions.rocksdb_close)(self.database);
        }
    }
}

// Errors of RocksDB, with what to do about the frequent ones.

/// An error of RocksDB.
#[derive(Debug, Error)]
pub enum RocksdbError {
    /// The library could not be loaded.
    #[error(transparent)]
    Library(LibraryError),
    /// It lacks a function that all versions since 6.0 have.
    #[error(
        "find the function {symbol} in {}: RocksDB since 6.0 and Speedb have it if built with the \
         C API; the benchmark kv needs it",
        .path.display()
    )]
    NoSymbol {
        /// The function.
        symbol: String,
        /// The file.
        path: PathBuf,
    },
    /// It lacks a function that only some versions have.
    #[error("{without}: {} lacks {symbol}, which {versions} have", .path.display())]
    Missing {
        /// The function.
        symbol: &'static str,
        /// The versions that have it.
        versions: &'static str,
        /// The operation that is not possible.
        without: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// An option that the version does not take.
    #[error("set the option {key}={value}: {said}{hint}")]
    Option {
        /// Its name.
        key: String,
        /// Its value.
        value: String,
        /// The library's words.
        said: String,
        /// A hint; begins with a line break.
        hint: String,
    },
    /// A path or an option holds a NUL byte.
    #[error("pass text to RocksDB: it holds a NUL byte: {0:?}")]
    Nul(String),
    /// RocksDB refused.
    #[error("{doing}: {said}{}", hint(.said))]
    Refused {
        /// "open the database", "put".
        doing: &'static str,
        /// RocksDB's words.
        said: String,
    },
}

/// A hint for RocksDB's more frequent errors; begins with a line break.
fn hint(said: &str) -> &'static str {
    let direct = said.contains("Direct I/O") || said.contains("direct I/O");
    if direct || (said.contains("Invalid argument") && said.contains("open")) {
        "\nhint: this filesystem does not support O_DIRECT (like tmpfs and overlays); name a \
         folder on a disk with --work, or leave direct_io off"
    } else if said.contains("No space left") {
        "\nhint: free space, name a folder on another disk with --work, or use fewer keys"
    } else {
        ""
    }
}

// Facts that a library reports about itself: no function has its version, but it writes one into
// the LOG of every database that it opens.

/// The head of a LOG, bytes.
const HEAD_BYTES: u64 = 64 << 10;

/// The facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `9.9.3`; of Speedb, the version of Speedb.
    pub version: String,
    /// The version of RocksDB that it is, or that it was forked from.
    pub rocksdb_version: String,
    /// `Git sha`, if the build has one.
    pub git: Option<String>,
    /// `Compile date`.
    pub compiled: Option<String>,
    /// Its support of CRC32C: `Not supported on x86` means in software.
    pub crc32: Option<String>,
}

impl Facts {
    /// One line for manifests and reports.
    pub fn line(&self) -> String {
        let fork = (self.rocksdb_version != self.version).then_some(&self.rocksdb_version);
        let facts = [
            ("RocksDB", fork),
            ("compiled", self.compiled.as_ref()),
            ("git", self.git.as_ref()),
            ("fast CRC32:", self.crc32.as_ref()),
        ];
        let known = facts.iter().filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)));
        let known = known.collect::<Vec<_>>().join("; ");
        if known.is_empty() { self.version.clone() } else { format!("{} ({known})", self.version) }
    }
}

/// Reads the LOG of the database in `folder`. `None` if it names no version.
///
/// # Errors
/// The file cannot be read.
pub fn facts(folder: &Path) -> io::Result<Option<Facts>> {
    let mut text = Vec::new();
    fs::File::open(folder.join("LOG"))?.take(HEAD_BYTES).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(log: &str) -> Option<Facts> {
    let mut facts = Facts::default();
    for line in log.lines() {
        let after = |head: &str| {
            let (_, rest) = line.split_once(head)?;
            let rest = rest.trim();
            (!rest.is_empty()).then(|| rest.to_owned())
        };
        if let Some(version) = after("RocksDB version: ") {
            facts.rocksdb_version.clone_from(&version);
            facts.version = version;
        } else if let Some(words) = after("Speedb version: ") {
            // `2.8.0-? (8.6.7)`: its own, then that of RocksDB.
            let own = words.split(['-', ' ']).next().unwrap_or_default();
            facts.version = own.to_owned();
            let inner = words.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            facts.rocksdb_version = inner.map_or(own, |(version, _)| version).to_owned();
        } else if let Some(git) = after("Git sha ") {
            facts.git = Some(git).filter(|git| !git.contains("@@") && !git.starts_with("rocksdb_"));
        } else if let Some(date) = after("Compile date ") {
            facts.compiled = Some(date);
        } else if let Some(said) = after("Fast CRC32 supported: ") {
            facts.crc32 = Some(said);
        }
    }
    (!facts.version.is_empty()).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_library_is_told_by_the_function_that_it_lacks() {
        // SAFETY of the test: the C library is loaded already.
        let error = Rocksdb::load(Path::new("libc.so.6")).err().map(|error| error.to_string());
        let error = error.expect("libc is no RocksDB");
        assert!(error.contains("rocksdb_options_create"), "{error}");
        assert!(error.contains("since 6.0") && error.contains("kv needs it"), "{error}");
    }

    #[test]
    fn complaints_have_their_hints() {
        assert!(hint("IO error: No space left on device: while appending").contains("--work"));
        assert!(hint("Direct I/O is not supported by the specified DB.").contains("O_DIRECT"));
        assert_eq!(hint("Corruption: bad block"), "");
    }

    #[test]
    fn the_head_of_a_log_is_read() {
        let log = "2024/11/01-10:00:00.000001 7f RocksDB version: 9.9.3\n\
            2024/11/01-10:00:00.000002 7f Git sha 0\n\
            2024/11/01-10:00:00.000003 7f Compile date 2025-01-02 03:04:05\n\
            2024/11/01-10:00:00.000004 7f Fast CRC32 supported: Not supported on x86\n";
        let facts = parse(log).unwrap();
        assert_eq!((facts.version.as_str(), facts.rocksdb_version.as_str()), ("9.9.3", "9.9.3"));
        assert_eq!(
            facts.line(),
            "9.9.3 (compiled 2025-01-02 03:04:05; git 0; fast CRC32: Not supported on x86)"
        );
    }

    #[test]
    fn speedb_tells_both_versions() {
        let facts = parse("x Speedb version: 2.8.0-? (8.6.7)\n").unwrap();
        assert_eq!((facts.version.as_str(), facts.rocksdb_version.as_str()), ("2.8.0", "8.6.7"));
        assert_eq!(facts.line(), "2.8.0 (RocksDB 8.6.7)");
        assert_eq!(parse("nothing of the kind"), None);
    }
}
