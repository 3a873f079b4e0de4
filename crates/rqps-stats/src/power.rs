//! Minimum detectable effects and sample sizes.

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
pub fn power(shift: f64, df: f64, alpha: f64) -> f64 {
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
    let (mut below, mut above) = (power(low, df, alpha) - wanted, 1.0 - wanted);
    let mut found = high;
    for _ in 0..60 {
        found = (low * above - high * below) / (above - below);
        let value = power(found, df, alpha) - wanted;
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
        power(shift, df, aim.alpha) >= aim.power
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
}
