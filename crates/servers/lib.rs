//! DBMSs and their builds.

pub use rqps_base::{bounded, datagen, domain, escape, json, parallel, stats, units, user_text};
pub use rqps_system::{embed, os, wire};

// L3
#[path = "../../src/obtain/mod.rs"]
pub mod obtain;
// L2
#[path = "../../src/dbms/mod.rs"]
pub mod dbms;
