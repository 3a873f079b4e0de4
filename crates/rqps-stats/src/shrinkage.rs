//! Effects of many steps, shrunken towards 0: the worst of 42 estimates is also the luckiest, and
//! its truth is nearer to 0.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::student::{Interval, above};

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
