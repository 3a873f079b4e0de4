//! RocksDB and its fork Speedb through their C API, from a shared library of any version since 6.0.
//!
//! One version per process: the loader merges these libraries' unique symbols even where they are
//! loaded apart, so a second version would run with parts of the first.

#![allow(unsafe_code)]

mod facts;
mod functions;
pub mod marker;
mod options;
mod session;

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use thiserror::Error;

use crate::embed::library::{Library, LibraryError};

pub use self::facts::{Facts, facts};
pub use self::functions::Missing;
pub use self::options::{CacheKind, Rejected, RocksdbOptions};
pub use self::session::{BATCH_MAX, Durability, Found, Handle};

use self::functions::{Functions, Object};

/// A version of RocksDB, ready to open databases.
pub struct Rocksdb {
    functions: Functions,
    path: PathBuf,
    /// Keeps the functions mapped.
    _library: Library,
}

/// What went wrong in RocksDB.
#[derive(Debug, Error)]
pub enum RocksdbError {
    /// The library could not be loaded.
    #[error(transparent)]
    Library(LibraryError),
    /// It lacks a function that all versions since 6.0 have.
    #[error(
        "find the function {symbol} in {}: versions of RocksDB since 6.0 and of Speedb have it, \
         with the C API compiled in; without it no step of the benchmark kv can be measured",
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
        /// Who has it.
        versions: &'static str,
        /// What cannot be done.
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
        /// What to do; begins with a line break.
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

/// What to do about RocksDB's more frequent complaints; begins with a line break.
fn hint(said: &str) -> &'static str {
    let direct = said.contains("Direct I/O") || said.contains("direct I/O");
    if direct || (said.contains("Invalid argument") && said.contains("open")) {
        "\nhint: this filesystem refuses O_DIRECT (tmpfs and overlays do); name a folder on a disk \
         with --work, or leave direct_io off"
    } else if said.contains("No space left") {
        "\nhint: free space, name a folder on another disk with --work, or use fewer keys"
    } else {
        ""
    }
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

fn c_text(text: &str) -> Result<CString, RocksdbError> {
    CString::new(text).map_err(|_| RocksdbError::Nul(text.to_owned()))
}

/// An open database. Dropping it closes it; all sessions must be gone by then, which their
/// reference to it ensures.
pub struct Database {
    rocksdb: Arc<Rocksdb>,
    database: Object,
    default_family: Object,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_library_is_told_by_the_function_that_it_lacks() {
        // SAFETY of the test: the C library is loaded already.
        let error = Rocksdb::load(Path::new("libc.so.6")).err().map(|error| error.to_string());
        let error = error.expect("libc is no RocksDB");
        assert!(error.contains("rocksdb_options_create"), "{error}");
        assert!(error.contains("since 6.0") && error.contains("no step"), "{error}");
    }

    #[test]
    fn complaints_have_their_hints() {
        assert!(hint("IO error: No space left on device: while appending").contains("--work"));
        assert!(hint("Direct I/O is not supported by the specified DB.").contains("O_DIRECT"));
        assert_eq!(hint("Corruption: bad block"), "");
    }
}
