//! What each of several changes is worth: which of many move a value at all, and how those share
//! the difference that they make together.

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

#[cfg(test)]
mod tests {
    use rqps_model::datagen::rng::Rng;

    use super::{Account, Design, Screen, ScreenRules};

    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    /// A server whose rate depends on settings, some of them in pairs.
    struct World {
        settings: usize,
        /// Setting → its effect.
        effects: Vec<(usize, f64)>,
        /// Two settings, and what they do only together.
        pairs: Vec<(usize, usize, f64)>,
        /// What no setting explains.
        rest: f64,
        noise: f64,
    }

    impl World {
        fn level(&self, on: &[usize]) -> f64 {
            let alone = self.effects.iter().filter(|(at, _)| on.contains(at)).map(|(_, by)| by);
            let both = self.pairs.iter().filter(|(a, b, _)| on.contains(a) && on.contains(b));
            alone.sum::<f64>() + both.map(|(_, _, by)| by).sum::<f64>()
        }

        /// Blocks of arms; the noise of a block is common to all of them.
        fn blocks(&self, levels: &[f64], count: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
            let block = |_| {
                let shift = 0.05 * normal(rng);
                levels.iter().map(|level| level + shift + self.noise * normal(rng)).collect()
            };
            (0..count).map(block).collect()
        }

        fn screened(&self, rng: &mut Rng) -> Vec<Vec<usize>> {
            self.screen(usize::MAX, rng).survivors().iter().map(|it| vec![it.change]).collect()
        }

        /// A screening with so many pairs at most.
        fn screen(&self, pairs: usize, rng: &mut Rng) -> Screen {
            let mut screen = Screen::new(self.settings, ScreenRules::default());
            let mut left = pairs;
            loop {
                let arms = screen.next_round(left);
                if arms.is_empty() {
                    return screen;
                }
                left -= arms.len() / 2;
                let levels: Vec<f64> = arms.iter().map(|arm| self.level(arm)).collect();
                let block = self.blocks(&levels, 1, rng).remove(0);
                screen.record(&block.into_iter().map(Some).collect::<Vec<_>>());
            }
        }

        fn account(&self, factors: &[Vec<usize>], blocks: usize, rng: &mut Rng) -> Account {
            let design = Design::new(factors.len());
            let on = |arm: Vec<usize>| -> Vec<usize> {
                arm.into_iter().flat_map(|at| factors[at].clone()).collect()
            };
            let mut levels: Vec<f64> = design
                .arms()
                .map(|arm| {
                    self.level(&{
                        let on: Vec<usize> = on(arm);
                        on
                    })
                })
                .collect();
            let all: Vec<usize> = (0..self.settings).collect();
            levels.push(self.level(&all) + self.rest);
            let blocks = self.blocks(&levels, blocks, rng);
            Account::of(&design, &blocks, 0.95).expect("blocks")
        }
    }

    /// 40 settings in some order, of which the first five matter, and the first two more together.
    fn five_of_forty(noise: f64, rng: &mut Rng) -> (Vec<usize>, World) {
        let mut order: Vec<usize> = (0..40).collect();
        for at in (1..40).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let effects = order.iter().copied().zip([0.10, 0.06, -0.04, 0.03, 0.025]).collect();
        let pairs = vec![(order[0], order[1], 0.05)];
        (order, World { settings: 40, effects, pairs, rest: 0.02, noise })
    }

    #[test]
    fn five_of_forty_are_found_and_the_sum_is_the_whole() {
        let (campaigns, mut found, mut wrong, mut covered) = (60, 0, 0, 0);
        for seed in 0..campaigns {
            let mut rng = Rng::new(seed);
            let (order, world) = five_of_forty(0.004, &mut rng);
            let survivors = world.screened(&mut rng);
            let account = world.account(&survivors, 6, &mut rng);
            for (members, effect) in survivors.iter().zip(&account.effects) {
                let real = members.iter().filter(|at| order[..5].contains(at)).count();
                found += real;
                wrong += usize::from(real == 0 && effect.is_proven());
            }
            let sum: f64 = account.effects.iter().map(|effect| effect.ln).sum();
            assert!((sum + account.higher.ln - account.together.ln).abs() < 1e-12);
            let rest = account.rest.interval.expect("several blocks");
            let explained: Vec<usize> = survivors.concat();
            let all: Vec<usize> = (0..40).collect();
            let truth = world.level(&all) + world.rest - world.level(&explained);
            covered += usize::from(rest.low <= truth && truth <= rest.high);
        }

        assert_eq!(found, 300);
        assert!(wrong <= 3, "{wrong} settings without effect in {campaigns} campaigns");
        assert!(covered >= 51, "the interval of the rest covers in {covered} of {campaigns}");
    }

    /// On a busy host a run scatters by 2 %, and the budget is about 100 runs.
    #[test]
    fn five_of_forty_are_found_on_a_busy_host() {
        let (mut found, mut others) = (0, 0);
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let (order, world) = five_of_forty(0.02, &mut rng);
            let survivors = world.screen(48, &mut rng).survivors();
            let real = survivors.iter().filter(|it| order[..5].contains(&it.change)).count();
            (found, others) = (found + real, others + survivors.len() - real);
        }
        assert!(found >= 297, "{found} of 300 settings found");
        assert!(others <= 18, "{others} of 2100 settings without effect, before the account");
    }

    /// A log that the disk must have doubles the time of each write; there is time for 15 pairs.
    #[test]
    fn one_large_effect_is_found_long_before_the_design_is_whole() {
        let (mut found, mut others) = (0, 0);
        for seed in 0..60 {
            let effects = vec![(seed as usize % 28, 0.72)];
            let world = World { settings: 28, effects, pairs: Vec::new(), rest: 0.0, noise: 0.2 };
            let survivors = world.screen(15, &mut Rng::new(seed)).survivors();
            let real = survivors.iter().filter(|it| it.change == seed as usize % 28).count();
            (found, others) = (found + real, others + survivors.len() - real);
        }
        assert!(found >= 57, "{found} of 60");
        assert!(others <= 18, "{others} of 1620 settings without effect");
    }

    #[test]
    fn two_that_matter_only_together_are_found() {
        let pairs = vec![(3, 4, 0.08)];
        let world = World { settings: 20, effects: Vec::new(), pairs, rest: 0.0, noise: 0.003 };
        let mut survivors = world.screened(&mut Rng::new(5));
        survivors.sort();
        assert_eq!(survivors, [[3], [4]]);
    }

    #[test]
    fn equal_servers_have_no_factor() {
        let (mut survivors, mut proven) = (0, 0);
        for seed in 0..60 {
            let mut rng = Rng::new(seed);
            let (effects, pairs) = (Vec::new(), Vec::new());
            let world = World { settings: 30, effects, pairs, rest: 0.0, noise: 0.005 };
            let found = world.screened(&mut rng);
            survivors += found.len();
            let account = world.account(&found, 6, &mut rng);
            proven += account.effects.iter().filter(|effect| effect.is_proven()).count();
        }
        assert!(survivors <= 15, "{survivors} in 60 campaigns, before they are confirmed");
        assert!(proven <= 3, "{proven} of {survivors} confirmed in 60 campaigns");
    }

    #[test]
    fn shapley_values_are_averages_over_all_orders() {
        let check = |factors: usize| {
            let design = Design::new(factors);
            let singles: Vec<Vec<usize>> = (0..factors).map(|at| vec![at]).collect();
            let effects = (0..factors).map(|at| (at, 0.01 * (at + 1) as f64)).collect();
            let pairs = vec![(0, 1, 0.04)];
            let world = World { settings: factors, effects, pairs, rest: 0.5, noise: 0.0 };
            let account = world.account(&singles, 3, &mut Rng::new(1));
            for (at, effect) in account.effects.iter().enumerate() {
                let expected = 0.01 * (at + 1) as f64 + if at < 2 { 0.02 } else { 0.0 };
                assert!((effect.ln - expected).abs() < 1e-9, "{at} of {factors}: {effect:?}");
                let more = if at < 2 { 0.04 } else { 0.0 };
                assert!((account.interactions[at].ln - more).abs() < 1e-9, "{at} of {factors}");
            }
            assert!((account.rest.ln - 0.5).abs() < 1e-9 && account.higher.ln.abs() < 1e-9);
            assert!((account.gap.ln - account.rest.ln - account.together.ln).abs() < 1e-9);
            assert_eq!(design.arms().next(), Some(Vec::new()));
        };
        (2..=7).for_each(check);
        assert_eq!(
            (1..=7).map(|n| Design::new(n).arms().count()).collect::<Vec<_>>(),
            [2, 4, 8, 10, 12, 14, 16]
        );
    }

    #[test]
    fn what_time_does_not_suffice_for_is_named() {
        let effects = vec![(7, 0.1)];
        let world = World { settings: 40, effects, pairs: Vec::new(), rest: 0.0, noise: 0.003 };
        let screen = world.screen(2, &mut Rng::new(3));
        assert!(screen.survivors().is_empty());
        assert_eq!(screen.undecided().len(), 40);
        assert!(Screen::new(0, ScreenRules::default()).next_round(9).is_empty());
    }

    #[test]
    fn arms_that_could_not_be_measured_say_nothing() {
        let mut screen = Screen::new(3, ScreenRules::default());
        let mut rounds = 0;
        while !screen.next_round(9).is_empty() {
            screen.record(&[Some(1.0), None, None, Some(1.0)]);
            rounds += 1;
        }
        assert!((2..100).contains(&rounds), "{rounds}");
        assert!(screen.undecided().iter().all(|it| it.interval.high == f64::INFINITY));
    }
}
