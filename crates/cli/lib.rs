//! The command line.

pub use rqps_analyze::analyze;
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_benchmark::import;
pub use rqps_clients::{driver, workload};
pub use rqps_lab::{benchmarks, campaign, lab, plan};
pub use rqps_report::report;
pub use rqps_results::results;
pub use rqps_servers::{dbms, obtain};
pub use rqps_system::{embed, os, wire};

// L8
#[path = "../../src/cli/mod.rs"]
pub mod cli;
