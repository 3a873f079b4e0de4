//! Interim looks without additional false alarms: a group-sequential boundary of Wang and Tsiatis
//! (1987), and p-values that are valid at any look.

use statrs::distribution::{ContinuousCDF, Normal};

/// Shape of the boundary: the z of look n of N must exceed c (n/N)^(SHAPE − ½). 0 is O'Brien and
/// Fleming's, which rarely stops early; ½ is Pocock's, which is equally strict at every look.
pub const SHAPE: f64 = 0.25;

/// Distance of the points of the integrals, in standard deviations of one more pair.
const STEP: f64 = 0.25;
/// The largest change of the sum by one more pair, in its standard deviations.
const REACH: f64 = 7.0;
/// Critical values of the table.
const TABLE: (f64, f64, f64) = (0.0, 7.0, 0.2);

/// Looks at `first`, `first` + 1, … `last` pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    first: u32,
    last: u32,
    /// ln P(some look exceeds c) under the null, for the c of [`TABLE`].
    ln_exceeded: Vec<f64>,
}

impl Looks {
    /// Looks at `first` to `last` pairs; the first is at 2 pairs or more, the last not before it.
    pub fn new(first: u32, last: u32) -> Looks {
        let first = first.max(2);
        let last = last.max(first);
        let (from, to, step) = TABLE;
        let points = ((to - from) / step).round() as usize;
        let exceeded = |point: usize| exceedance(first, last, from + step * point as f64).ln();
        Looks { first, last, ln_exceeded: (0..=points).map(exceeded).collect() }
    }

    /// Pairs at the first look.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// Pairs at the last look.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The divisor of the z of a look that gives all looks the same critical value.
    fn weight(&self, n: u32) -> f64 {
        weight(n, self.last)
    }

    /// The statistic of a look at `n` pairs whose one-sided fixed-sample p is `p`.
    pub fn statistic(&self, p: f64, n: u32) -> f64 {
        // 1 − p loses small values of p, so this uses −Φ⁻¹(p).
        let p = p.clamp(1e-300, 1.0 - 1e-16);
        -Normal::standard().inverse_cdf(p) / self.weight(n)
    }

    /// The p-value of the largest statistic of all looks so far. Under the null it is below p with
    /// a probability of at most p, for any reason to stop.
    pub fn p_value(&self, largest: f64) -> f64 {
        let (from, to, step) = TABLE;
        if largest <= from {
            return 1.0;
        }
        if largest >= to {
            // Bonferroni over the looks: at this distance it loses almost nothing.
            let normal = Normal::standard();
            return (self.first..=self.last).map(|n| normal.sf(largest * self.weight(n))).sum();
        }
        let place = (largest - from) / step;
        let low = (place.floor() as usize).min(self.ln_exceeded.len() - 2);
        let share = place - low as f64;
        let ln = self.ln_exceeded[low] * (1.0 - share) + self.ln_exceeded[low + 1] * share;
        ln.exp().min(1.0)
    }

    /// The one-sided level of the fixed-sample test at `n` pairs that gives all looks together the
    /// level `alpha`.
    pub fn level(&self, alpha: f64, n: u32) -> f64 {
        let (mut low, mut high) = (TABLE.0, TABLE.1);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.p_value(middle) > alpha { low = middle } else { high = middle }
        }
        Normal::standard().sf(high * self.weight(n))
    }
}

fn weight(n: u32, last: u32) -> f64 {
    (f64::from(n) / f64::from(last)).powf(SHAPE - 0.5)
}

/// P(some look exceeds its boundary) under the null, for critical value c. It follows the sum of n
/// independent standard normals from look to look, with its density below the boundary on a grid
/// (Armitage, McPherson and Rowe 1969).
fn exceedance(first: u32, last: u32, c: f64) -> f64 {
    let normal = Normal::standard();
    let bound = |n: u32| c * weight(n, last) * f64::from(n).sqrt();
    let root = f64::from(first).sqrt();
    let mut exceeded = normal.sf(bound(first) / root);
    // The density of the sum below the boundary, from the boundary downwards.
    let mut density: Vec<f64> =
        grid(first, bound(first)).map(|sum| gauss(sum / root) / root).collect();
    let mut top = bound(first);
    for n in first + 1..=last {
        let bound_now = bound(n);
        let weights = simpson(density.len());
        for (place, value) in density.iter().enumerate() {
            let sum = top - STEP * place as f64;
            exceeded += weights(place) * value * normal.sf(bound_now - sum);
        }
        density = grid(n, bound_now)
            .map(|sum| {
                // Only steps with a noticeable probability.
                let nearest = (top - sum - REACH) / STEP;
                let from = nearest.max(0.0) as usize;
                let to = density.len().min((nearest + 2.0 * REACH / STEP).max(0.0) as usize + 2);
                let part = |place: usize| {
                    let before = top - STEP * place as f64;
                    weights(place) * density[place] * gauss(sum - before)
                };
                (from..to).map(part).sum()
            })
            .collect();
        top = bound_now;
    }
    exceeded.min(1.0)
}

/// Number of points from the boundary down to a negligible density; always odd.
fn grid(n: u32, top: f64) -> impl Iterator<Item = f64> {
    let bottom = -8.5 * f64::from(n).sqrt();
    let intervals = ((top - bottom) / STEP).ceil().max(2.0) as usize;
    let points = intervals + 1 + intervals % 2;
    (0..points).map(move |place| top - STEP * place as f64)
}

/// Simpson's weights.
fn simpson(points: usize) -> impl Fn(usize) -> f64 {
    move |place| {
        let factor = match place {
            _ if place == 0 || place + 1 == points => 1.0,
            _ if place % 2 == 1 => 4.0,
            _ => 2.0,
        };
        factor * STEP / 3.0
    }
}

fn gauss(z: f64) -> f64 {
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_look_is_the_plain_test() {
        let looks = Looks::new(9, 9);
        for p in [0.4, 0.05, 0.01, 1e-4, 1e-9] {
            let again = looks.p_value(looks.statistic(p, 9));
            assert!((again / p - 1.0).abs() < 0.01, "{p} {again}");
        }
        assert!((looks.level(0.05, 9) - 0.05).abs() < 0.0005);
    }

    #[test]
    fn two_looks_are_the_bivariate_normal() {
        // Looks at 1 and 2 pairs, correlation √½. SciPy 1.17, multivariate_normal.cdf of
        // (c · 2^¼, c).
        let table = [(1.5, 0.915_312_540_7), (2.0, 0.972_496_005_4), (3.0, 0.998_530_771_8)];
        for (c, below) in table {
            let ours = exceedance(1, 2, c);
            assert!((ours - (1.0 - below)).abs() < 1e-5, "{c}: {ours}, not {}", 1.0 - below);
        }
    }

    #[test]
    fn seventeen_looks_are_what_was_simulated() {
        // Two million random walks with NumPy: looks at 4 to 20; standard error below .0003.
        for (c, expected) in [(1.5, 0.1391), (2.0, 0.0470), (2.5, 0.0124)] {
            let ours = exceedance(4, 20, c);
            assert!((ours - expected).abs() < 0.0006, "{c}: {ours}, not {expected}");
        }
    }

    #[test]
    fn the_table_lies_close_to_what_it_tables() {
        let looks = Looks::new(4, 12);
        for c in [0.5, 1.7, 2.3, 3.1, 4.7] {
            let exact = exceedance(4, 12, c);
            let tabled = looks.p_value(c);
            assert!((tabled / exact - 1.0).abs() < 0.02, "{c}: {tabled}, not {exact}");
        }
        // Beyond the table, Bonferroni continues slightly above.
        assert!(looks.p_value(7.01) < looks.p_value(6.9));
        // Every look is stricter than the plain test, early ones most.
        let levels: Vec<f64> = (4..=12).map(|n| looks.level(0.05, n)).collect();
        assert!(levels.iter().all(|level| *level < 0.05), "{levels:?}");
        assert!(levels.windows(2).all(|two| two[0] < two[1]), "{levels:?}");
    }
}
