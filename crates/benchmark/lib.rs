//! What a benchmark is to the rest of rqps, and how results of other tools come in.

pub use rqps_base::{datagen, domain, embed, json, os, parallel, stats, units, user_text, wire};
pub use rqps_clients::{driver, workload};
pub use rqps_reports::{analyze, report, results};
pub use rqps_servers::dbms;

// L4
pub mod benchmarks;
// L3
#[path = "../../src/import/mod.rs"]
pub mod import;
