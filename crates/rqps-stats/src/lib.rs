//! Pure mathematics of comparisons: no database, no clock, no randomness.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bisection;
pub mod change_points;
pub mod correlation;
pub mod factors;
pub mod gamma;
mod interval;
pub mod mixed;
pub mod moderated;
pub mod multiple;
pub mod paired;
pub mod power;
mod prediction;
mod proportion;
pub mod ratio;
pub mod sequential;
pub mod stability;
pub mod student;
pub mod summary;
pub mod welch;

pub use gamma::goodness_of_fit;
pub use interval::Interval;
pub use prediction::Prediction;
pub use proportion::clopper_pearson;
pub mod parallel;
