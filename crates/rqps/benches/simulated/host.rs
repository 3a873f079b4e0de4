//! Simulates campaigns on disturbing hosts: the facts from canaries and A/A runs, and the error
//! rates of verdicts with and without them.

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

use super::{Scene, normal};

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
        add(&mut rates[0], &scene.scene, &alone, campaigns);
        add(&mut rates[1], &scene.scene, &with_host, campaigns);
    }
    rates
}

fn add(rates: &mut HostRates, scene: &Scene, judgements: &[Judgement], campaigns: u32) {
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
