//! The probability of each version to be the first of a new level, given noisy values of some of
//! them, unknown levels before and after, and an offset of each build.

/// The values of one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Runs {
    pub count: usize,
    sum: f64,
    squares: f64,
}

impl Runs {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// Sum of squares around the mean.
    fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }
}

/// Variance within versions, and its degrees of freedom; `None` without two values of a version.
pub(super) fn variance(all: &[Runs]) -> Option<(f64, usize)> {
    let df: usize = all.iter().map(|runs| runs.count.saturating_sub(1)).sum();
    let squares: f64 = all.iter().map(Runs::scatter).sum();
    (df > 0).then(|| ((squares / df as f64).max(f64::MIN_POSITIVE), df))
}

/// ln of the likelihood of each version to be the first of the new level, up to a constant.
/// `offset` is the standard deviation that a build adds to all its values; `anchor` is the variance
/// of the value 0 that version 0 is known to have, if it is.
pub(super) fn ln_likelihoods(all: &[Runs], offset: f64, anchor: Option<f64>) -> Vec<f64> {
    match variance(all) {
        Some(scatter) if offset > 0.0 || anchor.is_some() => {
            of_means(all, scatter, offset * offset, anchor)
        }
        Some(_) => of_values(all),
        None => vec![0.0; all.len()],
    }
}

/// Every value counts alike; both levels and the common variance are unknown:
/// p(c) ∝ (nL nR)^(−1/2) (SSL + SSR)^(−(T − 2)/2).
fn of_values(all: &[Runs]) -> Vec<f64> {
    let mut left = Side::default();
    let mut right = Side::default();
    for runs in all {
        right.add(runs.count as f64, runs.sum, runs.squares);
    }
    let total = right.weight;
    let each = all.iter().map(|runs| {
        // For the level that begins with this version.
        let squares = (left.scatter() + right.scatter()).max(f64::MIN_POSITIVE);
        let ln = -0.5 * (left.ln_weight() + right.ln_weight()) - (total - 2.0) / 2.0 * squares.ln();
        left.add(runs.count as f64, runs.sum, runs.squares);
        right.add(-(runs.count as f64), -runs.sum, -runs.squares);
        ln
    });
    each.collect()
}

/// Means of versions with weights 1/(offset² + s²/n), and Q = QL − YL²/WL + QR − YR²/WR:
/// ln p(c) = −½ ln(WL WR) − ½ (ν + m) ln(1 + Q/ν), where s² has ν degrees of freedom and m
/// versions more than two were measured. With many that is −½ ln(WL WR) − ½ Q; with few, s² may be
/// too small.
fn of_means(
    all: &[Runs],
    (variance, df): (f64, usize),
    offset: f64,
    anchor: Option<f64>,
) -> Vec<f64> {
    let df = df as f64;
    let levels = if anchor.is_some() { 1.0 } else { 2.0 };
    let measured = all.iter().filter(|runs| runs.count > 0).count() as f64;
    let power = df + (measured - levels).max(0.0);
    let terms: Vec<(f64, f64, f64)> = all
        .iter()
        .map(|runs| {
            if runs.count == 0 {
                return (0.0, 0.0, 0.0);
            }
            let weight = 1.0 / (offset + variance / runs.count as f64);
            (weight, weight * runs.mean(), weight * runs.mean() * runs.mean())
        })
        .collect();
    let mut left = Side::default();
    let mut right = Side::default();
    if let Some(variance) = anchor {
        left.add(1.0 / variance, 0.0, 0.0);
    }
    for (weight, sum, squares) in &terms {
        right.add(*weight, *sum, *squares);
    }
    let each = terms.iter().map(|(weight, sum, squares)| {
        let misfit = left.scatter() + right.scatter();
        let ln = -0.5 * (left.ln_weight() + right.ln_weight() + power * (misfit / df).ln_1p());
        left.add(*weight, *sum, *squares);
        right.add(-weight, -sum, -squares);
        ln
    });
    each.collect()
}

/// Weighted sums of one side.
#[derive(Default)]
struct Side {
    weight: f64,
    sum: f64,
    squares: f64,
}

/// Rounding error of a weight that was added and subtracted again.
const ROUNDING: f64 = 1e-9;

impl Side {
    fn add(&mut self, weight: f64, sum: f64, squares: f64) {
        self.weight += weight;
        self.sum += sum;
        self.squares += squares;
    }

    fn is_empty(&self) -> bool {
        self.weight <= ROUNDING
    }

    fn scatter(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        (self.squares - self.sum * self.sum / self.weight).max(0.0)
    }

    fn ln_weight(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.weight.ln() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &[&[f64]]) -> Vec<Runs> {
        let runs = |values: &&[f64]| {
            let mut runs = Runs::default();
            values.iter().for_each(|value| runs.add(*value));
            runs
        };
        values.iter().map(runs).collect()
    }

    fn scatter(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum()
    }

    #[test]
    fn likelihoods_are_those_of_the_formulas() {
        let all = all(&[&[1.0, 1.5], &[], &[1.2], &[4.0, 4.4], &[4.1]]);
        let found = ln_likelihoods(&all, 0.0, None);
        let (left, right) = ([1.0, 1.5, 1.2], [4.0, 4.4, 4.1]);
        let squares: f64 = scatter(&left) + scatter(&right);
        let expected = -0.5 * 9.0_f64.ln() - (6.0 - 2.0) / 2.0 * squares.ln();
        assert!((found[3] - expected).abs() < 1e-9, "{found:?}");
        let best = (1..5).max_by(|a, b| found[*a].total_cmp(&found[*b]));
        assert_eq!(best, Some(3));
        // The version without a value cannot be distinguished from the one after it.
        assert!((found[1] - found[2]).abs() < 1e-9);

        let (variance, df) = variance(&all).expect("two values");
        assert_eq!(df, 2);
        assert!((variance - (0.125 + 0.08) / 2.0).abs() < 1e-12);
        let found = ln_likelihoods(&all, 0.3, None);
        let weight = |count: f64| 1.0 / (0.09 + variance / count);
        let of = |terms: &[(f64, f64)]| {
            let w: f64 = terms.iter().map(|term| term.0).sum();
            let y: f64 = terms.iter().map(|term| term.0 * term.1).sum();
            let q: f64 = terms.iter().map(|term| term.0 * term.1 * term.1).sum();
            (w.ln(), q - y * y / w)
        };
        let (two, one) = (weight(2.0), weight(1.0));
        let (left, right) = (of(&[(two, 1.25), (one, 1.2)]), of(&[(two, 4.2), (one, 4.1)]));
        // Two degrees of freedom, four versions with two levels.
        let squares: f64 = left.1 + right.1;
        let expected = -0.5 * (left.0 + right.0 + (2.0 + 2.0) * (1.0 + squares / 2.0).ln());
        assert!((found[3] - expected).abs() < 1e-9, "{found:?} {expected}");
    }
}
