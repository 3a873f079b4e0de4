//! Where vectors come from: the generator, or files of the user; and what is known of each row.

mod cache;
pub mod fashion;
pub mod fvecs;
pub mod given;
pub mod hdf5;
pub mod matrix;
pub mod npy;
pub mod statistics;
mod synthetic;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use self::matrix::{Matrix, Numbers};
use crate::benchmarks::vector::driver::truth::{Truth, exact};
use crate::datagen::rng::StreamKey;
use crate::domain::vector::{DataSource, Distance, Filter, Neighbours, Present};

/// Parts of the whole that attributes count in: ten thousand, a hundredth of a per cent.
pub const PARTS: u64 = 10_000;
/// Queries whose given neighbours are held against exact ones before anything is measured.
const GIVEN_SAMPLE: usize = 200;

/// Vectors to be indexed, queries, and how far apart they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// What it is, in words: `fashion-like v1, 10000 × 784, seed 1 (synthetic)`.
    pub name: String,
    /// The first 12 hex digits of a SHA-256 over all vectors.
    pub hash: String,
    /// What the measure of nearness is.
    pub distance: Distance,
    /// The rows; a row's number is its id.
    pub train: Matrix,
    /// The queries.
    pub test: Matrix,
    /// Classes of rows and of queries, where there are any.
    pub classes: Option<[Vec<u8>; 2]>,
    /// Neighbours that came with the file.
    pub given: Option<Truth>,
}

/// Why there is no data.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("{doing} {path}: {source}")]
    Io {
        /// "read the vectors of".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file has another form, or a feature that is not read.
    #[error("read the vectors of {path}: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The vectors cannot be searched.
    #[error("use the vectors of {name}: {what}")]
    Unfit {
        /// The set.
        name: String,
        /// What is wrong, and what to do.
        what: String,
    },
}

impl DataError {
    fn form(path: &Path, what: impl Into<String>) -> DataError {
        DataError::Form { path: path.to_owned(), what: what.into() }
    }

    fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DataError {
        let path = path.to_owned();
        move |source| DataError::Io { doing, path, source }
    }
}

impl Dataset {
    /// A set without classes and without given neighbours.
    pub fn new(name: String, train: Matrix, test: Matrix, distance: Distance) -> Dataset {
        let hash = hash(&[&train, &test]);
        Dataset { name, hash, distance, train, test, classes: None, given: None }
    }

    /// Reads a set, or makes one of `rows` rows. What takes long to make is kept in
    /// `folder` and found again by its name.
    ///
    /// # Errors
    /// Files that cannot be read; vectors that cannot be searched; fewer rows than `k`.
    pub fn open(
        source: &DataSource,
        rows: u64,
        k: usize,
        folder: Option<&Path>,
    ) -> Result<Dataset, DataError> {
        let data = match source {
            DataSource::Fashion { dims, queries, rounded, seed } => {
                let wanted = synthetic::Wanted {
                    rows: rows as usize,
                    queries: *queries as usize,
                    dims: *dims as usize,
                    rounded: *rounded,
                    seed: *seed,
                };
                synthetic::make(&wanted, folder)?
            }
            DataSource::Files {
                rows: file,
                queries,
                limit_rows,
                limit_queries,
                distance,
                neighbours,
            } => {
                let mut data = from_files(file, queries.as_deref(), *distance)?;
                data.take_neighbours(neighbours)?;
                data.limit(*limit_rows as usize, *limit_queries as usize);
                data
            }
        };
        data.check(k)?;
        Ok(data)
    }

    /// Takes the first `rows` and the first `queries` only (0: all). Neighbours that came with the
    /// file are of all rows, so they go with the first row that does.
    fn limit(&mut self, rows: usize, queries: usize) {
        let (had, asked) = (self.train.rows(), self.test.rows());
        if rows > 0 && rows < had {
            self.train.truncate(rows);
            self.given = None;
        }
        if queries > 0 && queries < asked {
            self.test.truncate(queries);
            if let Some(given) = &mut self.given {
                given.ids.truncate(queries * given.k);
                given.distances.truncate(queries * given.k);
            }
        }
        if (self.train.rows(), self.test.rows()) != (had, asked) {
            self.hash = hash(&[&self.train, &self.test]);
            self.name =
                format!("{} ({} rows, {} queries)", self.name, self.train.rows(), self.test.rows());
        }
    }

    fn take_neighbours(&mut self, neighbours: &Neighbours) -> Result<(), DataError> {
        match neighbours {
            Neighbours::OfFile => {}
            Neighbours::Ignored => self.given = None,
            Neighbours::File(path) => self.given = Some(given::read(path, self)?),
        }
        Ok(())
    }

    /// Holds the neighbours that came with the set against exact ones.
    ///
    /// # Errors
    /// They are wrong, and so may be what else is believed of the set.
    pub fn check_given(&self, exact: &Truth) -> Result<(), DataError> {
        match given::wrong(self, exact, GIVEN_SAMPLE) {
            None => Ok(()),
            Some(what) => Err(DataError::Unfit {
                name: self.name.clone(),
                what: format!(
                    "its neighbours are wrong: {what}; correct them, or measure without them \
                     (--set neighbours=none)"
                ),
            }),
        }
    }

    fn check(&self, k: usize) -> Result<(), DataError> {
        let unfit = |what: String| Err(DataError::Unfit { name: self.name.clone(), what });
        if self.train.dims == 0 || self.train.dims != self.test.dims {
            return unfit(format!(
                "rows have {} dimensions but queries {}; both need the same number",
                self.train.dims, self.test.dims
            ));
        }
        if self.train.rows() < k || k == 0 {
            return unfit(format!(
                "it has {} rows, but {k} neighbours are requested; use more rows or a smaller k",
                self.train.rows()
            ));
        }
        if self.test.rows() == 0 {
            return unfit("it has no queries".to_owned());
        }
        if let Some(given) = self.given.as_ref().filter(|given| given.k < k) {
            return unfit(format!(
                "it has {} neighbours of each query, but {k} are requested; use a smaller k, or \
                 compute the neighbours (--set neighbours=none)",
                given.k
            ));
        }
        for (what, matrix) in [("row", &self.train), ("query", &self.test)] {
            if let Some((row, dim)) = matrix.first_not_finite() {
                return unfit(format!(
                    "{what} {row} has {} in dimension {dim}; no DBMS accepts that, correct the \
                     file",
                    matrix.at(row, dim)
                ));
            }
            if self.distance == Distance::Cosine
                && let Some(row) = matrix.first_zero()
            {
                return unfit(format!(
                    "{what} {row} is all zeros, so it has no direction and no cosine distance; \
                     remove it, or use the euclidean distance"
                ));
            }
        }
        Ok(())
    }

    /// The exact neighbours of all queries among the rows that are there and pass the filter. Kept
    /// in `folder`, found again by the set's hash.
    ///
    /// # Errors
    /// Fewer than `k` rows are left for some query; classes are asked for and there are none.
    pub fn truth(
        &self,
        filter: Filter,
        present: Present,
        k: usize,
        folder: Option<&Path>,
    ) -> Result<Truth, DataError> {
        cache::truth(self, &format!("{filter:?}.{present:?}.{k}"), k, folder, || {
            self.compute_truth(filter, present, k)
        })
    }

    fn compute_truth(
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
    /// Fewer than `k` rows, or rows that the set has not.
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

    /// The value that each query's filter compares with; `None` where there is no filter.
    ///
    /// # Errors
    /// Classes are asked for and there are none.
    pub fn filter_values(&self, filter: Filter) -> Result<Option<Vec<i64>>, DataError> {
        let classes = crate::benchmarks::vector::data::fashion::CLASSES as i64;
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

    /// The class of a row; 0 where there are no classes.
    pub fn class_of(&self, id: u32) -> u8 {
        self.classes.as_ref().map_or(0, |[of_rows, _]| of_rows[id as usize])
    }

    /// True if a row is in the table.
    pub fn is_present(&self, id: u32, present: Present) -> bool {
        match present {
            // What a table holds is asked of the table.
            Present::All | Present::Found => true,
            Present::AllBut { spare } => {
                u64::from(id).saturating_add(spare) < self.train.rows() as u64
            }
            Present::Kept { deleted } => fate(id) >= parts(deleted),
        }
    }
}

/// An attribute of a row that has nothing to do with where the row lies: uniform in 0..[`PARTS`].
pub fn uniform(id: u32) -> u64 {
    StreamKey::new(0, "vector.uniform").at(u64::from(id)).below(PARTS)
}

/// Decides when a row is deleted: those below the share that is to go, uniform in 0..[`PARTS`].
pub fn fate(id: u32) -> u64 {
    StreamKey::new(0, "vector.fate").at(u64::from(id)).below(PARTS)
}

/// A share in per cent as a number of [`PARTS`].
pub fn parts(percent: f64) -> u64 {
    (percent * PARTS as f64 / 100.0).round() as u64
}

/// Some rows of a matrix.
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

/// The first 12 hex digits of a SHA-256 over sizes and values.
fn hash(matrices: &[&Matrix]) -> String {
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
    sha.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Reads files by their endings.
fn from_files(
    rows: &Path,
    queries: Option<&Path>,
    distance: Option<Distance>,
) -> Result<Dataset, DataError> {
    let ending = |path: &Path| path.extension().map(|end| end.to_string_lossy().to_lowercase());
    if matches!(ending(rows).as_deref(), Some("hdf5" | "h5")) {
        let mut data = hdf5::dataset(rows)?;
        data.distance = distance.unwrap_or(data.distance);
        return Ok(data);
    }
    let read = |path: &Path| match ending(path).as_deref() {
        Some("fvecs") => fvecs::floats(path),
        Some("bvecs") => fvecs::bytes(path),
        Some("npy") => npy::read(path),
        _ => Err(DataError::form(path, "unknown file extension (known: hdf5, fvecs, bvecs, npy)")),
    };
    let Some(queries) = queries else {
        return Err(DataError::form(
            rows,
            "it holds only rows; also name a file of queries (--set queries=FILE)",
        ));
    };
    let name = rows.file_name().map(|name| name.to_string_lossy().into_owned());
    let distance = distance.unwrap_or(Distance::Euclidean);
    Ok(Dataset::new(name.unwrap_or_default(), read(rows)?, read(queries)?, distance))
}
