//! Pure mathematics of comparisons: no database, no clock, no randomness.

pub mod gamma;
pub mod mixed;
pub mod moderated;
pub mod multiple;
pub mod paired;
pub mod power;
pub mod ratio;
pub mod sequential;
pub mod stability;
pub mod student;
pub mod summary;

/// Both ends of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}
