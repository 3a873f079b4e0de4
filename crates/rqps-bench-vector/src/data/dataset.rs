//! A data set: vectors, queries, classes, and exact neighbours of the queries.

use sha2::{Digest, Sha256};

use crate::data::error::DataError;
use crate::data::fashion::CLASSES;
use crate::data::matrix::{Matrix, Numbers};
use crate::data::truth::{Truth, exact};
use crate::data::{fate, parts, uniform};
use rqps_model::units;
use rqps_model::vector::{Distance, Filter, Present};

/// Vectors to index, and queries.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSet {
    /// A description: `fashion-like v1, 10000 × 784, seed 1 (synthetic)`.
    pub name: String,
    /// The first 12 hexadecimal digits of a SHA-256 over all vectors.
    pub hash: String,
    /// The distance between vectors.
    pub distance: Distance,
    /// The rows; the index of a row is its id.
    pub train: Matrix,
    /// The queries.
    pub test: Matrix,
    /// Classes of rows and of queries, if there are any.
    pub classes: Option<[Vec<u8>; 2]>,
    /// Neighbours from the file.
    pub given: Option<Truth>,
}

impl VectorSet {
    /// A set without classes and without given neighbours.
    pub fn new(name: String, train: Matrix, test: Matrix, distance: Distance) -> VectorSet {
        let hash = hash(&[&train, &test]);
        VectorSet { name, hash, distance, train, test, classes: None, given: None }
    }

    /// Computes the exact neighbours of all queries among the rows that are present and pass the
    /// filter.
    pub(crate) fn compute_truth(
        &self,
        filter: Filter,
        present: Present,
        k: usize,
    ) -> Result<Truth, DataError> {
        let few = |left: usize| DataError::Unfit {
            name: self.name.clone(),
            what: format!(
                "{left} rows pass the filter, but {k} neighbours are requested; use more rows or a \
                 wider filter"
            ),
        };
        let among = |ids: &[u32], test: &Matrix| match ids.len() {
            left if left < k => Err(few(left)),
            _ => Ok(exact(&self.train, test, self.distance, Some(ids), k, 0)),
        };
        let is_there = |id: &u32| self.is_present(*id, present);
        let ids: Vec<u32> = (0..self.train.rows() as u32).filter(is_there).collect();
        match filter {
            Filter::None => among(&ids, &self.test),
            Filter::Random { percent } => {
                let passes = |id: &u32| uniform(*id) < parts(percent);
                among(&ids.into_iter().filter(passes).collect::<Vec<_>>(), &self.test)
            }
            Filter::OwnClass | Filter::OtherClass => {
                let [of_rows, _] = self.need_classes()?;
                let wanted = self.filter_values(filter)?.unwrap_or_default();
                let mut truth = Truth {
                    k,
                    ids: vec![0; self.test.rows() * k],
                    distances: vec![0.0; self.test.rows() * k],
                };
                let mut classes = wanted.clone();
                classes.sort_unstable();
                classes.dedup();
                for class in classes {
                    let of_class = |id: &u32| i64::from(of_rows[*id as usize]) == class;
                    let rows: Vec<u32> = ids.iter().copied().filter(of_class).collect();
                    let queries: Vec<usize> =
                        (0..wanted.len()).filter(|query| wanted[*query] == class).collect();
                    let part = among(&rows, &pick(&self.test, &queries))?;
                    for (place, query) in queries.into_iter().enumerate() {
                        let (to, from) = (query * k, place * k);
                        truth.ids[to..to + k].copy_from_slice(&part.ids[from..from + k]);
                        truth.distances[to..to + k]
                            .copy_from_slice(&part.distances[from..from + k]);
                    }
                }
                Ok(truth)
            }
        }
    }

    /// The exact neighbours of all queries among the rows `ids`, which ascend.
    ///
    /// # Errors
    ///
    /// Fewer than `k` rows, or rows that do not exist.
    pub fn truth_among(&self, ids: &[u32], k: usize) -> Result<Truth, DataError> {
        let unfit = |what: String| Err(DataError::Unfit { name: self.name.clone(), what });
        if ids.len() < k {
            return unfit(format!(
                "the table holds {} rows, but {k} neighbours are requested",
                ids.len()
            ));
        }
        if let Some(id) = ids.last().filter(|id| **id as usize >= self.train.rows()) {
            return unfit(format!("the table holds row {id}, which is not in the set"));
        }
        Ok(exact(&self.train, &self.test, self.distance, Some(ids), k, 0))
    }

    fn need_classes(&self) -> Result<&[Vec<u8>; 2], DataError> {
        self.classes.as_ref().ok_or_else(|| DataError::Unfit {
            name: self.name.clone(),
            what: "it has no classes to filter by; only the generated set has".to_owned(),
        })
    }

    /// The value in each query's filter; `None` without a filter.
    ///
    /// # Errors
    ///
    /// The filter needs classes and there are none.
    pub fn filter_values(&self, filter: Filter) -> Result<Option<Vec<i64>>, DataError> {
        let classes = CLASSES as i64;
        Ok(match filter {
            Filter::None => None,
            Filter::Random { percent } => Some(vec![parts(percent) as i64; self.test.rows()]),
            Filter::OwnClass => {
                Some(self.need_classes()?[1].iter().map(|class| i64::from(*class)).collect())
            }
            Filter::OtherClass => {
                let other = |class: &u8| (i64::from(*class) + classes / 2) % classes;
                Some(self.need_classes()?[1].iter().map(other).collect())
            }
        })
    }

    /// The class of a row; 0 without classes.
    pub fn class_of(&self, id: u32) -> u8 {
        self.classes.as_ref().map_or(0, |[of_rows, _]| of_rows[id as usize])
    }

    /// True if a row is in the table.
    pub fn is_present(&self, id: u32, present: Present) -> bool {
        match present {
            // The table itself tells its rows.
            Present::All | Present::Found => true,
            Present::AllBut { spare } => {
                u64::from(id).saturating_add(spare) < self.train.rows() as u64
            }
            Present::Kept { deleted } => fate(id) >= parts(deleted),
        }
    }
}

/// These rows of a matrix.
fn pick(matrix: &Matrix, rows: &[usize]) -> Matrix {
    let place = |row: &usize| row * matrix.dims..(row + 1) * matrix.dims;
    let values = match &matrix.values {
        Numbers::Bytes(values) => {
            Numbers::Bytes(rows.iter().flat_map(|row| &values[place(row)]).copied().collect())
        }
        Numbers::Floats(values) => {
            Numbers::Floats(rows.iter().flat_map(|row| &values[place(row)]).copied().collect())
        }
    };
    Matrix { dims: matrix.dims, values }
}

/// The first 12 hexadecimal digits of a SHA-256 over sizes and values.
pub(crate) fn hash(matrices: &[&Matrix]) -> String {
    let mut sha = Sha256::new();
    for matrix in matrices {
        sha.update((matrix.dims as u64).to_le_bytes());
        sha.update((matrix.rows() as u64).to_le_bytes());
        match &matrix.values {
            Numbers::Bytes(values) => sha.update(values),
            Numbers::Floats(values) => {
                for chunk in values.chunks(1024) {
                    let bytes: Vec<u8> = chunk.iter().flat_map(|v| v.to_le_bytes()).collect();
                    sha.update(&bytes);
                }
            }
        }
    }
    units::hex(&sha.finalize()[..6])
}
