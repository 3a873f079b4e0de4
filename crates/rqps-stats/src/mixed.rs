//! Estimates of values that are not independent: in clusters, or in a row.

use super::moderated::{SD_MIN, Spread};

// Pools the estimates of several clusters, such as sessions or loads, with a random effect for the
// cluster.
//
// Clusters differ by more than their own standard errors, because host, load or boot differ.
// Restricted maximum likelihood estimates the variance between them (REML; Viechtbauer 2005,
// doi:10.3102/10769986030003261). The standard error of the mean is that of Hartung and Knapp
// (2001, doi:10.1002/sim.1009) and Sidik and Jonkman (2002, doi:10.1002/sim.1262).

/// The result of one cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterEstimate {
    /// The estimate, such as a mean ln ratio.
    pub mean: f64,
    /// The squared standard error of that estimate.
    pub variance: f64,
}

/// The mean over clusters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pooled {
    /// Σ w y / Σ w with w = 1 / (v + τ²).
    pub mean: f64,
    /// Variance between clusters, τ².
    pub between: f64,
    /// Standard error of the mean: √(Σ w (y − mean)² / ((k − 1) Σ w)).
    pub se: f64,
    /// Degrees of freedom of that standard error: k − 1.
    pub df: f64,
}

/// Pools the estimates of k clusters. `None` for fewer than two clusters and for non-finite
/// numbers.
pub fn pool(clusters: &[ClusterEstimate]) -> Option<Pooled> {
    let fine = |s: &ClusterEstimate| s.mean.is_finite() && s.variance.is_finite();
    if clusters.len() < 2 || !clusters.iter().all(|s| fine(s) && s.variance >= 0.0) {
        return None;
    }
    let between = between(clusters);
    let weights = Weights::of(clusters, between);
    let df = (clusters.len() - 1) as f64;
    let se = (weights.squares / (df * weights.sum)).sqrt();
    Some(Pooled { mean: weights.mean, between, se, df })
}

/// Convergence tolerance of REML, as a share of τ² and of the largest variance of a cluster.
const TOLERANCE: f64 = 1e-12;
const STEPS_MAX: u32 = 200;

/// Computes τ² by Fisher scoring on the restricted likelihood, at least 0. It starts at the
/// unweighted moment estimate; a step that would leave [0, ∞) goes to 0.
fn between(clusters: &[ClusterEstimate]) -> f64 {
    let k = clusters.len() as f64;
    let mean = clusters.iter().map(|s| s.mean).sum::<f64>() / k;
    let spread = clusters.iter().map(|s| (s.mean - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let within = clusters.iter().map(|s| s.variance).sum::<f64>() / k;
    // Without variance within clusters, only the variance between them remains.
    let largest = clusters.iter().map(|s| s.variance).fold(0.0, f64::max);
    if largest == 0.0 {
        return spread;
    }
    // The weight of a cluster without its own variance must stay finite.
    let floor = largest * 1e-9;
    let mut tau2 = (spread - within).max(floor);
    for _ in 0..STEPS_MAX {
        let w = Weights::of(clusters, tau2);
        let (s1, s2, s3) = (w.sum, w.sum_of_squares, w.sum_of_cubes);
        let trace = s1 - s2 / s1;
        let information = s2 - 2.0 * s3 / s1 + (s2 / s1).powi(2);
        let next = (tau2 + (w.weighted_squares - trace) / information).max(0.0);
        let close = TOLERANCE * (next + largest);
        let step = (next - tau2).abs();
        tau2 = next;
        if step <= close {
            break;
        }
    }
    tau2
}

/// Sums over clusters with weights w = 1 / (v + τ²).
struct Weights {
    sum: f64,
    sum_of_squares: f64,
    sum_of_cubes: f64,
    mean: f64,
    /// Σ w (y − mean)².
    squares: f64,
    /// Σ w² (y − mean)².
    weighted_squares: f64,
}

impl Weights {
    fn of(clusters: &[ClusterEstimate], tau2: f64) -> Weights {
        let largest = clusters.iter().map(|s| s.variance).fold(0.0, f64::max);
        // All variances and τ² are 0: all clusters agree, so any weights give the mean.
        let smallest = (largest + tau2).max(f64::MIN_POSITIVE.sqrt()) * 1e-9;
        let weight = |s: &ClusterEstimate| 1.0 / (s.variance + tau2).max(smallest);
        let sum: f64 = clusters.iter().map(weight).sum();
        let mean = clusters.iter().map(|s| weight(s) * s.mean).sum::<f64>() / sum;
        let over = |power: i32, residual: i32| -> f64 {
            let term = |s: &ClusterEstimate| {
                weight(s).powi(power) * if residual == 0 { 1.0 } else { (s.mean - mean).powi(2) }
            };
            clusters.iter().map(term).sum()
        };
        Weights {
            sum,
            sum_of_squares: over(2, 0),
            sum_of_cubes: over(3, 0),
            mean,
            squares: over(1, 1),
            weighted_squares: over(2, 1),
        }
    }
}

// Values in a row of which each resembles the one before it: AR(1).

/// Correlations that are tried.
const GRID: u32 = 48;
const STEP: f64 = 0.02;
/// Twice the gain of the log likelihood beyond which a correlation above 0 is shown, one-sided
/// p < .05.
const SHOWN: f64 = 2.71;

/// What a correlation leaves of one series: the sum of squares of what each value adds, by
/// generalized least squares, and the variance of the mean as a share of it, without the scale.
struct Whitened {
    squares: f64,
    /// 1′ V⁻¹ 1.
    weight: f64,
}

fn whiten(series: &[f64], correlation: f64) -> Whitened {
    let first = (1.0 - correlation * correlation).sqrt();
    let innovation = |at: usize| match at {
        0 => (first * series[0], first),
        _ => (series[at] - correlation * series[at - 1], 1.0 - correlation),
    };
    let all = || (0..series.len()).map(innovation);
    let weight: f64 = all().map(|(_, one)| one * one).sum();
    let mean = all().map(|(value, one)| value * one).sum::<f64>() / weight;
    Whitened { squares: all().map(|(value, one)| (value - one * mean).powi(2)).sum(), weight }
}

/// The correlation of a value with the next one that all series have in common, by restricted
/// maximum likelihood; each series has its own mean and variance. 0 if none is shown.
///
/// The sample correlation is biased downwards by more than its size for few values; this is not.
/// Where the series `move_together`, they count as one.
pub fn shared_correlation(series: &[&[f64]], move_together: bool) -> f64 {
    let series: Vec<&[f64]> = series
        .iter()
        .copied()
        .filter(|it| it.len() > 2 && whiten(it, 0.0).squares > SD_MIN * SD_MIN)
        .collect();
    let likelihood = |correlation: f64| {
        let of = |it: &&[f64]| {
            let Whitened { squares, weight } = whiten(it, correlation);
            let determinant = (1.0 - correlation * correlation).ln() - weight.ln();
            (determinant - (it.len() - 1) as f64 * squares.ln()) / 2.0
        };
        series.iter().map(of).sum::<f64>()
    };
    let none = likelihood(0.0);
    let tried = (1..GRID).map(|at| f64::from(at) * STEP).map(|it| (likelihood(it), it));
    let Some((best, correlation)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) else { return 0.0 };
    let once = if move_together { series.len() as f64 } else { 1.0 };
    if 2.0 * (best - none) / once > SHOWN { correlation } else { 0.0 }
}

/// The standard deviation of independent values whose mean would scatter as that of this series,
/// with the degrees of freedom of the series.
pub fn correlated_spread(series: &[f64], correlation: f64) -> Spread {
    let n = series.len() as f64;
    let df = n - 1.0;
    let sum: f64 =
        (1..series.len()).map(|lag| (1.0 - lag as f64 / n) * correlation.powi(lag as i32)).sum();
    let variance = whiten(series, correlation).squares / df / (1.0 - correlation * correlation);
    Spread { sd: (variance * (1.0 + 2.0 * sum)).sqrt(), df }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::stddev;

    fn clusters(of: &[(f64, f64)]) -> Vec<ClusterEstimate> {
        of.iter().map(|&(mean, variance)| ClusterEstimate { mean, variance }).collect()
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} for {expected}");
    }

    /// Cases of tuberculosis and people without it, vaccinated and not, in 13 trials (Colditz et
    /// al. 1994), as ln risk ratios.
    fn tuberculosis() -> Vec<ClusterEstimate> {
        let trials: [[f64; 4]; 13] = [
            [4.0, 119.0, 11.0, 128.0],
            [6.0, 300.0, 29.0, 274.0],
            [3.0, 228.0, 11.0, 209.0],
            [62.0, 13536.0, 248.0, 12619.0],
            [33.0, 5036.0, 47.0, 5761.0],
            [180.0, 1361.0, 372.0, 1079.0],
            [8.0, 2537.0, 10.0, 619.0],
            [505.0, 87886.0, 499.0, 87892.0],
            [29.0, 7470.0, 45.0, 7232.0],
            [17.0, 1699.0, 65.0, 1600.0],
            [186.0, 50448.0, 141.0, 27197.0],
            [5.0, 2493.0, 3.0, 2338.0],
            [27.0, 16886.0, 29.0, 17825.0],
        ];
        let estimate = |[a, b, c, d]: [f64; 4]| ClusterEstimate {
            mean: ((a / (a + b)) / (c / (c + d))).ln(),
            variance: 1.0 / a - 1.0 / (a + b) + 1.0 / c - 1.0 / (c + d),
        };
        trials.into_iter().map(estimate).collect()
    }

    /// R's metafor, `rma(yi, vi, data = dat.bcg, test = "knha")`, prints τ² .3132 and estimate
    /// −.7145; the other digits are from maximising the restricted likelihood directly.
    #[test]
    fn thirteen_published_trials() {
        let pooled = pool(&tuberculosis()).unwrap();
        close(pooled.between, 0.313_243_26, 1e-7);
        close(pooled.mean, -0.714_532_34, 1e-7);
        close(pooled.se, 0.180_791_74, 1e-7);
        close(pooled.mean / pooled.se, -3.952_240, 1e-5);
        assert_eq!(pooled.df, 12.0);
    }

    /// With one variance for all, REML is the moment estimate and the interval is the plain t.
    #[test]
    fn equal_variances_give_the_plain_t() {
        let pooled = pool(&clusters(&[(0.01, 1e-6), (0.03, 1e-6), (0.08, 1e-6)])).unwrap();
        // Mean .04, sample variance .0013.
        close(pooled.mean, 0.04, 1e-12);
        close(pooled.between, 0.0013 - 1e-6, 1e-12);
        close(pooled.se, (0.0013f64 / 3.0).sqrt(), 1e-12);
    }

    #[test]
    fn sessions_that_agree_have_no_variance_between() {
        let pooled = pool(&clusters(&[(0.01, 4e-4), (0.0101, 1e-4)])).unwrap();
        assert_eq!(pooled.between, 0.0);
        // Weights 1 to 4.
        close(pooled.mean, (0.01 + 4.0 * 0.0101) / 5.0, 1e-12);
    }

    #[test]
    fn a_session_without_variance_is_no_infinite_weight() {
        let pooled = pool(&clusters(&[(0.0, 0.0), (0.1, 1e-4), (0.2, 1e-4)])).unwrap();
        assert!(pooled.mean.is_finite() && pooled.se.is_finite() && pooled.between > 0.0);
        let pooled = pool(&clusters(&[(0.1, 0.0), (0.1, 0.0)])).unwrap();
        assert_eq!((pooled.between, pooled.se), (0.0, 0.0));
        close(pooled.mean, 0.1, 1e-12);
    }

    #[test]
    fn fewer_than_two_sessions_or_no_numbers_are_refused() {
        assert_eq!(pool(&clusters(&[(0.1, 0.1)])), None);
        assert_eq!(pool(&clusters(&[(0.1, 0.1), (f64::NAN, 0.1)])), None);
        assert_eq!(pool(&clusters(&[(0.1, 0.1), (0.1, -0.1)])), None);
    }

    /// REML's derivative is 0 where it ended, for random clusters with a seed.
    #[test]
    fn the_restricted_likelihood_is_largest_where_it_ended() {
        let log_likelihood = |clusters: &[ClusterEstimate], tau2: f64| {
            let w: Vec<f64> = clusters.iter().map(|s| 1.0 / (s.variance + tau2)).collect();
            let sum: f64 = w.iter().sum();
            let mean = w.iter().zip(clusters).map(|(w, s)| w * s.mean).sum::<f64>() / sum;
            let terms = w.iter().zip(clusters).map(|(w, s)| w * (s.mean - mean).powi(2) - w.ln());
            -0.5 * (terms.sum::<f64>() + sum.ln())
        };
        // A linear congruential generator with the constants of Numerical Recipes.
        let mut state = 7u32;
        let mut unit = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1u32 << 24)
        };
        for k in 2..30 {
            let of: Vec<(f64, f64)> =
                (0..k).map(|_| (unit() * 0.1, 1e-5 + unit() * 2e-3)).collect();
            let of = clusters(&of);
            let found = pool(&of).unwrap().between;
            let best = log_likelihood(&of, found);
            for other in [0.5 * found, 0.9 * found, 1.1 * found + 1e-7, 2.0 * found + 1e-5] {
                assert!(best + 1e-9 >= log_likelihood(&of, other), "{k}: {found} {other}");
            }
        }
    }

    const SERIES: [[f64; 8]; 3] = [
        [0.1, 0.7, 0.3, 1.1, 0.8, 0.2, -0.3, 0.1],
        [-1.0, -0.2, 0.4, -0.3, 0.9, 1.4, 0.2, 0.6],
        [2.0, 1.2, 1.9, 1.0, 0.4, 1.1, 0.1, 0.9],
    ];

    /// Computed with SciPy: a search over the profile of the restricted likelihood finds .4403, and
    /// the matrix of correlations gives the deviation.
    #[test]
    fn the_likelihood_is_that_of_another_program() {
        let series: Vec<&[f64]> = SERIES.iter().map(|it| &it[..]).collect();
        let found = shared_correlation(&series, false);
        assert!((found - 0.44).abs() < 1e-9, "{found}");
        let Spread { sd, df } = correlated_spread(&SERIES[0], 0.6);
        assert!((sd - 1.005_422_364_126_497).abs() < 1e-9 && df == 7.0, "{sd}");
    }

    #[test]
    fn independent_values_have_their_own_deviation_and_no_correlation() {
        let series = [0.3, -0.2, 0.5, 0.1, -0.4, 0.25];
        assert_eq!(shared_correlation(&[&series], false), 0.0);
        let own = stddev(&series).unwrap();
        assert!((correlated_spread(&series, 0.0).sd - own).abs() < 1e-12);
        assert_eq!(shared_correlation(&[&[1.0; 9]], false), 0.0);
        assert_eq!(shared_correlation(&[], false), 0.0);
    }
}
