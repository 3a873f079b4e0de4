//! PostgreSQL 9.6 and later.

mod control;
mod spec;

pub(super) use self::spec::SPEC;
