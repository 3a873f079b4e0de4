//! Mathematics of comparisons, and the map on all CPUs that simulations use. No database, no clock,
//! no randomness.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bisection;
pub mod change_points;
pub mod factors;
pub mod moderated;
pub mod paired;
pub mod parallel;
pub mod power;
pub mod stability;
pub mod student;
pub mod summary;

pub use moderated::goodness_of_fit;
pub use student::{Interval, Prediction, clopper_pearson};
