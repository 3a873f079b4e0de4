//! Points, levels and changes of each step of a ladder.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fit::{BlockValue, VersionFit, fit};
use super::rung::Rung;
use crate::Comparison;
use crate::comparison::StepComparison;
use crate::counted::COUNTS_TAU;
use crate::pairing::{CONFIDENCE, PairKey, pair_key};
use rqps_model::benchmark::Group;
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_stats::change_points::{VersionLevel, VersionMean, partition, penalty};
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread};
use rqps_stats::{Interval, summary};

/// One step of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepLadder {
    /// Its name.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// One for each version of the ladder; `None` where it was not measured.
    pub points: Vec<Option<VersionPoint>>,
    /// Standard deviation of ln of one value, moderated over the steps.
    pub sd_ln: f64,
    /// True if `sd_ln` follows from values of several blocks. False if each version has one value:
    /// it then follows from how far neighbouring versions scatter.
    pub replicated: bool,
    /// Changes of level in the order of versions.
    pub changes: Vec<LevelChange>,
    /// The author's remarks beside the step, in imported results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// One version of a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionPoint {
    /// Relative to the first version of the ladder that was measured on the step.
    pub ratio: f64,
    /// 95 % interval of what was measured, without the layout of the build. `None` for one value.
    pub interval: Option<Interval>,
    /// Number of blocks.
    pub n: usize,
    /// VersionLevel of this version and its neighbours, as a ratio to the first version.
    pub level: f64,
    /// It is off by itself: its neighbours on both sides share a level.
    pub outlier: bool,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// Place in the ladder of the first version of the new level.
    pub at: usize,
    /// Place of the measured version before it.
    pub after: usize,
    /// Levels: new / old.
    pub ratio: f64,
    /// 95 % t interval of the ratio. The layout of builds is in it; that the place was chosen by
    /// the data is not.
    pub interval: Interval,
}

/// Standard deviation, as ln, of one build among builds of the same code: from their layout, or for
/// an exact metric from the scatter of counts, tau / (2 √2) as of [`Rules::layout_sd`].
pub(super) fn build_sd(metric: Metric, layout_sd: f64) -> f64 {
    if metric.spec().exact {
        Rules { tau: COUNTS_TAU.ln_1p(), ..Rules::default() }.layout_sd()
    } else {
        layout_sd
    }
}

/// Every step that two or more of the rungs were measured on.
pub(super) fn steps(
    comparison: &Comparison,
    rungs: &[Rung],
    metric: Metric,
    (chains, layout_sd): (&[Vec<usize>], f64),
) -> Vec<StepLadder> {
    let values = comparison.measured_steps().map(|step| values(comparison, step, rungs, metric));
    let mut ladders = of_values(values, rungs.len(), (chains, layout_sd));
    for ladder in &mut ladders {
        ladder.remarks = remarks(comparison, &ladder.step);
    }
    ladders
}

/// The values of one step on a ladder.
pub(super) struct StepValues {
    pub step: String,
    pub group: Group,
    pub values: Vec<BlockValue>,
    /// Number of blocks of the values.
    pub blocks: usize,
}

/// Every step that two or more of so many versions have values of, without remarks. Changes are
/// those along chains of versions. Variances are moderated over these steps.
pub(super) fn of_values(
    steps: impl Iterator<Item = StepValues>,
    versions: usize,
    (chains, layout_sd): (&[Vec<usize>], f64),
) -> Vec<StepLadder> {
    let fits: Vec<(StepValues, VersionFit)> = steps
        .map(|step| {
            let fit = fit(&step.values, versions, step.blocks);
            (step, fit)
        })
        .filter(|(_, fit)| fit.means.iter().flatten().count() > 1)
        .collect();
    let spreads: Vec<Spread> = fits.iter().map(|(_, fit)| spread(fit, chains)).collect();
    // Not the robust prior of verdicts: with it 16 of 18 labelled slowdowns are found, 17 without.
    let prior = Prior::fit(&spreads);
    let moderated =
        spreads.iter().map(|own| prior.as_ref().map_or(*own, |prior| prior.moderate(*own)));
    let ladder = |((step, fit), spread): (&(StepValues, VersionFit), Spread)| {
        step_ladder(step, fit, spread, (chains, layout_sd))
    };
    fits.iter().zip(moderated).map(ladder).collect()
}

fn remarks(comparison: &Comparison, step: &str) -> Vec<String> {
    let of_step =
        comparison.remarks.iter().filter(|remark| remark.step == step && remark.column.is_empty());
    let mut texts: Vec<String> = of_step.map(|remark| remark.text.clone()).collect();
    texts.dedup();
    texts
}

fn values(
    comparison: &Comparison,
    step: &StepComparison,
    rungs: &[Rung],
    metric: Metric,
) -> StepValues {
    // Fewer than one instruction per operation in other threads are those of a rare event.
    let least = if metric == Metric::BackgroundInstructionsPerOp { 1.0 } else { 0.0 };
    let mut blocks: BTreeMap<PairKey<'_>, usize> = BTreeMap::new();
    let mut values = Vec::new();
    for (version, rung) in rungs.iter().enumerate() {
        for sample in &step.targets[rung.target].samples {
            let Some(value) = sample.get(metric).filter(|value| *value > least) else { continue };
            let next = blocks.len();
            let block = *blocks.entry(pair_key(&comparison.runs[sample.run])).or_insert(next);
            values.push(BlockValue { version, block, ln: value.ln() });
        }
    }
    StepValues { step: step.name.clone(), group: step.group, values, blocks: blocks.len() }
}

/// Turns the median of absolute differences of neighbours into the standard deviation of one.
const MEDIAN_OF_DIFFERENCES_TO_SD: f64 = 1.4826 / std::f64::consts::SQRT_2;
/// Degrees of freedom of a median absolute deviation, per value.
const EFFICIENCY_OF_MEDIAN: f64 = 0.37;

/// Spread of one value: from blocks, or, with one value per version, from the differences of
/// neighbours in a chain, most of which span no change.
fn spread(fit: &VersionFit, chains: &[Vec<usize>]) -> Spread {
    if fit.df > 0 {
        return Spread { sd: (fit.squares / fit.df as f64).sqrt(), df: fit.df as f64 };
    }
    let mut differences = Vec::new();
    for chain in chains {
        let means: Vec<f64> = chain.iter().filter_map(|at| fit.means[*at]).collect();
        differences.extend(means.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
    }
    let median = summary::median(&differences).unwrap_or(0.0);
    let df = (EFFICIENCY_OF_MEDIAN * differences.len() as f64).max(1.0);
    Spread { sd: MEDIAN_OF_DIFFERENCES_TO_SD * median, df }
}

fn step_ladder(
    step: &StepValues,
    fit: &VersionFit,
    spread: Spread,
    (chains, layout_sd): (&[Vec<usize>], f64),
) -> StepLadder {
    let first = fit.means.iter().flatten().next().copied().unwrap_or(0.0);
    let sd = spread.sd.max(SD_MIN);
    let error = |at: usize| sd / (fit.counts[at] as f64).sqrt();
    // The whole ladder has as many places for a change, however it is divided into chains.
    let price = penalty(fit.means.iter().flatten().count());
    let mut points = vec![None; fit.means.len()];
    let mut changes = Vec::new();
    for chain in chains {
        // Places of measured versions, and their means: the partition knows no gaps.
        let measured: Vec<(usize, f64)> =
            chain.iter().filter_map(|&at| Some((at, fit.means[at]?))).collect();
        let versions: Vec<VersionMean> = measured
            .iter()
            .map(|(at, mean)| {
                let variance = error(*at).powi(2) + layout_sd * layout_sd;
                VersionMean { mean: mean - first, variance }
            })
            .collect();
        let levels = partition(&versions, price).levels;
        for level in &levels {
            for (place, &(at, mean)) in measured.iter().enumerate().take(level.to).skip(level.from)
            {
                let own = Estimate { mean: mean - first, se: error(at), df: spread.df };
                let several = fit.counts[at] > 1 && fit.df > 0;
                // The first version of a branch is in two chains; the first of them counts.
                points[at].get_or_insert_with(|| VersionPoint {
                    ratio: own.mean.exp(),
                    interval: several.then(|| own.interval(CONFIDENCE).exp()),
                    n: fit.counts[at],
                    level: level.mean.exp(),
                    outlier: level.outliers.contains(&place),
                });
            }
        }
        changes.extend(levels.windows(2).map(|pair| {
            let [after, at] = [pair[1].from - 1, pair[1].from].map(|place| measured[place].0);
            change([&pair[0], &pair[1]], spread.df, [after, at])
        }));
    }
    changes.sort_by_key(|change| change.at);
    StepLadder {
        step: step.step.clone(),
        group: step.group,
        points,
        sd_ln: spread.sd,
        replicated: fit.df > 0,
        changes,
        remarks: Vec::new(),
    }
}

fn change([old, new]: [&VersionLevel; 2], df: f64, [after, at]: [usize; 2]) -> LevelChange {
    let se = (old.error.powi(2) + new.error.powi(2)).sqrt();
    let estimate = Estimate { mean: new.mean - old.mean, se, df };
    LevelChange {
        at,
        after,
        ratio: estimate.mean.exp(),
        interval: estimate.interval(CONFIDENCE).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_show_changes_that_a_layout_would_hide_in_rates() {
        let found = |metric| {
            let value = |version: usize, block: usize| BlockValue {
                version,
                block,
                ln: (if version < 3 { 0.0 } else { 0.006 }) + 1e-5 * (block as f64),
            };
            let values = (0..6).flat_map(|version| (0..3).map(move |block| value(version, block)));
            let step = StepValues {
                step: "point-query".to_owned(),
                group: Group::Point,
                values: values.collect(),
                blocks: 3,
            };
            let chains = [(0..6).collect()];
            let sd = build_sd(metric, 0.0035);
            let ladders = of_values(std::iter::once(step), 6, (&chains, sd));
            ladders[0].changes.iter().map(|change| change.at).collect::<Vec<_>>()
        };
        assert_eq!(found(Metric::InstructionsPerOp), [3]);
        assert_eq!(found(Metric::Rate), [0; 0]);
    }
}
