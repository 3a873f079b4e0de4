//! Checks whether a set of vectors is as hard to search as the real one. Each check has the value
//! found, the expected value, its limits and its source.

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use crate::data::VectorSet;
use crate::data::dataset::Statistics;
use crate::data::truth::Truth;
use crate::driver::graph::{Graph, Points, Scratch};
use crate::driver::searcher::score;
use rqps_model::vector::PgBuild;
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::mean;
use rqps_stats::{Interval, parallel};

/// Rows and dimensions of the set with known figures.
pub const SPECIFIED: (usize, usize) = (60_000, 784);
/// Neighbours per query.
const K: usize = 10;
/// Graphs per index, each with its own seed for the layers of nodes, if the difference between
/// single graphs could change the outcome.
const GRAPHS: u64 = 5;
/// Recalls closer to their limit are measured on all graphs: the range of recalls of pgvector's
/// builds of one index in published data.
const NEAR: f64 = 0.009;
/// Rows between two progress reports.
const SIGN_OF_LIFE: usize = 500;

/// The source of expected statistics.
const PROTOTYPE: &str = "prototype of the generator";
/// The source of expected recalls.
const PUBLISHED: &str = "pgvector 0.8.0 on fashion-mnist, January 2025";
/// The source of limits that are not published.
const RULE: &str = "limits in docs/vector.md";
/// Level of the intervals of recalls.
const CONFIDENCE: f64 = 0.95;

/// A check of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct DataCheck {
    /// The name of the value: "zeros", "recall 8/32 ef 10".
    pub what: String,
    /// The value found.
    pub found: f64,
    /// The expected value, if it is one number.
    pub expected: Option<f64>,
    /// Its allowed range; `None` for a value without a check.
    pub range: Option<RangeInclusive<f64>>,
    /// The 95 % interval of the value if it is a mean.
    pub interval: Option<Interval>,
    /// The source of the expected value.
    pub source: &'static str,
}

impl DataCheck {
    /// False if the value is out of range.
    pub fn holds(&self) -> bool {
        self.range.as_ref().is_none_or(|range| range.contains(&self.found))
    }

    /// True if the interval of the mean contains a limit: other seeds could change the outcome.
    pub fn is_close(&self) -> bool {
        let Some((range, interval)) = self.range.as_ref().zip(self.interval) else { return false };
        let within = |limit: &f64| interval.low <= *limit && *limit <= interval.high;
        // Recall is at most 1, so that is no limit.
        [range.start(), range.end()].into_iter().any(|limit| *limit < 1.0 && within(limit))
    }

    fn told(what: String, found: f64) -> DataCheck {
        DataCheck { what, found, expected: None, range: None, interval: None, source: "" }
    }
}

/// A figure of the set with known figures: its name, its value, and the same figure of other
/// statistics.
type Figure = (&'static str, f64, fn(&Statistics) -> f64);

/// Figures of the prototype of the generator with 60,000 rows of 784 dimensions. Its dimensionality
/// varied by less than one per cent over three seeds.
const FIGURES: [Figure; 8] = [
    ("zeros", 0.61, |s| s.zeros),
    ("mean", 25.6, |s| s.mean),
    ("local dimensionality, mean", 10.0, |s| s.dimensionality[0]),
    ("local dimensionality, median", 9.1, |s| s.dimensionality[1]),
    ("local dimensionality, 10 %", 4.2, |s| s.dimensionality[2]),
    ("local dimensionality, 90 %", 17.2, |s| s.dimensionality[3]),
    ("relative contrast at 10", 2.41, |s| s.contrast),
    ("skewness of 10-occurrence", 1.55, |s| s.skewness),
];

/// Allowed deviation of a figure, as a share of it.
const ALLOWED: f64 = 0.05;

/// The statistics of a set; compared with those of the prototype if it is `specified`.
pub fn statistics(found: &Statistics, specified: bool) -> Vec<DataCheck> {
    let check = |(name, value, get): Figure| {
        let allowed = value * ALLOWED;
        if specified {
            DataCheck {
                what: name.to_owned(),
                found: get(found),
                expected: Some(value),
                range: Some(value - allowed..=value + allowed),
                interval: None,
                source: PROTOTYPE,
            }
        } else {
            DataCheck::told(name.to_owned(), get(found))
        }
    };
    let mut checks: Vec<DataCheck> = FIGURES.into_iter().map(check).collect();
    let told = [("rows equal to another row", found.equal_rows), ("queries with ties", found.ties)];
    checks.extend(told.map(|(name, share)| DataCheck::told(name.to_owned(), share)));
    checks
}

/// Allowed distance between the recalls of the set and of the real set.
const RECALL_ALLOWED: f64 = 0.03;
/// Published recalls of one index of the real set: m, ef_construction, and (ef, recall).
type Curve = (u32, u32, &'static [(u32, f64)]);

const CURVES: [Curve; 8] = [
    (8, 32, &[(10, 0.912), (20, 0.964), (40, 0.986), (80, 0.994)]),
    (16, 32, &[(10, 0.961), (20, 0.985), (40, 0.994), (80, 0.998)]),
    (8, 64, &[(10, 0.923), (20, 0.970), (40, 0.990), (80, 0.995)]),
    (16, 64, &[(10, 0.966), (20, 0.988), (40, 0.996), (80, 0.999)]),
    (32, 64, &[(10, 0.985), (20, 0.995), (40, 0.998)]),
    (8, 256, &[(10, 0.926), (20, 0.975), (40, 0.993)]),
    (16, 256, &[(10, 0.973), (20, 0.992), (40, 0.998)]),
    (64, 256, &[(10, 0.995), (20, 0.998)]),
];

/// Search widths for indexes without published recalls.
const WIDTHS: [u32; 4] = [10, 20, 40, 80];
/// The index whose slope is compared with the published one.
const SLOPE_OF: PgBuild = PgBuild { m: 8, ef_construction: 32 };

/// The indexes with published recalls on the real set.
pub fn published() -> Vec<PgBuild> {
    CURVES.iter().map(|&(m, ef_construction, _)| PgBuild { m, ef_construction }).collect()
}

fn curve(build: PgBuild) -> Option<&'static [(u32, f64)]> {
    let curve = CURVES.iter().find(|(m, ec, _)| (*m, *ec) == (build.m, build.ef_construction));
    curve.map(|(_, _, points)| *points)
}

/// A point of an index in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphPoint {
    /// The index.
    pub build: PgBuild,
    /// Width of the search (ef).
    pub ef: u32,
    /// Mean recall of the 10 nearest neighbours over the graphs.
    pub recall: f64,
    /// Its 95 % interval over the graphs, if there are several.
    pub interval: Option<Interval>,
    /// Number of graphs.
    pub graphs: usize,
    /// Distances computed per query, mean.
    pub computed: f64,
}

impl GraphPoint {
    /// The mean over several graphs of one index.
    fn mean(graphs: &[GraphPoint]) -> Option<GraphPoint> {
        let recalls: Vec<f64> = graphs.iter().map(|found| found.recall).collect();
        let computed: Vec<f64> = graphs.iter().map(|found| found.computed).collect();
        let recall = mean_interval(&recalls, CONFIDENCE)?;
        Some(GraphPoint {
            recall: recall.mean,
            interval: recall.interval,
            graphs: graphs.len(),
            computed: mean(&computed),
            ..*graphs.first()?
        })
    }

    /// The published recall of this point on the real set.
    fn real(&self) -> Option<f64> {
        let point = curve(self.build)?.iter().find(|(ef, _)| *ef == self.ef)?;
        Some(point.1)
    }

    /// True if the recall is close to a limit.
    fn is_near_its_limit(&self) -> bool {
        let apart = self.real().map(|real| (self.recall - real).abs() - RECALL_ALLOWED);
        apart.is_some_and(|apart| apart.abs() < NEAR)
    }
}

/// Progress of the work.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Number of rows in a graph so far.
    Rows(Seeded, usize),
    /// The points of a complete graph.
    Asked(Seeded, Vec<GraphPoint>),
    /// These graphs follow in addition.
    More(Vec<Seeded>),
}

/// A graph of an index with its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeded {
    /// The index.
    pub build: PgBuild,
    /// The seed of the layers.
    pub seed: u64,
}

impl std::fmt::Display for Seeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.seed {
            1 => write!(f, "{}", self.build),
            seed => write!(f, "{}, graph {seed}", self.build),
        }
    }
}

impl Seeded {
    /// The first graph of an index.
    pub fn first(build: PgBuild) -> Seeded {
        Seeded { build, seed: 1 }
    }
}

/// Builds each index in memory and runs all queries, one graph per CPU at a time. `truth` has at
/// least ten neighbours per query. If the set is `comparable` with the real one, an index with a
/// recall close to its limit is built several times. The result does not depend on the number of
/// CPUs.
pub fn graphs(
    data: &VectorSet,
    truth: &Truth,
    builds: &[PgBuild],
    comparable: bool,
    say: &mut (dyn FnMut(Progress) + Send),
) -> Vec<GraphPoint> {
    let work = VerifyPart { data, truth: &truth.nearest(K), points: &Points::new(data) };
    let mut found = work.all(builds.iter().copied().map(Seeded::first).collect(), say);
    if comparable {
        let near = |build: &PgBuild| {
            found.iter().any(|(of, point)| of.build == *build && point.is_near_its_limit())
        };
        let again = builds.iter().copied().filter(near).collect::<Vec<_>>();
        let seeds = |build: PgBuild| (2..=GRAPHS).map(move |seed| Seeded { build, seed });
        let more: Vec<Seeded> = again.into_iter().flat_map(seeds).collect();
        say(Progress::More(more.clone()));
        found.extend(work.all(more, say));
    }
    let mut points: Vec<(PgBuild, u32)> =
        found.iter().map(|(_, point)| (point.build, point.ef)).collect();
    let place = |build: PgBuild| builds.iter().position(|other| *other == build);
    points.sort_by_key(|(build, ef)| (place(*build), *ef));
    points.dedup();
    // In the order of seeds, so that sums do not depend on which graph was ready first.
    found.sort_by_key(|(of, _)| of.seed);
    let of_point = |(build, ef): (PgBuild, u32)| {
        let same = found.iter().filter(|(_, point)| (point.build, point.ef) == (build, ef));
        GraphPoint::mean(&same.map(|(_, point)| *point).collect::<Vec<_>>())
    };
    points.into_iter().filter_map(of_point).collect()
}

/// The input of all graphs.
struct VerifyPart<'a> {
    data: &'a VectorSet,
    truth: &'a Truth,
    points: &'a Points,
}

impl VerifyPart<'_> {
    /// The points of these graphs.
    fn all(
        &self,
        mut order: Vec<Seeded>,
        say: &mut (dyn FnMut(Progress) + Send),
    ) -> Vec<(Seeded, GraphPoint)> {
        // The longest first, so that the last to end began early.
        let effort = |build: PgBuild| build.m * build.m.max(build.ef_construction);
        order.sort_by_key(|of| (std::cmp::Reverse(effort(of.build)), of.seed));
        let say = Mutex::new(say);
        let tell = |news| {
            let mut say = say.lock().unwrap_or_else(PoisonError::into_inner);
            (*say)(news);
        };
        let found = parallel::map_on(parallel::cpus(), order, |of| {
            let asked = self.ask(of, &tell);
            tell(Progress::Asked(of, asked.clone()));
            asked.into_iter().map(|point| (of, point)).collect::<Vec<_>>()
        });
        found.into_iter().flatten().collect()
    }

    fn ask(&self, of: Seeded, tell: &impl Fn(Progress)) -> Vec<GraphPoint> {
        let Seeded { build, seed } = of;
        let graph = Graph::build(self.points, build, seed, &mut |row| {
            if row % SIGN_OF_LIFE == 0 {
                tell(Progress::Rows(of, row));
            }
            true
        });
        let of_curve = curve(build).map(|points| points.iter().map(|(ef, _)| *ef).collect());
        let widths: Vec<u32> = of_curve.unwrap_or_else(|| WIDTHS.to_vec());
        let queries = self.data.test.rows();
        let point = |ef: u32| {
            let mut scratch = Scratch::default();
            let mut answers = vec![u32::MAX; queries * K];
            for (query, answer) in answers.chunks_mut(K).enumerate() {
                let found = graph.search(query, ef as usize, K, &mut scratch);
                answer[..found.len()].copy_from_slice(&found);
            }
            let recall = score(self.data, self.truth, &answers).recall;
            let computed = scratch.computed as f64 / queries as f64;
            GraphPoint { build, ef, recall, interval: None, graphs: 1, computed }
        };
        widths.into_iter().map(point).collect()
    }
}

/// Checks of the recalls. A `specified` set is compared with the published ones.
pub fn recalls(found: &[GraphPoint], specified: bool) -> Vec<DataCheck> {
    let mut checks = Vec::new();
    let (mut have, mut want) = (Vec::new(), Vec::new());
    for point in found {
        let what = format!("recall of {} at ef {}", point.build, point.ef);
        let Some(real) = point.real().filter(|_| specified) else {
            checks.push(DataCheck::told(what, point.recall));
            continue;
        };
        have.push(point.recall);
        want.push(real);
        checks.push(DataCheck {
            what,
            found: point.recall,
            expected: Some(real),
            range: Some(real - RECALL_ALLOWED..=(real + RECALL_ALLOWED).min(1.0)),
            interval: point.interval,
            source: PUBLISHED,
        });
    }
    // These limits are for the whole grid.
    if have.len() == CURVES.iter().map(|(_, _, curve)| curve.len()).sum::<usize>() {
        checks.extend(together(&have, &want));
    }
    if found.len() > 1 {
        checks.extend(monotone(found));
    }
    checks.extend(slope(found, specified));
    checks
}

/// All points together: mean distance of recalls, and Kendall's tau of their ranks.
fn together(have: &[f64], want: &[f64]) -> [DataCheck; 2] {
    let sum: f64 = have.iter().zip(want).map(|(have, want)| (have - want).abs()).sum();
    let mean = DataCheck {
        what: format!("mean |difference| of {} recalls", have.len()),
        found: sum / have.len() as f64,
        expected: Some(0.0),
        range: Some(0.0..=0.01),
        interval: None,
        source: RULE,
    };
    let rank = DataCheck {
        what: "rank agreement of recalls, Kendall's tau".to_owned(),
        found: kendall(have, want),
        expected: Some(1.0),
        range: Some(0.9..=1.0),
        interval: None,
        source: RULE,
    };
    [mean, rank]
}

/// Kendall's tau-b (1945), which allows for ties.
fn kendall(a: &[f64], b: &[f64]) -> f64 {
    let (mut sum, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for i in 0..a.len() {
        for j in 0..i {
            let sign = |x: f64, y: f64| f64::from(i8::from(x > y) - i8::from(x < y));
            let (x, y) = (sign(a[i], a[j]), sign(b[i], b[j]));
            sum += x * y;
            of_a += x * x;
            of_b += y * y;
        }
    }
    sum / f64::sqrt(of_a * of_b)
}

/// Checks that a wider search finds no less and computes more distances.
fn monotone(found: &[GraphPoint]) -> [DataCheck; 2] {
    let pairs = || found.windows(2).filter(|pair| pair[0].build == pair[1].build);
    let count = |worse: fn(&GraphPoint, &GraphPoint) -> bool| {
        pairs().filter(|pair| worse(&pair[0], &pair[1])).count() as f64
    };
    let none = |what: &str, found: f64| DataCheck {
        what: what.to_owned(),
        found,
        expected: Some(0.0),
        range: Some(0.0..=0.0),
        interval: None,
        source: RULE,
    };
    [
        none("wider searches with less recall", count(|a, b| b.recall < a.recall)),
        none("wider searches with no more work", count(|a, b| b.computed <= a.computed)),
    ]
}

/// The slope at which misses decrease with the width: ln(1 − recall) against ln ef between the
/// ends.
fn slope(found: &[GraphPoint], specified: bool) -> Option<DataCheck> {
    let mut points = found.iter().filter(|point| point.build == SLOPE_OF);
    let (first, last) = (points.next()?, points.next_back()?);
    let misses = |point: &GraphPoint| (1.0 - point.recall).ln();
    let width = (f64::from(last.ef) / f64::from(first.ef)).ln();
    let what = format!("slope of ln(1 - recall) of {SLOPE_OF}");
    let found = (misses(last) - misses(first)) / width;
    // The published slope is between these widths.
    Some(match specified && (first.ef, last.ef) == (10, 80) {
        // Without misses there is no slope.
        false if !found.is_finite() => return None,
        false => DataCheck::told(what, found),
        true => DataCheck {
            what,
            found,
            expected: Some(-1.2),
            range: Some(-1.5..=-0.9),
            interval: None,
            source: RULE,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::vector::{DataSource, Filter, Present};

    #[test]
    fn ranks_agree_as_kendall_says() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        // scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]).statistic
        let tau = kendall(&[12.0, 2.0, 1.0, 12.0, 2.0], &[1.0, 4.0, 7.0, 1.0, 0.0]);
        assert!((tau - -0.471_404_520_791_031_7).abs() < 1e-12, "{tau}");
    }

    /// The published points, with each recall moved by `shift`.
    fn points(shift: f64) -> Vec<GraphPoint> {
        let mut found = Vec::new();
        for (build, (_, _, curve)) in published().into_iter().zip(CURVES) {
            for (ef, recall) in curve {
                let computed = f64::from(*ef);
                let recall = recall + shift;
                let (interval, graphs) = (None, 1);
                found.push(GraphPoint { build, ef: *ef, recall, interval, graphs, computed });
            }
        }
        found
    }

    fn broken(found: &[GraphPoint]) -> Vec<String> {
        let checks = recalls(found, true);
        checks.into_iter().filter(|check| !check.holds()).map(|check| check.what).collect()
    }

    #[test]
    fn the_published_curves_hold_and_others_do_not() {
        assert_eq!(points(0.0).len(), 27);
        assert_eq!(broken(&points(0.0)), Vec::<String>::new());
        let near = broken(&points(-0.011));
        assert!(near.contains(&"mean |difference| of 27 recalls".to_owned()), "{near:?}");
        assert!(!near.iter().any(|what| what.starts_with("recall of")), "{near:?}");
        let far = broken(&points(-0.04));
        assert!(far.contains(&"recall of 8/32 at ef 10".to_owned()), "{far:?}");
        let some: Vec<GraphPoint> = points(-0.02).into_iter().take(3).collect();
        assert_eq!(broken(&some), Vec::<String>::new(), "three points are not the grid");
        let mut falling = points(0.0);
        falling[1].recall = falling[0].recall - 0.001;
        falling[2].computed = falling[1].computed;
        let found = broken(&falling);
        for words in ["less recall", "no more work"] {
            assert!(found.iter().any(|what| what.contains(words)), "{found:?}");
        }
        let flat: Vec<GraphPoint> =
            points(0.0).into_iter().map(|point| GraphPoint { recall: 0.95, ..point }).collect();
        assert!(broken(&flat).iter().any(|what| what.starts_with("slope")));
    }

    #[test]
    fn a_small_set_is_searched_by_every_index_and_judged_by_none_but_the_rules() {
        let source = DataSource::Fashion { dims: 24, queries: 60, rounded: true, seed: 1 };
        let data = VectorSet::open(&source, 1_200, 100, None).unwrap();
        let truth = data.truth(Filter::None, Present::All, 100, None).unwrap();
        let builds = [SLOPE_OF, PgBuild { m: 4, ef_construction: 8 }];
        let mut rows = 0;
        let found = graphs(&data, &truth, &builds, false, &mut |news| {
            rows += usize::from(matches!(news, Progress::Rows(..)));
        });
        assert_eq!(found.len(), 8, "{found:?}");
        assert!(rows >= 6, "{rows}");
        assert_eq!(found, graphs(&data, &truth, &builds, false, &mut |_| {}), "the same each time");
        let better = |a: &GraphPoint, b: &GraphPoint| a.recall > b.recall;
        assert!(better(&found[0], &found[4]), "more links find more: {found:?}");
        assert!(found[3].recall > 0.95, "{found:?}");
        let checks = recalls(&found, false);
        assert!(checks.iter().all(DataCheck::holds), "{checks:?}");
        assert!(checks.iter().filter(|check| check.range.is_some()).count() == 2);
    }

    #[test]
    fn recalls_near_their_limit_are_means_of_several_graphs() {
        let point = |recall: f64| GraphPoint {
            build: PgBuild { m: 8, ef_construction: 256 },
            ef: 10,
            recall,
            interval: None,
            graphs: 1,
            computed: 100.0,
        };
        // 0.926 on the real set, so the limit is 0.956.
        for (recall, near) in [(0.9567, true), (0.948, true), (0.946, false), (0.97, false)] {
            assert_eq!(point(recall).is_near_its_limit(), near, "{recall}");
        }
        let check = |recalls: [f64; 3], holds: bool, close: bool| {
            let found = GraphPoint::mean(&recalls.map(point)).unwrap();
            assert_eq!(found.graphs, 3);
            let check = &recalls_of(&found)[0];
            assert_eq!((check.holds(), check.is_close()), (holds, close), "{recalls:?} {check:?}");
        };
        check([0.955, 0.9551, 0.9549], true, false);
        check([0.953, 0.957, 0.955], true, true);
        check([0.955, 0.959, 0.957], false, true);
        check([0.957, 0.9571, 0.9569], false, false);
    }

    fn recalls_of(found: &GraphPoint) -> Vec<DataCheck> {
        recalls(&[*found], true)
    }

    #[test]
    fn only_what_is_comparable_is_built_several_times() {
        let source = DataSource::Fashion { dims: 24, queries: 60, rounded: true, seed: 1 };
        let data = VectorSet::open(&source, 1_200, 100, None).unwrap();
        let truth = data.truth(Filter::None, Present::All, 100, None).unwrap();
        let build = PgBuild { m: 8, ef_construction: 32 };
        let once = graphs(&data, &truth, &[build], false, &mut |_| {});
        assert!(once.iter().all(|found| found.graphs == 1 && found.interval.is_none()));
        let expected = if once.iter().any(GraphPoint::is_near_its_limit) { 5 } else { 1 };
        let found = graphs(&data, &truth, &[build], true, &mut |_| {});
        assert!(found.iter().all(|found| found.graphs == expected), "{found:?}");
    }

    #[test]
    fn statistics_are_held_against_the_prototype() {
        let mut found = Statistics {
            zeros: 0.62,
            mean: 25.0,
            dimensionality: [10.0, 9.1, 4.2, 17.2],
            contrast: 2.41,
            equal_rows: 0.0,
            ties: 0.0,
            skewness: 1.6,
        };
        assert!(statistics(&found, true).iter().all(DataCheck::holds));
        found.zeros = 0.5;
        let wrong: Vec<DataCheck> =
            statistics(&found, true).into_iter().filter(|check| !check.holds()).collect();
        assert_eq!(wrong.len(), 1);
        assert_eq!((wrong[0].what.as_str(), wrong[0].expected), ("zeros", Some(0.61)));
        assert!(statistics(&found, false).iter().all(DataCheck::holds));
    }
}
