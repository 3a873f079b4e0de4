//! Layer L3: documents, and the forms in which they are shown.

pub use rqps_analyze::analyze;
pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};

#[path = "../../src/report/mod.rs"]
pub mod report;
