//! Layer L2: what run folders say when compared. Pure functions of what they hold.

pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};

#[path = "../../src/analyze/mod.rs"]
pub mod analyze;
