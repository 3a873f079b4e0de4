//! Opens a data set: generates it or reads the user's files, caches data that are slow to make, and
//! refuses unsuitable vectors.

use std::path::Path;

use crate::data::dataset::{VectorSet, hash};
use crate::data::error::DataError;
use crate::data::truth::Truth;
use crate::data::{cache, fvecs, given, hdf5, npy, synthetic};
use rqps_model::vector::{DataSource, Distance, Filter, Neighbours, Present};

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
            Neighbours::File(path) => self.given = Some(given::read(path, self)?),
        }
        Ok(())
    }

    /// Compares the neighbours from the file with exact ones.
    ///
    /// # Errors
    ///
    /// They are wrong; other parts of the file may be too.
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
        cache::truth(self, &format!("{filter:?}.{present:?}.{k}"), k, folder, || {
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
    Ok(VectorSet::new(name.unwrap_or_default(), read(rows)?, read(queries)?, distance))
}
