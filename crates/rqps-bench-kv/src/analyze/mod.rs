//! The RocksDB sequence in the analysis: metrics from the library's statistics and from seconds,
//! and caveats.

mod buckets;
mod extension;
mod samples;
pub mod stats;

pub use buckets::Buckets;
pub(crate) use extension::EXTENSION;
pub use extension::{STATS, stalls, tree};
pub use samples::averages;
pub use stats::Stats;

#[cfg(test)]
mod tests;
