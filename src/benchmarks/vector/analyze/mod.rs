//! Recall curves, and rates at equal recall.

pub(crate) mod equal_recall;
pub mod recall;
