//! Machinery of presets, `key=value` settings and the selection of steps.

pub(crate) mod client_counts;
pub(crate) mod own;
pub mod select;
pub mod settings;
pub(crate) mod value;
