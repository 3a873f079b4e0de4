//! One module per benchmark, beside the row that each fills in.

pub use rqps_benchmark::benchmarks::spec;

#[path = "../../src/benchmarks/custom/mod.rs"]
pub mod custom;
#[path = "../../src/benchmarks/lua/mod.rs"]
pub mod lua;
#[path = "../../src/benchmarks/orders/mod.rs"]
pub mod orders;
#[path = "../../src/benchmarks/pgbench/mod.rs"]
pub mod pgbench;
#[path = "../../src/benchmarks/ycsb/mod.rs"]
pub mod ycsb;
