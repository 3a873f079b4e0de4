//! The fake DBMS, for tests of rqps itself.

mod control;
mod spec;

pub(super) use self::spec::SPEC;
