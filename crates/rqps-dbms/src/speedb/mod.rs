//! Speedb, a fork of RocksDB with the same C API.

mod spec;

pub(super) use self::spec::SPEC;
