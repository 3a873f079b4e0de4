//! What only the Insert Benchmark has to be computed and judged.

mod caveats;
pub mod columns;
mod extension;
pub mod metrics;
pub mod rules;
pub mod stalls;
mod write_rate;

pub(crate) use extension::EXTENSION;
