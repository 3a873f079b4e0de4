//! Many tests at once: their shared variance, intervals and p-values with a threshold, corrected
//! p-values, shrunken effects.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal};
pub use statrs::function::gamma::digamma;

use super::student::{self, Interval, above};
use super::summary;

// The moderated t for many tests with few pairs each, which share information about their
// variance (Smyth 2004), and the test against a threshold (McCarthy and Smyth 2009).

/// Fewer tests than this do not show how their variances vary, so each test stands alone.
pub const TESTS_MIN: usize = 4;
/// A standard deviation of ln ratios below this value is rounding, not noise.
pub const SD_MIN: f64 = 1e-9;
/// Variances below this share of the median variance are raised to it, so that one lucky test does
/// not pull the prior to zero (as in limma).
const VARIANCE_SHARE_MIN: f64 = 1e-5;
/// Degrees of freedom that a robust prior lends at most. A few tests with another noise than the
/// rest do not show in an estimate of d0, and a shared effect moves all variances alike.
///
/// With this and [`LENT_TIMES`], a test with any multiple of the noise of the others keeps .935 of
/// its intervals of 95 %, from two degrees of freedom on: a test integrates it.
const LENT_MAX: f64 = 1.5;
/// What a robust prior lends is this multiple of the median variance, because the noise of a test
/// may be two or three times that of the others without showing.
const LENT_TIMES: f64 = 1.5;
/// A test with this many times the noise of the others must not pass for one of them ...
const LOUD: f64 = 5.0;
/// ... with more than this probability.
const LOUD_PASSES: f64 = 0.06;
/// A variance beyond this quantile is another noise than that of the others.
const QUIET_PASSES: f64 = 0.99;

/// The spread of one test alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Sample standard deviation.
    pub sd: f64,
    /// Degrees of freedom, 1 or more.
    pub df: f64,
}

/// The common prior of all tests: variances scatter around s0² as an inverse χ² with d0 degrees of
/// freedom.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// d0; infinite if the variances do not differ more than by chance.
    pub df: f64,
    /// s0.
    pub sd: f64,
    /// Degrees of freedom of all tests together: the maximum for each test.
    pub df_pooled: f64,
    /// Of a robust prior: what each test says of the variance, ascending, and the limits of each
    /// number of degrees of freedom.
    robust: Option<(Vec<f64>, Vec<Limits>)>,
}

/// Quantiles of a sample variance, as multiples of the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    df: f64,
    median: f64,
    /// A larger variance is another noise than that of the others.
    most: f64,
}

impl Limits {
    fn of(df: f64) -> Option<Limits> {
        let chi = ChiSquared::new(df).ok()?;
        let quantile = |share: f64| chi.inverse_cdf(share) / df;
        let most = (LOUD * LOUD * quantile(LOUD_PASSES)).min(quantile(QUIET_PASSES));
        Some(Limits { df, median: quantile(0.5), most })
    }
}

impl Prior {
    /// Estimates the prior of these tests. `None` for fewer than [`TESTS_MIN`] tests, and if more
    /// than half of them have no variance.
    ///
    /// With e = ln s² − ψ(df/2) + ln(df/2) and v = var(e) − mean ψ′(df/2): d0 = 2 ψ′⁻¹(v) and
    /// s0² = exp(mean e + ψ(d0/2) − ln(d0/2)) if v > 0, else d0 = ∞ and s0² = exp(mean e).
    pub fn fit(spreads: &[Spread]) -> Option<Prior> {
        if spreads.len() < TESTS_MIN {
            return None;
        }
        let variances: Vec<f64> = spreads.iter().map(|spread| spread.sd * spread.sd).collect();
        let median = summary::median(&variances)?;
        if median <= SD_MIN * SD_MIN {
            return None;
        }
        let e: Vec<f64> = spreads
            .iter()
            .zip(&variances)
            .map(|(spread, variance)| {
                let half = spread.df / 2.0;
                variance.max(VARIANCE_SHARE_MIN * median).ln() - digamma(half) + half.ln()
            })
            .collect();
        let mean = summary::mean(&e);
        let expected: Vec<f64> = spreads.iter().map(|spread| trigamma(spread.df / 2.0)).collect();
        let excess = summary::stddev(&e)?.powi(2) - summary::mean(&expected);
        let df_pooled = spreads.iter().map(|spread| spread.df).sum();
        if excess <= 0.0 {
            return Some(Prior {
                df: f64::INFINITY,
                sd: (mean / 2.0).exp(),
                df_pooled,
                robust: None,
            });
        }
        let df = 2.0 * trigamma_inverse(excess);
        let variance = (mean + digamma(df / 2.0) - (df / 2.0).ln()).exp();
        Some(Prior { df, sd: variance.sqrt(), df_pooled, robust: None })
    }

    /// The prior of tests of which some may be much noisier than the rest (compare Phipson et al.
    /// 2016): s0² is the median of the variances, each divided by the median of χ²/df, and d0 is
    /// that of [`Prior::fit`] but at most 1.5. A test is moderated by 1.5 times the median of the
    /// others, and only if its own variance is not far above the median; else it stands alone. The
    /// limit is such that a test with 5 times the noise of the others passes for one of them in 6
    /// of 100 cases.
    ///
    /// Simulations with equal noises, with loud tests and with shared effects hold the rates that
    /// docs/verdicts.md promises; d0 of [`Prior::fit`] does not.
    pub fn robust(spreads: &[Spread]) -> Option<Prior> {
        let fit = Prior::fit(spreads)?;
        let mut limits: Vec<Limits> = Vec::new();
        let mut typical = Vec::with_capacity(spreads.len());
        for Spread { sd, df } in spreads {
            let known = limits.iter().find(|known| known.df == *df).copied();
            let of_df = known.or_else(|| Limits::of(*df))?;
            if known.is_none() {
                limits.push(of_df);
            }
            typical.push(sd * sd / of_df.median);
        }
        typical.sort_by(f64::total_cmp);
        let sd = summary::median(&typical)?.sqrt();
        Some(Prior { df: fit.df.min(LENT_MAX), sd, robust: Some((typical, limits)), ..fit })
    }

    /// s0² for one test; `None` if it stands alone.
    fn variance_for(&self, own: Spread) -> Option<f64> {
        let Some((typical, limits)) = &self.robust else { return Some(self.sd * self.sd) };
        let limits = limits.iter().find(|limits| limits.df == own.df)?;
        let mut others = typical.clone();
        let mine = own.sd * own.sd / limits.median;
        others.remove(typical.partition_point(|it| *it < mine).min(typical.len() - 1));
        let variance = summary::median(&others)?;
        (own.sd * own.sd <= limits.most * variance).then_some(LENT_TIMES * variance)
    }

    /// Moderates the spread of one test: s̃² = (d0 s0² + df s²) / (d0 + df) on d0 + df degrees of
    /// freedom, but at most those of all tests together.
    pub fn moderate(&self, own: Spread) -> Spread {
        let df = (self.df + own.df).min(self.df_pooled);
        let Some(variance) = self.variance_for(own) else { return own };
        if self.df.is_infinite() {
            return Spread { sd: variance.sqrt(), df };
        }
        let variance = (self.df * variance + own.df * own.sd * own.sd) / (self.df + own.df);
        Spread { sd: variance.sqrt(), df }
    }
}

/// A mean with its standard error: the input of a t test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of n values.
    pub mean: f64,
    /// sd / √n.
    pub se: f64,
    /// Degrees of freedom of sd; may be infinite.
    pub df: f64,
}

impl Estimate {
    /// The estimate with one more error of a known standard deviation. The degrees of freedom of
    /// the sum are those of Satterthwaite (1946).
    pub fn with_error(self, sd: f64) -> Estimate {
        let se = self.se.hypot(sd);
        let df = if self.se > 0.0 { self.df * (se / self.se).powi(4) } else { f64::INFINITY };
        Estimate { se, df, ..self }
    }

    /// mean ± t · se at `confidence`.
    pub fn interval(&self, confidence: f64) -> Interval {
        self.interval_beyond((1.0 - confidence) / 2.0)
    }

    /// mean ± t · se, where a share `tail` of the t distribution lies above t.
    pub fn interval_beyond(&self, tail: f64) -> Interval {
        let half = if self.se > 0.0 { -student::quantile(tail, self.df) * self.se } else { 0.0 };
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// TREAT: the probability of a mean at least this far from 0 if the true mean is `threshold`,
    /// P(T > (|mean| − threshold) / se) + P(T > (|mean| + threshold) / se), at most 1. With a
    /// threshold of 0 it is the two-sided p of the t test.
    pub fn p_beyond(&self, threshold: f64) -> f64 {
        let (near, far) = self.tails_beyond(threshold);
        (near + far).min(1.0)
    }

    /// The two tails that [`Estimate::p_beyond`] sums. If the true mean is `threshold` on the side
    /// of this mean: the probabilities of a mean farther on that side, and as far on the other.
    pub fn tails_beyond(&self, threshold: f64) -> (f64, f64) {
        let away = self.mean.abs();
        (self.tail(away - threshold), self.tail(away + threshold))
    }

    /// TOST: the probability of a mean at least this close to 0 if the true mean is `limit`:
    /// P(T > (limit − |mean|) / se), the larger of both one-sided tests.
    pub fn p_within(&self, limit: f64) -> f64 {
        self.tail(limit - self.mean.abs())
    }

    fn tail(&self, distance: f64) -> f64 {
        if self.se > 0.0 {
            return student::above(distance / self.se, self.df);
        }
        // Without noise, the comparison is exact; equality shows nothing.
        if distance > 0.0 { 0.0 } else { 1.0 }
    }
}

// Adjusted p-values for many tests.

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

// Derivatives of ln Γ for the moderated t.

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

// Effects of many steps, shrunken towards 0: the worst of 42 estimates is also the luckiest, and
// its truth is nearer to 0.

/// An estimated effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// Estimate.
    pub mean: f64,
    /// Its standard error, above 0.
    pub se: f64,
    /// Degrees of freedom of the standard error.
    pub df: f64,
}

/// What is known of an effect after all: a mixture of normal distributions, of (weight, mean,
/// standard deviation); the weights sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior(Vec<(f64, f64, f64)>);

/// Standard deviations of the prior's parts grow by this factor.
const GRID: f64 = std::f64::consts::SQRT_2;
const PARTS_MAX: usize = 60;
const STEPS_MAX: usize = 500;
/// A change of all weights below this ends the search.
const PRECISION: f64 = 1e-7;

/// The posteriors of effects that share a prior: unimodal at 0, a mixture of normal distributions
/// whose weights maximize the likelihood of all estimates (adaptive shrinkage: Stephens,
/// "False discovery rates: a new deal", Biostatistics 18, 2017; without its penalty in favour of
/// 0, which costs intervals their coverage). A standard error from few
/// degrees of freedom counts as the normal one with the same p (Lu and Stephens, "Empirical Bayes
/// estimation of normal means, accounting for uncertainty in estimated standard errors", 2019).
pub fn posteriors(effects: &[Effect]) -> Vec<Posterior> {
    let normal: Vec<(f64, f64)> =
        effects.iter().map(|effect| (effect.mean, normal_error(effect))).collect();
    let parts = grid(&normal);
    // Density of each estimate under each part.
    let densities: Vec<Vec<f64>> = normal
        .iter()
        .map(|(mean, se)| {
            let logs: Vec<f64> = parts.iter().map(|sd| log_density(*mean, se.hypot(*sd))).collect();
            // Relative to the largest, because that of 0 may underflow.
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logs.iter().map(|log| (log - most).exp()).collect()
        })
        .collect();
    let weights = weights(&densities, parts.len());
    let posterior = |((mean, se), densities): (&(f64, f64), &Vec<f64>)| {
        let shares: Vec<f64> =
            weights.iter().zip(densities).map(|(w, density)| w * density).collect();
        let sum: f64 = shares.iter().sum();
        let part = |(share, sd): (&f64, &f64)| {
            let kept = sd * sd / (sd * sd + se * se);
            (share / sum, kept * mean, kept.sqrt() * se)
        };
        Posterior(shares.iter().zip(&parts).map(part).collect())
    };
    normal.iter().zip(&densities).map(posterior).collect()
}

/// The standard error with which a normal distribution gives the effect the p of its t.
fn normal_error(effect: &Effect) -> f64 {
    // Nearer to 0, the quotient of t and z is that of the densities.
    let t = (effect.mean / effect.se).abs().max(1e-3);
    let z = -Normal::standard().inverse_cdf(above(t, effect.df));
    // Beyond the smallest p that a number holds, the effect is certain either way.
    if z.is_finite() && z > 0.0 { effect.se * t / z } else { effect.se }
}

/// Standard deviations of the parts: 0, then from a tenth of the smallest error to twice the
/// largest effect.
fn grid(normal: &[(f64, f64)]) -> Vec<f64> {
    let least = normal.iter().map(|(_, se)| se / 10.0).fold(f64::INFINITY, f64::min);
    let excess = normal.iter().map(|(mean, se)| mean * mean - se * se).fold(0.0, f64::max);
    let most = (2.0 * excess.sqrt()).max(8.0 * least);
    let mut parts = vec![0.0];
    let mut sd = least;
    while sd < most * GRID && parts.len() < PARTS_MAX {
        parts.push(sd);
        sd *= GRID;
    }
    parts
}

fn log_density(mean: f64, sd: f64) -> f64 {
    Normal::new(0.0, sd).map_or(f64::NEG_INFINITY, |normal| normal.ln_pdf(mean))
}

/// Weights of the parts by expectation and maximization, from equal ones.
fn weights(densities: &[Vec<f64>], parts: usize) -> Vec<f64> {
    let mut weights = vec![1.0 / parts as f64; parts];
    for _ in 0..STEPS_MAX {
        let mut counts = vec![0.0; parts];
        for row in densities {
            let sum: f64 = weights.iter().zip(row).map(|(weight, density)| weight * density).sum();
            for ((count, weight), density) in counts.iter_mut().zip(&weights).zip(row) {
                *count += weight * density / sum;
            }
        }
        let all: f64 = counts.iter().sum();
        let next: Vec<f64> = counts.iter().map(|count| count / all).collect();
        let moved = next.iter().zip(&weights).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        weights = next;
        if moved < PRECISION {
            break;
        }
    }
    weights
}

impl Posterior {
    /// Its mean: the shrunken effect.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|(weight, mean, _)| weight * mean).sum()
    }

    /// The probability that the effect is below `value`.
    pub fn below(&self, value: f64) -> f64 {
        let part = |(weight, mean, sd): &(f64, f64, f64)| match Normal::new(*mean, *sd) {
            Ok(normal) if *sd > 0.0 => weight * normal.cdf(value),
            // An effect of exactly 0.
            _ => weight * f64::from(*mean < value),
        };
        self.0.iter().map(part).sum::<f64>().clamp(0.0, 1.0)
    }

    /// The interval that holds the effect with this probability, with equal tails.
    pub fn interval(&self, probability: f64) -> Interval {
        let tail = (1.0 - probability) / 2.0;
        Interval { low: self.quantile(tail), high: self.quantile(1.0 - tail) }
    }

    /// By bisection, between what no part leaves.
    fn quantile(&self, probability: f64) -> f64 {
        let ends = |sign: f64| self.0.iter().map(move |(_, mean, sd)| mean + sign * 40.0 * sd);
        let mut low = ends(-1.0).fold(0.0, f64::min);
        let mut high = ends(1.0).fold(0.0, f64::max);
        for _ in 0..80 {
            let middle = low + (high - low) / 2.0;
            if self.below(middle) < probability { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    const DF: [f64; 8] = [5.0, 5.0, 5.0, 3.0, 5.0, 5.0, 4.0, 2.0];
    const MEAN: [f64; 8] = [-0.031, 0.004, -0.012, 0.05, 0.0005, -0.022, 0.015, -0.001];

    fn spreads(sd: [f64; 8]) -> Vec<Spread> {
        sd.into_iter().zip(DF).map(|(sd, df)| Spread { sd, df }).collect()
    }

    fn close(ours: f64, theirs: f64) {
        assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-3), "{ours}, not {theirs}");
    }

    /// Independently computed with SciPy 1.17: polygamma with a root search for the prior, stats.t
    /// for the tails.
    #[test]
    fn eight_tests_lend_each_other() {
        let spreads = spreads([0.010, 0.013, 0.008, 0.021, 0.004, 0.017, 0.011, 0.009]);
        let prior = Prior::fit(&spreads).unwrap();
        close(prior.df, 6.455_525_275_453_82);
        close(prior.sd, 0.011_156_130_785_598_72);
        let tau = 0.01_f64.ln_1p();
        let limit = -(-0.02_f64).ln_1p();
        // Index, se, df, TREAT, zero null, equivalence, low, high.
        let expected = [
            (
                0, 0.004_354_758_102_155_375_5, 11.455_525_275_453_82,
                0.000_234_036_410_808_102_54, 1.564_312_927_216_793_7e-5, 0.985_084_620_027_945_4,
                -0.040_538_461_626_737_29, -0.021_461_538_373_262_708,
            ),
            (
                3, 0.007_498_160_768_000_874, 9.455_525_275_453_82, 0.000_206_301_866_793_449_64,
                7.280_646_986_949_286e-5, 0.998_533_439_588_344_6, 0.033_161_731_989_753_13,
                0.066_838_268_010_246_88,
            ),
            (
                7, 0.006_169_272_287_113_39, 8.455_525_275_453_82, 0.964_446_822_575_238,
                0.875_039_017_534_202_9, 0.006_720_966_327_439_28, -0.015_094_059_568_866_613,
                0.013_094_059_568_866_615,
            ),
        ];
        for (place, se, df, treat, zero, within, low, high) in expected {
            let own = spreads[place];
            let spread = prior.moderate(own);
            let se_ours = spread.sd / (own.df + 1.0).sqrt();
            let estimate = Estimate { mean: MEAN[place], se: se_ours, df: spread.df };
            close(estimate.se, se);
            close(estimate.df, df);
            close(estimate.p_beyond(tau), treat);
            close(estimate.p_beyond(0.0), zero);
            close(estimate.p_within(limit), within);
            close(estimate.interval(0.95).low, low);
            close(estimate.interval(0.95).high, high);
        }
    }

    #[test]
    fn unequal_tests_lend_little() {
        let spreads = spreads([0.010, 0.013, 0.002, 0.041, 0.004, 0.027, 0.001, 0.009]);
        let prior = Prior::fit(&spreads).unwrap();
        close(prior.df, 0.910_462_537_827_968_4);
        close(prior.sd, 0.004_279_628_206_022_006);
        let moderated: Vec<f64> = spreads.iter().map(|own| prior.moderate(*own).sd).collect();
        close(moderated[2], 0.002_491_014_286_679_486_3);
        close(moderated[3], 0.035_970_565_013_582_53);
    }

    #[test]
    fn equal_tests_are_pooled_and_have_no_more_freedom_than_they_bring() {
        let sd = [0.010, 0.012, 0.009, 0.011, 0.0105];
        let spreads = sd.map(|sd| Spread { sd, df: 5.0 });
        let prior = Prior::fit(&spreads).unwrap();
        assert!(prior.df.is_infinite());
        close(prior.sd * prior.sd, 0.000_135_196_439_913_435_9);
        let moderated = prior.moderate(spreads[0]);
        assert_eq!((moderated.sd, moderated.df), (prior.sd, 25.0));
    }

    /// Computed with SciPy: the last of eight tests is far noisier than the others, and stands alone.
    #[test]
    fn a_loud_test_stands_alone_and_lends_nothing() {
        let spreads = spreads([0.010, 0.013, 0.008, 0.021, 0.004, 0.017, 0.011, 0.060]);
        let prior = Prior::robust(&spreads).unwrap();
        assert_eq!(prior.df, 1.5);
        close(prior.sd, 0.013_007_251_467_156_22);
        let expected = [
            (0, 0.012_005_910_731_078_79, 6.5),
            (3, 0.019_133_602_536_707_55, 4.5),
            (4, 0.008_917_763_613_555_15, 6.5),
            (7, 0.060, 2.0),
        ];
        for (place, sd, df) in expected {
            let moderated = prior.moderate(spreads[place]);
            close(moderated.sd, sd);
            close(moderated.df, df);
        }
        // Without it, the variances differ no more than by chance, and all of a degree and a half is
        // lent.
        assert_eq!(Prior::robust(&spreads[..3]), None);
        assert_eq!(Prior::robust(&spreads[..7]).unwrap().df, 1.5);
    }

    /// By integration over the quantiles of its variance, among 41 tests with the variances that
    /// chance gives equal ones. Lent 1.2 times the median, a test of three
    /// degrees of freedom and 2.5 times the noise has .927.
    #[test]
    fn a_test_of_any_noise_among_equal_ones_keeps_its_coverage() {
        const STEPS: u32 = 400;
        let normal = Normal::standard();
        for df in [2.0, 3.0, 5.0, 11.0] {
            let chi = ChiSquared::new(df).unwrap();
            let sd = |share: f64| (chi.inverse_cdf(share) / df).sqrt();
            let others = (0..41).map(|at| sd((f64::from(at) + 0.5) / 41.0));
            let others: Vec<Spread> = others.map(|sd| Spread { sd, df }).collect();
            let shares: Vec<f64> =
                (0..STEPS).map(|at| sd((f64::from(at) + 0.5) / f64::from(STEPS))).collect();
            for times in [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 12.0] {
                let holds = |share: &f64| {
                    let own = Spread { sd: times * share, df };
                    let all = [&others[..], &[own]].concat();
                    let Spread { sd, df } = Prior::robust(&all).unwrap().moderate(own);
                    2.0 * normal.cdf(student::quantile(0.975, df) * sd / times) - 1.0
                };
                let held = shares.iter().map(holds).sum::<f64>() / f64::from(STEPS);
                assert!(held >= 0.9335, "{df} degrees of freedom, {times} times: {held}");
            }
        }
    }

    /// Computed with SciPy.
    #[test]
    fn a_known_error_adds_variance_and_degrees_of_freedom() {
        let estimate = Estimate { mean: -0.03, se: 0.0045, df: 5.0 }.with_error(0.005);
        close(estimate.se, 0.006_726_812_023_536_855);
        close(estimate.df, 24.966_468_526_139_32);
        close(estimate.p_beyond(0.005), 0.000_523_046_296_772_374_9);
    }

    #[test]
    fn without_variance_nothing_is_lent_and_nothing_divides_by_zero() {
        let none = Spread { sd: 0.0, df: 2.0 };
        let some = Spread { sd: 0.01, df: 2.0 };
        assert_eq!(Prior::fit(&[none, none, none, some]), None);
        assert_eq!(Prior::fit(&[some, some, some]), None);
        // A test without variance among others gets theirs.
        let prior = Prior::fit(&[none, some, some, Spread { sd: 0.012, df: 2.0 }, some]).unwrap();
        assert!(prior.moderate(none).sd > 0.0);
        let exact = Estimate { mean: -0.03, se: 0.0, df: 2.0 };
        assert_eq!((exact.p_beyond(0.01), exact.p_within(0.02)), (0.0, 1.0));
        assert_eq!(exact.interval(0.95), Interval { low: -0.03, high: -0.03 });
        assert_eq!(Estimate { mean: 0.0, ..exact }.p_beyond(0.0), 1.0);
    }

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

#[cfg(test)]
mod shrinkage_tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    fn uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
        low + (high - low) * rng.unit()
    }

    fn normal(rng: &mut Rng) -> f64 {
        Normal::standard().inverse_cdf(uniform(rng, 1e-12, 1.0))
    }

    fn certain(mean: f64, se: f64) -> Effect {
        Effect { mean, se, df: f64::INFINITY }
    }

    /// One part of the prior beside 0: the posterior is the textbook product of two normals.
    #[test]
    fn a_part_of_the_posterior_is_a_product_of_normals() {
        let posterior = Posterior(vec![(1.0, 0.8, 0.6)]);
        assert!((posterior.mean() - 0.8).abs() < 1e-12);
        assert!((posterior.below(0.8) - 0.5).abs() < 1e-12);
        let interval = posterior.interval(0.95);
        assert!((interval.low - (0.8 - 1.959964 * 0.6)).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - (0.8 + 1.959964 * 0.6)).abs() < 1e-5);
    }

    /// The weights are those of the largest likelihood: none nearby are better.
    #[test]
    fn the_weights_maximize_the_likelihood() {
        let mut random = Rng::new(7);
        let rows: Vec<Vec<f64>> =
            (0..30).map(|_| (0..3).map(|_| uniform(&mut random, 0.1, 1.0)).collect()).collect();
        let likelihood = |weights: &[f64]| -> f64 {
            let of = |row: &Vec<f64>| -> f64 {
                row.iter().zip(weights).map(|(density, weight)| density * weight).sum()
            };
            rows.iter().map(|row| of(row).ln()).sum()
        };
        let found = weights(&rows, 3);
        let best = likelihood(&found);
        for _ in 0..2000 {
            let other: Vec<f64> = (0..3).map(|_| uniform(&mut random, 0.001, 1.0)).collect();
            let sum: f64 = other.iter().sum();
            let other: Vec<f64> = other.iter().map(|weight| weight / sum).collect();
            assert!(likelihood(&other) <= best + 1e-4, "{other:?} beats {found:?}");
        }
    }

    /// Equal builds: the worst of 42 raw effects is 2.3 errors from 0, the shrunken one hardly any.
    #[test]
    fn the_worst_of_many_equal_steps_shrinks_to_nothing() {
        let mut random = Rng::new(1);
        let (mut raw, mut shrunken) = (0.0, 0.0);
        for _ in 0..200 {
            let effects: Vec<Effect> =
                (0..42).map(|_| certain(0.01 * normal(&mut random), 0.01)).collect();
            raw += effects.iter().map(|effect| effect.mean).fold(0.0, f64::min) / 200.0;
            let least = |sum: f64, posterior: &Posterior| sum.min(posterior.mean());
            shrunken += posteriors(&effects).iter().fold(0.0, least) / 200.0;
        }
        assert!((-0.024..-0.020).contains(&raw), "{raw}");
        assert!((-0.003..=0.0).contains(&shrunken), "{shrunken}");
    }

    /// A fifth of 42 steps changed, by 4 % in the square mean: of the four that look worst, the
    /// raw loss is larger than the true one, the shrunken one is not, its error is smaller, and
    /// its interval holds the truth.
    #[test]
    fn what_looks_worst_is_told_nearer_to_its_truth() {
        let mut random = Rng::new(2);
        let (mut raw, mut shrunken, mut held, mut count) = ([0.0; 2], [0.0; 2], 0, 0.0);
        for _ in 0..300 {
            let truths: Vec<f64> =
                (0..42).map(|at| if at < 8 { 0.04 * normal(&mut random) } else { 0.0 }).collect();
            let effects: Vec<Effect> = truths
                .iter()
                .map(|truth| certain(truth + 0.015 * normal(&mut random), 0.015))
                .collect();
            let posteriors = posteriors(&effects);
            let mut order: Vec<usize> = (0..42).collect();
            order.sort_by(|a, b| effects[*a].mean.total_cmp(&effects[*b].mean));
            for at in order.into_iter().take(4) {
                let errors = [effects[at].mean, posteriors[at].mean()].map(|it| it - truths[at]);
                for (sums, error) in [&mut raw, &mut shrunken].into_iter().zip(errors) {
                    *sums = [sums[0] + error, sums[1] + error * error];
                }
                let interval = posteriors[at].interval(0.95);
                held += usize::from((interval.low..=interval.high).contains(&truths[at]));
                count += 1.0;
            }
        }
        let [raw, shrunken] = [raw, shrunken].map(|sums| sums.map(|sum| sum / count));
        assert!(raw[0] < -0.01, "the curse of the winner: {raw:?}");
        assert!(shrunken[0].abs() < 0.005, "{shrunken:?}");
        assert!(shrunken[1] < 0.7 * raw[1], "{shrunken:?} {raw:?}");
        assert!(f64::from(held as u32) / count > 0.91, "{held} of {count}");
    }

    /// Two degrees of freedom tell less than many: the p is that of the t distribution.
    #[test]
    fn few_degrees_of_freedom_shrink_more() {
        let error = |df| normal_error(&Effect { mean: 0.05, se: 0.01, df });
        assert!((error(f64::INFINITY) - 0.01).abs() < 1e-12);
        // P(|T| > 5) with 2 degrees of freedom is .0377, as that of 2.078 normal errors.
        assert!((error(2.0) - 0.05 / 2.0783).abs() < 1e-5, "{}", error(2.0));
        assert!(normal_error(&Effect { mean: 0.0, se: 0.01, df: 3.0 }) > 0.01);
        assert_eq!(normal_error(&certain(1.0, 1e-3)), 1e-3);
    }
}
