//! Machinery of presets, `key=value` settings and the selection of steps.

pub mod client_counts;
pub mod own;
pub mod preset;
pub mod select;
pub mod settings;
pub mod value;
