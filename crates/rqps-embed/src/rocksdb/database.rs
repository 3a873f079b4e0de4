//! An open database: what is asked of it as a whole.

use std::ffi::{CStr, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::error::RocksdbError;
use super::functions::{Db, Family};
use super::options::RocksdbOptions;
use super::version::{Rocksdb, c_text};

/// An open database. Dropping it closes it; all sessions must be gone by then, which their
/// reference to it ensures.
pub struct Database {
    pub(super) rocksdb: Arc<Rocksdb>,
    pub(super) database: *mut Db,
    pub(super) default_family: *mut Family,
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
