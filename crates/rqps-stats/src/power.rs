//! Minimum detectable effects, sample sizes, and interim looks.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use super::student;

/// Points of the integral over the estimated standard deviation.
const POINTS: usize = 72;
/// The same with few degrees of freedom, where the density is wide and skewed.
const POINTS_FEW: usize = 256;
/// Range of the integral around the mean, in standard deviations.
const REACH: f64 = 9.0;
/// From this many standard errors on, no test finds the opposite sign.
const FAR: f64 = 4.0;
/// The largest sample size worth reporting.
pub const PAIRS_MAX: u32 = 10_000;

/// P(T′ > t) for the noncentral t with `df` degrees of freedom and noncentrality `shift`:
/// T′ = (Z + shift) / S with Z normal and S² = χ²/df.
///
/// P(T′ > t) = ∫ Φ(shift − t s) f(s) ds over the density f of S, by Simpson's rule: exact to six
/// digits and more from one degree of freedom on.
pub fn noncentral_above(t: f64, df: f64, shift: f64) -> f64 {
    let normal = Normal::standard();
    if df > 1e7 {
        return normal.cdf(shift - t);
    }
    // S has mean about 1 and standard deviation about 1/√(2 df).
    let sd = 1.0 / (2.0 * df).sqrt();
    // Integrates over u = √s: with few degrees of freedom, the density in s has an edge at 0 that
    // no polynomial fits.
    let (low, high) = ((1.0 - REACH * sd).max(0.0).sqrt(), (1.0 + REACH * sd).sqrt());
    let points = if df < 10.0 { POINTS_FEW } else { POINTS };
    let step = (high - low) / points as f64;
    let scale = std::f64::consts::LN_2 + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let at = |point: usize| {
        let u = low + step * point as f64;
        let s = u * u;
        if s <= 0.0 {
            return 0.0;
        }
        let density = (scale + (df - 1.0) * s.ln() - df * s * s / 2.0).exp();
        2.0 * u * density * normal.cdf(shift - t * s)
    };
    let inner: f64 =
        (1..points).map(|point| if point % 2 == 1 { 4.0 } else { 2.0 } * at(point)).sum();
    (step / 3.0 * (at(0) + inner + at(points))).min(1.0)
}

/// The power of the two-sided t test at `alpha` for a difference of `shift` standard errors.
pub fn power_of(shift: f64, df: f64, alpha: f64) -> f64 {
    let t = -student::quantile(alpha / 2.0, df);
    // By symmetry P(T′ < −t | shift) = P(T′ > t | −shift).
    let other = if shift < FAR { noncentral_above(t, df, -shift) } else { 0.0 };
    noncentral_above(t, df, shift) + other
}

/// The smallest difference in standard errors that the two-sided t test at `alpha` finds with
/// `wanted` power. Times sd/√n it is the minimum detectable effect of n pairs.
pub fn detectable(df: f64, alpha: f64, wanted: f64) -> f64 {
    // The power rises with the shift. Both ends are far apart; the Illinois form of false position
    // halves the weight of an end that stays.
    let (mut low, mut high) = (0.0, 8.0 - 2.0 * student::quantile(alpha / 2.0, df));
    let (mut below, mut above) = (power_of(low, df, alpha) - wanted, 1.0 - wanted);
    let mut found = high;
    for _ in 0..60 {
        found = (low * above - high * below) / (above - below);
        let value = power_of(found, df, alpha) - wanted;
        if value.abs() < 1e-9 || high - low < 1e-9 {
            break;
        }
        if value < 0.0 {
            (low, below, above) = (found, value, above / 2.0);
        } else {
            (high, above, below) = (found, value, below / 2.0);
        }
    }
    found
}

/// The input of a sample size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// Standard deviation of one pair's difference.
    pub sd: f64,
    /// Degrees of freedom that other steps lend, available without any pair.
    pub df_lent: f64,
    /// The difference to find.
    pub effect: f64,
    /// Level of the two-sided test.
    pub alpha: f64,
    /// Wanted power.
    pub power: f64,
}

/// The smallest number of pairs, 2 or more, with the wanted power; `None` beyond [`PAIRS_MAX`].
pub fn pairs_needed(aim: &Aim) -> Option<u32> {
    let met = |n: u32| {
        let own = f64::from(n - 1);
        let df = aim.df_lent + own;
        let shift = if aim.sd > 0.0 { aim.effect / aim.sd * f64::from(n).sqrt() } else { 1e3 };
        power_of(shift, df, aim.alpha) >= aim.power
    };
    // A known variance needs ((z_α/2 + z_power) sd / effect)² pairs: never more than an estimated
    // variance, and rarely many fewer.
    let normal = Normal::standard();
    let z = normal.inverse_cdf(aim.power) - normal.inverse_cdf(aim.alpha / 2.0);
    let least = (z * aim.sd / aim.effect).powi(2) - 1.0;
    if least >= f64::from(PAIRS_MAX) {
        return None;
    }
    (least.max(2.0) as u32..=PAIRS_MAX).find(|n| met(*n))
}

// Interim looks without additional false alarms: a group-sequential boundary of Wang and Tsiatis
// (1987), and p-values that are valid at any look.

/// Shape of the boundary: the z of look n of N must exceed c (n/N)^(SHAPE − ½). 0 is O'Brien and
/// Fleming's, which rarely stops early; ½ is Pocock's, which is equally strict at every look.
pub const SHAPE: f64 = 0.25;

/// Distance of the points of the integrals, in standard deviations of one more pair.
const STEP: f64 = 0.25;
/// The largest change of the sum by one more pair, in its standard deviations.
const LOOKS_REACH: f64 = 7.0;
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
                let nearest = (top - sum - LOOKS_REACH) / STEP;
                let from = nearest.max(0.0) as usize;
                let to =
                    density.len().min((nearest + 2.0 * LOOKS_REACH / STEP).max(0.0) as usize + 2);
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

    fn detectable_in_sd(n: u32, alpha: f64) -> f64 {
        detectable(f64::from(n - 1), alpha, 0.8) / f64::from(n).sqrt()
    }

    #[test]
    fn the_table_of_another_program_comes_out() {
        // By the exact noncentral t: 80 % power, units of sd.
        let pairs = [3, 4, 5, 6, 8, 10, 12, 15, 20, 30];
        let rows = [
            (0.05, [3.26, 2.13, 1.68, 1.43, 1.16, 1.00, 0.89, 0.78, 0.66, 0.53]),
            (0.01, [7.32, 3.72, 2.63, 2.11, 1.60, 1.33, 1.17, 1.00, 0.84, 0.66]),
            (0.05 / 42.0, [21.2, 7.62, 4.57, 3.34, 2.29, 1.82, 1.55, 1.30, 1.06, 0.82]),
        ];
        for (alpha, expected) in rows {
            for (n, expected) in pairs.into_iter().zip(expected) {
                let ours = detectable_in_sd(n, alpha);
                let digit = if expected > 20.0 { 0.051 } else { 0.0051 };
                assert!((ours - expected).abs() <= digit, "{alpha} {n}: {ours}, not {expected}");
            }
        }
    }

    #[test]
    fn tails_of_the_noncentral_t_are_those_of_another_program() {
        // SciPy 1.17, stats.nct.sf(t, df, shift).
        let table = [
            (12.706, 1.0, 5.0, 0.305_164_740_669_305_4),
            (2.776, 4.0, 3.0, 0.619_377_729_892_148_3),
            (2.262, 9.0, 1.5, 0.268_551_184_522_520_6),
            (1.97, 200.0, 2.8, 0.796_294_749_078_541_9),
            (4.303, 2.0, 0.0, 0.024_996_262_492_607_25),
        ];
        for (t, df, shift, expected) in table {
            let ours = noncentral_above(t, df, shift);
            assert!((ours - expected).abs() < 1e-6, "{t} {df} {shift}: {ours}, not {expected}");
        }
    }

    #[test]
    fn two_per_cent_on_a_noise_of_one_need_eighteen_pairs() {
        // The example of docs/verdicts.md: δ 2 %, τ 1 %, sd 1.4 %, plain t.
        let aim = Aim { sd: 0.014, df_lent: 0.0, effect: 0.02 - 0.01, alpha: 0.05, power: 0.8 };
        assert_eq!(pairs_needed(&aim), Some(18));
        assert_eq!(pairs_needed(&Aim { sd: 10.0, ..aim }), None);
        assert_eq!(pairs_needed(&Aim { sd: 0.0, ..aim }), Some(2));
    }

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
