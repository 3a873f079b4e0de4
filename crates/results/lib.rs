//! Layer L2: run folders.

pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};

#[path = "../../src/results/mod.rs"]
pub mod results;
