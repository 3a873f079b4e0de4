//! The words of rqps as types (docs/glossary.md). No I/O here, so nothing here can fail but
//! parsing.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod benchmark;
pub mod bisection;
pub mod bounded;
pub mod build;
pub mod client;
pub mod compatible;
pub mod counted;
pub mod datagen;
pub mod dialect;
pub mod endpoint;
pub mod escape;
pub mod gate;
pub mod host;
pub mod insert;
pub mod kv;
pub mod lua;
pub mod metric;
pub mod pgbench;
pub mod row_digest;
pub mod run;
pub mod safe_path;
pub mod script;
pub mod sql_name;
pub mod sql_workload;
pub mod units;
pub mod vector;
pub mod verdict;
pub mod ycsb;
