//! Reads neighbours that the user supplies from ivecs, and compares them with exact ones.

use std::path::Path;

use crate::data::dataset::VectorSet;
use crate::data::error::DataError;
use crate::data::fvecs;
use crate::data::truth::Truth;
use rqps_model::datagen::rng::Rng;

/// Reads row numbers of the neighbours of each query of `data`, the nearest first, and computes
/// their distances.
///
/// # Errors
///
/// The file is unreadable, has another number of queries, or names rows that do not exist.
pub fn read(path: &Path, data: &VectorSet) -> Result<Truth, DataError> {
    let (k, numbers) = fvecs::integers(path)?;
    let (rows, queries) = (data.train.rows(), data.test.rows());
    if numbers.len() != k * queries {
        return Err(DataError::form(
            path,
            format!(
                "it has neighbours of {} queries, but the set has {queries}",
                numbers.len() / k.max(1)
            ),
        ));
    }
    let mut truth = Truth { k, ids: Vec::with_capacity(numbers.len()), distances: Vec::new() };
    let (mut asked, mut row) = (vec![0.0; data.test.dims], vec![0.0; data.train.dims]);
    for (query, neighbours) in numbers.chunks(k.max(1)).enumerate() {
        data.test.copy_row(query, &mut asked);
        for number in neighbours {
            let id = u32::try_from(*number).ok().filter(|id| (*id as usize) < rows);
            let Some(id) = id else {
                return Err(DataError::form(
                    path,
                    format!(
                        "query {query} has row {number} as a neighbour, but the {rows} rows are \
                         numbered from 0"
                    ),
                ));
            };
            data.train.copy_row(id as usize, &mut row);
            truth.ids.push(id);
            truth.distances.push(data.distance.between(&asked, &row));
        }
    }
    Ok(truth)
}

/// Describes a query whose given neighbours are wrong; `None` if all of `sample` queries agree. Ids
/// may differ if distances agree within 1e-3 or within 1e-5 of their size.
pub fn wrong(data: &VectorSet, exact: &Truth, sample: usize) -> Option<String> {
    let given = data.given.as_ref()?;
    let queries = data.test.rows();
    let k = given.k.min(exact.k);
    let mut rng = Rng::stream(1, "vector.given", 0);
    for _ in 0..sample {
        let query = rng.below(queries as u64) as usize;
        for place in 0..k {
            let have = given.distances[query * given.k + place];
            let want = exact.distances[query * exact.k + place];
            if (have - want).abs() > 1e-3 + 1e-5 * want {
                return Some(format!(
                    "neighbour {place} of query {query} is {have} away, the true one {want}"
                ));
            }
        }
        let limit = exact.distances[query * exact.k + k - 1] + 1e-3;
        let (mut asked, mut row) = (vec![0.0; data.test.dims], vec![0.0; data.test.dims]);
        data.test.copy_row(query, &mut asked);
        for id in &given.ids[query * given.k..][..k] {
            let known = (*id as usize) < data.train.rows();
            if known {
                data.train.copy_row(*id as usize, &mut row);
            }
            if !known || data.distance.between(&asked, &row) > limit * (1.0 + 1e-5) {
                return Some(format!(
                    "row {id} is not near query {query}, although the file says so"
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::matrix::{Matrix, Numbers};
    use crate::data::truth::exact;
    use rqps_model::vector::{DataSource, Distance, Neighbours};

    fn scene() -> (VectorSet, Truth) {
        let mut rng = Rng::new(4);
        let mut matrix = |rows: usize| Matrix {
            dims: 2,
            values: Numbers::Floats((0..rows * 2).map(|_| rng.unit() as f32).collect()),
        };
        let (train, test) = (matrix(400), matrix(20));
        let data = VectorSet::new("square".to_owned(), train, test, Distance::Euclidean);
        let truth = exact(&data.train, &data.test, data.distance, None, 12, 1);
        (data, truth)
    }

    #[test]
    fn wrong_neighbours_are_found() {
        let (mut data, truth) = scene();
        assert_eq!(wrong(&data, &truth, 50), None, "nothing was given");
        data.given = Some(truth.clone());
        assert_eq!(wrong(&data, &truth, 50), None);
        let mut far = truth.clone();
        far.distances.iter_mut().for_each(|distance| *distance *= 1.5);
        data.given = Some(far);
        assert!(wrong(&data, &truth, 50).unwrap().contains("away"));
        let mut other = truth.clone();
        other.ids.iter_mut().for_each(|id| *id = (*id + 200) % 400);
        data.given = Some(other);
        assert!(wrong(&data, &truth, 50).unwrap().contains("is not near query"));
        let error = data.check_given(&truth).unwrap_err().to_string();
        assert!(error.contains("neighbours=none"), "{error}");
    }

    /// Writes vectors of 32-bit values, each after its length.
    fn write(path: &Path, width: usize, values: &[[u8; 4]]) {
        let vectors = values.chunks(width).flat_map(|vector| {
            (width as i32).to_le_bytes().into_iter().chain(vector.iter().flatten().copied())
        });
        std::fs::write(path, vectors.collect::<Vec<u8>>()).unwrap();
    }

    #[test]
    fn neighbours_of_a_file_must_be_those_of_the_set() {
        let (data, truth) = scene();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let floats = |matrix: &Matrix| -> Vec<[u8; 4]> {
            let Numbers::Floats(values) = &matrix.values else { panic!("floats") };
            values.iter().map(|value| value.to_le_bytes()).collect()
        };
        write(&path("rows.fvecs"), 2, &floats(&data.train));
        write(&path("queries.fvecs"), 2, &floats(&data.test));
        let open = |numbers: &[i32], width: usize, k: usize, limit_rows: u64| {
            let bytes: Vec<[u8; 4]> = numbers.iter().map(|id| id.to_le_bytes()).collect();
            write(&path("near.ivecs"), width, &bytes);
            let source = DataSource::Files {
                rows: path("rows.fvecs"),
                queries: Some(path("queries.fvecs")),
                limit_rows,
                limit_queries: 0,
                distance: None,
                neighbours: Neighbours::File(path("near.ivecs")),
            };
            VectorSet::open(&source, 0, k, None).map_err(|error| error.to_string())
        };
        let ids: Vec<i32> = truth.ids.iter().map(|id| *id as i32).collect();
        let good = open(&ids, 12, 10, 0).unwrap();
        assert_eq!(good.given, Some(truth.clone()));
        good.check_given(&truth).unwrap();
        assert_eq!(open(&ids, 12, 10, 300).unwrap().given, None, "they were of all rows");
        let refused = |numbers: &[i32], width: usize, k: usize, words: &str| {
            let error = open(numbers, width, k, 0).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        refused(&ids, 12, 13, "12 neighbours of each query, but 13");
        refused(&ids[..228], 12, 10, "neighbours of 19 queries, but the set has 20");
        for wrong in [400, -1] {
            let mut other = ids.clone();
            other[25] = wrong;
            refused(&other, 12, 10, &format!("query 2 has row {wrong} as a neighbour"));
        }
        // Existing rows that are not the nearest.
        let shifted: Vec<i32> = ids.iter().map(|id| (id + 200) % 400).collect();
        assert!(open(&shifted, 12, 10, 0).unwrap().check_given(&truth).is_err());
    }
}
