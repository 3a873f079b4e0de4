//! Importers of the texts of ann-benchmarks.

pub(crate) mod ann_benchmarks;
pub mod ann_text;

pub use ann_benchmarks::FORMAT as ANN_BENCHMARKS;
