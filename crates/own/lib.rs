//! Workloads of the user's own, and mixes without published series.

pub use rqps_base::{datagen, domain, embed, json, os, parallel, stats, units, user_text, wire};
pub use rqps_benchmark::import;
pub use rqps_clients::{driver, workload};
pub use rqps_reports::{analyze, report, results};
pub use rqps_servers::dbms;

// L4
pub mod benchmarks;
