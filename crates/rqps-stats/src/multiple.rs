//! Adjusted p-values for many tests.

/// Benjamini and Hochberg (1995): for each test, in the given order, the smallest q that lists it.
/// For sorted p it is min over j ≥ k of p_(j) · m / j. Listing all tests up to q keeps the expected
/// share of false ones at q.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let m = p.len() as f64;
    let mut adjusted = vec![0.0; p.len()];
    let mut least: f64 = 1.0;
    for (place, &index) in order.iter().enumerate().rev() {
        least = least.min(p[index] * m / (place + 1) as f64);
        adjusted[index] = least;
    }
    adjusted
}

/// Holm (1979): for each test, in the given order, the smallest α that rejects it with a
/// probability of any false rejection of at most α. For sorted p it is max over j ≤ k of
/// p_(j) · (m − j + 1).
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        largest = largest.max((p[index] * (p.len() - place) as f64).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The p-values of Benjamini and Hochberg (1995), section 3.1, fifteen endpoints of a trial.
    const TRIAL: [f64; 15] = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0000,
    ];

    #[test]
    fn the_published_trial_comes_out() {
        // The paper: q .05 rejects four hypotheses, Bonferroni's method three.
        let listed = benjamini_hochberg(&TRIAL).iter().filter(|q| **q <= 0.05).count();
        let rejected = holm(&TRIAL).iter().filter(|p| **p <= 0.05).count();
        assert_eq!((listed, rejected), (4, 3));
    }

    #[test]
    fn values_are_those_worked_out_by_hand() {
        let p = [0.04, 0.01, 0.03, 0.5];
        // Sorted .01 .03 .04 .5: × 4/1, 4/2, 4/3, 1 = .04 .06 .0533 .5, then minima from the right.
        let expected = [0.04 * 4.0 / 3.0, 0.04, 0.04 * 4.0 / 3.0, 0.5];
        for (ours, theirs) in benjamini_hochberg(&p).iter().zip(expected) {
            assert!((ours - theirs).abs() < 1e-15);
        }
        // × 4, 3, 2, 1 = .04 .09 .08 .5, then maxima from the left.
        for (ours, theirs) in holm(&p).iter().zip([0.09, 0.04, 0.09, 0.5]) {
            assert!((ours - theirs).abs() < 1e-15);
        }
        assert!(benjamini_hochberg(&[]).is_empty() && holm(&[]).is_empty());
    }
}
