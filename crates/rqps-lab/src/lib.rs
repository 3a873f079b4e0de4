//! Plans, how they are carried out, and loops of measuring and deciding.

pub mod benchmarks;
pub mod campaign;
pub mod lab;
pub mod plan;
