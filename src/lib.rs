//! rqps, the database performance-regression lab.
//!
//! Data goes one way: plan → blocks → build → server → driver process → intervals and samples → run
//! folder → comparison →
//! document → text. ARCHITECTURE.md says which module may know which; `tests/tidy` holds it to
//! that.

// L4
pub mod cli;
// L3
pub mod lab;
// L2
pub mod analyze;
pub mod benchmarks;
pub mod dbms;
pub mod driver;
pub mod import;
pub mod obtain;
pub mod plan;
pub mod report;
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
