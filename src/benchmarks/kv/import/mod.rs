//! Importers of published db_bench tables and of db_bench's own output.

pub(crate) mod metrics;
pub mod output;
pub mod rates;
pub(crate) mod runs;
mod size;
pub mod table;
pub(crate) mod tables;

pub use tables::FORMAT as DB_BENCH;
