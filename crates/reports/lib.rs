//! Run folders, what they say when compared, and how that looks.

pub use rqps_base::{datagen, domain, embed, json, os, parallel, stats, units, user_text, wire};

// L3
#[path = "../../src/report/mod.rs"]
pub mod report;
// L2
#[path = "../../src/analyze/mod.rs"]
pub mod analyze;
#[path = "../../src/results/mod.rs"]
pub mod results;
