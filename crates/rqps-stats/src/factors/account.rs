//! The account of a few changes: their Shapley values, their interactions, and what is left.
//!
//! Each block measures every arm of the design, and each figure is a contrast of arms, computed
//! block by block. So what a block does to all of its arms cancels, and a figure's interval comes
//! from the blocks, whatever arms it shares with other figures.

use super::super::paired::{PairedMean, mean_interval};

/// Up to this number of changes, the design has all their subsets.
const ALL_SUBSETS_MOST: usize = 3;

/// Which changes are on in which arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    factors: usize,
    /// A bit for each change; the first arm has none.
    arms: Vec<u32>,
}

/// A figure with its interval, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Effect {
    /// The mean over blocks.
    pub ln: f64,
    /// Its 95 % interval; `None` for one block.
    pub interval: Option<crate::Interval>,
}

impl Effect {
    /// The mean of one contrast's values by block, with its interval at `confidence`.
    pub fn of(values: &[f64], confidence: f64) -> Option<Effect> {
        let PairedMean { mean, interval, .. } = mean_interval(values, confidence)?;
        Some(Effect { ln: mean, interval })
    }

    /// True if the interval does not contain 0.
    pub fn is_proven(&self) -> bool {
        self.interval.is_some_and(|it| it.low > 0.0 || it.high < 0.0)
    }
}

impl Design {
    /// The design for so many changes: all subsets of up to three; of more, none, each alone, all
    /// but each, and all. That suffices for the Shapley values if no three changes interact.
    pub fn new(factors: usize) -> Design {
        let all = (1_u32 << factors) - 1;
        let arms = if factors <= ALL_SUBSETS_MOST {
            (0..=all).collect()
        } else {
            let alone = (0..factors).map(|at| 1_u32 << at);
            let but_one = (0..factors).map(|at| all & !(1 << at));
            [0].into_iter().chain(alone).chain(but_one).chain([all]).collect()
        };
        Design { factors, arms }
    }

    /// The changes of each arm, as places; the first arm has none, the last all.
    pub fn arms(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let places = |mask: &u32| (0..self.factors).filter(|at| mask >> at & 1 == 1).collect();
        self.arms.iter().map(places)
    }

    /// Weights of the arms for the Shapley value of a change: its effect averaged over all orders
    /// in which changes can be made.
    fn shapley(&self, factor: usize) -> Vec<f64> {
        let bit = 1_u32 << factor;
        let weight = |mask: u32| {
            let others = (mask & !bit).count_ones() as usize;
            if self.factors <= ALL_SUBSETS_MOST {
                // others! (n − 1 − others)! / n!
                1.0 / (self.factors * choose(self.factors - 1, others)) as f64
            } else {
                0.5
            }
        };
        let is_pair = |mask: u32| {
            let others = (mask & !bit).count_ones() as usize;
            self.factors <= ALL_SUBSETS_MOST || others == 0 || others == self.factors - 1
        };
        let signed = |mask: &u32| match (is_pair(*mask), mask & bit != 0) {
            (false, _) => 0.0,
            (true, true) => weight(*mask),
            (true, false) => -weight(*mask),
        };
        self.arms.iter().map(signed).collect()
    }

    /// Weights for how much more a change is worth after all others than alone.
    fn interaction(&self, factor: usize) -> Vec<f64> {
        let (bit, all) = (1_u32 << factor, (1_u32 << self.factors) - 1);
        let weight =
            |mask: u32| f64::from(u8::from(mask == all)) - f64::from(u8::from(mask == all & !bit));
        let alone = |mask: u32| f64::from(u8::from(mask == bit)) - f64::from(u8::from(mask == 0));
        self.arms.iter().map(|mask| weight(*mask) - alone(*mask)).collect()
    }

    fn together(&self) -> Vec<f64> {
        let last = self.arms.len() - 1;
        (0..=last)
            .map(|at| f64::from(u8::from(at == last)) - f64::from(u8::from(at == 0)))
            .collect()
    }
}

fn choose(n: usize, k: usize) -> usize {
    (0..k).fold(1, |product, at| product * (n - at) / (at + 1))
}

/// What changes are worth, alone and together.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Account {
    /// Goal against no change.
    pub gap: Effect,
    /// The Shapley value of each change.
    pub effects: Vec<Effect>,
    /// How much more each is worth after all others than alone; at a confidence that is corrected
    /// for their number.
    pub interactions: Vec<Effect>,
    /// All changes together.
    pub together: Effect,
    /// What is in `together` and in no Shapley value: interactions of three changes and more.
    pub higher: Effect,
    /// Goal against all changes.
    pub rest: Effect,
    /// Number of blocks.
    pub blocks: usize,
}

impl Account {
    /// The account of blocks, each with the logarithms of the arms of the design and then of the
    /// goal. `None` without a block.
    pub fn of(design: &Design, blocks: &[Vec<f64>], confidence: f64) -> Option<Account> {
        let arms = design.arms.len();
        let blocks: Vec<&Vec<f64>> = blocks.iter().filter(|block| block.len() > arms).collect();
        let contrast = |weights: &[f64], confidence| {
            let value = |block: &&Vec<f64>| weights.iter().zip(*block).map(|(w, y)| w * y).sum();
            Effect::of(&blocks.iter().map(value).collect::<Vec<f64>>(), confidence)
        };
        let padded = |mut weights: Vec<f64>, goal: f64| {
            weights.push(goal);
            weights
        };
        let mut unit = vec![0.0; arms];
        unit[0] = -1.0;
        let gap = contrast(&padded(unit, 1.0), confidence)?;
        let mut unit = vec![0.0; arms];
        unit[arms - 1] = -1.0;
        let rest = contrast(&padded(unit, 1.0), confidence)?;
        let all: Vec<Vec<f64>> = (0..design.factors).map(|at| design.shapley(at)).collect();
        let effects =
            all.iter().map(|weights| contrast(weights, confidence)).collect::<Option<_>>()?;
        let each = 1.0 - (1.0 - confidence) / design.factors.max(1) as f64;
        let interactions = (0..design.factors).map(|at| contrast(&design.interaction(at), each));
        let together = design.together();
        let mut higher = together.clone();
        for weights in &all {
            higher.iter_mut().zip(weights).for_each(|(left, weight)| *left -= weight);
        }
        Some(Account {
            gap,
            effects,
            interactions: interactions.collect::<Option<_>>()?,
            together: contrast(&together, confidence)?,
            higher: contrast(&higher, confidence)?,
            rest,
            blocks: blocks.len(),
        })
    }
}
