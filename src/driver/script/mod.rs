//! Scripts as the driver runs them, and the query plans of their statements.

pub(crate) mod explain;
pub(crate) mod program;
