//! Vector search.

pub mod dataset;
pub mod truth;
