//! Checks whether a set of vectors is as hard to search as the real one. Each check has the value
//! found, the expected value, its limits and its source.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use crate::data::VectorSet;
use crate::data::truth::Truth;
use crate::data::truth::{self, Instructions};
use crate::data::{Matrix, Numbers, Statistics};
use crate::driver::searcher::score;
use rqps_model::datagen::rng::Rng;
use rqps_model::vector::{Distance, PgBuild};
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

// An in-memory index of vectors, built and searched like pgvector's HNSW. Its recall shows how
// hard a data set is for such indexes; no server is needed.
//
// The algorithms are those of Malkov and Yashunin (2016). Each layer has fewer nodes than the one
// below. A node has up to 2 m links on the lowest layer and up to m on the others. A candidate
// becomes a link if it is nearer to the node than to each link chosen before (their algorithm 4).
// The nearest of the other candidates fill the free places, as in pgvector. One seed gives one
// graph.

/// Rows, then queries, in a form that squared differences rank.
pub struct Points {
    dims: usize,
    rows: usize,
    values: Numbers,
    by: Instructions,
}

impl Points {
    /// The points of a set. For the cosine distance all have length 1, where the euclidean distance
    /// has the same order.
    pub fn new(data: &VectorSet) -> Points {
        let (train, test) = (&data.train, &data.test);
        let values = match (&train.values, &test.values, data.distance) {
            (Numbers::Bytes(rows), Numbers::Bytes(queries), Distance::Euclidean) => {
                Numbers::Bytes([rows.as_slice(), queries].concat())
            }
            _ => Numbers::Floats(
                [floats(train, data.distance), floats(test, data.distance)].concat(),
            ),
        };
        Points { dims: train.dims, rows: train.rows(), values, by: truth::instructions() }
    }

    /// Prefetches the values of a point.
    #[inline]
    fn fetch(&self, point: usize) {
        if let Numbers::Bytes(values) = &self.values {
            truth::fetch(&values[point * self.dims..(point + 1) * self.dims]);
        }
    }

    /// Squared distance of two points by index; queries follow the rows.
    #[inline]
    fn between(&self, a: usize, b: usize) -> f32 {
        let place = |point: usize| point * self.dims..(point + 1) * self.dims;
        match &self.values {
            Numbers::Bytes(values) => {
                truth::squared_bytes(self.by, &values[place(a)], &values[place(b)]) as f32
            }
            Numbers::Floats(values) => squared(&values[place(a)], &values[place(b)]),
        }
    }
}

fn floats(matrix: &Matrix, distance: Distance) -> Vec<f32> {
    let mut values = vec![0.0; matrix.rows() * matrix.dims];
    for (row, out) in values.chunks_mut(matrix.dims.max(1)).enumerate() {
        matrix.copy_row(row, out);
        if distance == Distance::Cosine {
            let length = out.iter().map(|value| value * value).sum::<f32>().sqrt();
            out.iter_mut().for_each(|value| *value /= length);
        }
    }
    values
}

/// Eight partial sums, which the compiler keeps in one register.
fn squared(a: &[f32], b: &[f32]) -> f32 {
    let (a, rest_of_a) = a.as_chunks::<8>();
    let (b, rest_of_b) = b.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += (a - b) * (a - b);
        }
    }
    let rest = rest_of_a.iter().zip(rest_of_b).map(|(a, b)| (a - b) * (a - b));
    sums.iter().sum::<f32>() + rest.sum::<f32>()
}

/// A node and its distance from the query.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Near {
    distance: f32,
    id: u32,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Near) -> Ordering {
        self.distance.total_cmp(&other.distance).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Near) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Links of a node on one layer.
#[derive(Clone, Debug, Default)]
struct Links {
    /// The nearest first once `judged`.
    to: Vec<Near>,
    /// For each link, true if it is nearer to the node than to any link taken before it. Valid if
    /// `judged`.
    apart: Vec<bool>,
    judged: bool,
}

/// The index.
pub struct Graph<'a> {
    points: &'a Points,
    build: PgBuild,
    /// Links of each node by layer, from the lowest.
    nodes: Vec<Vec<Links>>,
    /// The start of searches: a node of the highest layer.
    entry: Option<u32>,
}

/// Reusable memory of searches, and a count of their work.
#[derive(Default)]
pub struct Scratch {
    /// The last search that saw each node.
    seen: Vec<u32>,
    search: u32,
    /// Neighbours of a node that are new in this search.
    fresh: Vec<u32>,
    /// Number of distances computed so far.
    pub computed: u64,
}

impl<'a> Graph<'a> {
    /// Builds a graph of all rows in their order. Calls `say` after each row; if it returns false,
    /// the build stops and returns the graph so far.
    pub fn build(
        points: &'a Points,
        build: PgBuild,
        seed: u64,
        say: &mut dyn FnMut(usize) -> bool,
    ) -> Graph<'a> {
        let mut graph =
            Graph { points, build, nodes: Vec::with_capacity(points.rows), entry: None };
        let mut scratch = Scratch::default();
        let mut rng = Rng::stream(seed, "vector.graph", u64::from(build.m));
        for row in 0..points.rows {
            // Each layer has 1/m of the nodes of the layer below.
            let layer = -libm::log1p(-rng.unit()) / f64::from(build.m).ln();
            graph.insert(row as u32, layer as usize, &mut scratch);
            if !say(row) {
                break;
            }
        }
        graph
    }

    /// The `k` nearest rows of query `query` in a search of width `ef`, the nearest first.
    pub fn search(&self, query: usize, ef: usize, k: usize, scratch: &mut Scratch) -> Vec<u32> {
        let Some(entry) = self.entry else { return Vec::new() };
        let point = self.points.rows + query;
        let mut from = vec![self.near(point, entry, scratch)];
        for layer in (1..self.nodes[entry as usize].len()).rev() {
            from = self.search_layer(point, &from, 1, layer, scratch);
        }
        let found = self.search_layer(point, &from, ef, 0, scratch);
        found.into_iter().take(k).map(|near| near.id).collect()
    }

    fn near(&self, point: usize, id: u32, scratch: &mut Scratch) -> Near {
        scratch.computed += 1;
        Near { distance: self.points.between(point, id as usize), id }
    }

    fn most(&self, layer: usize) -> usize {
        self.build.m as usize * if layer == 0 { 2 } else { 1 }
    }

    fn insert(&mut self, id: u32, layer: usize, scratch: &mut Scratch) {
        self.nodes.push(vec![Links::default(); layer + 1]);
        let Some(entry) = self.entry else {
            self.entry = Some(id);
            return;
        };
        let highest = self.nodes[entry as usize].len() - 1;
        let point = id as usize;
        let mut from = vec![self.near(point, entry, scratch)];
        for layer in (layer + 1..=highest).rev() {
            from = self.search_layer(point, &from, 1, layer, scratch);
        }
        for layer in (0..=layer.min(highest)).rev() {
            let width = self.build.ef_construction as usize;
            from = self.search_layer(point, &from, width, layer, scratch);
            let chosen = self.choose(&from, self.most(layer), scratch);
            for link in &chosen {
                let back = Near { distance: link.distance, id };
                self.link(link.id, back, layer, scratch);
            }
            self.nodes[point][layer].to = chosen;
        }
        if layer > highest {
            self.entry = Some(id);
        }
    }

    /// The `ef` nearest nodes of a layer reachable from `from`, the nearest first.
    fn search_layer(
        &self,
        point: usize,
        from: &[Near],
        ef: usize,
        layer: usize,
        scratch: &mut Scratch,
    ) -> Vec<Near> {
        scratch.begin(self.nodes.len());
        let mut open: BinaryHeap<Reverse<Near>> = from.iter().copied().map(Reverse).collect();
        let mut found: BinaryHeap<Near> = from.iter().copied().collect();
        for near in from {
            scratch.is_new(near.id);
        }
        while let Some(Reverse(nearest)) = open.pop() {
            if found.peek().is_some_and(|farthest| nearest.distance > farthest.distance) {
                break;
            }
            let Some(links) = self.nodes[nearest.id as usize].get(layer) else { continue };
            // Collects the new nodes first, so that the next one is prefetched while one is
            // compared.
            let mut fresh = std::mem::take(&mut scratch.fresh);
            fresh.clear();
            fresh.extend(links.to.iter().map(|link| link.id).filter(|id| scratch.is_new(*id)));
            for (place, id) in fresh.iter().enumerate() {
                if let Some(next) = fresh.get(place + 1) {
                    self.points.fetch(*next as usize);
                }
                let near = self.near(point, *id, scratch);
                let full = found.len() >= ef;
                if full && found.peek().is_some_and(|last| near.distance >= last.distance) {
                    continue;
                }
                open.push(Reverse(near));
                found.push(near);
                if full {
                    found.pop();
                }
            }
            scratch.fresh = fresh;
        }
        found.into_sorted_vec()
    }

    /// True if `near` is nearer to the node than to any of `taken`.
    fn is_apart(&self, near: Near, taken: &[Near], scratch: &mut Scratch) -> bool {
        taken.iter().all(|other| {
            scratch.computed += 1;
            self.points.between(near.id as usize, other.id as usize) > near.distance
        })
    }

    /// Chooses links of a new node from candidates, the nearest first.
    fn choose(&self, candidates: &[Near], most: usize, scratch: &mut Scratch) -> Vec<Near> {
        if candidates.len() <= most {
            return candidates.to_vec();
        }
        let (mut taken, mut rest) = (Vec::with_capacity(most), Vec::new());
        for near in candidates {
            if taken.len() == most {
                break;
            }
            if self.is_apart(*near, &taken, scratch) {
                taken.push(*near);
            } else {
                rest.push(*near);
            }
        }
        taken.extend(rest.into_iter().take(most.saturating_sub(taken.len())));
        taken
    }

    /// Adds a link to a node; drops the worst one if there are too many.
    fn link(&mut self, node: u32, new: Near, layer: usize, scratch: &mut Scratch) {
        let most = self.most(layer);
        let mut links = std::mem::take(&mut self.nodes[node as usize][layer]);
        if links.to.len() < most {
            links.to.push(new);
        } else {
            self.prune(&mut links, new, scratch);
        }
        self.nodes[node as usize][layer] = links;
    }

    /// Judges the links of a node and a new one, and drops the farthest that is not apart, or the
    /// farthest of all. Keeps earlier judgements that the new link cannot change, which saves most
    /// of the work.
    fn prune(&self, links: &mut Links, new: Near, scratch: &mut Scratch) {
        if !links.judged {
            links.to.sort_unstable();
        }
        let place = links.to.partition_point(|near| *near < new);
        links.to.insert(place, new);
        let was = if links.judged { std::mem::take(&mut links.apart) } else { Vec::new() };
        let (mut taken, mut added) = (Vec::with_capacity(links.to.len()), Vec::new());
        let (mut lost, mut apart) = (false, Vec::with_capacity(links.to.len()));
        for (index, near) in links.to.iter().enumerate() {
            let before = match index.cmp(&place) {
                Ordering::Less => was.get(index).copied(),
                Ordering::Equal => None,
                Ordering::Greater => was.get(index - 1).copied(),
            };
            let now = match before {
                None => self.is_apart(*near, &taken, scratch),
                Some(true) => self.is_apart(*near, &added, scratch),
                Some(false) => lost && self.is_apart(*near, &taken, scratch),
            };
            lost |= before == Some(true) && !now;
            if now && before != Some(true) && links.judged {
                added.push(*near);
            }
            if now {
                taken.push(*near);
            }
            apart.push(now);
        }
        let drop = apart.iter().rposition(|apart| !apart).unwrap_or(apart.len() - 1);
        links.to.remove(drop);
        apart.remove(drop);
        (links.apart, links.judged) = (apart, true);
    }
}

impl Scratch {
    fn begin(&mut self, nodes: usize) {
        self.seen.resize(nodes.max(self.seen.len()), 0);
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.seen.fill(0);
            self.search = 1;
        }
    }

    fn is_new(&mut self, id: u32) -> bool {
        std::mem::replace(&mut self.seen[id as usize], self.search) != self.search
    }
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

#[cfg(test)]
mod graph_tests {
    use super::*;

    fn data(rows: usize, dims: usize, floats: bool) -> VectorSet {
        let mut rng = Rng::new(5);
        let mut matrix = |rows: usize| {
            let values = (0..rows * dims).map(|_| rng.unit() as f32 * 255.0);
            let values = values.map(|value| if floats { value } else { value.floor() });
            Matrix::of_floats(dims, values.collect())
        };
        let (train, test) = (matrix(rows), matrix(40));
        let distance = if floats { Distance::Cosine } else { Distance::Euclidean };
        VectorSet::new("points".to_owned(), train, test, distance)
    }

    /// Share of the 10 nearest that the search finds.
    fn recall(data: &VectorSet, graph: &Graph<'_>, ef: usize) -> f64 {
        let truth = crate::data::truth::exact(&data.train, &data.test, data.distance, None, 10, 1);
        let mut hits = 0;
        for query in 0..data.test.rows() {
            let found = graph.search(query, ef, 10, &mut Scratch::default());
            hits += found.iter().filter(|id| truth.ids_of(query).contains(id)).count();
        }
        hits as f64 / (10 * data.test.rows()) as f64
    }

    #[test]
    fn a_wide_search_finds_all_and_a_narrow_one_less() {
        for floats in [false, true] {
            let data = data(1500, 12, floats);
            let points = Points::new(&data);
            let build = PgBuild { m: 6, ef_construction: 24 };
            let graph = Graph::build(&points, build, 1, &mut |_| true);
            let (narrow, wide) = (recall(&data, &graph, 10), recall(&data, &graph, 200));
            assert!(wide > 0.99 && (0.5..wide).contains(&narrow), "{floats}: {narrow} {wide}");
        }
    }

    #[test]
    fn nodes_keep_to_their_number_of_links() {
        let data = data(800, 4, false);
        let points = Points::new(&data);
        let graph = Graph::build(&points, PgBuild { m: 4, ef_construction: 16 }, 1, &mut |_| true);
        let mut layers = Vec::new();
        for (id, node) in graph.nodes.iter().enumerate() {
            layers.resize(layers.len().max(node.len()), 0);
            for (layer, links) in node.iter().enumerate() {
                layers[layer] += 1;
                assert!(links.to.len() <= graph.most(layer));
                let ids: Vec<u32> = links.to.iter().map(|near| near.id).collect();
                assert!(!ids.contains(&(id as u32)), "a node does not link to itself");
                assert!(ids.iter().all(|other| graph.nodes[*other as usize].len() > layer));
            }
        }
        assert!(layers.len() > 2 && layers[1] > 100 && layers[1] < 300, "{layers:?}");
        let highest = graph.nodes[graph.entry.unwrap() as usize].len();
        assert_eq!(highest, layers.len());
    }

    // Kept judgements must give the same result as judging anew.
    #[test]
    fn remembered_judgements_are_those_of_judging_anew() {
        let data = data(300, 3, false);
        let points = Points::new(&data);
        let graph = Graph {
            points: &points,
            build: PgBuild { m: 4, ef_construction: 8 },
            nodes: Vec::new(),
            entry: None,
        };
        let mut scratch = Scratch::default();
        let link = |id: u32, scratch: &mut Scratch| graph.near(0, id, scratch);
        let first: Vec<Near> = (1..9).map(|id| link(id, &mut scratch)).collect();
        let mut kept = Links { to: first, ..Links::default() };
        for id in 9..300 {
            let new = link(id, &mut scratch);
            let mut anew = Links { to: kept.to.clone(), ..Links::default() };
            graph.prune(&mut anew, new, &mut scratch);
            graph.prune(&mut kept, new, &mut scratch);
            assert_eq!((&kept.to, &kept.apart), (&anew.to, &anew.apart), "{id}");
        }
    }

    #[test]
    fn work_can_be_abandoned() {
        let data = data(100, 4, false);
        let points = Points::new(&data);
        let build = PgBuild { m: 4, ef_construction: 16 };
        let graph = Graph::build(&points, build, 1, &mut |row| row < 9);
        assert_eq!(graph.nodes.len(), 10);
    }
}
