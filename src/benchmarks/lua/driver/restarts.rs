//! Errors of a server after which sysbench begins an event again.

use crate::domain::dialect::Dialect;

/// Deadlock, record changed, lock wait timeout.
const MYSQL: [&str; 3] = ["1213", "1020", "1205"];

/// A database or a table locked by another connection. sysbench has no driver for SQLite; these
/// codes match those of the other drivers.
const SQLITE: [&str; 2] = ["5", "6"];

/// Deadlock, duplicate key, serialization failure.
const POSTGRES: [&str; 3] = ["40P01", "23505", "40001"];

/// True if an event begins again after an error of this code. `ignored` are the codes of MySQL that
/// the command line names instead.
pub(super) fn begins_again(dialect: Dialect, code: &str, ignored: &[String]) -> bool {
    match dialect {
        Dialect::Postgres => POSTGRES.contains(&code),
        Dialect::Sqlite => SQLITE.contains(&code),
        _ if ignored.is_empty() => MYSQL.contains(&code),
        _ => ignored.iter().any(|ignored| ignored == code || ignored == "all"),
    }
}
