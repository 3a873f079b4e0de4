//! Benchmarks as data: which phases there are, in which order, with which SQL. Each benchmark is a
//! row of [`ALL`].

mod hooks;
mod registry;

pub use rqps_bench::spec;
pub use rqps_bench::{client, orders, pgbench, sql, sysbench, ycsb};
pub use rqps_bench_insert as insert;
pub use rqps_bench_kv as kv;
pub use rqps_bench_lua as lua;
pub use rqps_bench_vector as vector;

pub use hooks::{
    compare, compare_measured, digest, document, measure, render, sections, write_families,
    write_report,
};
pub use registry::{
    ALL, check, choose, counted, driver_parts, finish, load_task, may_write, memory_limit, named,
    names_made, of, phases, set, workload,
};
pub use spec::{BenchmarkSpec, StepSet};
