//! SQLite through one table of its C functions: filled from the library that is compiled in, or
//! from any libsqlite3.so.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use libsqlite3_sys as ffi;
use thiserror::Error;

use crate::library::{Library, LibraryError};

/// Declares the function table and both ways to fill it. The compiled-in functions are assigned to
/// the same types, so a declaration that is not the header's does not compile.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn compiled_in() -> Functions {
                Functions { $($name: ffi::$name,)* }
            }

            fn of(library: &Library) -> Result<Functions, LibraryError> {
                Ok(Functions { $(
                    // SAFETY: the type is that of the header, held by `compiled_in`; SQLite's
                    // interface has not changed since version 3. `Sqlite` keeps the library.
                    $name: unsafe { library.function(stringify!($name))? },
                )* })
            }
        }
    };
}

functions! {
    sqlite3_libversion: fn() -> *const c_char;
    sqlite3_threadsafe: fn() -> c_int;
    sqlite3_open_v2: fn(*const c_char, *mut *mut ffi::sqlite3, c_int, *const c_char) -> c_int;
    sqlite3_close: fn(*mut ffi::sqlite3) -> c_int;
    sqlite3_errmsg: fn(*mut ffi::sqlite3) -> *const c_char;
    sqlite3_extended_errcode: fn(*mut ffi::sqlite3) -> c_int;
    sqlite3_extended_result_codes: fn(*mut ffi::sqlite3, c_int) -> c_int;
    sqlite3_busy_timeout: fn(*mut ffi::sqlite3, c_int) -> c_int;
    sqlite3_total_changes: fn(*mut ffi::sqlite3) -> c_int;
    sqlite3_prepare_v2: fn(
        *mut ffi::sqlite3, *const c_char, c_int,
        *mut *mut ffi::sqlite3_stmt, *mut *const c_char
    ) -> c_int;
    sqlite3_finalize: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_reset: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_step: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_bind_parameter_count: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_bind_null: fn(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_bind_int64: fn(*mut ffi::sqlite3_stmt, c_int, i64) -> c_int;
    sqlite3_bind_text64: fn(
        *mut ffi::sqlite3_stmt, c_int, *const c_char, u64,
        ffi::sqlite3_destructor_type, u8
    ) -> c_int;
    sqlite3_column_count: fn(*mut ffi::sqlite3_stmt) -> c_int;
    sqlite3_column_name: fn(*mut ffi::sqlite3_stmt, c_int) -> *const c_char;
    sqlite3_column_type: fn(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_column_int64: fn(*mut ffi::sqlite3_stmt, c_int) -> i64;
    sqlite3_column_text: fn(*mut ffi::sqlite3_stmt, c_int) -> *const u8;
    sqlite3_column_bytes: fn(*mut ffi::sqlite3_stmt, c_int) -> c_int;
    sqlite3_stmt_status: fn(*mut ffi::sqlite3_stmt, c_int, c_int) -> c_int;
}

/// What SQLite counts of each statement. Versions that do not know one return 0.
const WORK: [(&str, c_int); 4] = [
    ("fullscan_step", ffi::SQLITE_STMTSTATUS_FULLSCAN_STEP),
    ("sort", ffi::SQLITE_STMTSTATUS_SORT),
    ("autoindex", ffi::SQLITE_STMTSTATUS_AUTOINDEX),
    ("vm_step", ffi::SQLITE_STMTSTATUS_VM_STEP),
];

/// A version of SQLite, ready to open databases.
pub struct Sqlite {
    functions: Functions,
    /// Keeps the functions mapped.
    _library: Option<Library>,
}

/// A row as text; NULL is `None`.
pub type TextRow = Vec<Option<String>>;

/// A prepared statement of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement(usize);

impl Statement {
    /// The statement that was prepared as number `index` (from 0) on its connection.
    pub fn from_index(index: usize) -> Statement {
        Statement(index)
    }

    /// Its number on its connection, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

impl Sqlite {
    /// The version inside this program.
    pub fn compiled_in() -> Sqlite {
        Sqlite { functions: Functions::compiled_in(), _library: None }
    }

    /// The version in the shared library at `path`.
    pub fn load(path: &Path) -> Result<Sqlite, SqliteError> {
        let library = Library::load(path)?;
        let functions = Functions::of(&library)?;
        let sqlite = Sqlite { functions, _library: Some(library) };
        // SAFETY: takes nothing and reads a constant of the library.
        if unsafe { (sqlite.functions.sqlite3_threadsafe)() } == 0 {
            return Err(SqliteError::NotThreadSafe { version: sqlite.version() });
        }
        Ok(sqlite)
    }

    /// The version that the library reports: `3.51.1`.
    pub fn version(&self) -> String {
        // SAFETY: returns a pointer to a NUL-terminated constant of the library, which is mapped as
        // long as `self` lives.
        let text = unsafe { CStr::from_ptr((self.functions.sqlite3_libversion)()) };
        text.to_string_lossy().into_owned()
    }
}

/// One connection to a database file. Used by one thread at a time, so SQLite's own mutexes are
/// switched off.
pub struct SqliteConnection {
    sqlite: Arc<Sqlite>,
    database: *mut ffi::sqlite3,
    statements: Vec<Prepared>,
}

struct Prepared {
    handle: *mut ffi::sqlite3_stmt,
    columns: c_int,
}

impl SqliteConnection {
    /// Opens or creates the database at `path`. A lock held by another connection is waited for up
    /// to `busy_timeout_ms`, then it is an error with code 5.
    pub fn open(
        sqlite: &Arc<Sqlite>,
        path: &Path,
        busy_timeout_ms: u32,
    ) -> Result<SqliteConnection, SqliteError> {
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
        Self::open_with(sqlite, path, busy_timeout_ms, flags)
    }

    /// Opens a database in which nothing may change.
    pub fn open_to_read(
        sqlite: &Arc<Sqlite>,
        path: &Path,
        busy_timeout_ms: u32,
    ) -> Result<SqliteConnection, SqliteError> {
        Self::open_with(sqlite, path, busy_timeout_ms, ffi::SQLITE_OPEN_READONLY)
    }

    fn open_with(
        sqlite: &Arc<Sqlite>,
        path: &Path,
        busy_timeout_ms: u32,
        flags: c_int,
    ) -> Result<SqliteConnection, SqliteError> {
        let text = path.to_string_lossy().into_owned();
        let name = CString::new(text.clone()).map_err(|_| SqliteError::Nul(text))?;
        let flags = flags | ffi::SQLITE_OPEN_NOMUTEX;
        let mut database = ptr::null_mut();
        // SAFETY: `name` is NUL-terminated and lives through the call; `database` receives a handle
        // that `SqliteConnection` owns even if the call fails, as the documentation asks.
        let code = unsafe {
            (sqlite.functions.sqlite3_open_v2)(name.as_ptr(), &raw mut database, flags, ptr::null())
        };
        let connection =
            SqliteConnection { sqlite: Arc::clone(sqlite), database, statements: vec![] };
        connection.check(code)?;
        // SAFETY: the handle is open.
        unsafe {
            (sqlite.functions.sqlite3_extended_result_codes)(database, 1);
            (sqlite.functions.sqlite3_busy_timeout)(
                database,
                c_int::try_from(busy_timeout_ms).unwrap_or(c_int::MAX),
            );
        }
        Ok(connection)
    }

    /// Version of the library behind this connection.
    pub fn version(&self) -> String {
        self.sqlite.version()
    }

    /// Prepares one statement, for the life of the connection.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, SqliteError> {
        let prepared = self.compile(sql)?;
        self.statements.push(prepared);
        Ok(Statement(self.statements.len() - 1))
    }

    /// Binds the integers and texts of one execution, runs the statement to its end and resets it.
    /// Rows are fetched column by column as a program would, and forgotten.
    ///
    /// `values` must hold one value per placeholder, else it is an error.
    pub fn execute<'a>(
        &mut self,
        statement: Statement,
        values: impl ExactSizeIterator<Item = SqliteValue<'a>>,
    ) -> Result<Executed, SqliteError> {
        let Prepared { handle, columns } = self.statements[statement.0];
        self.bind(handle, values)?;
        self.run(handle, columns, None)
    }

    /// Executes a prepared statement and passes each value to `keep` as text, with the number of
    /// values in its row.
    pub fn execute_rows<'a>(
        &mut self,
        statement: Statement,
        values: impl ExactSizeIterator<Item = SqliteValue<'a>>,
        keep: KeepValue<'_>,
    ) -> Result<Executed, SqliteError> {
        let Prepared { handle, columns } = self.statements[statement.0];
        self.bind(handle, values)?;
        self.run(handle, columns, Some(keep))
    }

    /// Binds the values of an execution that follows within the life of `'a`.
    fn bind<'a>(
        &self,
        handle: *mut ffi::sqlite3_stmt,
        values: impl ExactSizeIterator<Item = SqliteValue<'a>>,
    ) -> Result<(), SqliteError> {
        let functions = &self.sqlite.functions;
        // SAFETY: a live statement of this connection.
        let wanted = unsafe { (functions.sqlite3_bind_parameter_count)(handle) };
        if wanted as usize != values.len() {
            return Err(SqliteError::Refused {
                code: ffi::SQLITE_RANGE,
                message: format!("{wanted} placeholders but {} values", values.len()),
            });
        }
        for (index, value) in values.enumerate() {
            let position = (index + 1) as c_int;
            // SAFETY: a live statement that is not being stepped. Text is bound without a copy:
            // it outlives this call ('a), and a later call binds every placeholder anew before it
            // steps, so the old pointer is never read again.
            let code = unsafe {
                match value {
                    SqliteValue::Null => (functions.sqlite3_bind_null)(handle, position),
                    SqliteValue::Int(int) => (functions.sqlite3_bind_int64)(handle, position, int),
                    SqliteValue::Text(text) => (functions.sqlite3_bind_text64)(
                        handle,
                        position,
                        text.as_ptr().cast(),
                        text.len() as u64,
                        ffi::SQLITE_STATIC(),
                        ffi::SQLITE_UTF8 as u8,
                    ),
                }
            };
            self.check(code)?;
        }
        Ok(())
    }

    /// Runs one statement given as text.
    pub fn simple(&mut self, sql: &str) -> Result<Executed, SqliteError> {
        self.run_once(sql, None)
    }

    /// Executes a text and passes each value to `keep` as text, with the number of values in its
    /// row.
    pub fn simple_rows(&mut self, sql: &str, keep: KeepValue<'_>) -> Result<Executed, SqliteError> {
        self.run_once(sql, Some(keep))
    }

    fn run_once(
        &mut self,
        sql: &str,
        keep: Option<KeepValue<'_>>,
    ) -> Result<Executed, SqliteError> {
        let prepared = self.compile(sql)?;
        self.finish(&prepared, keep)
    }

    fn finish(
        &self,
        prepared: &Prepared,
        keep: Option<KeepValue<'_>>,
    ) -> Result<Executed, SqliteError> {
        let executed = self.run(prepared.handle, prepared.columns, keep);
        // SAFETY: compiled by the caller and not kept.
        unsafe { (self.sqlite.functions.sqlite3_finalize)(prepared.handle) };
        executed
    }

    /// Executes a text with these values, forgets its rows and returns the work that it did.
    pub fn work<'a>(
        &mut self,
        sql: &str,
        values: impl ExactSizeIterator<Item = SqliteValue<'a>>,
    ) -> Result<Vec<(&'static str, u64)>, SqliteError> {
        let Prepared { handle, columns } = self.compile(sql)?;
        let functions = &self.sqlite.functions;
        let executed = self.bind(handle, values).and_then(|()| self.run(handle, columns, None));
        // SAFETY: compiled above, and finalised once, after the last look at its counters.
        let work = WORK.map(|(name, counter)| unsafe {
            (name, (functions.sqlite3_stmt_status)(handle, counter, 0).max(0) as u64)
        });
        // SAFETY: the same.
        unsafe { (functions.sqlite3_finalize)(handle) };
        executed.map(|_| work.to_vec())
    }

    /// Runs one statement given as text and returns its rows as text.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<TextRow>, SqliteError> {
        let mut rows = Vec::new();
        self.run_once(sql, Some(&mut into_rows(&mut rows)))?;
        Ok(rows)
    }

    /// Executes a text and returns its rows with the names of the columns.
    pub fn named_rows(&mut self, sql: &str) -> Result<(Vec<String>, Vec<TextRow>), SqliteError> {
        let prepared = self.compile(sql)?;
        let functions = &self.sqlite.functions;
        let name = |column| {
            // SAFETY: a live statement with that column; the name is copied before another call.
            unsafe {
                let name = (functions.sqlite3_column_name)(prepared.handle, column);
                if name.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(name).to_string_lossy().into_owned()
                }
            }
        };
        let names = (0..prepared.columns).map(name).collect();
        let mut rows = Vec::new();
        self.finish(&prepared, Some(&mut into_rows(&mut rows)))?;
        Ok((names, rows))
    }

    fn compile(&self, sql: &str) -> Result<Prepared, SqliteError> {
        let text = CString::new(sql).map_err(|_| SqliteError::Nul(sql.to_owned()))?;
        let functions = &self.sqlite.functions;
        let mut handle = ptr::null_mut();
        // SAFETY: the database is open, `text` is NUL-terminated and lives through the call.
        let code = unsafe {
            (functions.sqlite3_prepare_v2)(
                self.database,
                text.as_ptr(),
                -1,
                &raw mut handle,
                ptr::null_mut(),
            )
        };
        self.check(code)?;
        if handle.is_null() {
            return Err(SqliteError::Refused {
                code: ffi::SQLITE_MISUSE,
                message: format!("no statement in {sql:?}"),
            });
        }
        // SAFETY: just prepared.
        let columns = unsafe { (functions.sqlite3_column_count)(handle) };
        Ok(Prepared { handle, columns })
    }

    fn run(
        &self,
        handle: *mut ffi::sqlite3_stmt,
        columns: c_int,
        mut keep: Option<KeepValue<'_>>,
    ) -> Result<Executed, SqliteError> {
        let functions = &self.sqlite.functions;
        let mut executed = Executed { result_set: columns > 0, ..Executed::default() };
        // SAFETY: the database is open and the statement belongs to it; columns are read only while
        // a row is there, and each text only before the next step.
        unsafe {
            let before = (functions.sqlite3_total_changes)(self.database);
            let mut code = (functions.sqlite3_step)(handle);
            while code == ffi::SQLITE_ROW {
                executed.rows += 1;
                for column in 0..columns {
                    executed.bytes += match &mut keep {
                        None => fetch(functions, handle, column),
                        Some(keep) => {
                            let value = text_of(functions, handle, column);
                            keep(value, columns as usize);
                            value.map_or(0, |value| value.len() as u64)
                        }
                    };
                }
                code = (functions.sqlite3_step)(handle);
            }
            if code != ffi::SQLITE_DONE {
                let error = self.check(code);
                (functions.sqlite3_reset)(handle);
                error?;
            }
            // The result of reset repeats that of step.
            (functions.sqlite3_reset)(handle);
            if columns == 0 {
                let after = (functions.sqlite3_total_changes)(self.database);
                executed.changed = u64::from(after.wrapping_sub(before) as u32);
            }
        }
        Ok(executed)
    }

    fn check(&self, code: c_int) -> Result<(), SqliteError> {
        if code == ffi::SQLITE_OK {
            return Ok(());
        }
        if self.database.is_null() {
            return Err(SqliteError::Refused { code, message: "out of memory".to_owned() });
        }
        // SAFETY: the handle is open, or was left by a failed open, for which both calls are
        // allowed; the message is copied before another call can change it.
        let (code, message) = unsafe {
            let message = CStr::from_ptr((self.sqlite.functions.sqlite3_errmsg)(self.database));
            let extended = (self.sqlite.functions.sqlite3_extended_errcode)(self.database);
            let code = if extended & 0xff == code & 0xff { extended } else { code };
            (code, message.to_string_lossy().into_owned())
        };
        Err(SqliteError::Refused { code, message })
    }
}

impl Drop for SqliteConnection {
    fn drop(&mut self) {
        let functions = &self.sqlite.functions;
        // SAFETY: every statement is finalised once, before its database is closed; a null database
        // is a no-op.
        unsafe {
            for prepared in self.statements.drain(..) {
                (functions.sqlite3_finalize)(prepared.handle);
            }
            (functions.sqlite3_close)(self.database);
        }
    }
}

/// The value of a column as text, until the next step; `None` is NULL.
///
/// # Safety
/// `handle` is a live statement that stands on a row with more than `column` columns.
unsafe fn text_of<'a>(
    functions: &Functions,
    handle: *mut ffi::sqlite3_stmt,
    column: c_int,
) -> Option<&'a [u8]> {
    // SAFETY: as the caller promises; SQLite says how many bytes the text has.
    unsafe {
        let text = (functions.sqlite3_column_text)(handle, column);
        if text.is_null() {
            return None;
        }
        let length = (functions.sqlite3_column_bytes)(handle, column) as usize;
        Some(std::slice::from_raw_parts(text.cast(), length))
    }
}

/// Puts values into rows as they come.
fn into_rows(rows: &mut Vec<TextRow>) -> impl FnMut(Option<&[u8]>, usize) {
    let mut left = 0;
    move |value, columns| {
        if left == 0 {
            left = columns;
            rows.push(Vec::with_capacity(columns));
        }
        left -= 1;
        let text = value.map(|text| String::from_utf8_lossy(text).into_owned());
        if let Some(row) = rows.last_mut() {
            row.push(text);
        }
    }
}

/// Reads one column as a program that wants the value would, and returns its bytes.
///
/// # Safety
/// `handle` is a live statement that stands on a row with more than `column` columns.
unsafe fn fetch(functions: &Functions, handle: *mut ffi::sqlite3_stmt, column: c_int) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        match (functions.sqlite3_column_type)(handle, column) {
            ffi::SQLITE_INTEGER => {
                std::hint::black_box((functions.sqlite3_column_int64)(handle, column));
                8
            }
            ffi::SQLITE_NULL => 0,
            _ => {
                std::hint::black_box((functions.sqlite3_column_text)(handle, column));
                (functions.sqlite3_column_bytes)(handle, column) as u64
            }
        }
    }
}

// Values bound in SQLite, and values read from it.

/// An error of SQLite.
#[derive(Debug, Error)]
pub enum SqliteError {
    /// The library could not be used.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// It is not built to be used by several threads.
    #[error(
        "use SQLite {version} from several threads: this build has SQLITE_THREADSAFE=0; use one \
         without that option"
    )]
    NotThreadSafe {
        /// Its version.
        version: String,
    },
    /// A path or a statement holds a NUL byte.
    #[error("pass text to SQLite: it holds a NUL byte: {0:?}")]
    Nul(String),
    /// SQLite refused.
    #[error("{message} (SQLite result code {code})")]
    Refused {
        /// Extended result code.
        code: i32,
        /// SQLite's words.
        message: String,
    },
}

/// The result of one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub changed: u64,
    /// Bytes of all columns returned; an integer counts 8.
    pub bytes: u64,
    /// True if the statement returns rows, be it none.
    pub result_set: bool,
}

/// Takes a value as text (`None` is NULL), and the number of values of its row.
pub type KeepValue<'a> = &'a mut dyn FnMut(Option<&[u8]>, usize);

/// A value for a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteValue<'a> {
    /// INTEGER.
    Int(i64),
    /// TEXT.
    Text(&'a [u8]),
    /// NULL.
    Null,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(sqlite: Sqlite) -> (tempfile::TempDir, SqliteConnection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let connection = SqliteConnection::open(&Arc::new(sqlite), &path, 0).unwrap();
        (folder, connection)
    }

    fn round_trip(sqlite: Sqlite) {
        let (_folder, mut connection) = open(sqlite);
        connection.simple("CREATE TABLE t (id INTEGER PRIMARY KEY, c TEXT)").unwrap();
        let insert = connection.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
        for id in 1..=3 {
            let values = [SqliteValue::Int(id), SqliteValue::Text(b"abc")];
            let executed = connection.execute(insert, values.into_iter()).unwrap();
            assert_eq!(executed, Executed { changed: 1, ..Executed::default() });
        }
        let select = connection.prepare("SELECT id, c FROM t WHERE id >= ?").unwrap();
        let executed = connection.execute(select, [SqliteValue::Int(2)].into_iter()).unwrap();
        assert_eq!(executed, Executed { rows: 2, changed: 0, bytes: 22, result_set: true });
        let nothing = connection.execute(select, [SqliteValue::Int(9)].into_iter()).unwrap();
        assert_eq!(nothing, Executed { result_set: true, ..Executed::default() });
        let delete = connection.simple("DELETE FROM t WHERE id = 9").unwrap();
        assert_eq!(delete, Executed::default());
        assert_eq!(connection.simple("BEGIN").unwrap(), Executed::default());
        assert_eq!(connection.simple("DELETE FROM t").unwrap().changed, 3);
        assert_eq!(connection.simple("COMMIT").unwrap(), Executed::default());
        let rows = connection.rows("SELECT count(*), NULL FROM t").unwrap();
        assert_eq!(rows, [vec![Some("0".to_owned()), None]]);
    }

    #[test]
    fn compiled_in_round_trip() {
        round_trip(Sqlite::compiled_in());
    }

    #[test]
    fn loaded_and_compiled_in_coexist() {
        let Ok(loaded) = Sqlite::load(Path::new("libsqlite3.so.0")) else {
            eprintln!("SKIPPED: loaded_and_compiled_in_coexist: no libsqlite3.so.0 on this host");
            return;
        };
        let (_folder, mut here) = open(Sqlite::compiled_in());
        let (_other, mut there) = open(loaded);
        for connection in [&mut here, &mut there] {
            let version = connection.version();
            let rows = connection.rows("SELECT sqlite_version()").unwrap();
            assert_eq!(rows, [vec![Some(version)]], "the library answers for itself");
        }
        round_trip(Sqlite::load(Path::new("libsqlite3.so.0")).unwrap());
    }

    #[test]
    fn the_work_of_a_statement_is_counted() {
        let (_folder, mut connection) = open(Sqlite::compiled_in());
        connection.simple("CREATE TABLE t (id INTEGER PRIMARY KEY, a)").unwrap();
        connection.simple("INSERT INTO t (a) VALUES (7), (7), (8)").unwrap();
        let mut steps = |sql: &str| {
            let work = connection.work(sql, [SqliteValue::Int(1)].into_iter()).unwrap();
            work.iter().find(|(name, _)| *name == "fullscan_step").unwrap().1
        };
        assert_eq!(steps("SELECT * FROM t WHERE id = ?"), 0);
        assert_eq!(steps("SELECT * FROM t WHERE a = ?"), 2);
        assert!(connection.work("SELECT", [].into_iter()).is_err());
    }

    #[test]
    fn a_library_without_sqlite_is_named_with_the_symbol() {
        let Err(error) = Sqlite::load(Path::new("libc.so.6")) else {
            panic!("libc is not SQLite");
        };
        let text = error.to_string();
        assert!(text.contains("sqlite3_libversion") && text.contains("libc.so.6"), "{text}");
    }

    #[test]
    fn a_locked_database_is_busy() {
        let (folder, mut first) = open(Sqlite::compiled_in());
        let path = folder.path().join("test.db");
        first.simple("CREATE TABLE t (id INTEGER)").unwrap();
        let mut second =
            SqliteConnection::open(&Arc::new(Sqlite::compiled_in()), &path, 0).unwrap();
        first.simple("BEGIN IMMEDIATE").unwrap();
        match second.simple("BEGIN IMMEDIATE") {
            Err(SqliteError::Refused { code: ffi::SQLITE_BUSY, .. }) => {}
            other => panic!("expected SQLITE_BUSY, got {other:?}"),
        }
    }

    #[test]
    fn the_number_of_values_is_checked() {
        let (_folder, mut connection) = open(Sqlite::compiled_in());
        let statement = connection.prepare("SELECT ?").unwrap();
        assert!(connection.execute(statement, [].into_iter()).is_err());
    }
}
