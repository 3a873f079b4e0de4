//! Student's t distribution.

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

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
}
