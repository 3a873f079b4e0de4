//! Derivatives of ln Γ for the moderated t.

use statrs::distribution::{ChiSquared, ContinuousCDF};

pub use statrs::function::gamma::digamma;

/// From this value on, the asymptotic series are exact to the last few bits.
const SERIES_FROM: f64 = 15.0;

/// ψ′, the derivative of the digamma function, for x > 0; NaN elsewhere.
///
/// By the recurrence ψ′(x) = ψ′(x + 1) + 1/x² up to 15, then the asymptotic series (Abramowitz and
/// Stegun 6.4.6 and 6.4.12).
pub fn trigamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < SERIES_FROM {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = 1.0 / 6.0
        - inverse
            * (1.0 / 30.0 - inverse * (1.0 / 42.0 - inverse * (1.0 / 30.0 - inverse * 5.0 / 66.0)));
    sum + 1.0 / x + inverse / 2.0 + inverse / x * series
}

/// ψ″, the second derivative of the digamma function, for x > 0; NaN elsewhere. Negative.
///
/// By the recurrence ψ″(x) = ψ″(x + 1) − 2/x³ up to 15, then the asymptotic series (Abramowitz and
/// Stegun 6.4.13).
pub fn tetragamma(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < SERIES_FROM {
        sum -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series =
        0.5 - inverse * (1.0 / 6.0 - inverse * (1.0 / 6.0 - inverse * (0.3 - inverse * 5.0 / 6.0)));
    sum - inverse - inverse / x - inverse * inverse * series
}

/// The y with ψ′(y) = x, for x > 0; NaN elsewhere. Newton's iteration of Smyth (2004), appendix:
/// it converges from one side, because 1/ψ′ is convex.
pub fn trigamma_inverse(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    // ψ′(y) is 1/y for large y and 1/y² for small.
    if x > 1e7 {
        return 1.0 / x.sqrt();
    }
    if x < 1e-6 {
        return 1.0 / x;
    }
    let mut y = 0.5 + 1.0 / x;
    for _ in 0..50 {
        let value = trigamma(y);
        let step = value * (1.0 - value / x) / tetragamma(y);
        y += step;
        if -step / y < 1e-12 {
            break;
        }
    }
    y
}

/// The p-value of counts by class against the weights that the classes should have, which need
/// not sum to one; 1 for a single class.
///
/// Pearson, "On the criterion that a given system of deviations...", Philosophical Magazine 50
/// (1900). The approximation wants at least 5 expected in each class.
///
/// # Panics
/// The lengths differ, or a class expects fewer than 5.
pub fn goodness_of_fit(counts: &[u64], weights: &[f64]) -> f64 {
    assert_eq!(counts.len(), weights.len(), "a weight for each class");
    let drawn = counts.iter().sum::<u64>() as f64;
    let whole: f64 = weights.iter().sum();
    let mut statistic = 0.0;
    for (count, weight) in counts.iter().zip(weights) {
        let expected = drawn * weight / whole;
        assert!(expected >= 5.0, "too few draws for chi-square: {expected} expected");
        statistic += (*count as f64 - expected).powi(2) / expected;
    }
    ChiSquared::new(counts.len() as f64 - 1.0).map_or(1.0, |law| law.sf(statistic))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn closed_forms_hold() {
        // ψ′(1) = π²/6, ψ′(½) = π²/2, ψ″(1) = −2 ζ(3), ψ″(½) = −14 ζ(3).
        const ZETA_3: f64 = 1.202_056_903_159_594_2;
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-13, "{a} {b}");
        close(trigamma(1.0), PI * PI / 6.0);
        close(trigamma(0.5), PI * PI / 2.0);
        close(tetragamma(1.0), -2.0 * ZETA_3);
        close(tetragamma(0.5), -14.0 * ZETA_3);
    }

    #[test]
    fn the_inverse_undoes_it() {
        for y in [1e-4, 0.01, 0.5, 1.0, 1.5, 4.0, 37.0, 1e4, 1e7] {
            let again = trigamma_inverse(trigamma(y));
            assert!((again / y - 1.0).abs() < 1e-6, "{y} {again}");
        }
        assert!(trigamma(0.0).is_nan() && tetragamma(-1.0).is_nan());
        assert!(trigamma_inverse(0.0).is_nan());
    }

    #[test]
    fn tables_of_the_distribution() {
        // 3.841 is the 5 % point at one degree of freedom, 16.919 at nine.
        let even = |a, b| goodness_of_fit(&[a, b], &[1.0, 1.0]);
        assert!(even(500, 500) > 0.999);
        let deviation = (3.841_458_8_f64 * 1e6).sqrt() / 2.0;
        let p = even((500_000.0 + deviation) as u64, (500_000.0 - deviation) as u64);
        assert!((p - 0.05).abs() < 2e-4, "{p}");
        assert_eq!(goodness_of_fit(&[7], &[3.0]), 1.0);
    }

    #[test]
    fn weights_need_not_sum_to_one() {
        let counts = [90, 210, 300];
        let a = goodness_of_fit(&counts, &[1.0, 2.0, 3.0]);
        let b = goodness_of_fit(&counts, &[10.0, 20.0, 30.0]);
        // 100, 200 and 300 expected: 1 + 0.5 + 0 = 1.5 at two degrees is exp(-0.75).
        assert!((a - (-0.75_f64).exp()).abs() < 1e-9 && a == b, "{a} {b}");
    }
}
