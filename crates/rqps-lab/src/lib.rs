//! Plans, how they are carried out, and loops of measuring and deciding.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod benchmarks;
pub mod campaign;
pub mod lab;
pub mod plan;
