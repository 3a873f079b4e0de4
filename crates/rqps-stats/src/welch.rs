//! The difference of two independent estimates with standard errors of their own.

use crate::interval::Interval;
use crate::moderated::Estimate;
use crate::student;

/// The difference of two estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    /// Second minus first.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
    /// Probability of as large a difference, in either direction, where there is none.
    pub p: f64,
    /// Degrees of freedom by Welch and Satterthwaite.
    pub df: f64,
}

/// `second` minus `first`, with its interval at `confidence` (0.95). `None` where a standard error
/// is no positive number or an estimate is not finite.
///
/// Welch (1947): se² = s₁² + s₂², and df = se⁴ / (s₁⁴ / df₁ + s₂⁴ / df₂), where s² is the square of
/// a standard error. The two may have other variances and other numbers of pairs.
pub fn difference(first: Estimate, second: Estimate, confidence: f64) -> Option<MeanDifference> {
    let usable = |one: &Estimate| one.mean.is_finite() && one.se > 0.0 && one.df > 0.0;
    if !(usable(&first) && usable(&second) && first.se.is_finite() && second.se.is_finite()) {
        return None;
    }
    let (v1, v2) = (first.se.powi(2), second.se.powi(2));
    let se = (v1 + v2).sqrt();
    let df = (v1 + v2).powi(2) / (v1.powi(2) / first.df + v2.powi(2) / second.df);
    let value = second.mean - first.mean;
    let half = student::quantile(0.5 + confidence / 2.0, df) * se;
    let p = 2.0 * student::above((value / se).abs(), df);
    let interval = Interval { low: value - half, high: value + half };
    Some(MeanDifference { value, interval, p, df })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary;

    fn estimate(values: &[f64]) -> Estimate {
        let sd = summary::stddev(values).unwrap();
        let n = values.len() as f64;
        Estimate { mean: summary::mean(values), se: sd / n.sqrt(), df: n - 1.0 }
    }

    #[test]
    fn the_difference_is_that_of_student_s_sleep_data() {
        // Student's data of 1908 as two samples: R's t.test(extra ~ group) has t = -1.8608,
        // df = 17.776, p = 0.07939, interval -3.3654832 to 0.2054832.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = difference(estimate(&first), estimate(&second), 0.95).unwrap();
        assert!((found.value - 1.58).abs() < 1e-12);
        assert!((found.df - 17.776).abs() < 5e-4, "{found:?}");
        assert!((found.p - 0.079_39).abs() < 5e-6, "{found:?}");
        assert!((found.interval.low + 0.205_483_2).abs() < 1e-6, "{found:?}");
        assert!((found.interval.high - 3.365_483_2).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn many_degrees_of_freedom_give_the_normal_interval() {
        let known = Estimate { mean: 0.0, se: 3.0, df: f64::INFINITY };
        let found = difference(known, Estimate { se: 4.0, ..known }, 0.95).unwrap();
        assert_eq!(found.df, f64::INFINITY);
        assert!((found.interval.high - 5.0 * 1.959_964).abs() < 1e-5, "{found:?}");
    }

    #[test]
    fn an_estimate_without_scatter_has_no_difference() {
        let usable = Estimate { mean: 0.1, se: 0.01, df: 3.0 };
        for bad in [
            Estimate { se: 0.0, ..usable },
            Estimate { se: f64::NAN, ..usable },
            Estimate { se: f64::INFINITY, ..usable },
            Estimate { mean: f64::INFINITY, ..usable },
            Estimate { df: 0.0, ..usable },
        ] {
            assert_eq!(difference(usable, bad, 0.95), None, "{bad:?}");
            assert_eq!(difference(bad, usable, 0.95), None, "{bad:?}");
        }
    }
}
