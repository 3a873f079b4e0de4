//! Simulates comparisons of steps with known true ratios, judges them by rqps's rules, and counts
//! wrong verdicts.

pub(crate) mod folders;
pub(crate) mod turns;

use std::collections::BTreeMap;

use rqps_analysis::verdict::{Judgement, judge_differences, judge_on_host};
use rqps_model::benchmark::{Group, Idle, Placement};
use rqps_model::build::Dbms;
use rqps_model::datagen::rng::Rng;
use rqps_model::gate::{
    BlockRecord, Calibration, Canary, GATE_FORMAT, HostLog, SlotEffect, StepNoise,
};
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

// Simulates campaigns on disturbing hosts: the facts from canaries and A/A runs, and the error
// rates of verdicts with and without them.

/// Steps and blocks of an A/A run, as in `rqps doctor --aa`.
const AA_STEPS: usize = 6;
const AA_BLOCKS: u32 = 12;
/// Noise of a canary on an undisturbed host.
const CANARY_NOISE: f64 = 0.01;
/// Ratio from which a canary is out of range.
const CANARY_LIMIT: f64 = 1.15;

/// The disturbances of a host. Standard deviations and effects are of logarithms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disturbing {
    /// Share of disturbed blocks.
    pub(crate) share: f64,
    /// Noise in each run and each canary of a disturbed block.
    pub(crate) sd: f64,
    /// Advantage of the first target in a block.
    pub(crate) slot: f64,
    /// Constant offset of a step in all blocks of one plan.
    pub(crate) offset: f64,
}

/// A campaign on a disturbing host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostScene {
    /// Steps, noise and effect; drift and looks are not used.
    pub(crate) scene: Scene,
    /// The host during the campaign.
    pub(crate) host: Disturbing,
    /// The host during its A/A run; `None` without one.
    pub(crate) aa: Option<Disturbing>,
}

/// Results of many campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostRates {
    /// Share of the changed steps that were called SLOWER.
    pub(crate) power: f64,
    /// Share of campaigns in which an unchanged step was called SLOWER or FASTER.
    pub(crate) any_large: f64,
    /// Share of unchanged steps called SAME.
    pub(crate) same: f64,
    /// Share of all steps with NO VERDICT.
    pub(crate) silent: f64,
}

/// Paired ln ratios of all steps, with their blocks.
struct Measured {
    lists: Vec<Vec<f64>>,
    blocks: Vec<BlockRecord>,
}

/// Measures until this number of blocks count, as the lab does: it may discard one block in five.
fn measure(scene: &Scene, host: &Disturbing, aa: bool, rng: &mut Rng) -> Measured {
    let steps: Vec<(f64, f64)> = (0..scene.steps)
        .map(|step| {
            let noise = scene.noise * (scene.unequal * normal(rng)).exp();
            let changed = if step < scene.changed { scene.effect } else { 0.0 };
            let layout = if aa { 0.0 } else { scene.layout * normal(rng) };
            (noise, changed + layout + host.offset * normal(rng))
        })
        .collect();
    let mut measured = Measured { lists: vec![Vec::new(); scene.steps], blocks: Vec::new() };
    let (mut kept, mut discarded) = (0, 0);
    while kept < scene.pairs {
        let disturbed = if rng.unit() < host.share { host.sd } else { 0.0 };
        let reading = |rng: &mut Rng| disturbed.hypot(CANARY_NOISE) * normal(rng);
        let (before, after) = (reading(rng), reading(rng));
        let out = before.max(after) > CANARY_LIMIT.ln();
        let again = out && discarded < (scene.pairs / 4).max(1);
        measured.blocks.push(block(before, after, out, again));
        if again {
            discarded += 1;
            continue;
        }
        let first = if kept % 2 == 0 { -host.slot } else { host.slot };
        for (list, (noise, shift)) in measured.lists.iter_mut().zip(&steps) {
            let scatter = noise.hypot(disturbed) * std::f64::consts::SQRT_2;
            list.push(shift + first + scatter * normal(rng));
        }
        kept += 1;
    }
    measured
}

fn block(before: f64, after: f64, out: bool, discarded: bool) -> BlockRecord {
    let canary = |ln: f64| Some(Canary { spin_ns: Some(1e6 * ln.exp()), ..Canary::default() });
    BlockRecord {
        before: canary(before),
        after: canary(after),
        out_of_range: out.then(|| "spin".to_owned()),
        discarded,
        ..BlockRecord::default()
    }
}

fn calibration(scene: &Scene, host: &Disturbing, rng: &mut Rng) -> Calibration {
    let own = Scene { steps: AA_STEPS, pairs: AA_BLOCKS, changed: 0, ..*scene };
    let Measured { lists, blocks } = measure(&own, host, true, rng);
    let firsts = (0..AA_BLOCKS as usize).map(|block| {
        let sign = if block % 2 == 0 { -1.0 } else { 1.0 };
        sign * lists.iter().map(|list| list[block]).sum::<f64>() / AA_STEPS as f64
    });
    let slot = SlotEffect { differences: firsts.collect() };
    let step = |differences| StepNoise { step: String::new(), group: Group::Point, differences };
    let steps = lists.into_iter().map(step);
    let gate = HostLog { blocks, ..HostLog::default() };
    Calibration {
        format: GATE_FORMAT,
        host_fingerprint: String::new(),
        made: String::new(),
        rqps_version: String::new(),
        target: String::new(),
        dbms: Dbms::Fake,
        clients: 1,
        placement: Placement::Os,
        idle: Idle::Os,
        turns: false,
        read_seconds: 1.0,
        write_seconds: 1.0,
        blocks: AA_BLOCKS,
        steps: steps.collect(),
        slot,
        canary_pairs: gate.kept_canaries().map(|pair| pair.map(Canary::clone)).collect(),
        out_of_range: gate.out_of_range() as u32,
    }
}

/// The rates over this number of campaigns: judged by the pairs alone, and with the facts about the
/// host.
pub(crate) fn simulate_host(scene: &HostScene, campaigns: u32, seed: u64) -> [HostRates; 2] {
    let mut rng = Rng::stream(seed, "simulated hosts", 0);
    let rules = Rules::default();
    let mut rates = [HostRates::default(); 2];
    for _ in 0..campaigns {
        let calibration = scene.aa.map(|host| calibration(&scene.scene, &host, &mut rng));
        let Measured { lists, blocks } = measure(&scene.scene, &scene.host, false, &mut rng);
        let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
        let gate = HostLog { blocks, calibration, ..HostLog::default() };
        let gates = BTreeMap::from([(String::new(), gate)]);
        let alone = judge_differences(&lists, Metric::Rate, &rules, None);
        let with_host = judge_on_host(&lists, Metric::Rate, &rules, &gates);
        add_to_host(&mut rates[0], &scene.scene, &alone, campaigns);
        add_to_host(&mut rates[1], &scene.scene, &with_host, campaigns);
    }
    rates
}

fn add_to_host(rates: &mut HostRates, scene: &Scene, judgements: &[Judgement], campaigns: u32) {
    let (changed, unchanged) = judgements.split_at(scene.changed);
    let count = |of: &[Judgement], verdict: Verdict| {
        of.iter().filter(|judgement| judgement.verdict == verdict).count() as f64
    };
    let campaigns = f64::from(campaigns);
    let large = count(unchanged, Verdict::Slower) + count(unchanged, Verdict::Faster);
    rates.power += count(changed, Verdict::Slower) / scene.changed.max(1) as f64 / campaigns;
    rates.any_large += f64::from(u8::from(large > 0.0)) / campaigns;
    rates.same += count(unchanged, Verdict::Same) / unchanged.len().max(1) as f64 / campaigns;
    rates.silent += count(judgements, Verdict::NoVerdict) / scene.steps as f64 / campaigns;
}
