//! Loops of measuring, judging and deciding: when a plan has measured enough, and what an A/A run
//! shows about its host. The lab below measures and judges nothing.

pub mod bisect;
mod calibrate;
mod stopping;

pub use calibrate::{Calibrated, calibrate};
pub use stopping::{carry_out, carry_out_elsewhere};
