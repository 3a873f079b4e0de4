//! Server errors after which sysbench repeats an event.

use rqps_model::dialect::Dialect;

/// Deadlock, record changed, lock wait timeout.
const MYSQL: [&str; 3] = ["1213", "1020", "1205"];

/// A database or a table locked by another connection. sysbench has no driver for SQLite; these
/// codes correspond to those above.
const SQLITE: [&str; 2] = ["5", "6"];

/// Deadlock, duplicate key, serialization failure.
const POSTGRES: [&str; 3] = ["40P01", "23505", "40001"];

/// True if an event is repeated after an error with this code. `ignored`: codes of MySQL from the
/// command line, instead of the default ones.
pub(super) fn begins_again(dialect: Dialect, code: &str, ignored: &[String]) -> bool {
    match dialect {
        Dialect::Postgres => POSTGRES.contains(&code),
        Dialect::Sqlite => SQLITE.contains(&code),
        _ if ignored.is_empty() => MYSQL.contains(&code),
        _ => ignored.iter().any(|ignored| ignored == code || ignored == "all"),
    }
}
