//! The RocksDB sequence as data: presets, settings and steps. docs/kv.md explains it.

pub mod analyze;
pub(crate) mod driver;
pub mod import;
mod presets;
pub(crate) mod report;
pub mod rows;
mod settings;
mod steps;

pub use presets::{is_published, workload};
pub use settings::set;
pub use steps::{BLOCK_BYTES, is_needed, stages};
