//! Simulates blocks in which two targets take turns on a host whose speed drifts within a step,
//! with loads that differ by chance.

use rqps_analysis::pairing;
use rqps_analysis::verdict::{Judgement, judge_cluster_means, judge_in_turns};
use rqps_model::datagen::rng::Rng;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::paired::error_of_shares;

use super::normal;

/// Speed of a shared host, as ln: correlation time in seconds, standard deviation. Turns of 2 s, 1
/// s, 250, 100 and 20 ms within 4 s then scatter by 8.7, 6.0, 2.3, 1.2 and 0.36 %; measured were
/// 8.6, 6.3, 2.2, 1.2 and 0.38 % (Postgres selects by key on a shared virtual machine).
const HOST: [(f64, f64); 3] = [(0.1, 0.052), (1.0, 0.076), (10.0, 0.107)];
/// Number of blocks to draw from. Each is simulated turn by turn, which takes half of the time.
const BLOCKS: usize = 5000;
/// The host's speed is constant for this time, seconds.
const SLOT: f64 = 0.02;
/// Rounds of four turns in a share of the window, whose ratios give the error inside a block.
const SHARE_ROUNDS: usize = 2;

/// The steps and the noise. Standard deviations are of ln rates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnScene {
    pub(crate) steps: usize,
    /// Number of steps that truly differ, the first ones.
    pub(crate) changed: usize,
    /// Their true ln ratio.
    pub(crate) effect: f64,
    pub(crate) blocks: u32,
    /// Loads of each target; block i starts from load i modulo this number.
    pub(crate) loads: u32,
    /// Seconds of a step, both targets.
    pub(crate) seconds: f64,
    /// Seconds of a turn.
    pub(crate) turn: f64,
    /// Factor of the host's noise: 1 as measured, 0 for none.
    pub(crate) host: f64,
    /// Rate lost by a turn after one of the other target, because caches are cold: of the baseline
    /// and of the other.
    pub(crate) carry_over: [f64; 2],
    /// Effect of a start of both servers, independent of all others.
    pub(crate) restart: f64,
    /// Effect of a load of both targets, per step.
    pub(crate) load: f64,
    /// Ratio of the noise of the last step to that of the first. The logarithms of the others are
    /// evenly spaced between them.
    pub(crate) uneven: f64,
    /// True to judge with the errors inside blocks, as rqps does without shared loads.
    pub(crate) with_inside: bool,
}

/// Twelve steps, six blocks of 4 s in turns of 20 ms on a noisy host.
pub(crate) const TURNS: TurnScene = TurnScene {
    steps: 12,
    changed: 0,
    effect: 0.0,
    blocks: 6,
    loads: 1,
    seconds: 4.0,
    turn: 0.02,
    host: 1.0,
    carry_over: [0.0, 0.0],
    restart: 0.003,
    load: 0.0,
    uneven: 1.0,
    with_inside: true,
};

/// Results of many campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnRates {
    /// Standard deviation of a block's ln ratio, root mean square over steps.
    pub(crate) sd: f64,
    /// Share of the changed steps called SLOWER or SLOWER-SMALL.
    pub(crate) found: f64,
    /// Share of the changed steps called SLOWER.
    pub(crate) slower: f64,
    /// Share of all steps whose interval holds the truth.
    pub(crate) held: f64,
    /// Share of campaigns with an unchanged step called SLOWER or FASTER.
    pub(crate) any_large: f64,
    /// Share of campaigns with an unchanged step called SLOWER-SMALL or FASTER-SMALL.
    pub(crate) any_small: f64,
    /// Share of unchanged steps called SAME.
    pub(crate) same: f64,
}

/// The host's speed in one slot after another.
struct HostSpeed<'a> {
    scale: f64,
    states: [f64; 3],
    rng: &'a mut Rng,
}

impl<'a> HostSpeed<'a> {
    fn new(scale: f64, rng: &'a mut Rng) -> HostSpeed<'a> {
        let states = HOST.map(|(_, sd)| sd * normal(rng));
        HostSpeed { scale, states, rng }
    }

    fn next(&mut self) -> f64 {
        if self.scale == 0.0 {
            return 1.0;
        }
        for (state, (time, sd)) in self.states.iter_mut().zip(HOST) {
            let memory = (-SLOT / time).exp();
            *state = memory * *state + (1.0 - memory * memory).sqrt() * sd * normal(self.rng);
        }
        (self.scale * self.states.iter().sum::<f64>()).exp()
    }
}

/// The result of one block.
#[derive(Clone, Copy)]
struct Block {
    /// The ln ratio.
    difference: f64,
    /// Its standard error by the shares of the window; 0 if it has only one.
    inside: f64,
}

/// One block without the effects of start and load.
fn block(scene: &TurnScene, rng: &mut Rng) -> Block {
    let turns = (scene.seconds / scene.turn).round() as usize;
    let slots = (scene.turn / SLOT).round().max(1.0) as usize;
    let mut events = [0.0; 2];
    let mut shares = [Vec::new(), Vec::new()];
    let (mut first, mut before) = (0, None);
    let seeds: Vec<bool> = (0..turns.div_ceil(4)).map(|_| rng.unit() < 0.5).collect();
    let mut speed = HostSpeed::new(scene.host, rng);
    for turn in 0..turns {
        // ABBA or BAAB, drawn for each round of four.
        if turn % 4 == 0 {
            first = usize::from(seeds[turn / 4]);
        }
        let target = if matches!(turn % 4, 0 | 3) { first } else { 1 - first };
        let loss = if before == Some(1 - target) { scene.carry_over[target] } else { 0.0 };
        let done = (0..slots).map(|_| speed.next()).sum::<f64>() * (1.0 - loss);
        events[target] += done;
        if turn % (4 * SHARE_ROUNDS) == 0 {
            shares.iter_mut().for_each(|shares| shares.push((1.0, 0)));
        }
        if let Some((_, events)) = shares[target].last_mut() {
            *events += (done * 1e9) as u64;
        }
        before = Some(target);
    }
    let [base, other] = &shares;
    let inside = error_of_shares(base, other).unwrap_or(0.0);
    Block { difference: (events[1] / events[0]).ln(), inside }
}

/// The blocks of one step.
fn blocks(scene: &TurnScene, pool: &[Block], step: usize, rng: &mut Rng) -> Vec<Block> {
    let of_loads: Vec<f64> = (0..scene.loads).map(|_| scene.load * normal(rng)).collect();
    let effect = if step < scene.changed { scene.effect } else { 0.0 };
    let noise = scene.uneven.powf(step as f64 / (scene.steps.max(2) - 1) as f64);
    (0..scene.blocks)
        .map(|at| {
            let load = of_loads[(at % scene.loads) as usize];
            let measured = pool[(rng.unit() * pool.len() as f64) as usize];
            let difference =
                effect + load + scene.restart * normal(rng) + noise * measured.difference;
            Block { difference, inside: noise * measured.inside }
        })
        .collect()
}

/// The rates over so many campaigns: judged by pairs as if they were independent, and as rqps
/// judges them, with the load as a random effect where blocks share loads.
pub(crate) fn simulate_turns(scene: &TurnScene, campaigns: u32, seed: u64) -> [TurnRates; 2] {
    let mut rng = Rng::stream(seed, "simulated turns", 0);
    let mut rates = [TurnRates::default(); 2];
    let rules = Rules::default();
    let pool: Vec<Block> = (0..BLOCKS).map(|_| block(scene, &mut rng)).collect();
    for _ in 0..campaigns {
        let steps: Vec<Vec<Block>> =
            (0..scene.steps).map(|step| blocks(scene, &pool, step, &mut rng)).collect();
        let values = |value: fn(&Block) -> f64| -> Vec<Vec<f64>> {
            steps.iter().map(|blocks| blocks.iter().map(value).collect()).collect()
        };
        let (lists, inside) = (values(|block| block.difference), values(|block| block.inside));
        let pooled: Vec<Vec<f64>> = lists.iter().map(|list| by_load(scene, list)).collect();
        let by_pairs: Vec<(&[f64], &[f64])> = lists
            .iter()
            .zip(&inside)
            .map(|(list, inside)| (&list[..], if scene.with_inside { &inside[..] } else { &[] }))
            .collect();
        let by_loads: Vec<&[f64]> = pooled.iter().map(Vec::as_slice).collect();
        let judged = [
            judge_in_turns(&by_pairs, &rules),
            if scene.loads > 1 && scene.loads < scene.blocks {
                judge_cluster_means(&by_loads, &rules)
            } else {
                judge_in_turns(&by_pairs, &rules)
            },
        ];
        for (rates, judgements) in rates.iter_mut().zip(judged) {
            rates.sd += lists.iter().map(|list| variance(list)).sum::<f64>();
            add(rates, scene, &judgements);
        }
    }
    let count = f64::from(campaigns);
    let unchanged = count * (scene.steps - scene.changed).max(1) as f64;
    let (changed, all) = (count * scene.changed.max(1) as f64, count * scene.steps as f64);
    rates.map(|rates| TurnRates {
        sd: (rates.sd / all).sqrt(),
        found: rates.found / changed,
        slower: rates.slower / changed,
        held: rates.held / all,
        any_large: rates.any_large / count,
        any_small: rates.any_small / count,
        same: rates.same / unchanged,
    })
}

/// The values that rqps judges: one for each block, or one for each load if blocks share loads.
fn by_load(scene: &TurnScene, list: &[f64]) -> Vec<f64> {
    let numbered: Vec<(u32, f64)> =
        list.iter().zip(0..).map(|(difference, at)| (at % scene.loads + 1, *difference)).collect();
    pairing::pool_loads(&numbered, 0.95).map_or_else(|| list.to_vec(), |pooled| pooled.values)
}

fn variance(list: &[f64]) -> f64 {
    let mean = list.iter().sum::<f64>() / list.len() as f64;
    list.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (list.len() - 1) as f64
}

fn add(rates: &mut TurnRates, scene: &TurnScene, judgements: &[Judgement]) {
    let (mut large, mut small) = (false, false);
    for (step, judgement) in judgements.iter().enumerate() {
        let changed = step < scene.changed;
        let truth = if changed { scene.effect.exp() } else { 1.0 };
        let holds = judgement
            .test
            .as_ref()
            .is_some_and(|test| (test.interval.low..=test.interval.high).contains(&truth));
        rates.held += f64::from(u8::from(holds));
        let verdict = judgement.verdict;
        if changed {
            rates.slower += f64::from(u8::from(verdict == Verdict::Slower));
            rates.found += f64::from(u8::from(verdict.is_worse()));
            continue;
        }
        large |= matches!(verdict, Verdict::Slower | Verdict::Faster);
        small |= matches!(verdict, Verdict::SlowerSmall | Verdict::FasterSmall);
        rates.same += f64::from(u8::from(verdict == Verdict::Same));
    }
    rates.any_large += f64::from(u8::from(large));
    rates.any_small += f64::from(u8::from(small));
}
