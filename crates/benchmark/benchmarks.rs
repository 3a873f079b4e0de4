//! The row of a benchmark.

#[path = "../../src/benchmarks/counting.rs"]
mod counting;
#[path = "../../src/benchmarks/spec.rs"]
pub mod spec;
