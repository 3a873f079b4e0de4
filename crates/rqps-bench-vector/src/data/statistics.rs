//! Statistics of how hard a set is to search, for comparing the generated set with the prototype.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::data::dataset::VectorSet;
use crate::data::truth::Truth;
use rqps_model::datagen::rng::Rng;

/// Sampled queries for a mean distance.
const SAMPLE: usize = 2000;
/// Rows compared with each sampled query.
const SAMPLE_ROWS: usize = 50;
/// Queries for k-occurrences: skewness falls with their number, and the expected one is for this
/// number.
const COUNTED: usize = 5_000;

/// Statistics of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Share of values that are 0.
    pub zeros: f64,
    /// Mean of the values.
    pub mean: f64,
    /// Local intrinsic dimensionality around the queries: mean, median, 10th and 90th percentile.
    pub dimensionality: [f64; 4],
    /// Relative contrast: mean over the queries of (mean distance to a row / distance to the 10th
    /// neighbour).
    pub contrast: f64,
    /// Share of rows that are equal to an earlier row.
    pub equal_rows: f64,
    /// Share of queries whose 10th and 11th neighbours are equally far.
    pub ties: f64,
    /// Skewness of the number of times that a row is among the 10 nearest of the first 5,000
    /// queries.
    pub skewness: f64,
}

/// The statistics of `data` with nearest neighbours `truth`, at least ten per query (100 for the
/// published figures).
///
/// The local dimensionality is the maximum-likelihood estimate of Levina and Bickel (2004) over the
/// k neighbours, −1 / mean of ln(r_i / r_k) for i < k; relative contrast is that of He, Kumar and
/// Chang (2012); the skewness of k-occurrences is that of Radovanović, Nanopoulos and Ivanović
/// (2010).
pub fn statistics(data: &VectorSet, truth: &Truth) -> Statistics {
    let (rows, dims) = (data.train.rows(), data.train.dims);
    let (mut zeros, mut sum) = (0usize, 0.0);
    let mut row = vec![0.0; dims];
    let mut known: HashSet<u64> = HashSet::with_capacity(rows);
    let mut equal_rows = 0usize;
    for index in 0..rows {
        data.train.copy_row(index, &mut row);
        // Two of a million different rows have one hash by a chance of 1 in 30 million.
        equal_rows += usize::from(!known.insert(hash_of(&row)));
        zeros += row.iter().filter(|value| **value == 0.0).count();
        sum += row.iter().map(|value| f64::from(*value)).sum::<f64>();
    }
    let cells = (rows * dims) as f64;
    let distances = |query: usize| &truth.distances[query * truth.k..][..truth.k];
    let queries = truth.distances.len() / truth.k;
    let mut local: Vec<f64> =
        (0..queries).filter_map(|query| dimensionality(distances(query))).collect();
    local.sort_by(f64::total_cmp);
    let at = |share: f64| local.get((share * local.len() as f64) as usize).copied().unwrap_or(0.0);
    let average = local.iter().sum::<f64>() / local.len().max(1) as f64;
    Statistics {
        zeros: zeros as f64 / cells,
        mean: sum / cells,
        dimensionality: [average, at(0.5), at(0.1), at(0.9)],
        contrast: contrast(data, truth),
        equal_rows: equal_rows as f64 / rows.max(1) as f64,
        ties: ties(truth),
        skewness: occurrences(truth, rows),
    }
}

fn hash_of(row: &[f32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.iter().for_each(|value| value.to_bits().hash(&mut hasher));
    hasher.finish()
}

/// Share of queries for which more than ten rows are as near as the tenth.
fn ties(truth: &Truth) -> f64 {
    let tied =
        |distances: &&[f64]| distances.get(9).is_some_and(|tenth| distances.get(10) == Some(tenth));
    let queries = truth.distances.chunks(truth.k);
    queries.clone().filter(tied).count() as f64 / queries.len().max(1) as f64
}

/// The estimate for one query; `None` if a neighbour is at distance 0.
fn dimensionality(distances: &[f64]) -> Option<f64> {
    let (last, others) = distances.split_last()?;
    if others.first().is_none_or(|first| *first <= 0.0) {
        return None;
    }
    let sum: f64 = others.iter().map(|distance| (distance / last).ln()).sum();
    (sum < 0.0).then(|| -(others.len() as f64) / sum)
}

/// Relative contrast from a seeded sample, without queries whose tenth neighbour is at distance 0.
fn contrast(data: &VectorSet, truth: &Truth) -> f64 {
    let mut rng = Rng::stream(1, "vector.statistics", 0);
    let (mut asked, mut row) = (vec![0.0; data.train.dims], vec![0.0; data.train.dims]);
    let (mut sum, mut count) = (0.0, 0usize);
    for _ in 0..SAMPLE {
        let query = rng.below(data.test.rows() as u64) as usize;
        let tenth = truth.distances[query * truth.k + 9.min(truth.k - 1)];
        data.test.copy_row(query, &mut asked);
        let mut any = 0.0;
        for _ in 0..SAMPLE_ROWS {
            data.train.copy_row(rng.below(data.train.rows() as u64) as usize, &mut row);
            any += data.distance.between(&asked, &row);
        }
        if tenth > 0.0 {
            sum += any / SAMPLE_ROWS as f64 / tenth;
            count += 1;
        }
    }
    sum / count.max(1) as f64
}

fn occurrences(truth: &Truth, rows: usize) -> f64 {
    let mut counts = vec![0.0; rows];
    for ids in truth.ids.chunks(truth.k).take(COUNTED) {
        for id in &ids[..10.min(ids.len())] {
            counts[*id as usize] += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / rows as f64;
    let moment = |power: i32| {
        counts.iter().map(|count: &f64| (count - mean).powi(power)).sum::<f64>() / rows as f64
    };
    moment(3) / moment(2).powf(1.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::matrix::{Matrix, Numbers};
    use crate::data::truth::exact;
    use rqps_model::vector::Distance;

    /// Uniform points of `dims` dimensions.
    fn cube(dims: usize) -> (VectorSet, Truth) {
        let mut rng = Rng::new(4);
        let mut matrix = |rows: usize| Matrix {
            dims,
            values: Numbers::Floats((0..rows * dims).map(|_| rng.unit() as f32).collect()),
        };
        let (train, test) = (matrix(4_000), matrix(200));
        let data = VectorSet::new("cube".to_owned(), train, test, Distance::Euclidean);
        let truth = exact(&data.train, &data.test, data.distance, None, 100, 0);
        (data, truth)
    }

    #[test]
    fn equal_rows_and_ties_are_counted() {
        // Fifteen rows on a line, the last five of them copies of the first.
        let rows: Vec<f32> = (0..15).map(|row| if row < 10 { row as f32 } else { 0.0 }).collect();
        let (train, test) = (Matrix::of_floats(1, rows), Matrix::of_floats(1, vec![0.0, 9.0]));
        let data = VectorSet::new("line".to_owned(), train, test, Distance::Euclidean);
        let truth = exact(&data.train, &data.test, data.distance, None, 12, 1);
        let found = statistics(&data, &truth);
        assert!((found.equal_rows - 5.0 / 15.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.ties, 0.5, "{found:?}");
    }

    #[test]
    fn a_cube_has_nearly_its_dimensions() {
        for dims in [2, 5] {
            let (data, truth) = cube(dims);
            let found = statistics(&data, &truth);
            let ratio = found.dimensionality[0] / dims as f64;
            // The boundary of the cube lowers it.
            assert!((0.8..1.1).contains(&ratio), "{dims}: {found:?}");
            assert!(found.dimensionality[2] < found.dimensionality[1]);
            assert!(found.dimensionality[1] < found.dimensionality[3]);
            assert!((found.mean - 0.5).abs() < 0.02 && found.zeros == 0.0, "{found:?}");
            assert!(found.contrast > 2.0, "{found:?}");
        }
        let contrast = |dims| {
            let (data, truth) = cube(dims);
            statistics(&data, &truth).contrast
        };
        assert!(contrast(2) > contrast(5), "distances grow alike with the dimensions");
    }
}
