//! Importers of published sysbench tables and of sysbench's own output.

pub(crate) mod columns;
pub mod met_tables;
pub(crate) mod mytools;
pub(crate) mod mytools_raw;
pub mod names;
pub mod output;
pub(crate) mod plain;
pub(crate) mod record;
pub mod sb_met;
pub(crate) mod sources;
pub mod tables;
pub(crate) mod verify;

pub use mytools::FORMAT as MYTOOLS;
pub use plain::FORMAT as PLAIN;
