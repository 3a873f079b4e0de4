//! The metrics of rqps: one row each, with all that verdicts, reports and files ask about it.

mod rows;
mod spec;

pub use rows::Metric;
pub use spec::{Class, Direction, MetricSpec};
