//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// From here on the distribution is the normal one to ten digits.
const NORMAL_FROM: f64 = 1e10;

/// The t of which a share `probability` of the distribution with `df` degrees of freedom lies
/// below; `df` may be infinite. NaN unless `df` > 0 and 0 < `probability` < 1.
pub fn quantile(probability: f64, df: f64) -> f64 {
    if !(probability > 0.0 && probability < 1.0) {
        return f64::NAN;
    }
    if df > NORMAL_FROM {
        return Normal::standard().inverse_cdf(probability);
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |t| t.inverse_cdf(probability))
}

/// P(T > t), the share of the distribution with `df` degrees of freedom above `t`; `df` may be
/// infinite, and so may `t`. NaN unless `df` > 0.
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
    fn nonsense_is_nan() {
        assert!(quantile(0.0, 3.0).is_nan());
        assert!(quantile(1.0, 3.0).is_nan());
        assert!(quantile(0.5, 0.0).is_nan());
        assert!(quantile(f64::NAN, 3.0).is_nan());
    }
}
