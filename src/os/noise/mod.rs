//! What makes a host noisy: canaries that show that it is, readings of who disturbs, and findings
//! of why (docs/doctor.md).

pub mod canary;
pub mod disturbance;
pub mod findings;
pub mod readings;
