//! The words of rqps as types (docs/glossary.md). No I/O here, so nothing here can fail but
//! parsing.

pub mod benchmark;
pub mod bisection;
pub mod block;
pub mod build;
pub mod config;
pub mod counted;
pub mod dataset;
pub mod dialect;
pub mod digits;
pub mod endpoint;
pub mod gate;
pub mod guest;
pub mod host;
pub mod insert;
pub mod kv;
pub mod lua;
pub mod metric;
pub mod orders;
pub mod pace;
pub mod pgbench;
pub mod prerequisite;
pub mod rocksdb;
pub mod run;
pub mod sampled;
pub mod script;
pub mod session;
pub mod sql_workload;
pub mod step_parameters;
pub mod target;
pub mod unknown;
pub mod usage;
pub mod value_source;
pub mod vector;
pub mod verdict;
pub mod ycsb;
