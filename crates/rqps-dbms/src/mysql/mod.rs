//! MySQL 5.5 to 9.x by Oracle, and forks that keep the name.

mod spec;

pub(super) use self::spec::SPEC;
