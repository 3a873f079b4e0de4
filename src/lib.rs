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
pub mod import;
pub mod obtain;
pub mod report;
// L2
pub mod analyze;
pub mod dbms;
pub mod driver;
pub mod results;
pub mod workload;
// L1
pub mod embed;
pub mod os;
pub mod wire;
// L0
pub mod datagen;
pub mod domain;
pub mod parallel;
pub mod stats;
pub mod units;
pub mod user_text;
