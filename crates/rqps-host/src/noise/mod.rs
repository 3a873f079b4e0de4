//! The noise of a host: canaries that show it, readings of other activity, and findings with causes
//! (docs/doctor.md).

pub mod canary;
pub mod disturbance;
pub mod findings;
pub mod readings;
