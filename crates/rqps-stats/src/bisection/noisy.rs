//! Bisection of values that scatter, such as rates: the posterior probability of each version to be
//! the first of the new level says which version to measure next.
//!
//! First the ends are measured until they differ beyond doubt of a t of 5, or do not. Then the
//! version at the median of the posterior is measured until it is on one side or cannot say more:
//! a build has an offset of its own, which its repeats do not average out.

#[cfg(test)]
mod tests;

/// Smallest difference of the ends, in its standard errors.
const ENDS_T: f64 = 5.0;
/// Smallest t of the ends if they cannot be measured better.
const ENDS_T_LEAST: f64 = 3.0;
/// Values of each end before it is judged.
const ENDS_RUNS_LEAST: usize = 4;
/// Degrees of freedom of the scatter before it is used: with fewer it may look far too small.
const SCATTER_DF_LEAST: usize = 5;
/// Versions at each end that stand for it, if builds have offsets and there are many versions.
const ENDS_MOST: usize = 6;
/// An end has one version for each of this number of versions.
const VERSIONS_PER_END: usize = 8;
/// Values of one version, where builds have offsets: 2 (s/offset)² within these limits.
const RUNS_LIMITS: (usize, usize) = (4, 60);
/// A version is on one side if the other has less probability than this.
const SIDE_LEAST: f64 = 0.02;
/// Weight of a version that all others are measured against, in values.
const ANCHOR_RUNS: f64 = 1e4;

/// The rules of the search. Values are logarithms, so differences are shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyRules {
    /// Standard deviation of the offset that a build gives to all its values.
    pub layout_sd: f64,
    /// True if values are differences from version 0 in the same block; version 0 is not measured
    /// then.
    pub against_first: bool,
    /// A difference of the ends below this size does not matter.
    pub least: f64,
    /// A set of suspects with this probability is enough.
    pub certain: f64,
    /// No more values than this.
    pub runs_most: usize,
}

impl Default for NoisyRules {
    fn default() -> NoisyRules {
        NoisyRules {
            layout_sd: 0.0,
            against_first: false,
            least: 0.0,
            certain: 0.95,
            runs_most: 1000,
        }
    }
}

/// The difference between the ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndsDifference {
    /// Last − first.
    pub difference: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the scatter within versions.
    pub df: usize,
}

/// The next step of the search.
#[derive(Clone, Debug, PartialEq)]
pub enum NoisyStep {
    /// Measure this version.
    Measure(usize),
    /// The ends do not differ.
    NotReproduced(EndsDifference),
    /// The end of the search.
    Done(Suspects),
}

/// Versions that may be the first of the new level.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspects {
    /// The credible set: the most probable versions that have 95 % together, in their order.
    /// Versions that could not be measured share the probability of their neighbours.
    pub set: Vec<(usize, f64)>,
    /// The most probable version.
    pub best: usize,
    /// Probability of the best version, with the versions that cannot be distinguished from it.
    pub probability: f64,
    /// The ends.
    pub ends: EndsDifference,
}

/// A search for the first version of a new level.
#[derive(Clone, Debug)]
pub struct NoisySearch {
    rules: NoisyRules,
    mass: Vec<f64>,
    runs: Vec<Runs>,
    lost: Vec<bool>,
    /// The version that is being measured until it is on one side.
    current: Option<usize>,
    reproduced: bool,
}

impl NoisySearch {
    /// A search among `mass.len()` versions, at least two. `mass[i]` says how probable it is that
    /// version i differs from the one before it; 0 where it cannot, `mass[0]` means nothing. If it
    /// is 0 for all, all are alike.
    pub fn new(mass: &[f64], rules: NoisyRules) -> NoisySearch {
        let count = mass.len();
        let none = mass.iter().skip(1).all(|mass| *mass <= 0.0);
        NoisySearch {
            rules,
            mass: if none { vec![1.0; count] } else { mass.to_vec() },
            runs: vec![Runs::default(); count],
            lost: vec![false; count],
            current: None,
            reproduced: false,
        }
    }

    /// Takes a value of a version.
    pub fn record(&mut self, place: usize, value: f64) {
        self.runs[place].add(value);
    }

    /// Leaves a version out that cannot be measured. The ends must be measured.
    pub fn lose(&mut self, place: usize) {
        self.lost[place] = true;
    }

    /// The next step.
    pub fn next_step(&mut self) -> NoisyStep {
        if !self.reproduced {
            match self.judge_ends() {
                Ok(()) => self.reproduced = true,
                Err(step) => return step,
            }
        }
        let posterior = self.posterior();
        let suspects = self.suspects(&posterior);
        let spent: usize = self.runs.iter().map(|runs| runs.count).sum();
        if suspects.probability >= self.rules.certain || spent >= self.rules.runs_most {
            return NoisyStep::Done(suspects);
        }
        match self.choose(&posterior) {
            Some(place) => NoisyStep::Measure(place),
            None => NoisyStep::Done(suspects),
        }
    }

    /// Most values of a version: its offset does not average out.
    fn runs_cap(&self) -> usize {
        let (least, most) = RUNS_LIMITS;
        match variance(&self.runs) {
            _ if self.rules.layout_sd <= 0.0 => most,
            Some((variance, _)) => {
                let wanted = 2.0 * variance / self.rules.layout_sd.powi(2);
                (wanted.ceil() as usize).clamp(least, most)
            }
            None => least,
        }
    }

    /// Checks whether the ends differ; the error is the step to do first.
    fn judge_ends(&self) -> Result<(), NoisyStep> {
        let sides = self.ends();
        let cap = self.runs_cap();
        let fewest = |places: &[usize]| -> usize {
            places.iter().map(|place| self.runs[*place].count).sum()
        };
        let short = sides.iter().filter(|places| !places.is_empty());
        let is_short = short.clone().any(|places| fewest(places) < ENDS_RUNS_LEAST);
        let open = short.flatten().filter(|place| self.runs[**place].count < cap);
        let next = open.min_by_key(|place| self.runs[**place].count).copied();
        let measured = variance(&self.runs).filter(|(_, df)| *df >= SCATTER_DF_LEAST);
        let (Some(scatter), false) = (measured, is_short) else {
            return Err(NoisyStep::Measure(next.unwrap_or(self.runs.len() - 1)));
        };
        let ends = self.difference(&sides, scatter);
        let t = ends.difference.abs() / ends.error;
        if t >= ENDS_T {
            return Ok(());
        }
        if ends.difference.abs() + 2.0 * ends.error < self.rules.least {
            return Err(NoisyStep::NotReproduced(ends));
        }
        match next {
            Some(place) => Err(NoisyStep::Measure(place)),
            None if t >= ENDS_T_LEAST => Ok(()),
            None => Err(NoisyStep::NotReproduced(ends)),
        }
    }

    /// The versions that stand for each end, in the order in which they are measured. The first
    /// end has none if all others are measured against it.
    fn ends(&self) -> [Vec<usize>; 2] {
        let count = self.runs.len();
        let wide = if self.rules.layout_sd > 0.0 { count / VERSIONS_PER_END } else { 1 };
        let wide = wide.clamp(1, ENDS_MOST);
        let able = |place: &usize| !self.lost[*place] && (*place == 0 || self.mass[*place] > 0.0);
        let mut left: Vec<usize> = (0..wide).filter(able).collect();
        if self.rules.against_first {
            left.retain(|place| *place > 0);
        }
        let mut right: Vec<usize> = (count - wide..count).filter(able).rev().collect();
        if !right.contains(&(count - 1)) {
            right.insert(0, count - 1);
        }
        [left, right]
    }

    /// The difference of the ends, by the variance within versions and its degrees of freedom.
    fn difference(&self, sides: &[Vec<usize>; 2], (variance, df): (f64, usize)) -> EndsDifference {
        let offset = self.rules.layout_sd.powi(2);
        let level = |places: &[usize], anchor: Option<f64>| {
            let start = anchor.map_or(0.0, |variance| 1.0 / variance);
            let measured = places.iter().map(|place| &self.runs[*place]).filter(|r| r.count > 0);
            let (weight, sum) = measured.fold((start, 0.0), |(weight, sum), runs| {
                let own = 1.0 / (offset + variance / runs.count as f64);
                (weight + own, sum + own * runs.mean())
            });
            (sum / weight, 1.0 / weight)
        };
        let left = level(&sides[0], self.anchor(variance));
        let right = level(&sides[1], None);
        EndsDifference { difference: right.0 - left.0, error: (left.1 + right.1).sqrt(), df }
    }

    /// The variance of version 0 where all others are measured against it.
    fn anchor(&self, variance: f64) -> Option<f64> {
        let anchor = self.rules.layout_sd.powi(2) + variance / ANCHOR_RUNS;
        self.rules.against_first.then_some(anchor)
    }

    /// The probability of each version to be the first of the new level.
    fn posterior(&self) -> Vec<f64> {
        let anchor = variance(&self.runs).and_then(|(variance, _)| self.anchor(variance));
        let likelihoods = ln_likelihoods(&self.runs, self.rules.layout_sd, anchor);
        let ln = |place: usize| match place {
            0 => f64::NEG_INFINITY,
            _ => self.mass[place].max(0.0).ln() + likelihoods[place],
        };
        let ln: Vec<f64> = (0..self.runs.len()).map(ln).collect();
        let most = ln.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut posterior: Vec<f64> = ln.iter().map(|ln| (ln - most).exp()).collect();
        let total: f64 = posterior.iter().sum();
        posterior.iter_mut().for_each(|share| *share /= total);
        posterior
    }

    /// The version to measure: the one at hand until it is on one side or has its values, then the
    /// one that halves the posterior best among those that may have more.
    fn choose(&mut self, posterior: &[f64]) -> Option<usize> {
        let mut before = 0.0;
        let shares: Vec<f64> = posterior
            .iter()
            .map(|share| {
                before += share;
                before
            })
            .collect();
        let cap = self.runs_cap();
        let able = |place: usize| {
            let known = place == 0 && self.rules.against_first;
            let matters = place == 0 || self.mass[place] > 0.0;
            !known && matters && !self.lost[place] && self.runs[place].count < cap
        };
        let undecided = |place: usize| (SIDE_LEAST..=1.0 - SIDE_LEAST).contains(&shares[place]);
        if let Some(current) = self.current.filter(|place| able(*place) && undecided(*place)) {
            return Some(current);
        }
        let half = |place: usize| (shares[place] - 0.5).abs();
        let median = (1..shares.len()).find(|place| shares[*place] >= 0.5).unwrap_or(1);
        let places = (0..shares.len()).filter(|place| able(*place));
        // Versions far away say something of the levels only; the nearest of them come first.
        let rank = |a: &usize, b: &usize| {
            half(*a).total_cmp(&half(*b)).then(a.abs_diff(median).cmp(&b.abs_diff(median)))
        };
        self.current = places.min_by(rank);
        self.current
    }

    /// The credible set. A version that could not be measured cannot be distinguished from the next
    /// one.
    fn suspects(&self, posterior: &[f64]) -> Suspects {
        let mut groups: Vec<(Vec<usize>, f64)> = Vec::new();
        let mut joined = false;
        for place in (1..posterior.len()).filter(|place| self.mass[*place] > 0.0) {
            match groups.last_mut().filter(|_| joined) {
                Some((places, share)) => {
                    places.push(place);
                    *share += posterior[place];
                }
                None => groups.push((vec![place], posterior[place])),
            }
            joined = self.lost[place];
        }
        groups.sort_by(|a, b| b.1.total_cmp(&a.1));
        let probability = groups.first().map_or(0.0, |group| group.1);
        let best = groups.first().and_then(|group| {
            group.0.iter().copied().max_by(|a, b| posterior[*a].total_cmp(&posterior[*b]))
        });
        let mut set: Vec<(usize, f64)> = Vec::new();
        let mut sum = 0.0;
        for (places, share) in groups {
            if sum >= self.rules.certain {
                break;
            }
            sum += share;
            set.extend(places.into_iter().map(|place| (place, posterior[place])));
        }
        set.sort_by_key(|suspect| suspect.0);
        let scatter = variance(&self.runs).unwrap_or((0.0, 0));
        let ends = self.difference(&self.ends(), scatter);
        Suspects { set, best: best.unwrap_or(0), probability, ends }
    }
}

// The probability of each version to be the first of a new level, given noisy values of some of
// them, unknown levels before and after, and an offset of each build.

/// The values of one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Runs {
    pub count: usize,
    sum: f64,
    squares: f64,
}

impl Runs {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// Sum of squares around the mean.
    fn scatter(&self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }
}

/// Variance within versions, and its degrees of freedom; `None` without two values of a version.
pub(super) fn variance(all: &[Runs]) -> Option<(f64, usize)> {
    let df: usize = all.iter().map(|runs| runs.count.saturating_sub(1)).sum();
    let squares: f64 = all.iter().map(Runs::scatter).sum();
    (df > 0).then(|| ((squares / df as f64).max(f64::MIN_POSITIVE), df))
}

/// ln of the likelihood of each version to be the first of the new level, up to a constant.
/// `offset` is the standard deviation that a build adds to all its values; `anchor` is the variance
/// of the value 0 that version 0 is known to have, if it is.
fn ln_likelihoods(all: &[Runs], offset: f64, anchor: Option<f64>) -> Vec<f64> {
    match variance(all) {
        Some(scatter) if offset > 0.0 || anchor.is_some() => {
            of_means(all, scatter, offset * offset, anchor)
        }
        Some(_) => of_values(all),
        None => vec![0.0; all.len()],
    }
}

/// Every value counts alike; both levels and the common variance are unknown:
/// p(c) ∝ (nL nR)^(−1/2) (SSL + SSR)^(−(T − 2)/2).
fn of_values(all: &[Runs]) -> Vec<f64> {
    let mut left = Side::default();
    let mut right = Side::default();
    for runs in all {
        right.add(runs.count as f64, runs.sum, runs.squares);
    }
    let total = right.weight;
    let each = all.iter().map(|runs| {
        // For the level that begins with this version.
        let squares = (left.scatter() + right.scatter()).max(f64::MIN_POSITIVE);
        let ln = -0.5 * (left.ln_weight() + right.ln_weight()) - (total - 2.0) / 2.0 * squares.ln();
        left.add(runs.count as f64, runs.sum, runs.squares);
        right.add(-(runs.count as f64), -runs.sum, -runs.squares);
        ln
    });
    each.collect()
}

/// Means of versions with weights 1/(offset² + s²/n), and Q = QL − YL²/WL + QR − YR²/WR:
/// ln p(c) = −½ ln(WL WR) − ½ (ν + m) ln(1 + Q/ν), where s² has ν degrees of freedom and m
/// versions more than two were measured. With many that is −½ ln(WL WR) − ½ Q; with few, s² may be
/// too small.
fn of_means(
    all: &[Runs],
    (variance, df): (f64, usize),
    offset: f64,
    anchor: Option<f64>,
) -> Vec<f64> {
    let df = df as f64;
    let levels = if anchor.is_some() { 1.0 } else { 2.0 };
    let measured = all.iter().filter(|runs| runs.count > 0).count() as f64;
    let power = df + (measured - levels).max(0.0);
    let terms: Vec<(f64, f64, f64)> = all
        .iter()
        .map(|runs| {
            if runs.count == 0 {
                return (0.0, 0.0, 0.0);
            }
            let weight = 1.0 / (offset + variance / runs.count as f64);
            (weight, weight * runs.mean(), weight * runs.mean() * runs.mean())
        })
        .collect();
    let mut left = Side::default();
    let mut right = Side::default();
    if let Some(variance) = anchor {
        left.add(1.0 / variance, 0.0, 0.0);
    }
    for (weight, sum, squares) in &terms {
        right.add(*weight, *sum, *squares);
    }
    let each = terms.iter().map(|(weight, sum, squares)| {
        let misfit = left.scatter() + right.scatter();
        let ln = -0.5 * (left.ln_weight() + right.ln_weight() + power * (misfit / df).ln_1p());
        left.add(*weight, *sum, *squares);
        right.add(-weight, -sum, -squares);
        ln
    });
    each.collect()
}

/// Weighted sums of one side.
#[derive(Default)]
struct Side {
    weight: f64,
    sum: f64,
    squares: f64,
}

/// Rounding error of a weight that was added and subtracted again.
const ROUNDING: f64 = 1e-9;

impl Side {
    fn add(&mut self, weight: f64, sum: f64, squares: f64) {
        self.weight += weight;
        self.sum += sum;
        self.squares += squares;
    }

    fn is_empty(&self) -> bool {
        self.weight <= ROUNDING
    }

    fn scatter(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        (self.squares - self.sum * self.sum / self.weight).max(0.0)
    }

    fn ln_weight(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.weight.ln() }
    }
}
