//! RocksDB, loaded from a shared library.

mod control;
mod spec;

pub(super) use self::control::KeyValue;
pub use self::control::{ROCKSDB_COMMAND, rocksdb_process};
pub(super) use self::spec::{SPEC, library_form, place_of};
