//! Importers of the texts of ann-benchmarks.

pub(crate) mod ann_benchmarks;
pub mod ann_text;
