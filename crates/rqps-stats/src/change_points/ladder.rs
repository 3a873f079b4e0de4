//! Levels of a ladder: a handful of versions, each with a mean and a known variance, divided into
//! runs of one level by optimal partitioning.
//!
//! The divisions minimise Σ w (x − level)² + penalty × changes over all divisions at once, by
//! dynamic programming (Jackson and others 2005, "An algorithm for optimal partitioning of data on
//! an interval", doi:10.1109/LSP.2001.838216). The loss of a version is capped, so that one
//! version that is off and returns is an outlier, not two changes (Fearnhead and Rigaill 2019,
//! "Changepoint detection in the presence of outliers", doi:10.1080/01621459.2017.1385466).

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

/// The cost of one change among this many versions: 3 ln V, at least 3 ln 3. With normal noise of
/// the given variances, a ladder without changes then shows none in about 19 of 20 cases.
pub fn penalty(versions: usize) -> f64 {
    3.0 * (versions.max(3) as f64).ln()
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
            let penalty = penalty(7);
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
        let of = |means: &[f64]| partition(&versions(means, 0.01), penalty(means.len()));
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
        let found = partition(&versions(&means, 0.01), penalty(means.len()));
        assert_eq!(starts(&found), [2, 6]);
        assert_eq!(found.levels[1].outliers, [5]);
        assert!((found.levels[1].mean + 0.9).abs() < 0.01, "{found:?}");
        let stairs = [0.0, 0.01, -0.3, -0.6, -0.61, -0.59];
        let found = partition(&versions(&stairs, 0.01), penalty(stairs.len()));
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
            let starts = starts(&partition(&versions(&means, sd), penalty(20)));
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
            partition(&versions(&means, 0.01), penalty(20)).levels.len() > 1
        });
        let share = with_change.count() as f64 / 400.0;
        assert!(share < 0.05, "{share}");
    }

    #[test]
    fn no_version_no_level() {
        assert_eq!(partition(&[], 3.0).levels, []);
        assert_eq!(partition(&versions(&[1.5], 0.1), penalty(1)).levels.len(), 1);
    }
}
