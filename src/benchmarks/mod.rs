//! Benchmarks as data: which phases there are, in which order, with which SQL. Each benchmark is a
//! folder and a row of [`ALL`].

mod counting;
pub mod custom;
pub mod insert;
mod judging;
pub mod kv;
pub mod lua;
pub mod orders;
pub mod pgbench;
mod registry;
pub mod spec;
pub mod sysbench;
pub mod vector;
pub mod ycsb;

pub use judging::{
    compare, compare_measured, digest, document, import_format, import_formats, measure, render,
    sections, write_report,
};
pub use registry::{
    ALL, check, choose, counted, driver_parts, finish, load_task, memory_limit, named, names_made,
    of, phases, set, workload,
};
pub use spec::{BenchmarkSpec, StepSet};
