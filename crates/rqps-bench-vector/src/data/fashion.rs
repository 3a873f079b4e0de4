//! The generated "fashion-like" set: as hard for a graph index as pictures of clothes.
//!
//! Ten classes overlap in one latent space of 24 dimensions. Each class is a union of 300 small
//! styles (near-duplicates, like photographs of one garment). One smooth decoder maps all of them
//! to values that are rounded to 0..=255. Recall of HNSW follows that on fashion-mnist
//! (docs/vector.md has the figures); with plain gaussian blobs it does not.
//!
//! Each row has its own random stream and uses basic arithmetic and `libm` in a fixed order, so the
//! bytes are equal on every machine and for any number of threads.

use std::path::Path;

use super::{Matrix, Numbers, VectorSet};
use crate::data::{self, DataError};
use rqps_model::datagen::rng::{Rng, StreamKey};
use rqps_model::vector::Distance;
use rqps_stats::parallel;

/// Version of the sequence; sets of different versions differ.
pub const VERSION: u32 = 1;
/// Number of classes.
pub const CLASSES: usize = 10;

const LATENT: usize = 24;
const STYLES: usize = 300;
const STYLE_DIMS: usize = 6;
const HIDDEN: usize = 256;
/// Share of a class's variance within its styles.
const WITHIN: f64 = 0.25;
/// The dimension from which the latent spectrum falls.
const EFFECTIVE: f64 = 12.0;
const WIDTH: f64 = 0.5;
const FLOOR: f64 = 0.03;
const SCALE: f64 = 0.8;
/// Distance between class means.
const SEPARATION: f64 = 0.4;
const NOISE: f64 = 2.0;
const AMPLITUDE: f64 = 90.0;
const GAIN: f64 = 0.7;
const OFFSET: f64 = 0.3;
/// Variation of the density of styles.
const DENSITY: f64 = 0.25;

/// One of two independent draws from the distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The rows.
    Train,
    /// The queries.
    Test,
}

/// The generator: decoder and styles. It makes any row independently.
pub struct Fashion {
    dims: usize,
    /// LATENT × HIDDEN, row-major like the others.
    w1: Vec<f64>,
    b1: Vec<f64>,
    /// HIDDEN × dims.
    w2: Vec<f64>,
    b2: Vec<f64>,
    /// Cumulative weights of the classes.
    weights: Vec<f64>,
    classes: Vec<Class>,
    train: StreamKey,
    test: StreamKey,
}

struct Class {
    /// LATENT × LATENT: the spectrum in random directions.
    spread: Vec<f64>,
    weights: Vec<f64>,
    styles: Vec<Style>,
}

struct Style {
    /// Mean of the class plus the offset of the style.
    center: Vec<f64>,
    /// STYLE_DIMS × LATENT.
    basis: Vec<f64>,
}

/// Reusable memory for making rows.
#[derive(Default)]
pub struct RenderScratch {
    hidden: Vec<f64>,
    values: Vec<f64>,
}

impl Fashion {
    /// The generator with `seed` for vectors of `dims` dimensions.
    pub fn new(seed: u64, dims: usize) -> Fashion {
        let key = |purpose: &str| StreamKey::new(seed, purpose).and(u64::from(VERSION));
        let mut normal = Normal::new(key("fashion.decoder").at(dims as u64));
        let mut matrix = |count: usize, scale: f64, shift: f64| -> Vec<f64> {
            (0..count).map(|_| normal.next() * scale + shift).collect()
        };
        let w1 = matrix(LATENT * HIDDEN, 1.0 / (LATENT as f64).sqrt(), 0.0);
        let b1 = matrix(HIDDEN, 0.5, 0.0);
        let w2 = matrix(HIDDEN * dims, 1.0 / (HIDDEN as f64).sqrt(), 0.0);
        let b2 = matrix(dims, 0.5, -OFFSET);
        let spectrum = spectrum();
        let classes = (0..CLASSES as u64)
            .map(|class| {
                Class::new(
                    &spectrum,
                    key("fashion.class").at(class),
                    key("fashion.style").and(class),
                )
            })
            .collect();
        Fashion {
            dims,
            w1,
            b1,
            w2,
            b2,
            weights: dirichlet(&mut key("fashion.weights").at(0), CLASSES, 20),
            classes,
            train: key("fashion.train"),
            test: key("fashion.test"),
        }
    }

    /// Makes row `index` of `part` with unrounded values 0..=255, and returns its class. `out` has
    /// one element per dimension.
    pub fn floats(
        &self,
        part: Part,
        index: u64,
        out: &mut [f32],
        scratch: &mut RenderScratch,
    ) -> u8 {
        let class = self.make(part, index, scratch);
        for (value, made) in out.iter_mut().zip(&scratch.values) {
            *value = made.clamp(0.0, 255.0) as f32;
        }
        class
    }

    /// Makes a row with values rounded to integers, and returns its class.
    pub fn bytes(&self, part: Part, index: u64, out: &mut [u8], scratch: &mut RenderScratch) -> u8 {
        let class = self.make(part, index, scratch);
        for (value, made) in out.iter_mut().zip(&scratch.values) {
            *value = libm::rint(made.clamp(0.0, 255.0)) as u8;
        }
        class
    }

    fn make(&self, part: Part, index: u64, scratch: &mut RenderScratch) -> u8 {
        let key = match part {
            Part::Train => self.train,
            Part::Test => self.test,
        };
        let mut rng = key.at(index);
        let number = draw(&self.weights, rng.unit());
        let class = &self.classes[number];
        let style = &class.styles[draw(&class.weights, rng.unit())];
        let mut normal = Normal::new(rng);
        let density = libm::exp(DENSITY * normal.next());
        let mut latent = style.center.clone();
        for basis in style.basis.chunks(LATENT) {
            add_scaled(&mut latent, basis, density * normal.next());
        }
        for spread in class.spread.chunks(LATENT) {
            add_scaled(&mut latent, spread, 3.0 * FLOOR * normal.next());
        }
        self.decode(&latent, scratch);
        for value in &mut scratch.values {
            *value += NOISE * normal.next();
        }
        number as u8
    }

    /// x = amp (1.6 (tanh(gain z W1 + b1) W2) + b2), summed in the order of the hidden units.
    fn decode(&self, latent: &[f64], scratch: &mut RenderScratch) {
        scratch.hidden.clear();
        scratch.hidden.resize(HIDDEN, 0.0);
        for (value, weights) in latent.iter().zip(self.w1.chunks(HIDDEN)) {
            add_scaled(&mut scratch.hidden, weights, *value);
        }
        scratch.values.clear();
        scratch.values.resize(self.dims, 0.0);
        for ((sum, bias), weights) in
            scratch.hidden.iter().zip(&self.b1).zip(self.w2.chunks(self.dims.max(1)))
        {
            add_scaled(&mut scratch.values, weights, libm::tanh(GAIN * sum + bias));
        }
        for (value, bias) in scratch.values.iter_mut().zip(&self.b2) {
            *value = AMPLITUDE * (1.6 * *value + bias);
        }
    }
}

impl Class {
    fn new(spectrum: &[f64], rng: Rng, styles: StreamKey) -> Class {
        let mut normal = Normal::new(rng);
        let mut spread = orthonormal(&mut normal, LATENT);
        for (row, scale) in spread.chunks_mut(LATENT).zip(spectrum) {
            row.iter_mut().for_each(|value| *value *= scale);
        }
        let mean: Vec<f64> = (0..LATENT).map(|_| SEPARATION * normal.next()).collect();
        let variance: f64 = spectrum.iter().map(|scale| scale * scale).sum();
        let size = (WITHIN * variance / STYLE_DIMS as f64).sqrt();
        let made = (0..STYLES as u64).map(|style| {
            let mut normal = Normal::new(styles.at(style));
            let mut center = mean.clone();
            for row in spread.chunks(LATENT) {
                add_scaled(&mut center, row, normal.next() * (1.0 - WITHIN).sqrt());
            }
            let mut basis = orthonormal(&mut normal, STYLE_DIMS);
            let size = size * libm::exp(0.3 * normal.next());
            basis.iter_mut().for_each(|value| *value *= size);
            Style { center, basis }
        });
        let styles = made.collect();
        Class { spread, weights: dirichlet(&mut normal.rng, STYLES, 2), styles }
    }
}

/// s_j = 1 / (1 + exp((j − d) / width)) + floor, scaled so that the sum of squares is r × scale².
fn spectrum() -> Vec<f64> {
    let raw: Vec<f64> = (0..LATENT)
        .map(|j| 1.0 / (1.0 + libm::exp((j as f64 - EFFECTIVE) / WIDTH)) + FLOOR)
        .collect();
    let squares: f64 = raw.iter().map(|value| value * value).sum();
    let factor = (LATENT as f64 * SCALE * SCALE / squares).sqrt();
    raw.iter().map(|value| value * factor).collect()
}

/// `count` random orthogonal directions: Gram-Schmidt on gaussian rows, twice because of rounding.
fn orthonormal(normal: &mut Normal, count: usize) -> Vec<f64> {
    let mut rows: Vec<f64> = (0..count * LATENT).map(|_| normal.next()).collect();
    for index in 0..count {
        let (done, rest) = rows.split_at_mut(index * LATENT);
        let row = &mut rest[..LATENT];
        for _ in 0..2 {
            for other in done.chunks(LATENT) {
                let along = dot(row, other);
                add_scaled(row, other, -along);
            }
        }
        let length = dot(row, row).sqrt();
        row.iter_mut().for_each(|value| *value /= length);
    }
    rows
}

/// Cumulative weights from a symmetric Dirichlet distribution. Gamma variates of an integer shape
/// are sums of exponential ones.
fn dirichlet(rng: &mut Rng, count: usize, shape: u32) -> Vec<f64> {
    let mut sum = 0.0;
    let mut cumulative: Vec<f64> = (0..count)
        .map(|_| {
            sum += (0..shape).map(|_| -libm::log1p(-rng.unit())).sum::<f64>();
            sum
        })
        .collect();
    cumulative.iter_mut().for_each(|value| *value /= sum);
    cumulative
}

/// The first index whose cumulative weight is above `unit`.
fn draw(cumulative: &[f64], unit: f64) -> usize {
    cumulative.partition_point(|weight| *weight <= unit).min(cumulative.len() - 1)
}

#[inline]
fn add_scaled(sum: &mut [f64], row: &[f64], factor: f64) {
    for (value, add) in sum.iter_mut().zip(row) {
        *value += add * factor;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Normal variates by the polar method of Marsaglia, two at a time.
struct Normal {
    rng: Rng,
    spare: Option<f64>,
}

impl Normal {
    fn new(rng: Rng) -> Normal {
        Normal { rng, spare: None }
    }

    #[inline]
    fn next(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (u, v) = (2.0 * self.rng.unit() - 1.0, 2.0 * self.rng.unit() - 1.0);
            let s = u * u + v * v;
            if s < 1.0 && s > 0.0 {
                let factor = (-2.0 * libm::log(s) / s).sqrt();
                self.spare = Some(v * factor);
                return u * factor;
            }
        }
    }
}

// Makes the generated set on all CPUs.

/// The parameters of the set.
pub(super) struct Wanted {
    pub(super) rows: usize,
    pub(super) queries: usize,
    pub(super) dims: usize,
    pub(super) rounded: bool,
    pub(super) seed: u64,
}

/// Makes the set, or reads it from `folder`.
pub(super) fn make(wanted: &Wanted, folder: Option<&Path>) -> Result<VectorSet, DataError> {
    let Wanted { rows, queries, dims, rounded, seed } = *wanted;
    let kind = if rounded { "" } else { "-float" };
    let file = format!("fashion{kind}-v{VERSION}-{rows}-{queries}-{dims}-{seed}");
    let content = data::kept(folder, &file, || Ok(content(wanted)))?;
    let name = format!(
        "fashion-like{kind} v{VERSION} (synthetic), {rows} rows × {dims}, {queries} queries, \
         seed {seed}"
    );
    split(&content, wanted, name).ok_or_else(|| DataError::Unfit {
        name: file,
        what: "the file in the cache has the wrong size; remove it".to_owned(),
    })
}

/// Classes of the rows, classes of the queries, rows, queries, as bytes.
fn content(wanted: &Wanted) -> Vec<u8> {
    let fashion = Fashion::new(wanted.seed, wanted.dims);
    let width = wanted.dims * if wanted.rounded { 1 } else { 4 };
    let mut classes = vec![0; wanted.rows + wanted.queries];
    let mut values = vec![0; (wanted.rows + wanted.queries) * width];
    let (train, test) = values.split_at_mut(wanted.rows * width);
    let (of_train, of_test) = classes.split_at_mut(wanted.rows);
    fill(&fashion, Part::Train, wanted, train, of_train);
    fill(&fashion, Part::Test, wanted, test, of_test);
    classes.extend(values);
    classes
}

fn fill(fashion: &Fashion, part: Part, wanted: &Wanted, values: &mut [u8], classes: &mut [u8]) {
    let width = wanted.dims * if wanted.rounded { 1 } else { 4 };
    let threads = parallel::cpus();
    let share = classes.len().div_ceil(threads).max(1);
    let parts = values.chunks_mut(share * width.max(1)).zip(classes.chunks_mut(share));
    parallel::map_on(threads, parts.enumerate().collect(), |(of, (values, classes))| {
        let mut scratch = RenderScratch::default();
        let mut floats = vec![0.0; wanted.dims];
        let rows = values.chunks_mut(width.max(1)).zip(classes);
        for (place, (row, class)) in rows.enumerate() {
            let index = (of * share + place) as u64;
            if wanted.rounded {
                *class = fashion.bytes(part, index, row, &mut scratch);
            } else {
                *class = fashion.floats(part, index, &mut floats, &mut scratch);
                for (bytes, value) in row.as_chunks_mut::<4>().0.iter_mut().zip(&floats) {
                    *bytes = value.to_le_bytes();
                }
            }
        }
    });
}

fn split(content: &[u8], wanted: &Wanted, name: String) -> Option<VectorSet> {
    let width = wanted.dims * if wanted.rounded { 1 } else { 4 };
    let (of_train, rest) = content.split_at_checked(wanted.rows)?;
    let (of_test, rest) = rest.split_at_checked(wanted.queries)?;
    let (train, test) = rest.split_at_checked(wanted.rows * width)?;
    if test.len() != wanted.queries * width {
        return None;
    }
    let matrix = |bytes: &[u8]| Matrix {
        dims: wanted.dims,
        values: if wanted.rounded {
            Numbers::Bytes(bytes.to_vec())
        } else {
            let numbers = bytes.as_chunks::<4>().0.iter();
            Numbers::Floats(numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect())
        },
    };
    let mut data = VectorSet::new(name, matrix(train), matrix(test), Distance::Euclidean);
    data.classes = Some([of_train.to_vec(), of_test.to_vec()]);
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dimensions of the published sizes, for which the parameters were tuned.
    const DIMS: usize = 784;

    #[test]
    fn rows_have_the_statistics_of_the_specification() {
        let fashion = Fashion::new(1, DIMS);
        let (mut scratch, mut row) = (RenderScratch::default(), vec![0; DIMS]);
        let (mut zeros, mut sum, mut classes) = (0, 0.0, [0; CLASSES]);
        const ROWS: u64 = 3000;
        for index in 0..ROWS {
            let class = fashion.bytes(Part::Train, index, &mut row, &mut scratch);
            classes[usize::from(class)] += 1;
            zeros += row.iter().filter(|value| **value == 0).count();
            sum += row.iter().map(|value| f64::from(*value)).sum::<f64>();
        }
        let cells = (ROWS * DIMS as u64) as f64;
        // The prototype's seeds gave 61 % zeros and a mean of 25.6; this draw of a decoder differs.
        let (zeros, mean) = (zeros as f64 / cells, sum / cells);
        assert!((zeros / 0.61 - 1.0).abs() < 0.05, "{zeros}");
        assert!((mean / 25.6 - 1.0).abs() < 0.10, "{mean}");
        assert!(classes.iter().all(|count| (100..900).contains(count)), "{classes:?}");
    }

    // An independent program in another language, with another library's logarithm and tangent,
    // made the golden values.
    #[test]
    fn rows_keep_their_bytes() {
        let fashion = Fashion::new(1, 16);
        let check = |part: Part, index: u64, class: u8, want: [u8; 16]| {
            let mut row = [0; 16];
            assert_eq!(fashion.bytes(part, index, &mut row, &mut RenderScratch::default()), class);
            assert_eq!(row, want, "{part:?} {index}");
        };
        check(Part::Train, 0, 2, [0, 0, 12, 0, 0, 11, 0, 17, 0, 0, 0, 80, 45, 0, 56, 42]);
        check(Part::Train, 1, 3, [0, 91, 0, 45, 40, 0, 0, 72, 91, 48, 0, 167, 0, 0, 129, 53]);
        check(Part::Train, 59_999, 4, [0, 0, 0, 0, 120, 0, 0, 0, 10, 0, 7, 122, 0, 0, 6, 109]);
        check(Part::Test, 0, 7, [0, 0, 0, 0, 127, 0, 0, 32, 7, 57, 0, 227, 5, 0, 14, 151]);
    }

    #[test]
    fn a_row_is_the_same_alone_and_in_any_order() {
        let fashion = Fashion::new(7, 32);
        let (mut scratch, mut first, mut again) =
            (RenderScratch::default(), vec![0; 32], vec![0; 32]);
        let class = fashion.bytes(Part::Train, 5, &mut first, &mut scratch);
        fashion.bytes(Part::Train, 6, &mut again, &mut scratch);
        assert_ne!(first, again);
        fashion.bytes(Part::Test, 5, &mut again, &mut scratch);
        assert_ne!(first, again, "queries are draws of their own");
        assert_eq!(Fashion::new(7, 32).bytes(Part::Train, 5, &mut again, &mut scratch), class);
        assert_eq!(first, again);
        let mut floats = vec![0.0; 32];
        fashion.floats(Part::Train, 5, &mut floats, &mut scratch);
        for (float, byte) in floats.iter().zip(&first) {
            assert!((f64::from(*float) - f64::from(*byte)).abs() <= 0.5);
        }
    }

    #[test]
    fn directions_are_at_right_angles() {
        let rows = orthonormal(&mut Normal::new(Rng::new(3)), STYLE_DIMS);
        for (i, a) in rows.chunks(LATENT).enumerate() {
            for (j, b) in rows.chunks(LATENT).enumerate() {
                let want = f64::from(u8::from(i == j));
                assert!((dot(a, b) - want).abs() < 1e-14);
            }
        }
        let energy: f64 = spectrum().iter().map(|s| s * s).sum();
        assert!((energy - 15.36).abs() < 1e-12, "{energy}");
    }

    #[test]
    fn normal_variates_have_mean_0_and_deviation_1() {
        let mut normal = Normal::new(Rng::new(9));
        let drawn: Vec<f64> = (0..100_000).map(|_| normal.next()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let square = drawn.iter().map(|x| x * x).sum::<f64>() / 1e5;
        let fourth = drawn.iter().map(|x| x.powi(4)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.015 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        assert!((fourth - 3.0).abs() < 0.15, "{fourth}");
    }

    #[test]
    fn a_set_is_the_same_found_and_made() {
        let folder = tempfile::tempdir().unwrap();
        for rounded in [true, false] {
            let wanted = Wanted { rows: 50, queries: 7, dims: 12, rounded, seed: 3 };
            let made = make(&wanted, Some(folder.path())).unwrap();
            assert_eq!(made, make(&wanted, Some(folder.path())).unwrap());
            assert_eq!(made, make(&wanted, None).unwrap());
            assert_eq!((made.train.rows(), made.test.rows(), made.train.dims), (50, 7, 12));
            let more = Wanted { rows: 60, ..wanted };
            let more = make(&more, None).unwrap();
            assert_eq!(more.test, made.test, "queries do not depend on the number of rows");
            assert_eq!(more.train.at(49, 11), made.train.at(49, 11));
            assert_ne!(more.hash, made.hash);
        }
    }
}
