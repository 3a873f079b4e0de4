//! Pearson's chi-square test of goodness of fit.

use statrs::distribution::{ChiSquared, ContinuousCDF};

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
    use super::*;

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
