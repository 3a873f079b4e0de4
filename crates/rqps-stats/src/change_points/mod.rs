//! Finds changes of level in a series of measurements: by E-divisive means for long histories of
//! single runs, by optimal partitioning for ladders of few versions with a known variance.

mod e_divisive;
mod ladder;

pub use e_divisive::{Compatibility, EDivisive, Shift, e_divisive};
pub use ladder::{Partition, VersionLevel, VersionMean, partition, penalty};
