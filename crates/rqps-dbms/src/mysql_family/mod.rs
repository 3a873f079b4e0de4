//! Code shared by MySQL and MariaDB: all but packages and the creation of a data folder.

mod accounts;
mod control;
mod myrocks;
mod statements;
mod system_tables;

pub(super) use self::control::MysqlFamily;
pub(super) use self::statements::MysqlCalls;
use crate::spec::Arrangement;
use rqps_model::build::Version;

/// The differences between members of the family.
#[derive(Clone, Copy)]
pub(crate) struct Flavor {
    /// The name in target words.
    pub(crate) name: &'static str,
    /// Names of the server, the one to prefer first.
    pub(crate) programs: &'static [&'static str],
    /// Folders that may hold `english/errmsg.sys`.
    pub(crate) share: &'static [&'static str],
    /// The first version that makes its system tables itself; `None` if none does.
    pub(crate) initializes_since: Option<&'static [u32]>,
    /// The first version that speaks a second protocol, on a public port and socket.
    pub(crate) second_protocol_since: Option<&'static [u32]>,
    /// True if its SQL files make accounts without a name.
    pub(crate) has_nameless_accounts: bool,
    /// MyRocks's folder of all tables, below the data folder.
    pub(crate) rocksdb_folder: &'static str,
}

/// Packages of Debian have them in the usual folders.
pub(crate) const ARRANGEMENT: Arrangement =
    Arrangement::Usr { servers: &["mariadbd", "mysqld"], programs: &["my", "mariadb"] };

/// The version in `mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community …)`.
pub(crate) fn version_in(words: &str) -> Option<Version> {
    let (_, rest) = words.split_once(" Ver ")?;
    let version = rest.split_whitespace().next()?.split('-').next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| Version::new(version))
}
