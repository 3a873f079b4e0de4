//! Confidence intervals.

/// Both ends of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of a logarithm as that of the number itself.
    #[must_use]
    pub fn exp(self) -> Interval {
        Interval { low: self.low.exp(), high: self.high.exp() }
    }
}
