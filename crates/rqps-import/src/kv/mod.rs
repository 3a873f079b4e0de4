//! Importers of published db_bench tables and of db_bench's own output.

mod logs;
pub(crate) mod metrics;
pub mod output;
mod rate_tables;
pub mod rates;
mod report_rows;
pub(crate) mod runs;
pub mod table;
pub(crate) mod tables;
mod taker;

pub use tables::FORMAT as DB_BENCH;
