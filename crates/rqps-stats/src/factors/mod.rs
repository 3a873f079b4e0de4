//! What each of several changes is worth: which of many move a value at all, and how those share
//! the difference that they make together.

#[cfg(test)]
mod tests;

use super::paired::{PairedMean, mean_interval};
use super::student::{self, Interval};
use super::summary;

// Which of many changes move a value. Each arm of the design has about half of them on, so every
// measurement tells about all: with `n` pairs of arms the standard error of each effect is that of
// one pair divided by √n, whatever the number of changes.
//
// Rows are those of a Hadamard matrix (Paley 1933; Plackett and Burman 1946), each beside its
// complement (the fold-over of Box and Wilson 1951). The difference of such a pair has no effects
// of blocks in it, and no interactions of two changes.

/// Degrees of freedom that the residuals of all changes together must have.
const RESIDUALS_LEAST: usize = 4;
/// With fewer changes, most of them may be worth something: nothing is told from their scatter.
const SPARSE_LEAST: usize = 10;
/// Fewer pairs tell nothing about many changes.
const PAIRS_LEAST: usize = 8;

/// The rules of a screening. Values are logarithms, so differences are shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScreenRules {
    /// Smaller effects do not matter.
    pub least: f64,
    /// A change moves the value if the interval at this confidence does not contain 0.
    pub confidence: f64,
    /// Pairs at most; what is not decided then stays undecided.
    pub pairs_most: usize,
    /// Pairs that are measured beside each other at most.
    pub pairs_of_round: usize,
}

impl Default for ScreenRules {
    fn default() -> ScreenRules {
        ScreenRules { least: 0.01, confidence: 0.995, pairs_most: 160, pairs_of_round: 4 }
    }
}

/// A change and what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finding {
    /// Its place.
    pub change: usize,
    /// Its effect, averaged over the others being on and off.
    pub ln: f64,
    /// Its interval.
    pub interval: Interval,
}

impl Finding {
    fn moves(&self) -> bool {
        self.interval.low > 0.0 || self.interval.high < 0.0
    }
}

/// The state of a screening.
#[derive(Clone, Debug)]
pub struct Screen {
    rules: ScreenRules,
    changes: usize,
    /// The prime of the design: it has one row more.
    prime: usize,
    /// Rows that were asked for.
    asked: usize,
    /// Signs of the changes in a row, and ln(row / its complement).
    pairs: Vec<(Vec<f64>, f64)>,
}

impl Screen {
    /// A screening of so many changes.
    pub fn new(changes: usize, rules: ScreenRules) -> Screen {
        let is_prime =
            |n: usize| (2..n).take_while(|by| by * by <= n).all(|by| !n.is_multiple_of(by));
        let prime = (changes.max(3)..).find(|n| n % 4 == 3 && is_prime(*n)).unwrap_or(3);
        Screen { rules, changes, prime, asked: 0, pairs: Vec::new() }
    }

    /// What is on in each arm of the next pairs, at most so many of them: a row, then its
    /// complement. Empty at the end.
    pub fn next_round(&self, most: usize) -> Vec<Vec<usize>> {
        let is_whole = self.asked >= self.rows();
        let is_over = self.changes == 0 || self.asked >= self.rules.pairs_most.max(self.rows());
        if is_over || is_whole && self.findings().iter().all(|it| self.is_decided(it)) {
            return Vec::new();
        }
        let rows = (self.asked..).take(most.min(self.rules.pairs_of_round));
        let arm =
            |signs: &[f64], sign: f64| (0..self.changes).filter(|at| signs[*at] == sign).collect();
        rows.flat_map(|row| {
            let signs = self.signs(row);
            [arm(&signs, 1.0), arm(&signs, -1.0)]
        })
        .collect()
    }

    /// Takes a block of so many of the arms that [`Screen::next_round`] asked for; `None` where one
    /// could not be measured. Its pair says nothing then.
    pub fn record(&mut self, arms: &[Option<f64>]) {
        for pair in arms.chunks(2) {
            if let [Some(row), Some(complement)] = pair {
                self.pairs.push((self.signs(self.asked), row - complement));
            }
            self.asked += 1;
        }
    }

    /// Changes that move the value, the largest effect first.
    pub fn survivors(&self) -> Vec<Finding> {
        let mut found = self.findings();
        found.retain(Finding::moves);
        found.sort_by(|a, b| b.ln.abs().total_cmp(&a.ln.abs()));
        found
    }

    /// Changes of which nothing can be said.
    pub fn undecided(&self) -> Vec<Finding> {
        self.findings().into_iter().filter(|it| !self.is_decided(it)).collect()
    }

    fn is_decided(&self, finding: &Finding) -> bool {
        let Interval { low, high } = finding.interval;
        finding.moves() || low > -self.rules.least && high < self.rules.least
    }

    fn rows(&self) -> usize {
        self.prime + 1
    }

    /// Signs of the changes in a row. Each turn of the design has them in other columns, so that
    /// what three of them do together is not added to the same one again.
    fn signs(&self, row: usize) -> Vec<f64> {
        let (turn, row) = (row / self.rows() + 1, row % self.rows());
        let sign = |change: usize| {
            let column = 1 + change * turn % self.prime;
            let is_square = |n: usize| (1..self.prime).any(|it| it * it % self.prime == n);
            if row == 0 {
                1.0
            } else if row == column || is_square((self.prime + row - column) % self.prime) {
                -1.0
            } else {
                1.0
            }
        };
        (0..self.changes).map(sign).collect()
    }

    /// Each change with its effect and interval; an endless one where too little was measured.
    fn findings(&self) -> Vec<Finding> {
        let pairs = self.pairs.len();
        if pairs.saturating_sub(self.changes + 1) >= RESIDUALS_LEAST.max(self.changes / 3) {
            return self.judged(&Fit::of(&self.pairs, (0..self.changes).collect()));
        }
        // Most changes do nothing: those that do join the fit one by one.
        let mut fit = Fit::of(&self.pairs, Vec::new());
        if self.changes < SPARSE_LEAST || pairs < PAIRS_LEAST {
            fit.residuals.clear();
        }
        while let Some(change) = self.joining(&fit) {
            let active = fit.active.iter().copied().chain([change]).collect();
            fit = Fit::of(&self.pairs, active);
        }
        self.judged(&fit)
    }

    /// The change with the largest effect among those outside of a fit, if it is one: by the scatter
    /// that it would leave, or by that of the other contrasts, which large effects of several others
    /// do not hide.
    fn joining(&self, fit: &Fit) -> Option<usize> {
        let df = fit.df()?;
        let contrasts = fit.contrasts(&self.pairs, self.changes);
        let sizes: Vec<f64> = contrasts.iter().map(|it| it.standard().abs()).collect();
        let (place, size) = sizes.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        let left = (fit.squares() - size * size).max(0.0) / (df - 1.0);
        let is_whole = self.pairs.len() >= self.rows();
        let joins = *size > self.t(df - 1.0) * left.sqrt()
            || is_whole && *size > self.t(sizes.len() as f64 / 3.0) * pseudo_error(&sizes);
        (joins && df > 2.0 * RESIDUALS_LEAST as f64).then(|| contrasts[place].change)
    }

    fn t(&self, df: f64) -> f64 {
        student::quantile(0.5 + self.rules.confidence / 2.0, df)
    }

    /// All changes, with intervals from the scatter that a fit leaves.
    fn judged(&self, fit: &Fit) -> Vec<Finding> {
        let half = |one: &Contrast| match fit.df() {
            Some(df) => self.t(df) * (fit.squares() / df / one.weight).sqrt(),
            None => f64::INFINITY,
        };
        let finding = |one: Contrast| {
            let half = half(&one);
            let interval = Interval { low: one.ln - half, high: one.ln + half };
            Finding { change: one.change, ln: one.ln, interval }
        };
        let others = fit.contrasts(&self.pairs, self.changes);
        let mut all: Vec<Finding> = fit.effects().chain(others).map(finding).collect();
        all.sort_by_key(|finding| finding.change);
        all
    }
}

/// The standard error of contrasts of which most are nothing but noise (Lenth 1989).
fn pseudo_error(sizes: &[f64]) -> f64 {
    let first = 1.5 * summary::median(sizes).unwrap_or(f64::INFINITY);
    let small: Vec<f64> = sizes.iter().copied().filter(|size| *size < 2.5 * first).collect();
    1.5 * summary::median(&small).unwrap_or(f64::INFINITY)
}

/// The effect of one change.
#[derive(Clone, Copy, Debug)]
struct Contrast {
    change: usize,
    ln: f64,
    /// The variance of a pair divided by that of `ln`.
    weight: f64,
}

impl Contrast {
    /// The effect in the unit of a pair's scatter.
    fn standard(&self) -> f64 {
        self.ln * self.weight.sqrt()
    }
}

/// Least squares of pairs on a constant, which is the order within a pair, and some changes.
struct Fit {
    active: Vec<usize>,
    /// Inverse of the normal matrix; the constant comes first.
    inverse: Vec<Vec<f64>>,
    coefficients: Vec<f64>,
    residuals: Vec<f64>,
}

impl Fit {
    fn of(pairs: &[(Vec<f64>, f64)], active: Vec<usize>) -> Fit {
        let rows: Vec<Vec<f64>> = pairs.iter().map(|(signs, _)| known(signs, &active)).collect();
        let width = active.len() + 1;
        let sum = |of: &dyn Fn(usize) -> f64| (0..rows.len()).map(of).sum::<f64>();
        let normal = (0..width)
            .map(|a| (0..width).map(|b| sum(&|row| rows[row][a] * rows[row][b])).collect());
        let inverse = inverted(normal.collect());
        let moments: Vec<f64> =
            (0..width).map(|a| sum(&|row| rows[row][a] * pairs[row].1)).collect();
        let coefficients: Vec<f64> = inverse.iter().map(|line| dot(line, &moments)).collect();
        let residuals = rows.iter().zip(pairs).map(|(row, (_, ln))| ln - dot(row, &coefficients));
        let residuals = residuals.collect();
        Fit { active, inverse, coefficients, residuals }
    }

    /// Degrees of freedom of the residuals; `None` without any.
    fn df(&self) -> Option<f64> {
        let df = self.residuals.len().checked_sub(self.active.len() + 1)?;
        (df > 0).then_some(df as f64)
    }

    fn squares(&self) -> f64 {
        self.residuals.iter().map(|it| it * it).sum()
    }

    /// The changes of the fit.
    fn effects(&self) -> impl Iterator<Item = Contrast> + '_ {
        (1..).zip(&self.active).map(|(at, change)| Contrast {
            change: *change,
            ln: self.coefficients[at],
            // Of two changes that were always on together, nothing is known.
            weight: if self.inverse[at][at] > 0.0 { 1.0 / self.inverse[at][at] } else { 0.0 },
        })
    }

    /// Each other change, as it would be if it alone joined the fit.
    fn contrasts(&self, pairs: &[(Vec<f64>, f64)], changes: usize) -> Vec<Contrast> {
        let others = (0..changes).filter(|change| !self.active.contains(change));
        let contrast = |change: usize| {
            let column = pairs.iter().map(|(signs, _)| signs[change]);
            let mut shared = vec![0.0; self.active.len() + 1];
            for ((signs, _), sign) in pairs.iter().zip(column.clone()) {
                let row = known(signs, &self.active);
                shared.iter_mut().zip(row).for_each(|(sum, of_row)| *sum += sign * of_row);
            }
            let explained: f64 =
                self.inverse.iter().zip(&shared).map(|(line, by)| by * dot(line, &shared)).sum();
            let weight = (pairs.len() as f64 - explained).max(1e-9);
            let moment: f64 = column.zip(&self.residuals).map(|(sign, rest)| sign * rest).sum();
            Contrast { change, ln: moment / weight, weight }
        };
        others.map(contrast).collect()
    }
}

/// The row of a fit: the constant, then the signs of its changes.
fn known(signs: &[f64], active: &[usize]) -> Vec<f64> {
    [1.0].into_iter().chain(active.iter().map(|change| signs[*change])).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The inverse of a positive definite matrix, by elimination; zeros for a row that follows from
/// others.
fn inverted(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let width = matrix.len();
    for (at, line) in matrix.iter_mut().enumerate() {
        line.extend((0..width).map(|other| f64::from(u8::from(other == at))));
    }
    for at in 0..width {
        let pivot = matrix[at][at];
        let scale = if pivot > 1e-9 { 1.0 / pivot } else { 0.0 };
        matrix[at].iter_mut().for_each(|cell| *cell *= scale);
        let line = matrix[at].clone();
        let others = matrix.iter_mut().enumerate().filter(|(other, _)| *other != at);
        for (_, row) in others {
            let by = row[at];
            row.iter_mut().zip(&line).for_each(|(cell, of)| *cell -= by * of);
        }
    }
    matrix.into_iter().map(|line| line[width..].to_vec()).collect()
}

// The account of a few changes: their Shapley values, their interactions, and what is left.
//
// Each block measures every arm of the design, and each figure is a contrast of arms, computed
// block by block. So what a block does to all of its arms cancels, and a figure's interval comes
// from the blocks, whatever arms it shares with other figures.

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
