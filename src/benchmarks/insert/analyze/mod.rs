//! Metrics, published rules and stalls of the Insert Benchmark.

pub mod metrics;
pub mod rules;
pub mod stalls;
