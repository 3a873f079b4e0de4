//! Code shared by MySQL and MariaDB: all but packages and the creation of a data folder.

mod accounts;
mod control;
mod flavor;
mod guest;
mod myrocks;
mod statements;
mod system_tables;
mod words;

pub(super) use self::control::MysqlFamily;
pub(super) use self::flavor::Flavor;
pub(super) use self::guest::GUEST;
pub(super) use self::words::{ARRANGEMENT, version_in};
