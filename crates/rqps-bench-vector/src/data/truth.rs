//! Computes the exact nearest neighbours of each query on all CPUs.
//!
//! Bytes are compared exactly: squared distance = |x|² + |q|² − 2 x·q in integers, ordered by
//! (distance, id). Floats are searched in single precision for candidates, which are then ranked in
//! double precision. If rounding could have lost a neighbour, the query is repeated in double
//! precision.

use super::{Matrix, Numbers};
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
    let by = instructions();
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
                bytes(self.by, panel, queries, &mut tile);
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
                floats(self.by, panel, queries, &mut tile);
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

// Inner loops of exact nearest-neighbour search: inner products of a few queries with a panel of
// rows, by the widest instructions that this CPU has.
//
// A panel holds [`ROWS`] rows side by side, so that each lane of a register belongs to one row and
// nothing is ever summed across lanes. Bytes are multiplied exactly, in 32-bit integers.

/// Rows of a panel.
pub const ROWS: usize = 64;
/// Queries of a tile.
pub const QUERIES: usize = 6;

/// Bytes that a cache moves at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Inner products of a tile.
pub type Tile<T> = [[T; ROWS]; QUERIES];

/// The instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AVX-512 with VNNI: four byte products a lane.
    Avx512,
    /// AVX2 with FMA.
    Avx2,
    /// Instructions that every CPU of the architecture has.
    Plain,
}

/// The best that this CPU has.
#[cfg(target_arch = "x86_64")]
pub fn instructions() -> Instructions {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
    {
        Instructions::Avx512
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        Instructions::Avx2
    } else {
        Instructions::Plain
    }
}

/// The best that this CPU has.
#[cfg(not(target_arch = "x86_64"))]
pub fn instructions() -> Instructions {
    Instructions::Plain
}

/// Four dimensions of the bytes of a panel: `0[4 * row + dimension]`.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub struct ByteQuad(pub [u8; 4 * ROWS]);

/// One dimension of the floats of a panel.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub struct FloatRow(pub [f32; ROWS]);

/// Four dimensions of the queries of a tile, each value less 128: VNNI multiplies unsigned bytes by
/// signed ones. Adding [`OFFSET`] × the sum of a row corrects the product.
pub type SignedQuads = [[i8; 4]; QUERIES];

/// The number that was subtracted from the values of [`SignedQuads`].
pub const OFFSET: i32 = 128;

/// Σ row × (query − 128) for all pairs of a tile: `panel[g]` and `queries[g]` are dimensions 4 g to
/// 4 g + 3. Exact for up to 2^16 dimensions.
pub fn bytes(by: Instructions, panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these instructions come from `instructions`, which checks that the CPU has them.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe {
            x86::bytes_avx512(panel, queries, out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::bytes_avx2(panel, queries, out);
        },
        _ => bytes_plain(panel, queries, out),
    }
}

/// Σ row × query for all pairs of a tile, in single precision.
pub fn floats(
    by: Instructions,
    panel: &[FloatRow],
    queries: &[[f32; QUERIES]],
    out: &mut Tile<f32>,
) {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe {
            x86::floats_avx512(panel, queries, out);
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2 and FMA; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::floats_avx2(panel, queries, out);
        },
        _ => floats_plain(panel, queries, out),
    }
}

/// Σ (a − b)² of two vectors of bytes, which are equally long: exact for up to 2^16 dimensions.
pub fn squared_bytes(by: Instructions, a: &[u8], b: &[u8]) -> u32 {
    match by {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx512 if instructions() == by => unsafe { x86::squared_bytes_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: AVX-512 implies AVX2; the guard looked at the CPU.
        #[allow(unsafe_code)]
        Instructions::Avx2 if instructions() != Instructions::Plain => unsafe {
            x86::squared_bytes_avx2(a, b)
        },
        _ => squared_bytes_plain(a, b),
    }
}

/// Asks for memory that will be read soon. What lies far apart is else waited for piece by piece.
#[cfg(target_arch = "x86_64")]
pub fn fetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        // SAFETY: a hint, which reads nothing and cannot fault; every x86-64 has it.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                line.as_ptr().cast(),
            );
        }
    }
}

/// Asks for memory that will be read soon: here nothing is known to do it with.
#[cfg(not(target_arch = "x86_64"))]
pub fn fetch(_: &[u8]) {}

fn squared_bytes_plain(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
}

fn bytes_plain(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
    *out = [[0; ROWS]; QUERIES];
    for (rows, queries) in panel.iter().zip(queries) {
        for (sums, query) in out.iter_mut().zip(queries) {
            let [a, b, c, d] = query.map(i32::from);
            for (sum, row) in sums.iter_mut().zip(rows.0.as_chunks::<4>().0) {
                let [p, q, r, s] = row.map(i32::from);
                *sum += a * p + b * q + c * r + d * s;
            }
        }
    }
}

fn floats_plain(panel: &[FloatRow], queries: &[[f32; QUERIES]], out: &mut Tile<f32>) {
    *out = [[0.0; ROWS]; QUERIES];
    for (rows, queries) in panel.iter().zip(queries) {
        for (sums, query) in out.iter_mut().zip(queries) {
            for (sum, row) in sums.iter_mut().zip(&rows.0) {
                *sum += query * row;
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ByteQuad, FloatRow, QUERIES, ROWS, SignedQuads, Tile};

    /// Registers of 16 lanes that a panel fills.
    const WIDE: usize = ROWS / 16;
    /// Rows that two registers of 8 lanes hold: with [`QUERIES`] twelve sums, which leaves four of
    /// the sixteen registers.
    const NARROW: usize = 16;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn bytes_avx512(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
        let mut sums = [[_mm512_setzero_si512(); WIDE]; QUERIES];
        for (rows, queries) in panel.iter().zip(queries) {
            let at = rows.0.as_ptr();
            // SAFETY: the four loads cover just the 256 bytes of the array.
            let rows: [__m512i; WIDE] =
                std::array::from_fn(|j| unsafe { _mm512_loadu_si512(at.add(64 * j).cast()) });
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_epi32(i32::from_le_bytes(query.map(i8::cast_unsigned)));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbusd_epi32(*sum, row, query);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (lanes, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: 16 lanes of 32 bits.
                unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn bytes_avx2(panel: &[ByteQuad], queries: &[SignedQuads], out: &mut Tile<i32>) {
        let low = _mm256_set1_epi16(0xff);
        for part in 0..ROWS / NARROW {
            let mut sums = [[_mm256_setzero_si256(); 2]; QUERIES];
            for (rows, queries) in panel.iter().zip(queries) {
                // SAFETY: two loads within the 64 bytes of this part of the array.
                let rows: [__m256i; 2] = std::array::from_fn(|j| unsafe {
                    _mm256_loadu_si256(rows.0.as_ptr().add(64 * part + 32 * j).cast())
                });
                // Even and odd dimensions as 16-bit numbers.
                let even = rows.map(|row| _mm256_and_si256(row, low));
                let odd = rows.map(|row| _mm256_srli_epi16::<8>(row));
                for (sums, query) in sums.iter_mut().zip(queries) {
                    let [a, b, c, d] = query.map(i16::from);
                    let pair = |x: i16, y: i16| {
                        let bits = (i32::from(y) << 16) | i32::from(x.cast_unsigned());
                        _mm256_set1_epi32(bits)
                    };
                    let (ac, bd) = (pair(a, c), pair(b, d));
                    for (j, sum) in sums.iter_mut().enumerate() {
                        let four = _mm256_add_epi32(
                            _mm256_madd_epi16(even[j], ac),
                            _mm256_madd_epi16(odd[j], bd),
                        );
                        *sum = _mm256_add_epi32(*sum, four);
                    }
                }
            }
            for (out, sums) in out.iter_mut().zip(sums) {
                for (j, sum) in sums.into_iter().enumerate() {
                    let lanes = &mut out[NARROW * part + 8 * j..][..8];
                    // SAFETY: eight lanes of 32 bits.
                    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
                }
            }
        }
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn squared_bytes_avx2(a: &[u8], b: &[u8]) -> u32 {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
        let zero = _mm256_setzero_si256();
        let mut sums = [zero; 2];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: each array has just the 32 bytes of a load.
            let [a, b] = [a, b].map(|array| unsafe { _mm256_loadu_si256(array.as_ptr().cast()) });
            let apart = _mm256_sub_epi8(_mm256_max_epu8(a, b), _mm256_min_epu8(a, b));
            let halves = [_mm256_unpacklo_epi8(apart, zero), _mm256_unpackhi_epi8(apart, zero)];
            for (sum, half) in sums.iter_mut().zip(halves) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(half, half));
            }
        }
        let mut lanes = [0u32; 8];
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        // SAFETY: eight lanes of 32 bits.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        lanes.iter().sum::<u32>() + super::squared_bytes_plain(rest_of_a, rest_of_b)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn squared_bytes_avx512(a: &[u8], b: &[u8]) -> u32 {
        let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks::<64>(), b.as_chunks::<64>());
        let zero = _mm512_setzero_si512();
        let mut sums = [zero; 2];
        for (a, b) in a.iter().zip(b) {
            // SAFETY: each array has just the 64 bytes of a load.
            let [a, b] = [a, b].map(|array| unsafe { _mm512_loadu_si512(array.as_ptr().cast()) });
            let apart = _mm512_sub_epi8(_mm512_max_epu8(a, b), _mm512_min_epu8(a, b));
            let halves = [_mm512_unpacklo_epi8(apart, zero), _mm512_unpackhi_epi8(apart, zero)];
            for (sum, half) in sums.iter_mut().zip(halves) {
                *sum = _mm512_dpwssd_epi32(*sum, half, half);
            }
        }
        // Lanes hold their bits; above 2^31 they count as unsigned.
        let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1]));
        sum.cast_unsigned() + super::squared_bytes_plain(rest_of_a, rest_of_b)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn floats_avx512(
        panel: &[FloatRow],
        queries: &[[f32; QUERIES]],
        out: &mut Tile<f32>,
    ) {
        let mut sums = [[_mm512_setzero_ps(); WIDE]; QUERIES];
        for (rows, queries) in panel.iter().zip(queries) {
            let at = rows.0.as_ptr();
            // SAFETY: the four loads cover just the 64 numbers of the array.
            let rows: [__m512; WIDE] =
                std::array::from_fn(|j| unsafe { _mm512_loadu_ps(at.add(16 * j)) });
            for (sums, query) in sums.iter_mut().zip(queries) {
                let query = _mm512_set1_ps(*query);
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_fmadd_ps(row, query, *sum);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (lanes, sum) in out.as_chunks_mut::<16>().0.iter_mut().zip(sums) {
                // SAFETY: 16 lanes of 32 bits.
                unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn floats_avx2(panel: &[FloatRow], queries: &[[f32; QUERIES]], out: &mut Tile<f32>) {
        for part in 0..ROWS / NARROW {
            let mut sums = [[_mm256_setzero_ps(); 2]; QUERIES];
            for (rows, queries) in panel.iter().zip(queries) {
                // SAFETY: two loads within the 16 numbers of this part of the array.
                let rows: [__m256; 2] = std::array::from_fn(|j| unsafe {
                    _mm256_loadu_ps(rows.0.as_ptr().add(NARROW * part + 8 * j))
                });
                for (sums, query) in sums.iter_mut().zip(queries) {
                    let query = _mm256_set1_ps(*query);
                    for (sum, row) in sums.iter_mut().zip(rows) {
                        *sum = _mm256_fmadd_ps(row, query, *sum);
                    }
                }
            }
            for (out, sums) in out.iter_mut().zip(sums) {
                for (j, sum) in sums.into_iter().enumerate() {
                    let lanes = &mut out[NARROW * part + 8 * j..][..8];
                    // SAFETY: eight lanes of 32 bits.
                    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
                }
            }
        }
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

#[cfg(test)]
mod simd_tests {
    use super::*;

    const ALL: [Instructions; 3] = [Instructions::Avx512, Instructions::Avx2, Instructions::Plain];

    /// Values that walk over all bytes.
    fn value(seed: usize, place: usize) -> u8 {
        ((seed * 2_654_435_761 + place * 40_503 + (place >> 7) * 97) >> 3) as u8
    }

    #[test]
    fn products_of_bytes_are_exact_by_any_instructions() {
        const GROUPS: usize = 50;
        let panel: Vec<ByteQuad> =
            (0..GROUPS).map(|g| ByteQuad(std::array::from_fn(|i| value(g, i)))).collect();
        let queries: Vec<SignedQuads> = (0..GROUPS)
            .map(|g| {
                std::array::from_fn(|q| {
                    std::array::from_fn(|i| value(g + 99, 4 * q + i).cast_signed())
                })
            })
            .collect();
        for by in ALL {
            let mut out = [[0; ROWS]; QUERIES];
            bytes(by, &panel, &queries, &mut out);
            for (q, sums) in out.iter().enumerate() {
                for (row, sum) in sums.iter().enumerate() {
                    let products = panel.iter().zip(&queries).flat_map(|(rows, queries)| {
                        let row = &rows.0[4 * row..4 * row + 4];
                        row.iter().zip(queries[q]).map(|(a, b)| i32::from(*a) * i32::from(b))
                    });
                    let want: i32 = products.sum();
                    assert_eq!(*sum, want, "{by:?} query {q} row {row}");
                }
            }
        }
    }

    #[test]
    fn squares_of_bytes_are_exact_by_any_instructions() {
        for dims in [1, 31, 32, 100, 784, 65_536] {
            let a: Vec<u8> = (0..dims).map(|i| value(1, i)).collect();
            let b: Vec<u8> = (0..dims).map(|i| value(8, i * 7)).collect();
            let apart = |(a, b): (&u8, &u8)| (i64::from(*a) - i64::from(*b)).pow(2);
            let want: i64 = a.iter().zip(&b).map(apart).sum();
            for by in ALL {
                assert_eq!(i64::from(squared_bytes(by, &a, &b)), want, "{by:?} {dims}");
            }
        }
        let (least, most) = (vec![0; 65_536], vec![255; 65_536]);
        assert_eq!(squared_bytes(instructions(), &least, &most), 65_536 * 255 * 255);
    }

    #[test]
    fn products_of_floats_agree_to_rounding() {
        const DIMS: usize = 300;
        let number = |seed: usize, i: usize| f32::from(value(seed, i)) / 64.0 - 2.0;
        let panel: Vec<FloatRow> =
            (0..DIMS).map(|d| FloatRow(std::array::from_fn(|i| number(d, i)))).collect();
        let queries: Vec<[f32; QUERIES]> =
            (0..DIMS).map(|d| std::array::from_fn(|q| number(d + 7, q))).collect();
        for by in ALL {
            let mut out = [[0.0; ROWS]; QUERIES];
            floats(by, &panel, &queries, &mut out);
            for (q, sums) in out.iter().enumerate() {
                for (row, sum) in sums.iter().enumerate() {
                    let product = |d: usize| f64::from(panel[d].0[row] * queries[d][q]);
                    let want: f64 = (0..DIMS).map(product).sum();
                    assert!((f64::from(*sum) - want).abs() < 1e-3, "{by:?} {q} {row}");
                }
            }
        }
    }
}
