//! What a benchmark is, those that send SQL (sysbench, YCSB, orders, sql,
//! pgbench), and the one of the user's own programs.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod client;
pub mod orders;
pub mod pgbench;
pub mod spec;
pub mod sql;
pub mod sysbench;
pub mod ycsb;
