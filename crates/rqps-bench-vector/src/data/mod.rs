//! Sources of vectors: the generator, or the user's files; and the attributes of each row.

pub mod dataset;
pub mod fashion;
pub mod files;
pub mod hdf5;
pub mod simd;
pub mod truth;

use std::fs;
use std::path::{Path, PathBuf};

pub use self::dataset::VectorSet;
use self::dataset::hash;
use self::truth::Truth;
use rqps_model::datagen::rng::StreamKey;
use rqps_model::units;
use rqps_model::vector::{DataSource, Distance, Filter, Neighbours, Present};
use sha2::{Digest, Sha256};
use thiserror::Error;

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
        let mut data = hdf5::dataset(rows)?;
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
    fs::create_dir_all(folder).map_err(DataError::io(doing, folder))?;
    let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
    let mut file = content.clone();
    file.extend_from_slice(&Sha256::digest(&content));
    fs::write(&partial, file).map_err(DataError::io(doing, &partial))?;
    fs::rename(&partial, &path).map_err(DataError::io(doing, &path))?;
    Ok(content)
}

/// The content of a file; `None` if it is missing or damaged.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = fs::read(path).ok()?;
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

#[cfg(test)]
mod tests {
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
