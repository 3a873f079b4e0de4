//! Workloads of the user's own, and mixes without published series.

pub use rqps_analyze::analyze;
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_benchmark::import;
pub use rqps_clients::{driver, workload};
pub use rqps_report::report;
pub use rqps_results::results;
pub use rqps_servers::dbms;
pub use rqps_system::{embed, os, wire};

// L4
pub mod benchmarks;
