//! DBMSs and their builds.

pub use rqps_base::{datagen, domain, embed, json, os, parallel, stats, units, user_text, wire};

// L3
#[path = "../../src/obtain/mod.rs"]
pub mod obtain;
// L2
#[path = "../../src/dbms/mod.rs"]
pub mod dbms;
