//! What a benchmark is to the rest of rqps, and how results of other tools come in.

pub use rqps_analyze::analyze;
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_clients::{driver, workload};
pub use rqps_report::report;
pub use rqps_results::results;
pub use rqps_servers::dbms;
pub use rqps_system::{embed, os, wire};

// L4
pub mod benchmarks;
// L3
#[path = "../../src/import/mod.rs"]
pub mod import;
