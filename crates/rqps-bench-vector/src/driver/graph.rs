//! An in-memory index of vectors, built and searched like pgvector's HNSW. Its recall shows how
//! hard a data set is for such indexes; no server is needed.
//!
//! The algorithms are those of Malkov and Yashunin (2016). Each layer has fewer nodes than the one
//! below. A node has up to 2 m links on the lowest layer and up to m on the others. A candidate
//! becomes a link if it is nearer to the node than to each link chosen before (their algorithm 4).
//! The nearest of the other candidates fill the free places, as in pgvector. One seed gives one
//! graph.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::data::VectorSet;
use crate::data::dataset::{Matrix, Numbers};
use crate::data::simd::{self, Instructions};
use rqps_model::datagen::rng::Rng;
use rqps_model::vector::{Distance, PgBuild};

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
        Points { dims: train.dims, rows: train.rows(), values, by: simd::instructions() }
    }

    /// Prefetches the values of a point.
    #[inline]
    fn fetch(&self, point: usize) {
        if let Numbers::Bytes(values) = &self.values {
            simd::fetch(&values[point * self.dims..(point + 1) * self.dims]);
        }
    }

    /// Squared distance of two points by index; queries follow the rows.
    #[inline]
    fn between(&self, a: usize, b: usize) -> f32 {
        let place = |point: usize| point * self.dims..(point + 1) * self.dims;
        match &self.values {
            Numbers::Bytes(values) => {
                simd::squared_bytes(self.by, &values[place(a)], &values[place(b)]) as f32
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
