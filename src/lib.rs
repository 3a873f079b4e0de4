//! rqps, the database performance-regression lab.
//!
//! Data goes one way: plan → blocks → build → server → driver process → intervals and samples → run
//! folder → comparison → document → text. ARCHITECTURE.md says which module may know which;
//! `tests/tidy` holds it to that.

// L8
pub mod cli;
// L7
pub mod campaign;
// L6
pub mod lab;
// L5
pub mod plan;
// L4
pub mod benchmarks;
// L3
pub use rqps_benchmark::import;
pub use rqps_reports::report;
pub use rqps_servers::obtain;
// L2
pub use rqps_clients::{driver, workload};
pub use rqps_reports::{analyze, results};
pub use rqps_servers::dbms;
// L1 and L0
pub use rqps_base::{datagen, domain, embed, json, os, parallel, stats, units, user_text, wire};
