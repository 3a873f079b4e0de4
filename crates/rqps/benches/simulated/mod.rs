//! Simulates comparisons of steps with known true ratios, judges them by rqps's rules, and counts
//! wrong verdicts.

pub(crate) mod folders;
pub(crate) mod host;
pub(crate) mod turns;

use rqps_analysis::verdict::{Judgement, judge_differences};
use rqps_model::datagen::rng::Rng;
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::power::Looks;

/// The steps, and the noise of the host. Standard deviations are of ln rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// Steps of the suite.
    pub(crate) steps: usize,
    /// Number of steps that truly differ, the first ones.
    pub(crate) changed: usize,
    /// Their true ln ratio.
    pub(crate) effect: f64,
    /// Noise of a run, independent of all others.
    pub(crate) noise: f64,
    /// Variation of the noise between steps: standard deviation of its logarithm.
    pub(crate) unequal: f64,
    /// Standard deviation of the host's drift.
    pub(crate) drift: f64,
    /// Correlation of the drift from one run to the next.
    pub(crate) drift_memory: f64,
    /// Constant offset of a step between builds: another layout of the same code.
    pub(crate) layout: f64,
    /// Factor of the noise of every tenth step.
    pub(crate) loud: f64,
    /// Effect of a start of the servers that all steps of a block share.
    pub(crate) start: f64,
    /// Number of pairs; with interim looks, the largest.
    pub(crate) pairs: u32,
    /// Pairs at the first interim look, for a plan that measures until steps are decided.
    pub(crate) first_look: Option<u32>,
}

/// 42 steps, 1 % noise that differs from step to step, nothing else.
pub(crate) const QUIET: Scene = Scene {
    steps: 42,
    changed: 0,
    effect: 0.0,
    noise: 0.01,
    unequal: 0.3,
    drift: 0.0,
    drift_memory: 0.9,
    layout: 0.0,
    loud: 1.0,
    start: 0.0,
    pairs: 6,
    first_look: None,
};

impl Scene {
    fn is_loud(&self, step: usize) -> bool {
        step.is_multiple_of(10)
    }

    /// The true ln ratio of a step without its layout.
    fn truth(&self, step: usize) -> f64 {
        if step < self.changed { self.effect } else { 0.0 }
    }
}

/// Results of many campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    /// Share of the changed steps that were called SLOWER (FASTER if the effect is a gain).
    pub(crate) power: f64,
    /// Share of the changed steps that were called SAME.
    pub(crate) missed: f64,
    /// Unchanged steps called SLOWER or FASTER, per campaign.
    pub(crate) false_large: f64,
    /// Share of campaigns with any of those.
    pub(crate) any_large: f64,
    /// Unchanged steps called SLOWER-SMALL or FASTER-SMALL, per campaign.
    pub(crate) false_small: f64,
    /// Share of campaigns with any of those.
    pub(crate) any_small: f64,
    /// Share of campaigns that a gate would fail although nothing is slower: Holm's adjusted p ≤
    /// 0.05 on an unchanged step that measured slower by δ or more.
    pub(crate) gate: f64,
    /// Share of unchanged steps called SAME.
    pub(crate) same: f64,
    /// Share of all steps whose interval holds the truth.
    pub(crate) held: f64,
    /// The same of the loud steps.
    pub(crate) held_loud: f64,
    /// Blocks per step until it was decided, or the largest number.
    pub(crate) blocks: f64,
}

/// A number with the normal distribution (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * rng.unit()).cos()
}

/// The paired ln ratios of one step, of which `starts` are parts.
fn differences(scene: &Scene, step: usize, starts: &[f64], rng: &mut Rng) -> Vec<f64> {
    let loud = if scene.is_loud(step) { scene.loud } else { 1.0 };
    let noise = loud * scene.noise * (scene.unequal * normal(rng)).exp();
    let shift = scene.layout * normal(rng) + scene.truth(step);
    let mut drift = scene.drift * normal(rng);
    let memory = scene.drift_memory;
    let mut run = |rng: &mut Rng| {
        drift = memory * drift + (1.0 - memory * memory).sqrt() * scene.drift * normal(rng);
        drift + noise * normal(rng)
    };
    (0..scene.pairs)
        .zip(starts)
        .map(|(block, start)| {
            let (first, second) = (run(rng), run(rng));
            // ABBA: the baseline is first in every other block.
            let difference = if block % 2 == 0 { second - first } else { first - second };
            shift + difference + start
        })
        .collect()
}

/// The verdicts of one campaign.
pub(crate) fn campaign(
    scene: &Scene,
    rules: &Rules,
    looks: Option<&Looks>,
    rng: &mut Rng,
) -> Vec<Judgement> {
    let starts: Vec<f64> = (0..scene.pairs).map(|_| scene.start * normal(rng)).collect();
    let lists: Vec<Vec<f64>> =
        (0..scene.steps).map(|step| differences(scene, step, &starts, rng)).collect();
    let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
    judge_differences(&lists, Metric::Rate, rules, looks)
}

/// The rates over this number of campaigns.
pub(crate) fn simulate(scene: &Scene, rules: &Rules, campaigns: u32, seed: u64) -> Rates {
    let mut rng = Rng::stream(seed, "simulated campaigns", 0);
    let mut rates = Rates::default();
    let looks = scene.first_look.map(|first| Looks::new(first, scene.pairs));
    for _ in 0..campaigns {
        let judgements = campaign(scene, rules, looks.as_ref(), &mut rng);
        add(&mut rates, scene, rules, &judgements);
    }
    let unchanged = f64::from(campaigns) * (scene.steps - scene.changed) as f64;
    let changed = f64::from(campaigns) * scene.changed.max(1) as f64;
    Rates {
        power: rates.power / changed,
        missed: rates.missed / changed,
        false_large: rates.false_large / f64::from(campaigns),
        any_large: rates.any_large / f64::from(campaigns),
        false_small: rates.false_small / f64::from(campaigns),
        any_small: rates.any_small / f64::from(campaigns),
        gate: rates.gate / f64::from(campaigns),
        same: rates.same / unchanged.max(1.0),
        held: rates.held / f64::from(campaigns) / scene.steps as f64,
        held_loud: rates.held_loud / f64::from(campaigns) / scene.steps.div_ceil(10) as f64,
        blocks: rates.blocks / f64::from(campaigns) / scene.steps as f64,
    }
}

fn add(rates: &mut Rates, scene: &Scene, rules: &Rules, judgements: &[Judgement]) {
    let (mut large, mut small, mut gate) = (0, 0, false);
    for (step, judgement) in judgements.iter().enumerate() {
        let verdict = judgement.verdict;
        if let Some(test) = &judgement.test {
            let look = test.look.filter(|_| test.settled).unwrap_or(scene.pairs);
            rates.blocks += f64::from(look);
            let truth = scene.truth(step).exp();
            let holds = (test.interval.low..=test.interval.high).contains(&truth);
            rates.held += f64::from(u8::from(holds));
            rates.held_loud += f64::from(u8::from(holds && scene.is_loud(step)));
        }
        if step < scene.changed {
            let right = if scene.effect < 0.0 { Verdict::Slower } else { Verdict::Faster };
            rates.power += f64::from(u8::from(verdict == right));
            rates.missed += f64::from(u8::from(verdict == Verdict::Same));
            continue;
        }
        large += u32::from(matches!(verdict, Verdict::Slower | Verdict::Faster));
        small += u32::from(matches!(verdict, Verdict::SlowerSmall | Verdict::FasterSmall));
        rates.same += f64::from(u8::from(verdict == Verdict::Same));
        let alarm = |test: &rqps_analysis::verdict::Test| test.holm_treat <= rules.alpha;
        gate |= verdict == Verdict::Slower && judgement.test.as_ref().is_some_and(alarm);
    }
    rates.false_large += f64::from(large);
    rates.any_large += f64::from(u8::from(large > 0));
    rates.false_small += f64::from(small);
    rates.any_small += f64::from(u8::from(small > 0));
    rates.gate += f64::from(u8::from(gate));
}
