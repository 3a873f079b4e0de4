//! Database systems: make a data folder, start, know when it is ready, settle, look inside, stop.
//! One file per DBMS, which gives a row of the table in `spec`; what they share about servers is
//! in `server`.
//!
//! This is the control plane: it may fail, and then says richly how. What is measured goes through
//! the driver, never through here. Nothing here knows benchmarks.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod config;
mod control;
mod external;
mod fake;
mod guest;
mod kept_data;
mod log;
mod mariadb;
mod mysql;
mod mysql_family;
mod postgres;
mod rocksdb;
mod server;
pub mod spec;
mod speedb;
mod sql_server;
mod sqlite;

pub use self::config::{UserConfig, UserConfigs};
pub use self::control::{ControlPlane, DbmsError, Interrupt, ListenAddress, Site};
pub use self::external::{External, VisitorLoad, external, is_loopback};
pub use self::guest::Guest;
pub use self::log::events;
pub use self::rocksdb::{ROCKSDB_COMMAND, rocksdb_process};
pub use self::server::Server;
pub use self::spec::control_plane;
pub use self::sql_server::{ControlConnection, ControlRow, SettleLoad};
pub use self::sqlite::{SQLITE_COMMAND, SqliteAnswers, SqliteFile, sqlite_process};

/// An entry for the fuzz targets (`fuzz/`): the reader of what servers write, which is private
/// otherwise. Nothing else calls it.
#[doc(hidden)]
pub mod fuzzing {
    use std::path::Path;

    use super::log;

    /// The words on a server that did not start, from its log.
    pub fn server_log(path: &Path) -> String {
        let words = log::read(path, 0);
        words.tail + &words.hint
    }
}
