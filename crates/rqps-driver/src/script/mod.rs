//! Scripts as the driver runs them, and the query plans of their statements.

pub mod calendar;
pub mod call;
pub mod explain;
mod keys;
pub mod program;
pub mod sources;
mod spreading;
pub mod table;
