//! The noise of a host: what follows from the paired differences that its calibration keeps.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

use rqps_model::benchmark::Group;
use rqps_model::gate::{Calibration, SlotEffect, StepNoise};
use rqps_stats::moderated::Spread;
use rqps_stats::paired::mean_interval;
use rqps_stats::student;

/// The noise of a host is taken to be as large as it is with this confidence.
const SD_CONFIDENCE: f64 = 0.9;

/// The noise of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostNoise {
    /// Each step with two pairs.
    pub steps: Vec<StepSpread>,
    /// First place in a block against the second.
    pub slot: SlotSpread,
}

/// The difference of one target from itself on a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepSpread {
    /// Name of the step.
    pub step: String,
    /// Its group.
    pub group: Group,
    /// d of each block.
    pub differences: Vec<f64>,
    /// Mean of d: the true value is 0.
    pub mean_ln: f64,
    /// Sample standard deviation of d: the s_d of the statistics.
    pub sd_ln: f64,
    /// Two-sided p of the paired t test of d against 0.
    pub p: f64,
}

/// The effect of a target's position in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SlotSpread {
    /// Mean over the blocks of ln(first / second).
    pub mean_ln: f64,
    /// Two-sided p of its t test against 0 over the blocks; `None` below two blocks.
    pub p: Option<f64>,
}

impl HostNoise {
    /// The noise that a calibration found.
    pub fn of(known: &Calibration) -> HostNoise {
        let steps = known.steps.iter().filter_map(spread).collect();
        HostNoise { steps, slot: slot(&known.slot) }
    }

    /// Pooled standard deviation of d over the steps. `None` without a step of two blocks.
    pub fn sd_ln(&self) -> Option<f64> {
        pooled(&self.steps).map(|pooled| pooled.sd)
    }

    /// Steps whose p is below `alpha`: on one target against itself each is a false alarm.
    pub fn false_alarms(&self, alpha: f64) -> usize {
        self.steps.iter().filter(|step| step.p < alpha).count()
    }
}

/// The standard deviation of d that these steps have together: the root of the mean variance, each
/// step weighted by its degrees of freedom. `None` without a step of two blocks.
pub fn pooled<'a>(steps: impl IntoIterator<Item = &'a StepSpread>) -> Option<Spread> {
    let (mut squares, mut df) = (0.0, 0.0);
    for step in steps {
        let own = step.differences.len().saturating_sub(1) as f64;
        squares += own * step.sd_ln * step.sd_ln;
        df += own;
    }
    (df > 0.0).then(|| Spread { sd: (squares / df).sqrt(), df })
}

/// What a standard deviation s with d degrees of freedom is at most, with 90 % confidence:
/// s √(d / χ²(0.1; d)).
pub fn upper_limit(spread: Spread) -> f64 {
    let chi = ChiSquared::new(spread.df).map(|chi| chi.inverse_cdf(1.0 - SD_CONFIDENCE));
    chi.map_or(spread.sd, |chi| spread.sd * (spread.df / chi).sqrt())
}

fn spread(kept: &StepNoise) -> Option<StepSpread> {
    let (mean_ln, sd_ln, p) = paired_t(&kept.differences)?;
    let StepNoise { step, group, differences } = kept.clone();
    Some(StepSpread { step, group, differences, mean_ln, sd_ln, p })
}

fn slot(kept: &SlotEffect) -> SlotSpread {
    match paired_t(&kept.differences) {
        Some((mean_ln, _, p)) => SlotSpread { mean_ln, p: Some(p) },
        None => SlotSpread { mean_ln: kept.differences.first().copied().unwrap_or(0.0), p: None },
    }
}

/// Mean, standard deviation and two-sided p against 0; `None` below two values.
fn paired_t(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mean = mean_interval(values, 0.95)?;
    let sd = mean.sd?;
    let n = values.len() as f64;
    let p = match sd {
        _ if mean.mean == 0.0 => 1.0,
        0.0 => 0.0,
        _ => 2.0 * student::above((mean.mean / (sd / n.sqrt())).abs(), n - 1.0),
    };
    Some((mean.mean, sd, p))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// This number of differences with this mean and this sample standard deviation.
    pub(crate) fn differences(pairs: usize, mean: f64, sd: f64) -> Vec<f64> {
        let even = pairs - pairs % 2;
        let half = sd * ((pairs - 1) as f64 / even as f64).sqrt();
        let mut all = vec![mean; pairs];
        for (place, value) in all.iter_mut().take(even).enumerate() {
            *value += if place % 2 == 0 { half } else { -half };
        }
        all
    }

    #[test]
    fn the_paired_t_is_that_of_another_program() {
        // scipy.stats.ttest_1samp([0.01, 0.02, -0.005, 0.015], 0): p 0.1611618.
        let (mean, sd, p) = paired_t(&[0.01, 0.02, -0.005, 0.015]).unwrap();
        assert!((mean - 0.01).abs() < 1e-12 && (sd - 0.0108012345).abs() < 1e-9, "{mean} {sd}");
        assert!((p - 0.1611618).abs() < 1e-6, "{p}");
        assert_eq!(paired_t(&[0.01]), None);
        assert_eq!(paired_t(&[0.0, 0.0]).map(|told| told.2), Some(1.0));
    }
}
