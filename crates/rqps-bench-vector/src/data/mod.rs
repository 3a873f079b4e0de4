//! Sources of vectors: the generator, or the user's files; and the attributes of each row.

pub mod fashion;
pub mod files;
pub mod truth;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

use fashion::CLASSES;
use rqps_model::datagen::rng::{Rng, StreamKey};
use rqps_model::vector::{DataSource, Distance, Filter, Neighbours, Present};
use rqps_model::{bounded, safe_path, units};
use truth::{Truth, exact};

/// Units of attributes in the whole: one is a hundredth of a per cent.
pub(crate) const PARTS: u64 = 10_000;
/// An attribute for filters, uniform in 0..[`PARTS`].
pub fn uniform(id: u32) -> u64 {
    StreamKey::new(0, "vector.uniform").at(u64::from(id)).below(PARTS)
}

/// An attribute for deletes, uniform in 0..[`PARTS`]: rows below the share to delete are deleted.
pub fn fate(id: u32) -> u64 {
    StreamKey::new(0, "vector.fate").at(u64::from(id)).below(PARTS)
}

/// A share in per cent as a number of [`PARTS`].
pub fn parts(percent: f64) -> u64 {
    (percent * PARTS as f64 / 100.0).round() as u64
}

// Errors of vector data.

/// An error of vector data.
#[derive(Debug, Error)]
pub enum DataError {
    /// A file cannot be read or written.
    #[error("{doing} {path}: {source}")]
    Io {
        /// The action: "read the vectors of".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file has an unknown form or an unsupported feature.
    #[error("read the vectors of {path}: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The problem, and the valid form.
        what: String,
    },
    /// The vectors are unsuitable for a search.
    #[error("use the vectors of {name}: {what}")]
    Unfit {
        /// The set.
        name: String,
        /// The problem and a way out.
        what: String,
    },
}

impl DataError {
    pub(crate) fn form(path: &Path, what: impl Into<String>) -> DataError {
        DataError::Form { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DataError {
        let path = path.to_owned();
        move |source| DataError::Io { doing, path, source }
    }
}

// Opens a data set: generates it or reads the user's files, caches data that are slow to make, and
// refuses unsuitable vectors.

/// Queries whose given neighbours are compared with exact ones before measuring.
const GIVEN_SAMPLE: usize = 200;

impl VectorSet {
    /// Reads a set, or generates one of `rows` rows. `folder` caches data that are slow to make.
    ///
    /// # Errors
    ///
    /// Unreadable files; unsuitable vectors; fewer rows than `k`.
    pub fn open(
        source: &DataSource,
        rows: u64,
        k: usize,
        folder: Option<&Path>,
    ) -> Result<VectorSet, DataError> {
        let data = match source {
            DataSource::Fashion { dims, queries, rounded, seed } => {
                let wanted = fashion::Wanted {
                    rows: rows as usize,
                    queries: *queries as usize,
                    dims: *dims as usize,
                    rounded: *rounded,
                    seed: *seed,
                };
                fashion::make(&wanted, folder)?
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

    /// Keeps the first `rows` and the first `queries` (0: all). Neighbours from the file are those
    /// among all rows, so removing a row removes them.
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
            Neighbours::File(path) => self.given = Some(files::read_given(path, self)?),
        }
        Ok(())
    }

    /// Compares the neighbours from the file with exact ones.
    ///
    /// # Errors
    ///
    /// They are wrong; other parts of the file may be too.
    pub fn check_given(&self, exact: &Truth) -> Result<(), DataError> {
        match files::wrong(self, exact, GIVEN_SAMPLE) {
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

    /// The exact neighbours of all queries among the rows that are present and pass the filter;
    /// cached in `folder` under the set's hash.
    ///
    /// # Errors
    ///
    /// Fewer than `k` rows are left for a query; the filter needs classes and there are none.
    pub fn truth(
        &self,
        filter: Filter,
        present: Present,
        k: usize,
        folder: Option<&Path>,
    ) -> Result<Truth, DataError> {
        truth(self, &format!("{filter:?}.{present:?}.{k}"), k, folder, || {
            self.compute_truth(filter, present, k)
        })
    }
}

/// Reads files by their extensions.
fn from_files(
    rows: &Path,
    queries: Option<&Path>,
    distance: Option<Distance>,
) -> Result<VectorSet, DataError> {
    let ending = |path: &Path| path.extension().map(|end| end.to_string_lossy().to_lowercase());
    if matches!(ending(rows).as_deref(), Some("hdf5" | "h5")) {
        let mut data = files::dataset(rows)?;
        data.distance = distance.unwrap_or(data.distance);
        return Ok(data);
    }
    let read = |path: &Path| match ending(path).as_deref() {
        Some("fvecs") => files::floats(path),
        Some("bvecs") => files::bytes(path),
        Some("npy") => files::read_npy(path),
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
    Ok(VectorSet::new(name.unwrap_or_default(), read(rows)?, read(queries)?, distance))
}

// Caches data that are slow to make, in files with a SHA-256 at the end. A damaged file is made
// again.

const SHA: usize = 32;

/// The content of `name` in `folder`; makes it if it is missing, and always without a folder. A
/// file is written under another name and then renamed, so that two processes may make it at once.
pub(super) fn kept(
    folder: Option<&Path>,
    name: &str,
    make: impl FnOnce() -> Result<Vec<u8>, DataError>,
) -> Result<Vec<u8>, DataError> {
    let Some(folder) = folder else { return make() };
    let path = folder.join(name);
    if let Some(content) = read(&path) {
        return Ok(content);
    }
    let content = make()?;
    let doing = "keep vectors in";
    safe_path::make_folder(folder).map_err(DataError::io(doing, folder))?;
    let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
    let mut file = content.clone();
    file.extend_from_slice(&Sha256::digest(&content));
    safe_path::create_file(&partial)
        .and_then(|mut to| to.write_all(&file))
        .map_err(DataError::io(doing, &partial))?;
    safe_path::rename(&partial, &path).map_err(DataError::io(doing, &path))?;
    Ok(content)
}

/// The content of a file; `None` if it is missing or damaged.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = bounded::data(path).ok()?;
    let end = content.len().checked_sub(SHA)?;
    if Sha256::digest(&content[..end])[..] != content[end..] {
        return None;
    }
    content.truncate(end);
    Some(content)
}

/// Exact neighbours of a set, cached under the set's hash.
pub(super) fn truth(
    data: &VectorSet,
    what: &str,
    k: usize,
    folder: Option<&Path>,
    make: impl FnOnce() -> Result<Truth, DataError>,
) -> Result<Truth, DataError> {
    let key = format!("{} {:?} {what}", data.hash, data.distance);
    let name = units::hex(&Sha256::digest(key.as_bytes())[..6]);
    let count = data.test.rows() * k;
    let content = kept(folder, &format!("truth-{}-{name}", data.hash), || Ok(encode(&make()?)))?;
    decode(&content, k, count).ok_or_else(|| DataError::Unfit {
        name: data.name.clone(),
        what: format!(
            "the file truth-{}-{name} in the cache belongs to a different set; remove it",
            data.hash
        ),
    })
}

fn encode(truth: &Truth) -> Vec<u8> {
    let mut content: Vec<u8> = truth.ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    content.extend(truth.distances.iter().flat_map(|distance| distance.to_le_bytes()));
    content
}

fn decode(content: &[u8], k: usize, count: usize) -> Option<Truth> {
    if content.len() != count * 12 {
        return None;
    }
    let (ids, distances) = content.split_at(count * 4);
    Some(Truth {
        k,
        ids: ids.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        distances: distances
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect(),
    })
}

// A data set: vectors, queries, classes, and exact neighbours of the queries.

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

// Vectors in memory: bytes if all values are whole numbers from 0 to 255, otherwise floats.

/// Vectors of equal length, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Dimensions of each vector.
    pub dims: usize,
    /// The values, vector after vector.
    pub values: Numbers,
}

/// Values of a [`Matrix`].
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// Whole numbers from 0 to 255.
    Bytes(Vec<u8>),
    /// Single precision.
    Floats(Vec<f32>),
}

impl Matrix {
    /// Makes a matrix of floats. If all are whole numbers from 0 to 255, they become bytes, which
    /// are exact and four times as fast.
    pub fn of_floats(dims: usize, values: Vec<f32>) -> Matrix {
        let is_byte = |value: &f32| *value >= 0.0 && *value <= 255.0 && value.fract() == 0.0;
        let values = if values.iter().all(is_byte) {
            Numbers::Bytes(values.iter().map(|value| *value as u8).collect())
        } else {
            Numbers::Floats(values)
        };
        Matrix { dims, values }
    }

    /// Number of vectors.
    pub fn rows(&self) -> usize {
        let values = match &self.values {
            Numbers::Bytes(values) => values.len(),
            Numbers::Floats(values) => values.len(),
        };
        values.checked_div(self.dims).unwrap_or(0)
    }

    /// Keeps the first `rows` vectors.
    pub fn truncate(&mut self, rows: usize) {
        match &mut self.values {
            Numbers::Bytes(values) => values.truncate(rows * self.dims),
            Numbers::Floats(values) => values.truncate(rows * self.dims),
        }
    }

    /// Copies vector `row` as floats.
    pub fn copy_row(&self, row: usize, out: &mut [f32]) {
        let place = row * self.dims..(row + 1) * self.dims;
        match &self.values {
            Numbers::Bytes(values) => {
                for (out, value) in out.iter_mut().zip(&values[place]) {
                    *out = f32::from(*value);
                }
            }
            Numbers::Floats(values) => out.copy_from_slice(&values[place]),
        }
    }

    /// Value `dim` of vector `row`.
    pub fn at(&self, row: usize, dim: usize) -> f32 {
        match &self.values {
            Numbers::Bytes(values) => f32::from(values[row * self.dims + dim]),
            Numbers::Floats(values) => values[row * self.dims + dim],
        }
    }

    /// Mean of each dimension.
    pub fn mean(&self) -> Vec<f32> {
        let mut sums = vec![0.0f64; self.dims];
        for row in 0..self.rows() {
            for (dim, sum) in sums.iter_mut().enumerate() {
                *sum += f64::from(self.at(row, dim));
            }
        }
        sums.iter().map(|sum| (sum / self.rows().max(1) as f64) as f32).collect()
    }

    /// The first value that is infinite or NaN: vector and dimension.
    pub fn first_not_finite(&self) -> Option<(usize, usize)> {
        let Numbers::Floats(values) = &self.values else { return None };
        let place = values.iter().position(|value| !value.is_finite())?;
        Some((place / self.dims, place % self.dims))
    }

    /// The first vector of zeros only, which has no direction.
    pub fn first_zero(&self) -> Option<usize> {
        (0..self.rows()).find(|row| (0..self.dims).all(|dim| self.at(*row, dim) == 0.0))
    }
}

// Statistics of how hard a set is to search, for comparing the generated set with the prototype.

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
    use std::fs;

    use super::*;

    #[test]
    fn a_kept_file_is_found_and_a_damaged_one_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let get = |content: &[u8]| kept(Some(folder), "x", || Ok(content.to_vec())).unwrap();
        assert_eq!(get(b"first"), b"first");
        assert_eq!(get(b"second"), b"first", "found, not made");
        let mut file = fs::read(folder.join("x")).unwrap();
        file[0] ^= 1;
        fs::write(folder.join("x"), file).unwrap();
        assert_eq!(get(b"third"), b"third");
        assert_eq!(kept(None, "x", || Ok(vec![7])).unwrap(), [7]);
    }

    #[test]
    fn neighbours_survive_their_encoding() {
        let truth = Truth { k: 2, ids: vec![1, 2, 3, 4], distances: vec![0.5, 1.5, 0.0, 1e300] };
        assert_eq!(decode(&encode(&truth), 2, 4), Some(truth.clone()));
        assert_eq!(decode(&encode(&truth), 2, 5), None);
    }
}

#[cfg(test)]
mod dataset_tests {
    use super::*;
    use crate::data::truth::exact;

    #[test]
    fn whole_numbers_become_bytes() {
        let whole = Matrix::of_floats(2, vec![0.0, 255.0, 7.0, 1.0]);
        assert_eq!(whole.values, Numbers::Bytes(vec![0, 255, 7, 1]));
        for other in [0.5, -1.0, 256.0, f32::NAN] {
            let matrix = Matrix::of_floats(1, vec![1.0, other]);
            assert!(matches!(matrix.values, Numbers::Floats(_)), "{other}");
        }
    }

    #[test]
    fn what_cannot_be_searched_is_found() {
        let matrix = Matrix::of_floats(2, vec![1.0, 2.0, 3.0, f32::NAN]);
        assert_eq!(matrix.first_not_finite(), Some((1, 1)));
        assert_eq!(Matrix::of_floats(2, vec![1.0, 0.0, 0.0, 0.0]).first_zero(), Some(1));
        assert_eq!(Matrix::of_floats(2, vec![1.0, 0.0]).first_zero(), None);
    }

    #[test]
    fn the_mean_is_of_each_dimension() {
        let matrix = Matrix::of_floats(2, vec![1.0, 2.0, 3.0, 6.0]);
        assert_eq!(matrix.mean(), [2.0, 4.0]);
    }

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
