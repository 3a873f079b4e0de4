//! The result of an A/A run (one target against itself) for a host: its noise, the effect of the
//! place in a block, and what can be promised there. Pure; kept as `domain::gate::Calibration`.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;

use statrs::distribution::{Binomial, DiscreteCDF};
use thiserror::Error;

use super::comparison::{Comparison, RunFacts};
use super::host_noise::{self, HostNoise};
use rqps_model::benchmark::Group;
use rqps_model::gate::{Calibration, Canary, GATE_FORMAT, HostLog, SlotEffect, StepNoise};
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;
use rqps_model::verdict::{LookSchedule, Rules};
use rqps_stats::moderated::{Estimate, Spread};
use rqps_stats::power::detectable;
use rqps_stats::sequential::Looks;

/// Level of the tests whose rejections are counted as false alarms.
pub const FALSE_ALARM_ALPHA: f64 = 0.05;
/// More blocks than a plan can have.
const BLOCKS_MOST: u32 = 999;
/// A slot effect below this p breaks the design: which target comes first decides.
pub const SLOT_ALPHA: f64 = 0.01;

/// The reason why an A/A run gives no calibration.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum CalibrationError {
    /// Not one target twice.
    #[error("calibrate: an A/A run has two targets, and this one has {0}")]
    Targets(usize),
    /// Nothing to take a spread from.
    #[error("calibrate: no step has two blocks in which both sides completed it")]
    TooFew,
}

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
) -> Result<Calibration, CalibrationError> {
    let (2, Some(run)) = (comparison.targets.len(), dataset.runs.first()) else {
        return Err(CalibrationError::Targets(comparison.targets.len()));
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
    let Some(blocks) = blocks else { return Err(CalibrationError::TooFew) };
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
/// Standard deviations are taken at [`host_noise::upper_limit`]. The smallest detectable difference
/// is that of the noncentral t distribution (Cohen 1988). Blocks for a difference are those of which
/// the MDE, with layout among the errors, is no larger (docs/verdicts.md).
pub fn promise(known: &HostNoise, rules: &Rules) -> Option<Resolution> {
    let kinds: Vec<KindPromise> = NoiseClass::ALL
        .into_iter()
        .filter_map(|kind| {
            let steps = known.steps.iter().filter(|step| NoiseClass::of(step.group) == kind);
            Some(of_kind(kind, host_noise::pooled(steps)?, rules))
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
    let (alpha, sd_upper) = (FALSE_ALARM_ALPHA, host_noise::upper_limit(spread));
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
    let sd =
        host_noise::pooled(&known.steps).map(host_noise::upper_limit).filter(|_| blocks >= 2)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_noise::tests::differences;
    use crate::host_noise::{SlotSpread, StepSpread};

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
}
