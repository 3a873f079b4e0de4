//! Finds changes of level in a series of measurements: by E-divisive means for long histories of
//! single runs, by optimal partitioning for ladders of few versions with a known variance.

use super::student;

// E-divisive means with Student's t test, as Hunter and Apache Otava compute it.
//
// Sources: Matteson and James (2014), "A nonparametric approach for multiple change point
// analysis of multivariate data"; Fleming, Kołaczkowski and others (2023), "Hunter: using change
// point detection to hunt for performance regressions", doi:10.1145/3578244.3583719; Otava 0.8.0.

/// The treatment of two errors of Otava 0.8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// Results of Otava 0.8.0 digit for digit: population standard deviations go into a t test that
    /// expects those of samples, and after a point is removed the two points behind it are tested
    /// again, not its two neighbours.
    Otava,
    /// Standard deviations of samples; both neighbours of a removed point are tested again.
    Mended,
}

/// Parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EDivisive {
    /// Points that are searched at once; 2 or more.
    pub window: usize,
    /// A change must be less probable than this without a change.
    pub max_p: f64,
    /// Changes of the mean up to this share are no changes.
    pub min_magnitude: f64,
    /// The arithmetic: this package's, or that of another program.
    pub compatibility: Compatibility,
}

impl Default for EDivisive {
    /// The defaults of Otava's command.
    fn default() -> EDivisive {
        EDivisive {
            window: 50,
            max_p: 0.001,
            min_magnitude: 0.0,
            compatibility: Compatibility::Mended,
        }
    }
}

/// A change of the mean: from the points between the change before it and this one to those from
/// here to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The first point of the new level.
    pub index: usize,
    /// Means before and after.
    pub means: [f64; 2],
    /// Standard deviations before and after: of the population for [`Compatibility::Otava`], else
    /// of the sample.
    pub deviations: [f64; 2],
    /// p value of Student's t test with pooled variance, two-sided. NaN if both sides are the same
    /// number.
    pub p: f64,
}

impl Shift {
    /// The larger of the two relative changes, from before to after and back.
    pub fn magnitude(&self) -> f64 {
        let [before, after] = self.means;
        (after / before - 1.0).abs().max((before / after - 1.0).abs())
    }
}

/// The changes of `series`, in its order. Values must be finite; a shorter series than 2 has none.
pub fn e_divisive(series: &[f64], rules: &EDivisive) -> Vec<Shift> {
    let mut shifts = candidates(series, rules);
    while !shifts.is_empty() {
        let mut weakest = last_by(&shifts, |a, b| a.p > b.p);
        if shifts[weakest].p < rules.max_p {
            weakest = last_by(&shifts, |a, b| a.magnitude() < b.magnitude());
            if shifts[weakest].magnitude() > rules.min_magnitude {
                break;
            }
        }
        shifts.remove(weakest);
        let again = match rules.compatibility {
            Compatibility::Otava => weakest..weakest + 2,
            Compatibility::Mended => weakest.saturating_sub(1)..weakest + 1,
        };
        let indexes: Vec<usize> = shifts.iter().map(|shift| shift.index).collect();
        for place in again.filter(|place| *place < indexes.len()) {
            shifts[place] = tested(series, &indexes, place, rules.compatibility);
        }
    }
    shifts
}

/// The first element that no other one beats.
fn last_by(shifts: &[Shift], beats: impl Fn(&Shift, &Shift) -> bool) -> usize {
    let mut best = 0;
    for place in 1..shifts.len() {
        if beats(&shifts[place], &shifts[best]) {
            best = place;
        }
    }
    best
}

/// Candidates of overlapping windows, found with a weaker level.
fn candidates(series: &[f64], rules: &EDivisive) -> Vec<Shift> {
    let weaker = match rules.max_p {
        p if p < 0.05 => 10.0 * p,
        p if p < 0.5 => 2.0 * p,
        p => p,
    };
    let window = rules.window.max(2);
    let mut indexes: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = (start + window).min(series.len());
        let found = detect(&series[start..end], weaker, rules.compatibility);
        let last = found.last().map_or(0, |index| index + start);
        for index in found {
            if !indexes.contains(&(index + start)) {
                indexes.push(index + start);
            }
        }
        start = last.max(start + window / 2);
    }
    indexes.sort_unstable();
    let places = 0..indexes.len();
    places.map(|place| tested(series, &indexes, place, rules.compatibility)).collect()
}

/// Divides a window at its most divergent point, and again, while the t test agrees. Indexes in
/// order.
fn detect(window: &[f64], max_p: f64, compatibility: Compatibility) -> Vec<usize> {
    let mut indexes: Vec<usize> = Vec::new();
    loop {
        let ends = |indexes: &[usize]| -> Vec<usize> { [&[0], indexes, &[window.len()]].concat() };
        let bounds = ends(&indexes);
        let mut best: Option<(f64, usize)> = None;
        for pair in bounds.windows(2) {
            let Some((divergence, at)) = most_divergent(&window[pair[0]..pair[1]]) else {
                continue;
            };
            if best.is_none_or(|(most, _)| divergence > most) {
                best = Some((divergence, pair[0] + at));
            }
        }
        let Some((_, index)) = best else { return indexes };
        let place = indexes.partition_point(|other| *other < index);
        indexes.insert(place, index);
        if tested(window, &indexes, place, compatibility).p <= max_p {
            continue;
        }
        indexes.remove(place);
        return indexes;
    }
}

/// The largest divergence of two neighbouring parts `[0, at)` and `[at, end)` of a segment, over
/// all `at` and `end`, and its `at`; of equals the first. `None` for fewer than two points.
fn most_divergent(segment: &[f64]) -> Option<(f64, usize)> {
    let count = segment.len();
    // distances[k][i]: from point k to the first i points.
    let distances: Vec<Vec<f64>> = (0..count)
        .map(|k| {
            let sums = segment[..=k].iter().scan(0.0, |sum, value| {
                *sum += (segment[k] - value).abs();
                Some(*sum)
            });
            std::iter::once(0.0).chain(sums).collect()
        })
        .collect();
    // within[k]: among the first k points.
    let mut within = vec![0.0; count + 1];
    for k in 0..count {
        within[k + 1] = within[k] + distances[k][k];
    }
    let mut best: Option<(f64, usize)> = None;
    for at in 1..count {
        let mut right = 0.0;
        for end in at + 1..=count {
            right += distances[end - 1][end - 1] - distances[end - 1][at];
            let (n, m) = (at as f64, (end - at) as f64);
            let across = within[end] - within[at] - right;
            let mut divergence = 2.0 * across / (m + n);
            if at > 1 {
                divergence -= 2.0 * m * within[at] / ((m + n) * (n - 1.0));
            }
            if end - at > 1 {
                divergence -= 2.0 * n * right / ((m + n) * (m - 1.0));
            }
            if best.is_none_or(|(most, _)| divergence > most) {
                best = Some((divergence, at));
            }
        }
    }
    best
}

/// The change at `indexes[place]`, tested between its neighbours.
fn tested(series: &[f64], indexes: &[usize], place: usize, of: Compatibility) -> Shift {
    let index = indexes[place];
    let from = place.checked_sub(1).map_or(0, |before| indexes[before]);
    let to = indexes.get(place + 1).copied().unwrap_or(series.len());
    let (left, right) = (&series[from..index], &series[index..to]);
    let means = [mean(left), mean(right)];
    let deviations = [deviation(left, means[0], of), deviation(right, means[1], of)];
    let (n, m) = (left.len() as f64, right.len() as f64);
    let df = n + m - 2.0;
    let p = if df > 0.0 {
        let [left, right] = deviations;
        let variance = ((n - 1.0) * left * left + (m - 1.0) * right * right) / df;
        let t = (means[0] - means[1]) / (variance * (1.0 / n + 1.0 / m)).sqrt();
        if t.is_nan() { f64::NAN } else { 2.0 * student::above(t.abs(), df) }
    } else {
        1.0
    };
    Shift { index, means, deviations, p }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64], mean: f64, of: Compatibility) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let divisor = match of {
        Compatibility::Otava => values.len(),
        Compatibility::Mended => values.len() - 1,
    };
    (squares / divisor as f64).sqrt()
}

// Levels of a ladder: a handful of versions, each with a mean and a known variance, divided into
// runs of one level by optimal partitioning.
//
// The divisions minimise Σ w (x − level)² + penalty × changes over all divisions at once, by
// dynamic programming (Jackson and others 2005, "An algorithm for optimal partitioning of data on
// an interval", doi:10.1109/LSP.2001.838216). The loss of a version is capped, so that one
// version that is off and returns is an outlier, not two changes (Fearnhead and Rigaill 2019,
// "Changepoint detection in the presence of outliers", doi:10.1080/01621459.2017.1385466).

/// The measurements of one version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VersionMean {
    /// Mean, usually of logarithms.
    pub mean: f64,
    /// Variance of that mean, including what the layout of one build gives; above 0.
    pub variance: f64,
}

/// Versions of one level: from `from` up to, not including, `to`.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionLevel {
    /// Its first version.
    pub from: usize,
    /// The version after its last.
    pub to: usize,
    /// Weighted mean of its versions that are no outliers.
    pub mean: f64,
    /// Standard error of that mean.
    pub error: f64,
    /// Versions within it that are off by themselves.
    pub outliers: Vec<usize>,
}

/// Levels in the order of versions. They cover every version once.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// The levels.
    pub levels: Vec<VersionLevel>,
}

/// The cost of one change among this many versions, of which the scatter is known with `df` degrees
/// of freedom: a ladder without changes shows one with at most the probability `alpha`.
///
/// A change between two levels costs the square of its t, so the cost is that of the two-sided
/// quantile at `alpha`, by Bonferroni over the places of a change. It is at least 3 ln V.
pub fn penalty(versions: usize, df: f64, alpha: f64) -> f64 {
    let places = versions.max(2) as f64 - 1.0;
    let least = 3.0 * (versions.max(3) as f64).ln();
    student::quantile(1.0 - alpha / places / 2.0, df).powi(2).max(least)
}

/// An outlier costs one and a half changes: less than the two changes that would explain one
/// version, more than the one that ends a ladder, and two in a row cost more than a level of two.
const OUTLIER_PER_PENALTY: f64 = 1.5;

/// Levels of the versions. Empty for no versions.
///
/// This is the cheapest division. Where it has a level of one version that sticks out between two
/// levels that are nearer to each other than to it, that version is an outlier, too: the division
/// is made again without it.
pub fn partition(versions: &[VersionMean], penalty: f64) -> Partition {
    let mut kept: Vec<usize> = (0..versions.len()).collect();
    loop {
        let part: Vec<VersionMean> = kept.iter().map(|place| versions[*place]).collect();
        let levels = cheapest(&part, penalty);
        match levels.windows(3).find(|levels| sticks_out(levels)) {
            Some(levels) => {
                kept.remove(levels[1].from);
            }
            None => return Partition { levels: with_all(levels, &kept, versions.len()) },
        }
    }
}

fn sticks_out(levels: &[VersionLevel]) -> bool {
    let [before, own, after] = levels else { return false };
    let (left, right) = (own.mean - before.mean, own.mean - after.mean);
    let apart = (before.mean - after.mean).abs();
    own.to == own.from + 1 && left * right > 0.0 && 2.0 * apart < left.abs().min(right.abs())
}

/// Levels of the kept versions as levels of all: those left out are outliers of the level before.
fn with_all(levels: Vec<VersionLevel>, kept: &[usize], count: usize) -> Vec<VersionLevel> {
    let begins = |level: &VersionLevel| if level.from == 0 { 0 } else { kept[level.from] };
    let starts: Vec<usize> = levels.iter().map(begins).chain([count]).collect();
    let of_all = levels.into_iter().zip(starts.windows(2)).map(|(level, bounds)| {
        let out = level.outliers.iter().map(|place| kept[*place]);
        let left_out = (bounds[0]..bounds[1]).filter(|place| !kept.contains(place));
        let mut outliers: Vec<usize> = out.chain(left_out).collect();
        outliers.sort_unstable();
        VersionLevel { from: bounds[0], to: bounds[1], outliers, ..level }
    });
    of_all.collect()
}

/// The cheapest division.
fn cheapest(versions: &[VersionMean], penalty: f64) -> Vec<VersionLevel> {
    let count = versions.len();
    let cap = OUTLIER_PER_PENALTY * penalty;
    // best[to]: cheapest division of the versions before `to`, and where its last level begins.
    let mut best = vec![(-penalty, 0)];
    for to in 1..=count {
        let ways = (0..to).map(|from| {
            let (loss, _) = level_of(&versions[from..to], cap);
            (best[from].0 + penalty + loss, from)
        });
        let cheapest = ways.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0));
        best.push(cheapest);
    }
    let mut levels = Vec::new();
    let mut to = count;
    while to > 0 {
        let from = best[to].1;
        let (_, mean) = level_of(&versions[from..to], cap);
        let is_out = |version: &VersionMean| loss(version, mean) >= cap;
        let (out, kept): (Vec<usize>, Vec<usize>) =
            (from..to).partition(|version| is_out(&versions[*version]));
        let weight: f64 = kept.iter().map(|kept| 1.0 / versions[*kept].variance).sum();
        levels.push(VersionLevel { from, to, mean, error: weight.sqrt().recip(), outliers: out });
        to = from;
    }
    levels.reverse();
    levels
}

fn loss(version: &VersionMean, level: f64) -> f64 {
    (version.mean - level).powi(2) / version.variance
}

/// The least capped loss of one level, and that level. The loss is a sum of parabolas with caps:
/// between two places where a version enters or leaves its cap it is one parabola, so the least is
/// the weighted mean of the versions that are in at one of those places.
fn level_of(versions: &[VersionMean], cap: f64) -> (f64, f64) {
    let total =
        |level: f64| -> f64 { versions.iter().map(|version| loss(version, level).min(cap)).sum() };
    let mean_near = |place: f64| {
        let near = versions.iter().filter(|version| loss(version, place) <= cap);
        let (weight, sum) = near.fold((0.0, 0.0), |(weight, sum), version| {
            (weight + 1.0 / version.variance, sum + version.mean / version.variance)
        });
        sum / weight
    };
    let edges = versions.iter().flat_map(|version| {
        let reach = (cap * version.variance).sqrt();
        // A hair inside, so that the version counts as in.
        [-1.0, 0.0, 1.0].map(|side| version.mean + side * reach * (1.0 - 1e-9))
    });
    let levels = edges.map(mean_near).filter(|level| level.is_finite());
    let best = levels.map(|level| (total(level), level)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.unwrap_or((0.0, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    const OTAVA: EDivisive = EDivisive {
        window: 30,
        max_p: 0.001,
        min_magnitude: 0.0,
        compatibility: Compatibility::Otava,
    };

    /// The first divergence by its definition, without shortcuts.
    fn divergence(left: &[f64], right: &[f64]) -> f64 {
        let (n, m) = (left.len() as f64, right.len() as f64);
        let sum = |pairs: &mut dyn Iterator<Item = (f64, f64)>| -> f64 {
            pairs.map(|(a, b)| (a - b).abs()).sum()
        };
        let inner = |side: &[f64]| -> f64 {
            let pairs = (0..side.len()).flat_map(|k| (0..k).map(move |i| (i, k)));
            sum(&mut pairs.map(|(i, k)| (side[i], side[k])))
        };
        let across = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
        let mut value = 2.0 / (m + n) * sum(&mut across.into_iter());
        if left.len() > 1 {
            value -= 2.0 * m / ((m + n) * (n - 1.0)) * inner(left);
        }
        if right.len() > 1 {
            value -= 2.0 * n / ((m + n) * (m - 1.0)) * inner(right);
        }
        value
    }

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = rqps_model::datagen::rng::Rng::new(seed);
        (0..count).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn the_most_divergent_point_is_that_of_the_definition() {
        for seed in 1..20 {
            let values = noise(seed, 17);
            let (found, at) = most_divergent(&values).expect("points");
            let mut best = (f64::NEG_INFINITY, 0);
            for split in 1..values.len() {
                for end in split + 1..=values.len() {
                    let value = divergence(&values[..split], &values[split..end]);
                    if value > best.0 {
                        best = (value, split);
                    }
                }
            }
            assert_eq!(at, best.1, "seed {seed}");
            assert!((found - best.0).abs() < 1e-9, "seed {seed}: {found} {}", best.0);
        }
    }

    #[test]
    fn steps_are_found_and_noise_is_not() {
        let mut values: Vec<f64> = noise(8, 90).iter().map(|value| 100.0 + value).collect();
        let quiet = e_divisive(&values, &EDivisive::default());
        assert_eq!(quiet, []);
        for value in &mut values[40..] {
            *value += 6.0;
        }
        for value in &mut values[65..] {
            *value -= 9.0;
        }
        for compatibility in [Compatibility::Otava, Compatibility::Mended] {
            let rules = EDivisive { compatibility, ..EDivisive::default() };
            let found = e_divisive(&values, &rules);
            let indexes: Vec<usize> = found.iter().map(|shift| shift.index).collect();
            assert_eq!(indexes, [40, 65]);
            assert!((found[0].means[1] - 106.0).abs() < 0.8, "{:?}", found[0]);
            assert!(found.iter().all(|shift| shift.p < 1e-6));
        }
    }

    #[test]
    fn the_least_size_removes_small_steps() {
        let values: Vec<f64> = (0..40)
            .map(|i| 100.0 + f64::from(i % 3) * 0.1 + if i < 20 { 0.0 } else { 2.0 })
            .collect();
        assert_eq!(e_divisive(&values, &OTAVA).len(), 1);
        assert_eq!(e_divisive(&values, &EDivisive { min_magnitude: 0.05, ..OTAVA }), []);
    }

    #[test]
    fn short_and_constant_series_have_no_change() {
        for values in [vec![], vec![1.0], vec![1.0, 2.0], vec![5.0; 60]] {
            assert_eq!(e_divisive(&values, &OTAVA), [], "{values:?}");
        }
    }

    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    fn versions(means: &[f64], sd: f64) -> Vec<VersionMean> {
        means.iter().map(|mean| VersionMean { mean: *mean, variance: sd * sd }).collect()
    }

    fn starts(partition: &Partition) -> Vec<usize> {
        partition.levels.iter().skip(1).map(|level| level.from).collect()
    }

    /// Cost of a division by definition, with every level of a fine grid.
    fn cost(versions: &[VersionMean], starts: &[usize], penalty: f64) -> f64 {
        let bounds: Vec<usize> = [&[0], starts, &[versions.len()]].concat();
        let of_level = |pair: &[usize]| {
            let part = &versions[pair[0]..pair[1]];
            let losses = (0..=4000).map(|step| {
                let level = f64::from(step) / 1000.0 - 2.0;
                let cap = OUTLIER_PER_PENALTY * penalty;
                part.iter().map(|version| loss(version, level).min(cap)).sum::<f64>()
            });
            losses.fold(f64::INFINITY, f64::min)
        };
        bounds.windows(2).map(of_level).sum::<f64>() + penalty * starts.len() as f64
    }

    #[test]
    fn no_division_is_cheaper() {
        let mut rng = Rng::new(3);
        for _ in 0..20 {
            let means: Vec<f64> = (0..7).map(|_| 0.5 * normal(&mut rng)).collect();
            let versions = versions(&means, 0.2);
            let penalty = penalty(7, f64::INFINITY, 0.05);
            let levels = cheapest(&versions, penalty);
            let found = cost(&versions, &starts(&Partition { levels }), penalty);
            for mask in 0..64_u32 {
                let all: Vec<usize> = (1..7).filter(|at| mask >> (at - 1) & 1 == 1).collect();
                assert!(found <= cost(&versions, &all, penalty) + 1e-3, "{means:?} {all:?}");
            }
        }
    }

    /// A version that returns is an outlier, two in a row are a level, and the last version is a
    /// change.
    #[test]
    fn an_outlier_is_no_change() {
        let of = |means: &[f64]| {
            partition(&versions(means, 0.01), penalty(means.len(), f64::INFINITY, 0.05))
        };
        let one = of(&[0.0, 0.01, -0.01, -0.9, 0.0, 0.01, 0.0]);
        assert_eq!(starts(&one), [0; 0]);
        assert_eq!(one.levels[0].outliers, [3]);
        assert!(one.levels[0].mean.abs() < 0.01);
        assert_eq!(starts(&of(&[0.0, 0.01, -0.01, -0.9, -0.9, 0.01, 0.0])), [3, 5]);
        assert_eq!(starts(&of(&[0.0, 0.01, -0.01, 0.0, 0.0, 0.01, -0.9])), [6]);
    }

    /// The level moved a little under the outlier.
    #[test]
    fn a_version_that_sticks_out_between_two_levels_is_an_outlier() {
        let means = [0.0, 0.01, -0.9, -0.91, -0.89, 0.1, -1.0, -0.99, -1.01, -1.0];
        let found = partition(&versions(&means, 0.01), penalty(means.len(), f64::INFINITY, 0.05));
        assert_eq!(starts(&found), [2, 6]);
        assert_eq!(found.levels[1].outliers, [5]);
        assert!((found.levels[1].mean + 0.9).abs() < 0.01, "{found:?}");
        let stairs = [0.0, 0.01, -0.3, -0.6, -0.61, -0.59];
        let found = partition(&versions(&stairs, 0.01), penalty(stairs.len(), f64::INFINITY, 0.05));
        assert_eq!(starts(&found), [2, 3]);
    }

    /// 20 versions, three steps of 3 %, runs of 1 % four times, layouts of .5 %: recall and
    /// precision of the changes within one version.
    #[test]
    fn steps_of_a_ladder_are_found() {
        let (mut hits, mut found, mut real) = (0, 0, 0);
        let mut rng = Rng::new(11);
        for _ in 0..200 {
            let steps = [4 + rng.below(3) as usize, 9 + rng.below(3) as usize, 15];
            let sd = (0.01_f64.powi(2) / 4.0 + 0.005_f64.powi(2)).sqrt();
            let means: Vec<f64> = (0..20)
                .map(|at| {
                    let changes = steps.iter().filter(|step| **step <= at).count();
                    -0.03 * changes as f64 + sd * normal(&mut rng)
                })
                .collect();
            let starts =
                starts(&partition(&versions(&means, sd), penalty(20, f64::INFINITY, 0.05)));
            real += steps.len();
            found += starts.len();
            hits += steps
                .iter()
                .filter(|step| starts.iter().any(|start| start.abs_diff(**step) <= 1))
                .count();
        }
        let (recall, precision) = (hits as f64 / real as f64, hits as f64 / found as f64);
        assert!(recall > 0.95 && precision > 0.93, "recall {recall}, precision {precision}");
    }

    #[test]
    fn a_ladder_without_changes_shows_few() {
        let mut rng = Rng::new(5);
        let with_change = (0..400).filter(|_| {
            let means: Vec<f64> = (0..20).map(|_| 0.01 * normal(&mut rng)).collect();
            partition(&versions(&means, 0.01), penalty(20, f64::INFINITY, 0.05)).levels.len() > 1
        });
        let share = with_change.count() as f64 / 400.0;
        assert!(share < 0.05, "{share}");
    }

    #[test]
    fn no_version_no_level() {
        assert_eq!(partition(&[], 3.0).levels, []);
        assert_eq!(
            partition(&versions(&[1.5], 0.1), penalty(1, f64::INFINITY, 0.05)).levels.len(),
            1
        );
    }
}
