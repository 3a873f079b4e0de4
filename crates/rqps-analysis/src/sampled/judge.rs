//! Tests which functions take more or less time in a target than in the baseline: the test of
//! rates, with the functions of one step in place of the steps of one suite.
//!
//! A function's time in a block is its share of the samples × the CPU time of an operation. The
//! difference of a pair of blocks scatters for two reasons that are known in advance: samples are
//! counts (Poisson), and all functions of a block vary together with the whole operation. Divided
//! by the scatter expected from these, the differences of all functions have about the same
//! variance and can share it (Smyth 2004), without the caution of [`Prior::robust`]: chance gives
//! each variance a lower limit.

use serde::Serialize;

use rqps_model::verdict::Rules;
use rqps_stats::Interval;
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread};
use rqps_stats::multiple::benjamini_hochberg;
use rqps_stats::summary::{mean, stddev};

/// Differences up to this share of the baseline's time per operation are attributed to the layout
/// of code (TREAT).
pub const LAYOUT_SHARE: f64 = 0.002;

/// The samples of one target in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledBlock {
    /// CPU microseconds of an operation.
    pub cost: f64,
    /// Samples of all functions.
    pub samples: u64,
}

/// The samples of one function, of baseline and target in each pair of blocks.
pub type FunctionSamples = Vec<(u64, u64)>;

/// The test of one function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeTest {
    /// 95 % interval of the difference, microseconds per operation.
    pub interval: Interval,
    /// Chance of as large a difference where the true one is [`LAYOUT_SHARE`], over all functions
    /// adjusted by Benjamini-Hochberg.
    pub q: f64,
}

/// Functions whose times are of one kind, and the pairs of blocks that they are from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionFamily {
    /// Baseline and target in each pair.
    pub pairs: Vec<(SampledBlock, SampledBlock)>,
    /// Samples in these pairs.
    pub functions: Vec<FunctionSamples>,
    /// Functions with fewer samples in all pairs together are too rare to be tested.
    pub least: u64,
}

/// Judges families of functions: one for their own time, one for their time with those that they
/// call. Families lend no variance to each other, but the correction is for all together. `None`
/// for functions that are too rare, and without two pairs.
pub fn judge_functions(families: &[FunctionFamily], rules: &Rules) -> Vec<Vec<Option<TimeTest>>> {
    let estimates: Vec<Vec<Option<Scaled>>> = families.iter().map(estimates).collect();
    let p: Vec<f64> = estimates
        .iter()
        .flatten()
        .flatten()
        .map(|it| it.estimate.p_beyond(it.threshold / it.scale))
        .collect();
    let mut q = benjamini_hochberg(&p).into_iter();
    let confidence = rules.confidence;
    let mut test = |it: &Scaled| {
        let interval = it.estimate.interval(confidence);
        let interval = Interval { low: interval.low * it.scale, high: interval.high * it.scale };
        TimeTest { interval, q: q.next().unwrap_or(1.0) }
    };
    let of_family = |family: &Vec<Option<Scaled>>| {
        family.iter().map(|it| it.as_ref().map(&mut test)).collect::<Vec<_>>()
    };
    estimates.iter().map(of_family).collect()
}

/// The difference of a function, in units of the scatter that is expected of one pair.
struct Scaled {
    /// Microseconds per operation.
    scale: f64,
    /// Largest effect of layout, microseconds per operation.
    threshold: f64,
    estimate: Estimate,
}

fn estimates(family: &FunctionFamily) -> Vec<Option<Scaled>> {
    let FunctionFamily { pairs, functions, least } = family;
    let count = pairs.len();
    if count < 2 || pairs.iter().any(|(a, b)| a.samples == 0 || b.samples == 0) {
        return functions.iter().map(|_| None).collect();
    }
    let threshold = LAYOUT_SHARE * mean(&pairs.iter().map(|(a, _)| a.cost).collect::<Vec<_>>());
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| (b.cost / a.cost).ln()).collect();
    let common = stddev(&ratios).unwrap_or(0.0);
    let scale = |function: &FunctionSamples| {
        let all: u64 = function.iter().map(|(a, b)| a + b).sum();
        (all >= *least).then(|| scaled_differences(pairs, function, common)).flatten()
    };
    let scaled: Vec<Option<(f64, Vec<f64>)>> = functions.iter().map(scale).collect();
    let spread = |values: &[f64]| {
        let sd = stddev(values).unwrap_or(0.0).max(SD_MIN);
        Spread { sd, df: (count - 1) as f64 }
    };
    let spreads: Vec<Spread> = scaled.iter().flatten().map(|(_, values)| spread(values)).collect();
    let prior = Prior::fit(&spreads);
    let estimate = |(scale, values): (f64, Vec<f64>)| {
        let own = spread(&values);
        let moderated = prior.as_ref().map_or(own, |prior| prior.moderate(own));
        // Counts scatter at least as chance would have it.
        let se = moderated.sd.max(1.0) / (count as f64).sqrt();
        Scaled {
            scale,
            threshold,
            estimate: Estimate { mean: mean(&values), se, df: moderated.df },
        }
    };
    scaled.into_iter().map(|it| it.map(estimate)).collect()
}

/// The differences of a function in units of their expected scatter, and that scatter.
fn scaled_differences(
    pairs: &[(SampledBlock, SampledBlock)],
    function: &FunctionSamples,
    common: f64,
) -> Option<(f64, Vec<f64>)> {
    let of_sample = |block: &SampledBlock| block.cost / block.samples as f64;
    let values: Vec<(f64, f64)> = pairs
        .iter()
        .zip(function)
        .map(|((a, b), (of_a, of_b))| (of_sample(a) * *of_a as f64, of_sample(b) * *of_b as f64))
        .collect();
    let sizes: Vec<f64> = values.iter().map(|(a, b)| (a + b) / 2.0).collect();
    // Both targets are taken to be alike: a function that one lacks has no scatter of its own.
    let size = mean(&sizes);
    let counts: Vec<f64> =
        pairs.iter().map(|(a, b)| (of_sample(a) + of_sample(b)) * size).collect();
    let variance = mean(&counts) + (common * size).powi(2);
    let scale = variance.sqrt();
    let differences = values.iter().map(|(a, b)| (b - a) / scale).collect();
    (scale > 0.0).then_some((scale, differences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    /// A campaign: shares of functions, noise of blocks.
    struct Campaign {
        pairs: usize,
        /// Samples of a block.
        samples: f64,
        /// Standard deviation of ln(cost) of a block.
        of_block: f64,
        /// Standard deviation of ln(time) of a function in a block, beside that.
        of_function: f64,
        /// Factor of the first function in the target.
        slower: f64,
        /// True if the baseline lacks the first function.
        new: bool,
    }

    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    fn poisson(rng: &mut Rng, mean: f64) -> u64 {
        if mean > 60.0 {
            return (mean + mean.sqrt() * normal(rng)).max(0.0).round() as u64;
        }
        let (mut count, mut product) = (0, rng.unit());
        while product > (-mean).exp() {
            count += 1;
            product *= rng.unit();
        }
        count
    }

    impl Campaign {
        /// The smallest q of the first function, and of all others.
        fn smallest(&self, seed: u64) -> (f64, f64) {
            let mut rng = Rng::new(seed);
            // The first has 2 %, the others fall off as functions of servers do.
            let shares: Vec<f64> = std::iter::once(0.02)
                .chain((1..300).map(|rank| 0.16 / (f64::from(rank) + 2.0)))
                .collect();
            let mut pairs = Vec::new();
            let mut functions: Vec<FunctionSamples> = vec![Vec::new(); shares.len()];
            for _ in 0..self.pairs {
                let mut side = |factor: f64| {
                    let block = (self.of_block * normal(&mut rng)).exp();
                    let times: Vec<f64> = shares
                        .iter()
                        .enumerate()
                        .map(|(place, share)| {
                            let own = (self.of_function * normal(&mut rng)).exp();
                            share * own * if place == 0 { factor } else { 1.0 }
                        })
                        .collect();
                    let total: f64 = times.iter().sum();
                    let counts: Vec<u64> = times
                        .iter()
                        .map(|time| poisson(&mut rng, self.samples * time / total))
                        .collect();
                    let samples = counts.iter().sum();
                    (SampledBlock { cost: 100.0 * total * block, samples }, counts)
                };
                let before = if self.new { 0.0 } else { 1.0 };
                let ((before, of_before), (after, of_after)) = (side(before), side(self.slower));
                pairs.push((before, after));
                for (function, counts) in
                    functions.iter_mut().zip(of_before.into_iter().zip(of_after))
                {
                    function.push(counts);
                }
            }
            let family = FunctionFamily { pairs, functions, least: 20 };
            let found = judge_functions(&[family], &Rules::default());
            let q = |test: &Option<TimeTest>| test.map_or(1.0, |test| test.q);
            let others = found[0][1..].iter().map(q).fold(1.0, f64::min);
            (q(&found[0][0]), others)
        }

        /// Shares of 400 campaigns that list the first function, and any other.
        fn listed(&self) -> (f64, f64) {
            let campaigns = 400;
            let all: Vec<(f64, f64)> = (0..campaigns).map(|seed| self.smallest(seed)).collect();
            let share = |of: fn(&(f64, f64)) -> f64| {
                all.iter().filter(|it| of(it) <= 0.05).count() as f64 / f64::from(campaigns as u32)
            };
            (share(|it| it.0), share(|it| it.1))
        }
    }

    const USUAL: Campaign = Campaign {
        pairs: 6,
        samples: 8000.0,
        of_block: 0.02,
        of_function: 0.03,
        slower: 1.0,
        new: false,
    };

    #[test]
    fn equal_targets_list_a_function_in_at_most_5_of_100_campaigns() {
        let check = |campaign: Campaign| {
            let (first, others) = campaign.listed();
            assert!(first + others <= 0.05, "{first} {others}");
        };
        check(USUAL);
        check(Campaign { pairs: 3, ..USUAL });
        check(Campaign { of_block: 0.0, of_function: 0.0, ..USUAL });
        check(Campaign { of_block: 0.06, ..USUAL });
        check(Campaign { samples: 800.0, of_function: 0.08, ..USUAL });
        check(Campaign { samples: 300.0, of_block: 0.1, ..USUAL });
        check(Campaign { samples: 300.0, pairs: 3, ..USUAL });
    }

    #[test]
    fn a_new_function_of_2_percent_is_found_with_few_samples() {
        // A host so busy that the server has a tenth of a CPU.
        let (found, others) =
            Campaign { samples: 350.0, of_block: 0.1, new: true, ..USUAL }.listed();
        assert!(found >= 0.9 && others <= 0.05, "{found} {others}");
    }

    #[test]
    fn a_function_that_burns_2_percent_more_is_found() {
        let (found, _) = Campaign { slower: 2.0, ..USUAL }.listed();
        assert!(found >= 0.9, "{found}");
    }

    #[test]
    fn one_pair_and_rare_functions_are_not_judged() {
        let block = SampledBlock { cost: 50.0, samples: 1000 };
        let family = |pairs: usize, functions: &[&[(u64, u64)]]| FunctionFamily {
            pairs: vec![(block, block); pairs],
            functions: functions.iter().map(|samples| samples.to_vec()).collect(),
            least: 20,
        };
        let one = family(1, &[&[(400, 900)]]);
        assert_eq!(judge_functions(&[one], &Rules::default()), [[None]]);
        let two = family(2, &[&[(1, 9), (2, 7)], &[(100, 110), (105, 99)]]);
        let found = judge_functions(&[two], &Rules::default());
        assert_eq!(found[0][0], None);
        let test = found[0][1].unwrap();
        assert!(test.interval.low < 0.0 && test.interval.high > 0.0 && test.q > 0.5, "{test:?}");
    }
}
