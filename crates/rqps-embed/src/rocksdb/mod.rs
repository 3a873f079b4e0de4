//! RocksDB and its fork Speedb through their C API, from a shared library of any version since 6.0.
//!
//! One version per process: the loader merges these libraries' unique symbols even where they are
//! loaded apart, so a second version would run with parts of the first.

#![allow(unsafe_code)]

mod database;
mod error;
mod facts;
mod functions;
mod handle;
pub mod marker;
mod options;
mod version;

pub use self::database::Database;
pub use self::error::RocksdbError;
pub use self::facts::{Facts, facts};
pub use self::functions::Missing;
pub use self::handle::{BATCH_MAX, Durability, EntryCounts, Handle};
pub use self::options::{CacheKind, Rejected, RocksdbOptions};
pub use self::version::Rocksdb;
