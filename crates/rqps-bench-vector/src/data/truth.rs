//! Computes the exact nearest neighbours of each query on all CPUs.
//!
//! Bytes are compared exactly: squared distance = |x|² + |q|² − 2 x·q in integers, ordered by
//! (distance, id). Floats are searched in single precision for candidates, which are then ranked in
//! double precision. If rounding could have lost a neighbour, the query is repeated in double
//! precision.

use super::dataset::{Matrix, Numbers};
use crate::data::simd::{
    self, ByteQuad, FloatRow, Instructions, OFFSET, QUERIES, ROWS, SignedQuads, Tile,
};
use rqps_model::vector::{Distance, dot};
use rqps_stats::parallel;

/// Candidates beyond k in single precision.
const SPARE: usize = 50;

/// The k nearest rows of each query.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Neighbours per query.
    pub k: usize,
    /// Row numbers, the nearest first, k per query.
    pub ids: Vec<u32>,
    /// Their distances.
    pub distances: Vec<f64>,
}

impl Truth {
    /// Row numbers of the neighbours of `query`, nearest first.
    pub fn ids_of(&self, query: usize) -> &[u32] {
        &self.ids[query * self.k..(query + 1) * self.k]
    }

    /// The `k` nearest; all if there are fewer.
    pub fn nearest(&self, k: usize) -> Truth {
        let k = k.min(self.k);
        let ids = self.ids.chunks(self.k).flat_map(|ids| &ids[..k]).copied().collect();
        let distances = self.distances.chunks(self.k).flat_map(|all| &all[..k]).copied().collect();
        Truth { k, ids, distances }
    }

    /// Distance of the k-th neighbour.
    pub fn threshold(&self, query: usize) -> f64 {
        self.distances[(query + 1) * self.k - 1]
    }
}

/// The `k` nearest among the rows `ids` (ascending; `None` for all) for each query, on `threads`
/// threads (0: one per CPU). There must be at least `k` rows, and with the cosine distance no
/// vector of zeros.
pub fn exact(
    train: &Matrix,
    test: &Matrix,
    distance: Distance,
    ids: Option<&[u32]>,
    k: usize,
    threads: usize,
) -> Truth {
    let threads = match threads {
        0 => parallel::cpus(),
        some => some,
    };
    let every: Vec<u32>;
    let ids = match ids {
        Some(ids) => ids,
        None => {
            every = (0..train.rows() as u32).collect();
            &every
        }
    };
    let by = simd::instructions();
    let search = Search { train, test, distance, ids, k, by };
    match (&train.values, &test.values, distance) {
        (Numbers::Bytes(rows), Numbers::Bytes(queries), Distance::Euclidean) => {
            let plane = BytePlane::pack(rows, train.dims, ids, threads);
            search.on_threads(threads, |from, to| search.bytes(&plane, queries, from, to))
        }
        _ => {
            let plane = FloatPlane::pack(train, distance, ids, threads);
            search.on_threads(threads, |from, to| search.floats(&plane, from, to))
        }
    }
}

struct Search<'a> {
    train: &'a Matrix,
    test: &'a Matrix,
    distance: Distance,
    ids: &'a [u32],
    k: usize,
    by: Instructions,
}

impl Search<'_> {
    /// Splits the queries into a part per thread; a part begins at a whole tile.
    fn on_threads(&self, threads: usize, part: impl Fn(usize, usize) -> Truth + Sync) -> Truth {
        let queries = self.test.rows();
        let share = queries.div_ceil(threads.max(1)).next_multiple_of(QUERIES);
        let starts: Vec<usize> = (0..queries).step_by(share.max(1)).collect();
        let parts =
            parallel::map_on(threads, starts, |from| part(from, (from + share).min(queries)));
        let mut truth = Truth { k: self.k, ids: Vec::new(), distances: Vec::new() };
        for part in parts {
            truth.ids.extend(part.ids);
            truth.distances.extend(part.distances);
        }
        truth
    }

    fn bytes(&self, plane: &BytePlane, queries: &[u8], from: usize, to: usize) -> Truth {
        let dims = self.train.dims;
        let tiles = pack_queries(&queries[from * dims..to * dims], dims);
        let mut nearest = vec![Nearest::new(self.k, i32::MAX); to - from];
        let mut tile: Tile<i32> = [[0; ROWS]; QUERIES];
        for (number, panel) in plane.panels.chunks(plane.groups).enumerate() {
            let bases = &plane.bases[number * ROWS..][..ROWS];
            for (queries, nearest) in tiles.chunks(plane.groups).zip(nearest.chunks_mut(QUERIES)) {
                simd::bytes(self.by, panel, queries, &mut tile);
                for (products, nearest) in tile.iter().zip(nearest) {
                    let mut keys = [0; ROWS];
                    for ((key, base), product) in keys.iter_mut().zip(bases).zip(products) {
                        *key = base - 2 * product;
                    }
                    nearest.take(number * ROWS, &keys);
                }
            }
        }
        let mut truth = Truth { k: self.k, ids: Vec::new(), distances: Vec::new() };
        for (query, nearest) in nearest.into_iter().enumerate() {
            let values = &queries[(from + query) * dims..][..dims];
            let square: i64 = values.iter().map(|value| i64::from(*value).pow(2)).sum();
            for (key, place) in nearest.entries {
                truth.ids.push(self.ids[place as usize]);
                truth.distances.push(((i64::from(key) + square) as f64).sqrt());
            }
        }
        truth
    }

    fn floats(&self, plane: &FloatPlane, from: usize, to: usize) -> Truth {
        let tiles = self.pack_float_queries(from, to);
        let keep = (self.k + SPARE).min(self.ids.len());
        let mut nearest = vec![Nearest::new(keep, f32::INFINITY); to - from];
        let mut tile: Tile<f32> = [[0.0; ROWS]; QUERIES];
        let dims = self.train.dims;
        for (number, panel) in plane.panels.chunks(dims).enumerate() {
            let bases = &plane.bases[number * ROWS..][..ROWS];
            for (queries, nearest) in tiles.chunks(dims).zip(nearest.chunks_mut(QUERIES)) {
                simd::floats(self.by, panel, queries, &mut tile);
                for (products, nearest) in tile.iter().zip(nearest) {
                    let mut keys = [0.0; ROWS];
                    for ((key, base), product) in keys.iter_mut().zip(bases).zip(products) {
                        *key = base - 2.0 * product;
                    }
                    nearest.take(number * ROWS, &keys);
                }
            }
        }
        let mut truth = Truth { k: self.k, ids: Vec::new(), distances: Vec::new() };
        let (mut query, mut row) = (vec![0.0; dims], vec![0.0; dims]);
        for (index, nearest) in nearest.into_iter().enumerate() {
            self.test.copy_row(from + index, &mut query);
            let ranked = self.rank(&query, &nearest, plane.largest, &mut row);
            for (distance, id) in ranked.into_iter().take(self.k) {
                truth.ids.push(id);
                truth.distances.push(distance);
            }
        }
        truth
    }

    fn pack_float_queries(&self, from: usize, to: usize) -> Vec<[f32; QUERIES]> {
        let dims = self.train.dims;
        let mut tiles = vec![[0.0; QUERIES]; (to - from).div_ceil(QUERIES) * dims];
        let mut query = vec![0.0; dims];
        for index in 0..to - from {
            self.test.copy_row(from + index, &mut query);
            let tile = &mut tiles[index / QUERIES * dims..][..dims];
            for (place, value) in tile.iter_mut().zip(&query) {
                place[index % QUERIES] = *value;
            }
        }
        tiles
    }

    /// Ranks candidates by exact distance. If another row could be as near as the k-th within the
    /// rounding of single precision, it ranks all rows.
    fn rank(
        &self,
        query: &[f32],
        nearest: &Nearest<f32>,
        largest: f64,
        row: &mut [f32],
    ) -> Vec<(f64, u32)> {
        let mut measure = |place: u32| {
            let id = self.ids[place as usize];
            self.train.copy_row(id as usize, row);
            (self.distance.between(query, row), id)
        };
        let by_distance = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let places = nearest.entries.iter().map(|(_, place)| *place);
        let mut ranked: Vec<(f64, u32)> = places.map(&mut measure).collect();
        ranked.sort_by(by_distance);
        let square = dot(query, query);
        let Some((kth, _)) = ranked.get(self.k - 1).filter(|_| ranked.len() < self.ids.len())
        else {
            return ranked;
        };
        // Keys are squared distances less |q|², or −2 cos |q|: see `FloatPlane`.
        let (kth, scale) = match self.distance {
            Distance::Euclidean => (kth * kth - square, square + largest),
            Distance::Cosine => (2.0 * (kth - 1.0) * square.sqrt(), 2.0 * square.sqrt()),
        };
        let rounding = 2.0 * query.len() as f64 * 2f64.powi(-24) * scale;
        if f64::from(nearest.bound) - rounding > kth {
            return ranked;
        }
        ranked = (0..self.ids.len() as u32).map(measure).collect();
        ranked.sort_by(by_distance);
        ranked
    }
}

/// The smallest keys so far, ascending, with the indexes of their rows. Rows come in ascending
/// order, so of equal keys the earlier row stays.
#[derive(Clone)]
struct Nearest<T> {
    keep: usize,
    bound: T,
    entries: Vec<(T, u32)>,
}

impl<T: Copy + PartialOrd> Nearest<T> {
    fn new(keep: usize, most: T) -> Nearest<T> {
        Nearest { keep, bound: most, entries: Vec::with_capacity(keep + 1) }
    }

    #[inline]
    fn take(&mut self, first: usize, keys: &[T; ROWS]) {
        // One pass over all keys without branches: hardly any is near enough.
        let near = keys.iter().fold(false, |near, key| near | (*key < self.bound));
        if near {
            self.insert(first, keys);
        }
    }

    #[cold]
    fn insert(&mut self, first: usize, keys: &[T; ROWS]) {
        for (offset, key) in keys.iter().enumerate() {
            if *key < self.bound {
                let place = self.entries.partition_point(|(other, _)| other <= key);
                self.entries.insert(place, (*key, (first + offset) as u32));
                if self.entries.len() > self.keep {
                    self.entries.pop();
                }
                if self.entries.len() == self.keep
                    && let Some((last, _)) = self.entries.last()
                {
                    self.bound = *last;
                }
            }
        }
    }
}

/// Rows as panels of bytes.
struct BytePlane {
    panels: Vec<ByteQuad>,
    /// Quads per panel.
    groups: usize,
    /// |x|² − 2 · OFFSET · Σ x of each row. Minus twice the product of a tile, it is the squared
    /// distance without |q|².
    bases: Vec<i32>,
}

impl BytePlane {
    fn pack(rows: &[u8], dims: usize, ids: &[u32], threads: usize) -> BytePlane {
        let groups = dims.div_ceil(4);
        let count = ids.len().div_ceil(ROWS);
        let mut plane = BytePlane {
            panels: vec![ByteQuad([0; 4 * ROWS]); count * groups],
            groups,
            // Positions without a row are never near.
            bases: vec![i32::MAX; count * ROWS],
        };
        let share = count.div_ceil(threads.max(1)).max(1);
        let parts = plane
            .panels
            .chunks_mut(share * groups)
            .zip(plane.bases.chunks_mut(share * ROWS))
            .zip(ids.chunks(share * ROWS));
        parallel::map_on(threads, parts.collect(), |((panels, bases), ids)| {
            for (place, id) in ids.iter().enumerate() {
                let row = &rows[*id as usize * dims..][..dims];
                let panel = &mut panels[place / ROWS * groups..][..groups];
                let lane = place % ROWS;
                let (mut square, mut sum) = (0i32, 0i32);
                for (quad, four) in panel.iter_mut().zip(row.chunks(4)) {
                    quad.0[4 * lane..][..four.len()].copy_from_slice(four);
                    for value in four {
                        square += i32::from(*value) * i32::from(*value);
                        sum += i32::from(*value);
                    }
                }
                bases[place] = square - 2 * OFFSET * sum;
            }
        });
        plane
    }
}

/// Queries as tiles of signed bytes. Dimensions beyond the last one meet zeros of the rows.
fn pack_queries(queries: &[u8], dims: usize) -> Vec<SignedQuads> {
    let groups = dims.div_ceil(4);
    let count = (queries.len() / dims.max(1)).div_ceil(QUERIES);
    let mut tiles = vec![[[0; 4]; QUERIES]; count * groups];
    for (index, query) in queries.chunks(dims.max(1)).enumerate() {
        let tile = &mut tiles[index / QUERIES * groups..][..groups];
        for (quad, four) in tile.iter_mut().zip(query.chunks(4)) {
            for (place, value) in quad[index % QUERIES].iter_mut().zip(four) {
                *place = (i32::from(*value) - OFFSET) as i8;
            }
        }
    }
    tiles
}

/// Rows as panels of floats.
struct FloatPlane {
    panels: Vec<FloatRow>,
    /// |x|²; with the cosine distance 0, because rows have length 1.
    bases: Vec<f32>,
    /// The largest |x|².
    largest: f64,
}

impl FloatPlane {
    fn pack(train: &Matrix, distance: Distance, ids: &[u32], threads: usize) -> FloatPlane {
        let dims = train.dims;
        let count = ids.len().div_ceil(ROWS);
        let mut plane = FloatPlane {
            panels: vec![FloatRow([0.0; ROWS]); count * dims],
            bases: vec![f32::INFINITY; count * ROWS],
            largest: 0.0,
        };
        let share = count.div_ceil(threads.max(1)).max(1);
        let parts = plane
            .panels
            .chunks_mut(share * dims.max(1))
            .zip(plane.bases.chunks_mut(share * ROWS))
            .zip(ids.chunks(share * ROWS));
        parallel::map_on(threads, parts.collect(), |((panels, bases), ids)| {
            let mut row = vec![0.0; dims];
            for (place, id) in ids.iter().enumerate() {
                train.copy_row(*id as usize, &mut row);
                let square = dot(&row, &row);
                let (factor, base) = match distance {
                    Distance::Euclidean => (1.0, square as f32),
                    Distance::Cosine => (1.0 / square.sqrt(), 0.0),
                };
                bases[place] = base;
                let panel = &mut panels[place / ROWS * dims..][..dims];
                for (lanes, value) in panel.iter_mut().zip(&row) {
                    lanes.0[place % ROWS] = (f64::from(*value) * factor) as f32;
                }
            }
        });
        let finite = plane.bases.iter().filter(|base| base.is_finite());
        plane.largest = finite.fold(0.0, |most, base| f64::from(*base).max(most));
        plane
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::datagen::rng::Rng;

    fn floats(seed: u64, rows: usize, dims: usize) -> Matrix {
        let mut rng = Rng::new(seed);
        let values = (0..rows * dims).map(|_| rng.unit() as f32 - 0.25).collect();
        Matrix { dims, values: Numbers::Floats(values) }
    }

    fn bytes(seed: u64, rows: usize, dims: usize, below: u64) -> Matrix {
        let mut rng = Rng::new(seed);
        let values = (0..rows * dims).map(|_| rng.below(below) as u8).collect();
        Matrix { dims, values: Numbers::Bytes(values) }
    }

    /// Ranks one query after another in double precision.
    fn slowly(
        train: &Matrix,
        test: &Matrix,
        distance: Distance,
        ids: &[u32],
        k: usize,
    ) -> (Vec<u32>, Vec<f64>) {
        let (mut query, mut row) = (vec![0.0; train.dims], vec![0.0; train.dims]);
        let (mut found, mut distances) = (Vec::new(), Vec::new());
        for index in 0..test.rows() {
            test.copy_row(index, &mut query);
            let mut all: Vec<(f64, u32)> = Vec::new();
            for id in ids {
                train.copy_row(*id as usize, &mut row);
                all.push((distance.between(&query, &row), *id));
            }
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            found.extend(all[..k].iter().map(|(_, id)| id));
            distances.extend(all[..k].iter().map(|(distance, _)| distance));
        }
        (found, distances)
    }

    fn check(train: &Matrix, test: &Matrix, distance: Distance, ids: Option<&[u32]>) {
        let every: Vec<u32> = (0..train.rows() as u32).collect();
        let (found, distances) = slowly(train, test, distance, ids.unwrap_or(&every), 7);
        for threads in [1, 3] {
            let truth = exact(train, test, distance, ids, 7, threads);
            assert_eq!(truth.ids, found);
            for (have, want) in truth.distances.iter().zip(&distances) {
                assert!((have - want).abs() < 1e-9, "{have} {want}");
            }
        }
    }

    #[test]
    fn neighbours_are_those_of_a_slow_search() {
        // Sizes that fill neither tiles nor panels nor quads.
        check(&bytes(1, 333, 13, 256), &bytes(2, 17, 13, 256), Distance::Euclidean, None);
        check(&floats(3, 333, 13), &floats(4, 17, 13), Distance::Euclidean, None);
        check(&floats(5, 333, 13), &floats(6, 17, 13), Distance::Cosine, None);
        check(&bytes(7, 200, 9, 256), &floats(8, 5, 9), Distance::Euclidean, None);
        let some: Vec<u32> = (0..333).filter(|id| id % 7 == 3).collect();
        check(&bytes(1, 333, 13, 256), &bytes(2, 17, 13, 256), Distance::Euclidean, Some(&some));
        check(&floats(3, 333, 13), &floats(4, 17, 13), Distance::Cosine, Some(&some));
    }

    #[test]
    fn ties_go_to_the_lower_id() {
        // Two values in three dimensions: eight different rows, so nearly all distances are ties.
        check(&bytes(1, 500, 3, 2), &bytes(2, 11, 3, 2), Distance::Euclidean, None);
        // Single precision cannot distinguish these floats, so all rows must be ranked.
        let mut twins = floats(1, 300, 5);
        if let Numbers::Floats(values) = &mut twins.values {
            values.iter_mut().for_each(|value| *value = 1.0 + *value * 1e-7);
        }
        check(&twins, &floats(2, 3, 5), Distance::Euclidean, None);
    }

    #[test]
    fn more_neighbours_than_candidates_are_kept() {
        let (train, test) = (floats(1, 60, 4), floats(2, 3, 4));
        let truth = exact(&train, &test, Distance::Euclidean, None, 60, 2);
        assert_eq!(truth.ids_of(2).len(), 60);
        assert!(truth.threshold(2) >= truth.distances[2 * 60]);
    }
}
