//! A loaded version of the library.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

use super::error::RocksdbError;
use super::functions::{Functions, Missing};
use crate::library::{Library, LibraryError};

/// A version of RocksDB, ready to open databases.
pub struct Rocksdb {
    pub(super) functions: Functions,
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
    pub(super) fn some<F: Copy>(&self, function: &Result<F, Missing>) -> Result<F, RocksdbError> {
        function.map_err(|missing| RocksdbError::Missing {
            symbol: missing.symbol,
            versions: missing.versions,
            without: missing.without,
            path: self.path.clone(),
        })
    }

    /// Turns what a function left in its error argument into a result.
    #[inline]
    pub(super) fn check(
        &self,
        doing: &'static str,
        fault: *mut c_char,
    ) -> Result<(), RocksdbError> {
        if fault.is_null() { Ok(()) } else { Err(self.refused(doing, fault)) }
    }

    #[cold]
    pub(super) fn refused(&self, doing: &'static str, fault: *mut c_char) -> RocksdbError {
        RocksdbError::Refused { doing, said: self.text(fault) }
    }

    /// A text that the library gave away.
    pub(super) fn text(&self, text: *mut c_char) -> String {
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
pub(super) fn c_text(text: &str) -> Result<CString, RocksdbError> {
    CString::new(text).map_err(|_| RocksdbError::Nul(text.to_owned()))
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
}
