//! What a benchmark is, and those that send SQL: sysbench, YCSB, orders, sql, pgbench.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod counting;
pub mod orders;
pub mod pgbench;
pub mod spec;
pub mod sql;
pub mod sysbench;
pub mod ycsb;
