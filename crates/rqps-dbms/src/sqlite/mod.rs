//! SQLite, compiled into this program or loaded from a shared library.

mod control;
mod spec;

pub use self::control::{SQLITE_COMMAND, SqliteAnswers, SqliteFile, sqlite_process};
pub(super) use self::spec::SPEC;
