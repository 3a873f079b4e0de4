//! The driver process, and what a workload asks of it.

pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_system::{embed, os, wire};

// L2
#[path = "../../src/driver/mod.rs"]
pub mod driver;
#[path = "../../src/workload/mod.rs"]
pub mod workload;
