//! Metrics and rules of the Insert Benchmark.

mod caveats;
pub mod columns;
mod extension;
pub mod metrics;
pub mod rules;
pub mod stalls;
mod write_rate;

pub(crate) use extension::EXTENSION;
