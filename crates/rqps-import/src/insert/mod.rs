//! Importers of published Insert Benchmark tables and raw files.

mod check;
pub mod client;
pub mod histograms;
pub(crate) mod mytools;
pub mod raw;
mod raw_check;
pub(crate) mod record;
pub mod res;
pub(crate) mod sizes;
pub(crate) mod sources;
pub mod summary;
pub mod tables;
pub(crate) mod taker;

pub use mytools::FORMAT as MYTOOLS;
