//! The sysbench microbenchmarks: 42 steps of one statement each, and the rows under them.

pub mod import;
pub mod presets;
pub mod rows;
pub mod steps;
