//! Makes the generated set on all CPUs.

use std::path::Path;

use crate::data::cache;
use crate::data::dataset::VectorSet;
use crate::data::error::DataError;
use crate::data::fashion::{Fashion, Part, RenderScratch, VERSION};
use crate::data::matrix::{Matrix, Numbers};
use rqps_model::vector::Distance;
use rqps_stats::parallel;

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
    let content = cache::kept(folder, &file, || Ok(content(wanted)))?;
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
