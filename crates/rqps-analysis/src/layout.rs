//! The layout noise τ of a DBMS, from rates of builds whose functions are linked in several orders
//! (docs/doctor.md).
//!
//! ln(rate) of a step is the sum of an effect of the block, an effect of the build with standard
//! deviation λ, and noise: a two-way analysis of variance with random effects (Searle, Casella and
//! McCulloch 1992, doi:10.1002/9780470316856). τ is twice the standard deviation of the difference
//! of two builds, 2 √2 λ.

use std::collections::BTreeMap;

use statrs::distribution::{ChiSquared, ContinuousCDF, FisherSnedecor};
use thiserror::Error;

use super::comparison::{Comparison, RunFacts, StepComparison};
use rqps_model::layout::{LAYOUT_FORMAT, LayoutRates, LayoutStep};
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;

/// An estimated variance is taken at the upper end of its 90 % range.
const CONFIDENCE: f64 = 0.9;

/// The reason why runs do not tell the layout noise.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// Too few builds.
    #[error("layout: two builds are the fewest, and these runs have {0}")]
    Builds(usize),
    /// Nothing to take a spread from.
    #[error("layout: no step has two blocks in which all builds completed it")]
    TooFew,
}

/// The rates of relinked builds. `word` is the target without an order of linking.
///
/// # Errors
///
/// Fewer than two builds, or no step with two complete blocks.
pub fn layout_rates(
    dataset: &Dataset,
    comparison: &Comparison,
    word: &str,
) -> Result<LayoutRates, LayoutError> {
    let layouts = comparison.targets.len();
    let Some(run) = dataset.runs.first().filter(|_| layouts > 1) else {
        return Err(LayoutError::Builds(layouts));
    };
    let of = |step: &StepComparison| {
        let rates = rates(comparison, step);
        let has_blocks = rates.first().is_some_and(|blocks| blocks.len() > 1);
        has_blocks.then(|| LayoutStep { step: step.name.clone(), rates })
    };
    let steps: Vec<LayoutStep> = comparison.steps.iter().filter_map(of).collect();
    if steps.is_empty() {
        return Err(LayoutError::TooFew);
    }
    let finished = dataset.runs.iter().filter_map(|run| run.record.finished.clone()).max();
    Ok(LayoutRates {
        format: LAYOUT_FORMAT,
        host_fingerprint: run.record.host_fingerprint.clone(),
        made: finished.unwrap_or_default(),
        rqps_version: run.record.rqps_version.clone(),
        target: word.to_owned(),
        dbms: run.record.target.dbms,
        layouts: u32::try_from(layouts).unwrap_or(u32::MAX),
        steps,
    })
}

/// ln(rate) by target and block, of the blocks in which all targets have one.
fn rates(comparison: &Comparison, step: &StepComparison) -> Vec<Vec<f64>> {
    let mut blocks: BTreeMap<(u32, u32), Vec<Option<f64>>> = BTreeMap::new();
    for (place, target) in step.targets.iter().enumerate() {
        for sample in &target.samples {
            let RunFacts { key, .. } = &comparison.runs[sample.run];
            let block = blocks.entry((key.block, key.attempt)).or_default();
            block.resize(step.targets.len(), None);
            block[place] = sample.get(Metric::Rate).filter(|rate| *rate > 0.0).map(f64::ln);
        }
    }
    let complete = blocks.into_values().filter_map(|block| block.into_iter().collect());
    let complete: Vec<Vec<f64>> = complete.collect();
    let of = |place| complete.iter().map(|block: &Vec<f64>| block[place]).collect();
    (0..step.targets.len()).map(of).collect()
}

/// What relinked builds show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutNoise {
    /// λ: standard deviation of ln(rate) that the layout of one build causes; the estimate.
    pub build_sd: f64,
    /// λ at the upper end of its 90 % range.
    pub build_sd_upper: f64,
    /// Standard error of the mean of one build's values.
    pub error: f64,
    /// p of the F test that layouts make no difference.
    pub p: f64,
}

impl LayoutNoise {
    /// τ, a natural logarithm: twice the standard deviation of the difference of two builds, at the
    /// upper end of its 90 % range.
    pub fn tau(&self) -> f64 {
        2.0 * std::f64::consts::SQRT_2 * self.build_sd_upper
    }
}

/// The layout noise over all steps; `None` if no step has two builds and two blocks.
///
/// V is the pooled variance of the means of builds within steps, with d degrees of freedom, and E
/// that of such a mean by noise alone. λ² = V − E. Its upper end is V d / χ²(0.1; d) − E, which
/// takes E as known: it has more degrees of freedom than V. It is at least √E, as λ below the noise
/// of a mean cannot be told: by chance V may be less than E.
pub fn layout_noise(steps: &[LayoutStep]) -> Option<LayoutNoise> {
    let (mut means, mut df) = (0.0, 0.0);
    let (mut rest, mut rest_df) = (0.0, 0.0);
    for step in steps {
        let Some(found) = Spread::of(&step.rates) else { continue };
        means += found.means;
        df += found.df;
        // As squares of means: a mean has the variance of a value over the number of blocks.
        rest += found.rest / found.blocks;
        rest_df += found.rest_df;
    }
    if df == 0.0 || rest_df == 0.0 {
        return None;
    }
    let (of_means, error) = (means / df, rest / rest_df);
    let chi = ChiSquared::new(df).ok()?.inverse_cdf(1.0 - CONFIDENCE);
    let p =
        if error > 0.0 { FisherSnedecor::new(df, rest_df).ok()?.sf(of_means / error) } else { 0.0 };
    Some(LayoutNoise {
        build_sd: (of_means - error).max(0.0).sqrt(),
        build_sd_upper: (of_means * df / chi - error).max(error).sqrt(),
        error: error.sqrt(),
        p,
    })
}

/// Sums of squares of one step.
struct Spread {
    /// Of the means of builds around their own mean.
    means: f64,
    df: f64,
    /// Of what builds and blocks do not explain.
    rest: f64,
    rest_df: f64,
    blocks: f64,
}

impl Spread {
    fn of(rates: &[Vec<f64>]) -> Option<Spread> {
        let blocks = rates.first().map_or(0, Vec::len);
        if rates.len() < 2 || blocks < 2 || rates.iter().any(|row| row.len() != blocks) {
            return None;
        }
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
            sum / n
        };
        let of_builds: Vec<f64> = rates.iter().map(|row| mean(&mut row.iter().copied())).collect();
        let of_blocks: Vec<f64> =
            (0..blocks).map(|block| mean(&mut rates.iter().map(|row| row[block]))).collect();
        let grand = mean(&mut of_builds.iter().copied());
        let cells = rates.iter().zip(&of_builds).flat_map(|(row, build)| {
            row.iter().zip(&of_blocks).map(move |(value, block)| value - build - block + grand)
        });
        let (builds, count) = (rates.len() as f64, blocks as f64);
        Some(Spread {
            means: of_builds.iter().map(|mean| (mean - grand).powi(2)).sum(),
            df: builds - 1.0,
            rest: cells.map(|cell| cell * cell).sum(),
            rest_df: (builds - 1.0) * (count - 1.0),
            blocks: count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rates: &[&[f64]]) -> LayoutStep {
        let rates = rates.iter().map(|row| row.to_vec()).collect();
        LayoutStep { step: "scan".to_owned(), rates }
    }

    #[test]
    fn two_builds_in_two_blocks_by_hand() {
        // Means 1.0 and 1.4 around 1.2; interactions of ±.05 in each cell.
        let noise = layout_noise(&[step(&[&[0.95, 1.05], &[1.45, 1.35]])]).unwrap();
        let of_means: f64 = 2.0 * 0.2_f64.powi(2);
        let error = 4.0 * 0.05_f64.powi(2) / 2.0;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(noise.error, error.sqrt());
        close(noise.build_sd, (of_means - error).sqrt());
        // χ²(0.1; 1) = 0.01579077.
        assert!((noise.build_sd_upper.powi(2) - (of_means / 0.015_790_77 - error)).abs() < 1e-5);
        close(noise.tau(), 2.0 * 2.0_f64.sqrt() * noise.build_sd_upper);
        // F(1, 1) = 16: p = 1 - 2/π atan 4.
        close(noise.p, 1.0 - 2.0 / std::f64::consts::PI * 4.0_f64.atan());
    }

    #[test]
    fn known_offsets_of_builds_are_found_and_blocks_do_not_matter() {
        use rqps_model::datagen::rng::Rng;
        let mut rng = Rng::new(7);
        let mut normal = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        let mut steps = |layout: f64| -> Vec<LayoutStep> {
            let mut one = || {
                let blocks: Vec<f64> = (0..6).map(|_| 0.1 * normal()).collect();
                let row = |offset: f64, normal: &mut dyn FnMut() -> f64| {
                    blocks.iter().map(|block| block + offset + 0.004 * normal()).collect()
                };
                let rates = (0..8)
                    .map(|_| {
                        let offset = layout * normal();
                        row(offset, &mut normal)
                    })
                    .collect();
                LayoutStep { step: "scan".to_owned(), rates }
            };
            (0..40).map(|_| one()).collect()
        };
        let found = layout_noise(&steps(0.005)).unwrap();
        assert!((found.build_sd / 0.005 - 1.0).abs() < 0.15, "{found:?}");
        assert!(found.build_sd_upper > found.build_sd && found.p < 1e-6, "{found:?}");
        // Builds that happen to agree better than their noise do not show that layouts make none.
        let lucky = layout_noise(&[step(&[&[1.00, 1.10], &[1.10, 1.00]])]).unwrap();
        assert!((lucky.build_sd, lucky.build_sd_upper) == (0.0, lucky.error), "{lucky:?}");
        let none = layout_noise(&steps(0.0)).unwrap();
        assert!(none.build_sd < 0.0008 && none.p > 0.001, "{none:?}");
    }

    #[test]
    fn too_little_gives_no_noise() {
        assert_eq!(layout_noise(&[]), None);
        assert_eq!(layout_noise(&[step(&[&[1.0, 1.1]])]), None);
        assert_eq!(layout_noise(&[step(&[&[1.0], &[1.1]])]), None);
    }
}
