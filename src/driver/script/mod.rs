//! Scripts as the driver runs them, and the query plans of their statements.

pub(crate) mod calendar;
pub(crate) mod call;
pub(crate) mod explain;
mod keys;
pub(crate) mod program;
pub(crate) mod sources;
pub(crate) mod table;
