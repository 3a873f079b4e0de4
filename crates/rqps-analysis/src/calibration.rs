//! The noise of hosts and of code layouts. The result of an A/A run (one target against itself)
//! for a host: its noise, the effect of the place in a block, and what can be promised there. Pure;
//! kept as `domain::gate::Calibration`.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use serde::Serialize;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, FisherSnedecor};

use super::compare::AnalyzeError;
use super::comparison::{Comparison, RunFacts, StepComparison};
use rqps_model::benchmark::Group;
use rqps_model::gate::{
    Calibration, Canary, GATE_FORMAT, HostLog, LAYOUT_FORMAT, LayoutRates, LayoutStep, SlotEffect,
    StepNoise,
};
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;
use rqps_model::verdict::{LookSchedule, Rules};
use rqps_stats::moderated::{Estimate, Spread};
use rqps_stats::paired::mean_interval;
use rqps_stats::power::{Looks, detectable};
use rqps_stats::student;

/// Level of the tests whose rejections are counted as false alarms.
pub const FALSE_ALARM_ALPHA: f64 = 0.05;
/// More blocks than a plan can have.
const BLOCKS_MOST: u32 = 999;
/// A slot effect below this p breaks the design: which target comes first decides.
pub const SLOT_ALPHA: f64 = 0.01;

/// The calibration by an A/A run. `comparison` was made of `dataset`; `word` is the target as
/// given.
///
/// # Errors
///
/// It is no A/A run, or has no step with two pairs.
pub fn calibrate(
    dataset: &Dataset,
    comparison: &Comparison,
    word: &str,
) -> Result<Calibration, AnalyzeError> {
    let (2, Some(run)) = (comparison.targets.len(), dataset.runs.first()) else {
        let why = "calibrate: an A/A run has two targets, and this one has";
        return Err(AnalyzeError(format!("{why} {}", comparison.targets.len())));
    };
    let steps: Vec<StepNoise> = comparison
        .steps
        .iter()
        .filter_map(|step| {
            let relative = step.targets.get(1)?.relative(Metric::Rate)?;
            let differences = relative.differences.clone();
            let (name, group) = (step.name.clone(), step.group);
            (differences.len() > 1).then_some(StepNoise { step: name, group, differences })
        })
        .collect();
    let blocks = steps.iter().map(|step| step.differences.len()).max();
    let Some(blocks) = blocks else {
        let why = "calibrate: no step has two blocks in which both sides completed it";
        return Err(AnalyzeError(why.to_owned()));
    };
    let gates: Vec<&HostLog> = dataset.gates.values().collect();
    let record = &run.record;
    Ok(Calibration {
        format: GATE_FORMAT,
        host_fingerprint: record.host_fingerprint.clone(),
        made: dataset
            .runs
            .iter()
            .filter_map(|run| run.record.finished.clone())
            .max()
            .unwrap_or_default(),
        rqps_version: record.rqps_version.clone(),
        target: word.to_owned(),
        dbms: record.target.dbms,
        clients: record.workload.clients,
        placement: record.workload.placement,
        idle: record.workload.idle,
        turns: comparison.has_turns(),
        read_seconds: record.workload.read_seconds,
        write_seconds: record.workload.write_seconds,
        blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        steps,
        slot: slot_effect(comparison),
        canary_pairs: gates
            .iter()
            .flat_map(|gate| gate.kept_canaries())
            .map(|pair| pair.map(Canary::clone))
            .collect(),
        out_of_range: gates.iter().map(|gate| gate.out_of_range() as u32).sum(),
    })
}

/// ln(rate in the first place / rate in the second), the mean over the steps of each block.
fn slot_effect(comparison: &Comparison) -> SlotEffect {
    let mut blocks: BTreeMap<(u32, u32), Vec<f64>> = BTreeMap::new();
    for step in &comparison.steps {
        let mut pairs: BTreeMap<(u32, u32), [Option<f64>; 2]> = BTreeMap::new();
        for sample in step.targets.iter().flat_map(|target| &target.samples) {
            let RunFacts { key, .. } = &comparison.runs[sample.run];
            let place = key.order.saturating_sub(1) as usize;
            if let Some(slot) = pairs.entry((key.block, key.attempt)).or_default().get_mut(place) {
                *slot = sample.get(Metric::Rate).filter(|rate| *rate > 0.0);
            }
        }
        for (block, pair) in pairs {
            if let [Some(first), Some(second)] = pair {
                blocks.entry(block).or_default().push((first / second).ln());
            }
        }
    }
    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    SlotEffect { differences: blocks.values().map(mean).collect() }
}

/// The resolution of a host, from its calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// Steps that read and steps that write, because these scatter more.
    pub kinds: Vec<KindPromise>,
    /// Steps with a difference at [`FALSE_ALARM_ALPHA`].
    pub false_alarms: usize,
    /// Most false alarms by chance in 99 of 100 such runs.
    pub false_alarms_max: usize,
    /// True if the place in a block decides: the design is broken on this host.
    pub slot_matters: bool,
}

/// Steps whose noise is alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseClass {
    /// Statements that only read.
    Reads,
    /// Statements that write, and loads.
    Writes,
}

impl NoiseClass {
    const ALL: [NoiseClass; 2] = [NoiseClass::Reads, NoiseClass::Writes];

    /// The kind of a step's group.
    fn of(group: Group) -> NoiseClass {
        match group {
            Group::Point | Group::Range => NoiseClass::Reads,
            Group::Write | Group::Load => NoiseClass::Writes,
        }
    }

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            NoiseClass::Reads => "reads",
            NoiseClass::Writes => "writes",
        }
    }
}

/// What can be found on steps of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct KindPromise {
    /// The kind of the steps.
    pub kind: NoiseClass,
    /// The pooled standard deviation of ln ratios.
    pub sd: f64,
    /// The upper end of its 90 % range.
    pub sd_upper: f64,
    /// Blocks → the smallest difference, as a share, that so many find with the power of the rules
    /// (two-sided t test against 0, one step alone).
    pub detectable: Vec<(u32, f64)>,
    /// Difference, as a share → blocks at which it is found as SLOWER or FASTER; `None` for more than a plan
    /// can have.
    pub blocks_needed: Vec<(f64, Option<u32>)>,
}

/// Judges a calibration; `None` if it holds no spread.
///
/// Standard deviations are taken at [`upper_limit`]. The smallest detectable difference
/// is that of the noncentral t distribution (Cohen 1988). Blocks for a difference are those of which
/// the MDE, with layout among the errors, is no larger (docs/verdicts.md).
pub fn promise(known: &HostNoise, rules: &Rules) -> Option<Resolution> {
    let kinds: Vec<KindPromise> = NoiseClass::ALL
        .into_iter()
        .filter_map(|kind| {
            let steps = known.steps.iter().filter(|step| NoiseClass::of(step.group) == kind);
            Some(of_kind(kind, pooled(steps)?, rules))
        })
        .collect();
    let chance = Binomial::new(FALSE_ALARM_ALPHA, known.steps.len() as u64).ok()?;
    let false_alarms_max = (0..).find(|count| chance.cdf(*count) >= 0.99)? as usize;
    (!kinds.is_empty()).then_some(Resolution {
        kinds,
        false_alarms: known.false_alarms(FALSE_ALARM_ALPHA),
        false_alarms_max,
        slot_matters: known.slot.p.is_some_and(|p| p < SLOT_ALPHA),
    })
}

fn of_kind(kind: NoiseClass, spread: Spread, rules: &Rules) -> KindPromise {
    let (alpha, sd_upper) = (FALSE_ALARM_ALPHA, upper_limit(spread));
    let detects = |blocks: u32| {
        let shift = detectable(f64::from(blocks - 1), alpha, rules.power);
        (blocks, (shift * sd_upper / f64::from(blocks).sqrt()).exp_m1())
    };
    let needs = |share: f64| {
        let enough = |blocks: &u32| found(sd_upper, *blocks, alpha, rules) <= share.ln_1p();
        let all: Vec<u32> = (2..=BLOCKS_MOST).collect();
        let few = all.partition_point(|blocks| !enough(blocks));
        (share, all.get(few).copied())
    };
    KindPromise {
        kind,
        sd: spread.sd,
        sd_upper,
        detectable: [4, 6, 8, 12].map(detects).to_vec(),
        blocks_needed: [0.02, 0.03, 0.05, 0.1].map(needs).to_vec(),
    }
}

/// The smallest difference, as a share, that a comparison of so many blocks probably finds
/// on one step: the MDE of its report, with s_d of the calibration at the upper end of its 90 %
/// range and no variance borrowed from other steps. A slot effect adds to it, and looks by a
/// `schedule` take their part of α. `None` for fewer than two blocks and without any spread.
pub fn expected_mde(
    known: &HostNoise,
    rules: &Rules,
    blocks: u32,
    schedule: Option<&LookSchedule>,
) -> Option<f64> {
    let sd = pooled(&known.steps).map(upper_limit).filter(|_| blocks >= 2)?;
    let tail = (1.0 - rules.confidence) / 2.0;
    let tail = schedule.map_or(tail, |schedule| {
        Looks::new(schedule.blocks_min, schedule.blocks_max).level(tail, blocks)
    });
    let bias = known.slot.p.filter(|p| *p < SLOT_ALPHA).map_or(0.0, |_| known.slot.mean_ln.abs());
    Some(-(-(bias + found(sd, blocks, 2.0 * tail, rules))).exp_m1())
}

/// The smallest ln ratio that so many blocks find on one step: by the test with layout among the
/// errors, and by the test against 0.
fn found(sd: f64, blocks: u32, alpha: f64, rules: &Rules) -> f64 {
    let own = Estimate { mean: 0.0, se: sd / f64::from(blocks).sqrt(), df: f64::from(blocks - 1) };
    let of = |it: Estimate| detectable(it.df, alpha, rules.power) * it.se;
    of(own).max(rules.least() + of(own.with_error(SQRT_2 * rules.layout_sd())))
}

// The noise of a host: what follows from the paired differences that its calibration keeps.

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

// The layout noise τ of a DBMS, from rates of builds whose functions are linked in several orders
// (docs/doctor.md).
//
// ln(rate) of a step is the sum of an effect of the block, an effect of the build with standard
// deviation λ, and noise: a two-way analysis of variance with random effects (Searle, Casella and
// McCulloch 1992, doi:10.1002/9780470316856). τ is twice the standard deviation of the difference
// of two builds, 2 √2 λ.

/// An estimated variance is taken at the upper end of its 90 % range.
const CONFIDENCE: f64 = 0.9;

/// The rates of relinked builds. `word` is the target without an order of linking.
///
/// # Errors
///
/// Fewer than two builds, or no step with two complete blocks.
pub fn layout_rates(
    dataset: &Dataset,
    comparison: &Comparison,
    word: &str,
) -> Result<LayoutRates, AnalyzeError> {
    let layouts = comparison.targets.len();
    let Some(run) = dataset.runs.first().filter(|_| layouts > 1) else {
        let why = "layout: two builds are the fewest, and these runs have";
        return Err(AnalyzeError(format!("{why} {layouts}")));
    };
    let of = |step: &StepComparison| {
        let rates = rates(comparison, step);
        let has_blocks = rates.first().is_some_and(|blocks| blocks.len() > 1);
        has_blocks.then(|| LayoutStep { step: step.name.clone(), rates })
    };
    let steps: Vec<LayoutStep> = comparison.steps.iter().filter_map(of).collect();
    if steps.is_empty() {
        let why = "layout: no step has two blocks in which all builds completed it";
        return Err(AnalyzeError(why.to_owned()));
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
        let Some(found) = LayoutSpread::of(&step.rates) else { continue };
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
struct LayoutSpread {
    /// Of the means of builds around their own mean.
    means: f64,
    df: f64,
    /// Of what builds and blocks do not explain.
    rest: f64,
    rest_df: f64,
    blocks: f64,
}

impl LayoutSpread {
    fn of(rates: &[Vec<f64>]) -> Option<LayoutSpread> {
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
        Some(LayoutSpread {
            means: of_builds.iter().map(|mean| (mean - grand).powi(2)).sum(),
            df: builds - 1.0,
            rest: cells.map(|cell| cell * cell).sum(),
            rest_df: (builds - 1.0) * (count - 1.0),
            blocks: count,
        })
    }
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

    fn noise(steps: impl Iterator<Item = Vec<f64>>) -> HostNoise {
        let step = |differences: Vec<f64>| {
            let mean = rqps_stats::paired::mean_interval(&differences, 0.95).unwrap();
            let (mean_ln, sd_ln) = (mean.mean, mean.sd.unwrap());
            StepSpread {
                step: "a".to_owned(),
                group: Group::Point,
                differences,
                mean_ln,
                sd_ln,
                p: 1.0,
            }
        };
        HostNoise { steps: steps.map(step).collect(), slot: SlotSpread::default() }
    }

    #[test]
    fn the_upper_end_of_a_spread_is_that_of_tables() {
        // √(df / χ²) by tables of the 0.1 quantile: 1.064 for 4, 5.578 for 11 degrees of freedom.
        for (pairs, factor) in [(5, 1.94), (8, 1.57), (12, 1.40), (30, 1.21)] {
            let noise = noise([differences(pairs, 0.0, 0.01)].into_iter());
            let promise = promise(&noise, &Rules::default()).unwrap();
            let upper = promise.kinds[0].sd_upper;
            assert!((upper / 0.01 - factor).abs() < 0.006, "{pairs}: {promise:?}");
        }
    }

    #[test]
    fn what_a_plan_finds_follows_from_noise_blocks_looks_and_place() {
        let rules = Rules::default();
        let mut known = noise([differences(12, 0.0, 0.01)].into_iter());
        let finds = |known: &HostNoise, blocks, schedule: Option<&LookSchedule>| {
            expected_mde(known, &rules, blocks, schedule).unwrap()
        };
        // 1.40 % at most by the table above, so .70 % for 4 pairs and .859 % with layout, on 6.8
        // degrees of freedom; 8 pairs, with 7, find 1.16 √8 standard errors (stats::power).
        let want = -(-(rules.least() + 1.16 * 8.0_f64.sqrt() * 0.00859)).exp_m1();
        let four = finds(&known, 4, None);
        assert!((four / want - 1.0).abs() < 0.01, "{four} {want}");
        assert!(finds(&known, 12, None) < four);
        let schedule = LookSchedule { blocks_min: 4, blocks_max: 12 };
        assert!(finds(&known, 12, Some(&schedule)) > finds(&known, 12, None));
        assert_eq!(expected_mde(&known, &rules, 1, None), None);
        assert_eq!(expected_mde(&HostNoise::default(), &rules, 4, None), None);
        known.slot = SlotSpread { mean_ln: -0.03, p: Some(0.001) };
        assert!(finds(&known, 4, None) > four + 0.025);
    }

    #[test]
    fn a_quiet_host_promises_more_and_false_alarms_have_a_limit() {
        let of = |sd: f64| {
            let one = |_| [1.0, -1.0, 0.5, -0.5, 0.0].map(|d| d * sd).to_vec();
            promise(&noise((0..6).map(one)), &Rules::default()).unwrap()
        };
        let (quiet, noisy) = (of(0.005), of(0.05));
        assert!(quiet.kinds[0].detectable[0].1 < noisy.kinds[0].detectable[0].1);
        let needs = |promise: &Resolution, at: usize| {
            promise.kinds[0].blocks_needed[at].1.unwrap_or(u32::MAX)
        };
        assert!(needs(&quiet, 1) < needs(&noisy, 1));
        assert!(needs(&quiet, 2) <= needs(&quiet, 1), "a larger difference needs no more blocks");
        // scipy.stats.binom.ppf(0.99, 6, 0.05) is 2.
        assert_eq!((quiet.false_alarms, quiet.false_alarms_max), (0, 2));
    }

    #[test]
    fn writes_that_scatter_do_not_hide_what_reads_find() {
        let sd = |place: usize| if place < 4 { 0.005 } else { 0.03 };
        let mut known = noise((0..6).map(|place| differences(12, 0.0, sd(place))));
        for (place, step) in known.steps.iter_mut().enumerate() {
            step.group = [Group::Point, Group::Range, Group::Write][place / 2];
        }
        let promise = promise(&known, &Rules::default()).unwrap();
        let [reads, writes] = promise.kinds.as_slice() else { panic!("{promise:?}") };
        assert_eq!((reads.kind, writes.kind), (NoiseClass::Reads, NoiseClass::Writes));
        assert!((reads.sd - 0.005).abs() < 1e-9 && (writes.sd - 0.03).abs() < 1e-9, "{promise:?}");
        let needed = |kind: &KindPromise| kind.blocks_needed[0].1.unwrap();
        assert!(needed(reads) <= 8 && needed(writes) > 50, "{promise:?}");
    }

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
