//! Prediction intervals of the next value of a normal sample.

use super::Interval;
use super::student;
use super::summary::{mean, stddev};

/// The prediction of one more value from a sample of unknown mean and variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Mean of the sample.
    pub mean: f64,
    /// Standard error of a new value around it: s √(1 + 1/n).
    pub error: f64,
    /// Degrees of freedom: n − 1.
    pub df: f64,
}

impl Prediction {
    /// The prediction from two values or more; `None` for fewer.
    ///
    /// Hahn and Meeker, "Statistical Intervals", 1991, section 4.7.
    pub fn after(values: &[f64]) -> Option<Prediction> {
        let n = values.len() as f64;
        let error = stddev(values)? * (1.0 + 1.0 / n).sqrt();
        Some(Prediction { mean: mean(values), error, df: n - 1.0 })
    }

    /// Holds the new value with this probability.
    pub fn interval(&self, confidence: f64) -> Interval {
        let half = student::quantile(0.5 + confidence / 2.0, self.df) * self.error;
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// p that a new value lies as far above the mean as this one, or farther. Without scatter, 0
    /// for any value above the mean.
    pub fn p_above(&self, value: f64) -> f64 {
        let distance = value - self.mean;
        match self.error > 0.0 {
            true => student::above(distance / self.error, self.df),
            false if distance > 0.0 => 0.0,
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_comes_out() {
        // Five voltages in Hahn and Meeker: mean 50.10, s 1.31, 95 % interval 46.1 to 54.1.
        let next = Prediction::after(&[50.3, 48.3, 49.6, 50.4, 51.9]).unwrap();
        let Interval { low, high } = next.interval(0.95);
        assert!((next.mean - 50.1).abs() < 1e-12);
        assert!((low - 46.1).abs() < 0.05 && (high - 54.1).abs() < 0.05, "{low} {high}");
        assert!((next.p_above(high) - 0.025).abs() < 1e-9);
        assert!((next.p_above(next.mean) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn equal_values_predict_themselves() {
        let next = Prediction::after(&[2.0, 2.0]).unwrap();
        assert_eq!((next.p_above(2.1), next.p_above(2.0), next.p_above(1.9)), (0.0, 1.0, 1.0));
        assert_eq!(Prediction::after(&[2.0]), None);
    }
}
