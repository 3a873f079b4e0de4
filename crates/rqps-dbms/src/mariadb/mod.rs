//! MariaDB 10.1 and later: a MySQL whose data folder is made by reading SQL files.

mod spec;

pub(super) use self::spec::SPEC;
