//! The RocksDB sequence as data: presets, settings and steps. docs/kv.md explains it.

mod settings;
mod shapes;
mod steps;

pub use settings::set;
pub use shapes::workload;
pub use steps::{BLOCK_BYTES, is_needed, stages};
