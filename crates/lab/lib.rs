//! The list of benchmarks, plans, and how they are carried out.

pub use rqps_analyze::analyze;
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_benchmark::import;
pub use rqps_clients::{driver, workload};
pub use rqps_report::report;
pub use rqps_results::results;
pub use rqps_servers::{dbms, obtain};
pub use rqps_system::{embed, os, wire};

// L7
#[path = "../../src/campaign/mod.rs"]
pub mod campaign;
// L6
#[path = "../../src/lab/mod.rs"]
pub mod lab;
// L5
#[path = "../../src/plan/mod.rs"]
pub mod plan;
// L4
#[path = "../../src/benchmarks/mod.rs"]
pub mod benchmarks;
