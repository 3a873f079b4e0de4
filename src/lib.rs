//! rqps, the database performance-regression lab.
//!
//! Data goes one way: plan → blocks → build → server → driver process → intervals and samples → run
//! folder → comparison → document → text. ARCHITECTURE.md says which module may know which;
//! `tests/tidy` holds it to that.

// L8
pub use rqps_cli::cli;
// L7
pub use rqps_lab::campaign;
// L6
pub use rqps_lab::lab;
// L5
pub use rqps_lab::plan;
// L4
pub use rqps_lab::benchmarks;
// L3
pub use rqps_benchmark::import;
pub use rqps_report::report;
pub use rqps_servers::obtain;
// L2
pub use rqps_analyze::analyze;
pub use rqps_clients::{driver, workload};
pub use rqps_results::results;
pub use rqps_servers::dbms;
// L1
pub use rqps_system::{embed, os, wire};
// L0
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
