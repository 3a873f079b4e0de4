//! Student's t distribution, and intervals.

use std::fmt;

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};
use statrs::function::beta::beta_reg;

use super::summary::{mean, stddev};

/// From this many degrees of freedom on, the distribution is normal to ten digits.
const NORMAL_FROM: f64 = 1e10;

/// The quantile t of the distribution with `df` degrees of freedom: P(T < t) = `probability`. `df`
/// may be infinite. NaN unless `df` > 0 and 0 < `probability` < 1.
pub fn quantile(probability: f64, df: f64) -> f64 {
    if !(probability > 0.0 && probability < 1.0) {
        return f64::NAN;
    }
    if df > NORMAL_FROM {
        return Normal::standard().inverse_cdf(probability);
    }
    let Ok(distribution) = StudentsT::new(0.0, 1.0, df) else { return f64::NAN };
    if df < EXPANSION_FROM || probability.min(1.0 - probability) < EXPANSION_TAIL_MIN {
        return distribution.inverse_cdf(probability);
    }
    // Reports need tens of thousands of quantiles, and the general inverse is a search.
    let mut t = expansion(Normal::standard().inverse_cdf(probability), df);
    for _ in 0..3 {
        t -= (distribution.cdf(t) - probability) / distribution.pdf(t);
    }
    t
}

/// From this many degrees of freedom on, and for tails of at least this size, three Newton steps
/// from the expansion are exact to the last few bits.
const EXPANSION_FROM: f64 = 10.0;
const EXPANSION_TAIL_MIN: f64 = 1e-3;

/// t of the same tail as the normal z, to the third order in 1/df (Abramowitz and Stegun 26.7.5).
fn expansion(z: f64, df: f64) -> f64 {
    let square = z * z;
    let first = z * (square + 1.0) / 4.0;
    let second = z * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = z * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    z + (first + (second + third / df) / df) / df
}

/// P(T > t) for the distribution with `df` degrees of freedom. `df` and `t` may be infinite. NaN
/// unless `df` > 0.
pub fn above(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    if df > NORMAL_FROM {
        return Normal::standard().sf(t);
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |distribution| distribution.sf(t))
}

// Confidence intervals.

/// Both ends of a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// `[0.985, 1.012]`: three decimals, if no other number is asked for.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "[{:.digits$}, {:.digits$}]", self.low, self.high)
    }
}

impl Interval {
    /// The interval of a logarithm as that of the number itself.
    #[must_use]
    pub fn exp(self) -> Interval {
        Interval { low: self.low.exp(), high: self.high.exp() }
    }
}

// Prediction intervals of the next value of a normal sample.

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
        let half = quantile(0.5 + confidence / 2.0, self.df) * self.error;
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// p that a new value lies as far above the mean as this one, or farther. Without scatter, 0
    /// for any value above the mean.
    pub fn p_above(&self, value: f64) -> f64 {
        let distance = value - self.mean;
        match self.error > 0.0 {
            true => above(distance / self.error, self.df),
            false if distance > 0.0 => 0.0,
            false => 1.0,
        }
    }
}

// Shares of counted events.

/// Halvings of an interval of length 1: more than a number has bits.
const HALVINGS: u32 = 60;

/// The exact interval of the probability of an event that `hits` of `trials` had: the true one lies
/// outside with a probability of at most 1 − `confidence`. It is 0 to 1 without trials.
///
/// Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
/// binomial", Biometrika 26 (1934).
///
/// # Panics
/// There are more hits than trials, or `confidence` is not between 0 and 1.
pub fn clopper_pearson(hits: u64, trials: u64, confidence: f64) -> Interval {
    assert!(hits <= trials, "{hits} of {trials}");
    assert!(confidence > 0.0 && confidence < 1.0, "confidence {confidence}");
    let tail = (1.0 - confidence) / 2.0;
    let (hit, missed) = (hits as f64, (trials - hits) as f64);
    // P(X ≥ k) of n trials is I_p(k, n − k + 1): at the lower end it is the tail, at the upper end
    // P(X ≤ k) is.
    let low = if hits == 0 { 0.0 } else { crossing(|p| beta_reg(hit, missed + 1.0, p) > tail) };
    let high = if hits == trials {
        1.0
    } else {
        crossing(|p| beta_reg(hit + 1.0, missed, p) > 1.0 - tail)
    };
    Interval { low, high }
}

/// The smallest number from 0 to 1 that fulfils a condition, which all larger ones fulfil, too.
fn crossing(is_beyond: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if is_beyond(middle) { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        // df → t.95, t.975, t.995: NIST/SEMATECH e-Handbook, table 1.3.6.7.2.
        let table = [
            (1.0, 6.314, 12.706, 63.657),
            (2.0, 2.920, 4.303, 9.925),
            (3.0, 2.353, 3.182, 5.841),
            (4.0, 2.132, 2.776, 4.604),
            (5.0, 2.015, 2.571, 4.032),
            (9.0, 1.833, 2.262, 3.250),
            (29.0, 1.699, 2.045, 2.756),
            (100.0, 1.660, 1.984, 2.626),
        ];
        for (df, t95, t975, t995) in table {
            for (probability, expected) in [(0.95, t95), (0.975, t975), (0.995, t995)] {
                let t = quantile(probability, df);
                assert!((t - expected).abs() <= 0.0005 + 1e-9, "{df} {probability}: {t}");
                assert!((quantile(1.0 - probability, df) + t).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn closed_forms_hold() {
        // df 1 is the Cauchy distribution: tan(π(p − ½)); df 2: 2(p−½)·√(2/(4p(1−p))).
        for p in [0.6, 0.9, 0.975, 0.9995] {
            let cauchy = (std::f64::consts::PI * (p - 0.5)).tan();
            assert!((quantile(p, 1.0) / cauchy - 1.0).abs() < 1e-9);
            let two = 2.0 * (p - 0.5) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
            assert!((quantile(p, 2.0) / two - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_quick_way_is_the_general_one() {
        for df in [10.0, 11.5, 30.0, 287.0] {
            let distribution = StudentsT::new(0.0, 1.0, df).unwrap();
            for probability in [0.002, 0.025, 0.2, 0.5, 0.8, 0.975, 0.998] {
                let (quick, general) =
                    (quantile(probability, df), distribution.inverse_cdf(probability));
                assert!((quick - general).abs() < 1e-7, "{df} {probability}: {quick} {general}");
                assert!((distribution.cdf(quick) - probability).abs() < 1e-12, "{df} {quick}");
            }
        }
    }

    #[test]
    fn many_degrees_of_freedom_are_nearly_normal() {
        // SciPy 1.17, stats.t.ppf; the general inverse is off by 1e-4 here.
        assert!((quantile(0.975, 1e6) - 1.959_966_356).abs() < 1e-8);
        assert!((quantile(0.975, 1e4) - 1.960_201_239).abs() < 1e-8);
        assert!((quantile(0.975, f64::INFINITY) - 1.959_963_985).abs() < 1e-8);
    }

    #[test]
    fn nonsense_is_nan() {
        assert!(quantile(0.0, 3.0).is_nan());
        assert!(quantile(1.0, 3.0).is_nan());
        assert!(quantile(0.5, 0.0).is_nan());
        assert!(quantile(f64::NAN, 3.0).is_nan());
    }

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

    #[test]
    fn intervals_are_those_of_published_tables() {
        let check = |hits, trials, low: f64, high: f64| {
            let found = clopper_pearson(hits, trials, 0.95);
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6;
            let both = is_near(found.low, low) && is_near(found.high, high);
            assert!(both, "{hits} of {trials}: {found:?}");
        };
        // Without a hit, (1 − p)^n = 0.025.
        check(0, 40, 0.0, 1.0 - 0.025_f64.powf(1.0 / 40.0));
        check(40, 40, 0.025_f64.powf(1.0 / 40.0), 1.0);
        // binom.test of R: the example of its documentation (Conover 1971), and two more.
        check(682, 925, 0.707_668_3, 0.765_406_6);
        check(5, 10, 0.187_086_0, 0.812_914_0);
        check(19, 20, 0.751_267_2, 0.998_734_9);
        check(0, 0, 0.0, 1.0);
    }

    #[test]
    fn the_true_probability_is_rarely_outside() {
        // For 20 trials at p = 0.1: the sum over all outcomes whose interval misses it.
        let (p, n) = (0.1_f64, 20);
        let mut missed = 0.0;
        let mut chance = (1.0 - p).powi(n);
        for hits in 0..=n as u64 {
            let interval = clopper_pearson(hits, n as u64, 0.95);
            if !(interval.low..=interval.high).contains(&p) {
                missed += chance;
            }
            chance *= (n as f64 - hits as f64) / (hits as f64 + 1.0) * p / (1.0 - p);
        }
        assert!(missed > 0.0 && missed <= 0.05, "{missed}");
    }
}
