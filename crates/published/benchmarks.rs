//! One module per benchmark, beside the row that each fills in.

pub use rqps_benchmark::benchmarks::spec;

#[path = "../../src/benchmarks/insert/mod.rs"]
pub mod insert;
#[path = "../../src/benchmarks/kv/mod.rs"]
pub mod kv;
#[path = "../../src/benchmarks/sysbench/mod.rs"]
pub mod sysbench;
#[path = "../../src/benchmarks/vector/mod.rs"]
pub mod vector;
