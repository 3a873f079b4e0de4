//! Finds which of many versions in a row changed a value: by bisection where values repeat, by
//! Bayes' rule where they scatter. Both are state machines: they say which version to measure next,
//! and know nothing but the values so far.

use super::student::Interval;

// Bisection of values that repeat, such as counted instructions: one value per version is enough.
// Every jump that is large enough is found, not only one.

/// The rules for a jump. Values are logarithms, so these are shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactRules {
    /// Values that differ by no more than this are the same.
    pub same_within: f64,
    /// Jumps below this share of the difference between the ends are left alone.
    pub share_least: f64,
}

/// A search for jumps among versions in a row.
#[derive(Clone, Debug)]
pub struct ExactSearch {
    rules: ExactRules,
    mass: Vec<f64>,
    values: Vec<Option<f64>>,
    lost: Vec<bool>,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum ExactStep {
    /// Measure this version.
    Measure(usize),
    /// The ends do not differ: last − first.
    NotReproduced(f64),
    /// All jumps, the largest first. Empty if the difference is spread over many small ones.
    Done(Vec<Jump>),
}

/// Neighbours whose values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// The last version before it that was measured.
    pub after: usize,
    /// The first version behind it that was measured.
    pub at: usize,
    /// The versions that may have made it: one, unless others could not be measured.
    pub suspects: Vec<usize>,
    /// Value behind − value before.
    pub difference: f64,
}

impl ExactSearch {
    /// A search among `mass.len()` versions, at least two. `mass[i]` says how probable it is that
    /// version i differs from the one before it; 0 where it cannot, `mass[0]` means nothing.
    pub fn new(mass: &[f64], rules: ExactRules) -> ExactSearch {
        let count = mass.len();
        ExactSearch {
            rules,
            mass: mass.to_vec(),
            values: vec![None; count],
            lost: vec![false; count],
        }
    }

    /// Takes the value of a version.
    pub fn record(&mut self, place: usize, value: f64) {
        self.values[place] = Some(value);
    }

    /// Leaves a version out that cannot be measured. The ends must be measured.
    pub fn lose(&mut self, place: usize) {
        self.lost[place] = true;
    }

    /// The next step.
    pub fn next_step(&self) -> ExactStep {
        let last = self.values.len() - 1;
        let (Some(first_value), Some(last_value)) = (self.values[0], self.values[last]) else {
            return ExactStep::Measure(if self.values[0].is_none() { 0 } else { last });
        };
        let total = last_value - first_value;
        if total.abs() <= self.rules.same_within {
            return ExactStep::NotReproduced(total);
        }
        let least = self.rules.same_within.max(self.rules.share_least * total.abs());
        let mut jumps = self.jumps();
        jumps.retain(|jump| jump.difference.abs() > least);
        jumps.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        match jumps.iter().find_map(|jump| self.middle(jump)) {
            Some(place) => ExactStep::Measure(place),
            None => ExactStep::Done(jumps),
        }
    }

    /// The most measurements that one jump may still take.
    pub fn left_for_one(&self) -> usize {
        let widest = self.jumps().into_iter().map(|jump| jump.suspects.len()).max().unwrap_or(0);
        widest.next_power_of_two().ilog2() as usize
    }

    /// Neighbours among the measured versions.
    fn jumps(&self) -> Vec<Jump> {
        let values = self.values.iter().enumerate();
        let measured: Vec<(usize, f64)> = values.filter_map(|(at, v)| Some((at, (*v)?))).collect();
        let jump = |pair: &[(usize, f64)]| {
            let ((after, before), (at, behind)) = (pair[0], pair[1]);
            let suspects = self.suspects(after, at);
            Jump { after, at, suspects, difference: behind - before }
        };
        measured.windows(2).map(jump).collect()
    }

    /// Versions between two that may differ from the one before them. If none should, all may.
    fn suspects(&self, after: usize, at: usize) -> Vec<usize> {
        let probable: Vec<usize> = (after + 1..=at).filter(|i| self.mass[*i] > 0.0).collect();
        if probable.is_empty() { (after + 1..=at).collect() } else { probable }
    }

    /// The version that halves the mass of the suspects best.
    fn middle(&self, jump: &Jump) -> Option<usize> {
        let (_, inner) = jump.suspects.split_last()?;
        let mass = |place: usize| self.mass[place].max(f64::MIN_POSITIVE);
        let total: f64 = jump.suspects.iter().map(|place| mass(*place)).sum();
        let mut before = 0.0;
        let shares = inner.iter().map(|place| {
            before += mass(*place);
            (*place, (before / total - 0.5).abs())
        });
        let able = shares.filter(|(place, _)| !self.lost[*place]);
        able.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
    }
}

// Bisection of values that scatter, such as rates: the posterior probability of each version to be
// the first of the new level says which version to measure next.
//
// First the ends are measured until they differ beyond doubt of a t of 5, or do not. Then the
// version at the median of the posterior is measured until it is on one side or cannot say more:
// a build has an offset of its own, which its repeats do not average out.

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

// The highest load that keeps a limit, from windows that keep it or not. Near the threshold chance
// decides, so the answer is a posterior over threshold and width (Watson and Pelli 1983; Kontsevich
// and Tyler 1999), and the next load to try is its median.

/// Places of the threshold.
const PLACES: usize = 801;
/// Widths of the range in which chance decides, as logarithms of the load.
const WIDTHS: [f64; 6] = [0.003, 0.006, 0.0125, 0.025, 0.05, 0.1];
/// The share of windows that the load does not decide, such as those with a disturbed host.
const LAPSES: f64 = 0.02;

/// What is known of a threshold. Loads are logarithms.
#[derive(Clone, Debug)]
pub struct Threshold {
    low: f64,
    high: f64,
    /// ln of the posterior, by width and place, up to a constant.
    ln: Vec<Vec<f64>>,
}

impl Threshold {
    /// A threshold of which only two bounds are known.
    pub fn new(low: f64, high: f64) -> Threshold {
        Threshold { low, high, ln: vec![vec![0.0; PLACES]; WIDTHS.len()] }
    }

    fn place(&self, at: usize) -> f64 {
        self.low + (self.high - self.low) * at as f64 / (PLACES - 1) as f64
    }

    /// Takes a window: its load, and whether it kept the limit.
    pub fn record(&mut self, load: f64, keeps: bool) {
        let places: Vec<f64> = (0..PLACES).map(|at| self.place(at)).collect();
        for (of_width, width) in self.ln.iter_mut().zip(WIDTHS) {
            for (ln, place) in of_width.iter_mut().zip(&places) {
                let chance = 1.0 / (1.0 + ((load - place) / width).exp());
                let chance = LAPSES / 2.0 + (1.0 - LAPSES) * chance;
                *ln += if keeps { chance.ln() } else { (1.0 - chance).ln() };
            }
        }
    }

    /// The probability of each place; their sum is 1.
    fn posterior(&self) -> Vec<f64> {
        let most = self.ln.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let at = |at: usize| self.ln.iter().map(|of_width| (of_width[at] - most).exp()).sum();
        let all: Vec<f64> = (0..PLACES).map(at).collect();
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|share| share / sum).collect()
    }

    /// The place below which this share of the probability lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let place = quantile(self.posterior().into_iter(), share);
        self.place(place)
    }

    /// The equal-tailed interval.
    pub fn interval(&self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence) / 2.0;
        Interval { low: self.quantile(tail), high: self.quantile(1.0 - tail) }
    }

    /// Median and interval of this threshold's distance from another one, which both have the same
    /// bounds.
    pub fn above(&self, other: &Threshold, confidence: f64) -> (f64, Interval) {
        let (ours, theirs) = (self.posterior(), other.posterior());
        let mut shares = vec![0.0; 2 * PLACES - 1];
        for (at, our) in ours.iter().enumerate().filter(|(_, share)| **share > 1e-12) {
            for (of, their) in theirs.iter().enumerate() {
                shares[at + PLACES - 1 - of] += our * their;
            }
        }
        let step = (self.high - self.low) / (PLACES - 1) as f64;
        let distance = |share: f64| {
            (quantile(shares.iter().copied(), share) as f64 - (PLACES - 1) as f64) * step
        };
        let tail = (1.0 - confidence) / 2.0;
        (distance(0.5), Interval { low: distance(tail), high: distance(1.0 - tail) })
    }
}

fn quantile(shares: impl Iterator<Item = f64>, share: f64) -> usize {
    let sums = shares.scan(0.0, |sum, one| {
        *sum += one;
        Some(*sum)
    });
    sums.take_while(|sum| *sum < share).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: ExactRules = ExactRules { same_within: 0.002, share_least: 0.25 };

    /// Runs a search on true values; places in `broken` cannot be measured. Returns what it ends
    /// with and how many versions it measured.
    fn run(values: &[f64], mass: &[f64], broken: &[usize]) -> (ExactStep, usize) {
        let mut search = ExactSearch::new(mass, RULES);
        let mut measured = 0;
        loop {
            match search.next_step() {
                ExactStep::Measure(place) if broken.contains(&place) => search.lose(place),
                ExactStep::Measure(place) => {
                    measured += 1;
                    search.record(place, values[place]);
                }
                end => return (end, measured),
            }
        }
    }

    fn stairs(count: usize, jumps: &[(usize, f64)]) -> Vec<f64> {
        let height = |at: usize| jumps.iter().filter(|jump| jump.0 <= at).map(|jump| jump.1).sum();
        (0..count).map(height).collect()
    }

    fn places(end: &ExactStep) -> Vec<Vec<usize>> {
        match end {
            ExactStep::Done(jumps) => jumps.iter().map(|jump| jump.suspects.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_jump_is_found_anywhere_in_few_steps() {
        for count in [2, 3, 32, 100] {
            for at in 1..count {
                let mut values = stairs(count, &[(at, 0.02)]);
                for (place, value) in values.iter_mut().enumerate() {
                    // The scatter of repeats of one build.
                    *value += 0.0005 * ((place % 3) as f64 - 1.0);
                }
                let (end, measured) = run(&values, &vec![1.0; count], &[]);
                assert_eq!(places(&end), [[at]], "{count}");
                let most = 2 + (count - 1).next_power_of_two().ilog2() as usize;
                assert!(measured <= most, "{count} {at}: {measured}");
            }
        }
    }

    #[test]
    fn several_jumps_are_found_the_largest_first() {
        let values = stairs(40, &[(7, 0.02), (8, 0.05), (31, 0.03), (20, 0.004)]);
        let (end, _) = run(&values, &[1.0; 40], &[]);
        assert_eq!(places(&end), [[8], [31]]);
        let slow_and_fast = stairs(16, &[(5, 0.10), (11, -0.04)]);
        assert_eq!(places(&run(&slow_and_fast, &[1.0; 16], &[]).0), [[5], [11]]);
    }

    #[test]
    fn equal_ends_are_not_searched() {
        let (end, measured) = run(&[0.0, 0.5, 0.001], &[1.0; 3], &[]);
        assert_eq!((end, measured), (ExactStep::NotReproduced(0.001), 2));
    }

    #[test]
    fn a_difference_of_many_small_jumps_has_no_place() {
        let all: Vec<(usize, f64)> = (1..11).map(|at| (at, 0.01)).collect();
        assert_eq!(places(&run(&stairs(11, &all), &[1.0; 11], &[]).0), [[0; 0]; 0]);
    }

    #[test]
    fn versions_that_cannot_be_measured_stay_suspects_with_their_neighbour() {
        let values = stairs(16, &[(9, 0.02)]);
        let check = |broken: &[usize], expected: &[usize]| {
            assert_eq!(places(&run(&values, &[1.0; 16], broken).0), [expected], "{broken:?}");
        };
        check(&[3, 12], &[9]);
        check(&[9], &[9, 10]);
        check(&[8], &[8, 9]);
        check(&[8, 9, 10], &[8, 9, 10, 11]);
        let inner: Vec<usize> = (1..15).collect();
        check(&inner, &(1..16).collect::<Vec<usize>>());
    }

    #[test]
    fn versions_that_cannot_matter_are_neither_measured_nor_suspects() {
        let values = stairs(32, &[(17, 0.02)]);
        let mut mass = vec![0.0; 32];
        for place in [4, 9, 17, 22, 30] {
            mass[place] = 1.0;
        }
        let (end, measured) = run(&values, &mass, &[]);
        assert_eq!(places(&end), [[17]]);
        assert!(measured <= 5, "{measured}");
        // Nothing should matter and something does: all are suspects.
        mass.fill(0.0);
        let far = stairs(32, &[(31, 0.02)]);
        assert_eq!(places(&run(&far, &mass, &[]).0), [[31]]);
    }
}

#[cfg(test)]
mod noisy_tests {
    //! Simulated searches with known answers.
    use super::*;
    use rqps_model::datagen::rng::Rng;

    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    /// A made history: unit noise, one change, offsets of builds, versions that cannot be measured.
    #[derive(Clone)]
    struct Oracle {
        versions: usize,
        change: f64,
        offset: f64,
        against_first: bool,
        broken: Vec<usize>,
    }

    impl Oracle {
        fn new(versions: usize, change: f64) -> Oracle {
            Oracle { versions, change, offset: 0.0, against_first: false, broken: Vec::new() }
        }

        /// A search whose first version of the new level is `at`; its end, and the values that it took.
        fn search(&self, at: usize, rng: &mut Rng) -> (NoisyStep, usize) {
            let offsets: Vec<f64> = (0..self.versions).map(|_| self.offset * normal(rng)).collect();
            let rules = NoisyRules {
                layout_sd: self.offset,
                against_first: self.against_first,
                least: 0.3,
                ..NoisyRules::default()
            };
            let mut search = NoisySearch::new(&vec![1.0; self.versions], rules);
            let mut runs = 0;
            loop {
                match search.next_step() {
                    NoisyStep::Measure(place) if self.broken.contains(&place) => search.lose(place),
                    NoisyStep::Measure(place) => {
                        runs += 1;
                        let level = |place: usize| if place >= at { self.change } else { 0.0 };
                        let value = level(place) + offsets[place] + normal(rng);
                        let first = offsets[0] + normal(rng);
                        search
                            .record(place, if self.against_first { value - first } else { value });
                    }
                    end => return (end, runs),
                }
            }
        }

        /// Share of searches that name the right version, and the mean number of values.
        fn right(&self, searches: u64, seed: u64) -> (f64, f64) {
            let mut rng = Rng::new(seed);
            let (mut right, mut values) = (0, 0);
            for _ in 0..searches {
                let at = 1 + rng.below(self.versions as u64 - 1) as usize;
                let (end, runs) = self.search(at, &mut rng);
                values += runs;
                right += u64::from(matches!(end, NoisyStep::Done(found) if found.best == at));
            }
            (right as f64 / searches as f64, values as f64 / searches as f64)
        }
    }

    #[test]
    fn a_change_of_one_standard_deviation_is_found() {
        for (versions, seed) in [(256, 1), (64, 2), (1024, 3)] {
            let (right, values) = Oracle::new(versions, 1.0).right(200, seed);
            assert!(right >= 0.93, "{versions} versions: {right}, {values} values");
        }
    }

    #[test]
    fn larger_changes_take_fewer_values() {
        let (small, many) = Oracle::new(256, 2.0).right(200, 4);
        let (large, few) = Oracle::new(256, 4.0).right(200, 5);
        assert!(small >= 0.93 && large >= 0.97, "{small} {large}");
        assert!(few < many && few < 40.0, "{few} {many}");
    }

    #[test]
    fn offsets_of_builds_are_no_changes() {
        let oracle = Oracle { offset: 0.25, ..Oracle::new(256, 2.0) };
        let (right, values) = oracle.right(150, 6);
        assert!(right >= 0.9, "{right}, {values} values");
        let near = Oracle { offset: 0.5, ..Oracle::new(32, 4.0) };
        let (right, values) = near.right(150, 7);
        assert!(right >= 0.9, "{right}, {values} values");
    }

    #[test]
    fn pairs_against_the_first_version_find_it_too() {
        let oracle = Oracle { against_first: true, offset: 0.2, ..Oracle::new(20, 3.0) };
        let (right, values) = oracle.right(200, 8);
        assert!(right >= 0.93, "{right}, {values} values");
    }

    #[test]
    fn without_a_change_nothing_is_found() {
        for against_first in [false, true] {
            let mut rng = Rng::new(9);
            let oracle = Oracle { against_first, offset: 0.1, ..Oracle::new(64, 0.0) };
            let quiet = (0..200)
                .filter(|_| matches!(oracle.search(1, &mut rng).0, NoisyStep::NotReproduced(_)));
            let quiet = quiet.count();
            assert!(quiet >= 192, "{quiet} of 200, against the first: {against_first}");
        }
    }

    /// The claimed probability is what happens.
    #[test]
    fn the_credible_set_holds_the_version_as_often_as_it_says() {
        let mut rng = Rng::new(10);
        let oracle = Oracle { offset: 0.25, ..Oracle::new(64, 1.5) };
        let (mut held, mut all) = (0, 0);
        for _ in 0..150 {
            let at = 1 + rng.below(63) as usize;
            if let (NoisyStep::Done(found), _) = oracle.search(at, &mut rng) {
                all += 1;
                held += u32::from(found.set.iter().any(|suspect| suspect.0 == at));
                let sum: f64 = found.set.iter().map(|suspect| suspect.1).sum();
                assert!(sum >= found.probability - 1e-9);
            }
        }
        let share = f64::from(held) / f64::from(all);
        assert!(all > 120 && share >= 0.92, "{held} of {all}");
    }

    #[test]
    fn a_version_that_cannot_be_measured_is_named_with_the_next_one() {
        let mut rng = Rng::new(11);
        let oracle = Oracle { broken: vec![9, 20], ..Oracle::new(32, 4.0) };
        let (end, _) = oracle.search(10, &mut rng);
        let NoisyStep::Done(found) = end else { panic!("{end:?}") };
        let set: Vec<usize> = found.set.iter().map(|suspect| suspect.0).collect();
        assert_eq!(set, [9, 10]);
        assert!(found.probability >= 0.95, "{found:?}");
    }

    #[test]
    fn the_same_values_give_the_same_search() {
        let oracle = Oracle { offset: 0.25, ..Oracle::new(64, 2.0) };
        let [one, again] = [(); 2].map(|()| oracle.search(40, &mut Rng::new(12)));
        assert_eq!(one, again);
    }

    fn all(values: &[&[f64]]) -> Vec<Runs> {
        let runs = |values: &&[f64]| {
            let mut runs = Runs::default();
            values.iter().for_each(|value| runs.add(*value));
            runs
        };
        values.iter().map(runs).collect()
    }

    fn scatter(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum()
    }

    #[test]
    fn likelihoods_are_those_of_the_formulas() {
        let all = all(&[&[1.0, 1.5], &[], &[1.2], &[4.0, 4.4], &[4.1]]);
        let found = ln_likelihoods(&all, 0.0, None);
        let (left, right) = ([1.0, 1.5, 1.2], [4.0, 4.4, 4.1]);
        let squares: f64 = scatter(&left) + scatter(&right);
        let expected = -0.5 * 9.0_f64.ln() - (6.0 - 2.0) / 2.0 * squares.ln();
        assert!((found[3] - expected).abs() < 1e-9, "{found:?}");
        let best = (1..5).max_by(|a, b| found[*a].total_cmp(&found[*b]));
        assert_eq!(best, Some(3));
        // The version without a value cannot be distinguished from the one after it.
        assert!((found[1] - found[2]).abs() < 1e-9);

        let (variance, df) = variance(&all).expect("two values");
        assert_eq!(df, 2);
        assert!((variance - (0.125 + 0.08) / 2.0).abs() < 1e-12);
        let found = ln_likelihoods(&all, 0.3, None);
        let weight = |count: f64| 1.0 / (0.09 + variance / count);
        let of = |terms: &[(f64, f64)]| {
            let w: f64 = terms.iter().map(|term| term.0).sum();
            let y: f64 = terms.iter().map(|term| term.0 * term.1).sum();
            let q: f64 = terms.iter().map(|term| term.0 * term.1 * term.1).sum();
            (w.ln(), q - y * y / w)
        };
        let (two, one) = (weight(2.0), weight(1.0));
        let (left, right) = (of(&[(two, 1.25), (one, 1.2)]), of(&[(two, 4.2), (one, 4.1)]));
        // Two degrees of freedom, four versions with two levels.
        let squares: f64 = left.1 + right.1;
        let expected = -0.5 * (left.0 + right.0 + (2.0 + 2.0) * (1.0 + squares / 2.0).ln());
        assert!((found[3] - expected).abs() < 1e-9, "{found:?} {expected}");
    }
}

#[cfg(test)]
mod threshold_tests {
    use rqps_model::datagen::rng::Rng;

    use super::Threshold;

    /// Two thresholds after so many windows of both at the same loads.
    fn searched(truths: [f64; 2], width: f64, windows: usize, rng: &mut Rng) -> [Threshold; 2] {
        let mut both = truths.map(|_| Threshold::new(-3.0, 0.5));
        for number in 0..windows {
            let load = both[number % 2].quantile(0.5);
            for (threshold, truth) in both.iter_mut().zip(truths) {
                let chance = 1.0 / (1.0 + ((load - truth) / width).exp());
                threshold.record(load, rng.unit() < chance);
            }
        }
        both
    }

    #[test]
    fn intervals_hold_the_truth() {
        for (width, widest) in [(0.005, 0.065), (0.03, 0.14)] {
            let (mut held, mut equal, mut widths) = (0, 0, 0.0);
            for seed in 0..200 {
                let mut rng = Rng::new(seed);
                let truth = -2.0 + 2.2 * rng.unit();
                let [a, b] = searched([truth, truth], width, 24, &mut rng);
                let interval = a.interval(0.95);
                held += usize::from(interval.low <= truth && truth <= interval.high);
                widths += (interval.high - interval.low) / 200.0;
                let (_, apart) = b.above(&a, 0.95);
                equal += usize::from(apart.low <= 0.0 && apart.high >= 0.0);
            }
            assert!(held >= 183, "{held} of 200 at {width}");
            assert!(equal >= 188, "{equal} of 200 equal at {width}");
            assert!(widths < widest, "{widths} at {width}");
        }
    }

    #[test]
    fn a_loss_of_a_tenth_is_found() {
        let mut found = 0;
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let [a, b] = searched([-1.0, -1.105], 0.01, 24, &mut rng);
            let (ln, apart) = b.above(&a, 0.95);
            found += usize::from(apart.high < 0.0 && (ln + 0.105).abs() < 0.04);
        }
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn a_limit_that_nothing_keeps_ends_at_the_lowest_load() {
        let mut threshold = Threshold::new(0.0, 3.0);
        (0..12).for_each(|_| {
            let load = threshold.quantile(0.5);
            threshold.record(load, false)
        });
        assert!(threshold.interval(0.95).high < 0.1, "{:?}", threshold.interval(0.95));
    }
}
