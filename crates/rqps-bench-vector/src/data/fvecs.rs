//! Reads the files of the TEXMEX sets. Each vector is its number of dimensions as a 32-bit integer,
//! then its values: floats in fvecs, bytes in bvecs, 32-bit integers in ivecs. Little-endian.

use std::path::Path;

use crate::data::error::DataError;
use crate::data::matrix::{Matrix, Numbers};
use rqps_model::bounded;

/// Reads an fvecs file.
///
/// # Errors
///
/// It is unreadable, or its vectors differ in length.
pub fn floats(path: &Path) -> Result<Matrix, DataError> {
    let (dims, values) = read(path, 4)?;
    let numbers = values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(Matrix::of_floats(dims, numbers.collect()))
}

/// Reads a bvecs file.
///
/// # Errors
///
/// As [`floats`].
pub fn bytes(path: &Path) -> Result<Matrix, DataError> {
    let (dims, values) = read(path, 1)?;
    Ok(Matrix { dims, values: Numbers::Bytes(values) })
}

/// Reads an ivecs file: numbers per vector, and all numbers.
///
/// # Errors
///
/// As [`floats`].
pub fn integers(path: &Path) -> Result<(usize, Vec<i32>), DataError> {
    let (dims, values) = read(path, 4)?;
    let numbers = values.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
    Ok((dims, numbers.collect()))
}

/// Dimensions, and the bytes of all values without the lengths between them.
fn read(path: &Path, width: usize) -> Result<(usize, Vec<u8>), DataError> {
    let file = bounded::data(path).map_err(DataError::io("read the vectors of", path))?;
    let Some((head, _)) = file.split_first_chunk::<4>() else {
        return Err(DataError::form(path, "it is empty"));
    };
    let dims = i32::from_le_bytes(*head);
    let Some(dims) = usize::try_from(dims).ok().filter(|dims| (1..=65_536).contains(dims)) else {
        return Err(DataError::form(
            path,
            format!("its first vector has {dims} dimensions; is it really in this format?"),
        ));
    };
    let record = 4 + dims * width;
    let mut values = Vec::with_capacity(file.len());
    for (number, vector) in file.chunks(record).enumerate() {
        // Report a different length first: after it, all positions are wrong, so that a complete
        // file may seem cut off.
        if let Some((length, _)) = vector.split_first_chunk::<4>().filter(|(it, _)| *it != head) {
            let length = i32::from_le_bytes(*length);
            return Err(DataError::form(
                path,
                format!(
                    "vector {number} has {length} dimensions but the vectors before it have \
                     {dims}; all need the same length"
                ),
            ));
        }
        if vector.len() < record {
            let bytes = file.len();
            return Err(DataError::form(
                path,
                format!(
                    "it is truncated: {bytes} bytes are not a whole number of vectors of {dims} \
                     dimensions"
                ),
            ));
        }
        values.extend_from_slice(&vector[4..]);
    }
    Ok((dims, values))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.fvecs");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    #[test]
    fn vectors_are_read() {
        let mut content = Vec::new();
        for vector in [[0.5f32, -1.0], [2.0, 3.0]] {
            content.extend(2i32.to_le_bytes());
            content.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        }
        let (_folder, path) = file(&content);
        let matrix = floats(&path).unwrap();
        assert_eq!(matrix.dims, 2);
        assert_eq!(matrix.values, Numbers::Floats(vec![0.5, -1.0, 2.0, 3.0]));
        assert_eq!(integers(&path).unwrap().1[2], 2.0f32.to_bits() as i32);
        let (_folder, path) = file(&[3, 0, 0, 0, 7, 8, 9]);
        assert_eq!(bytes(&path).unwrap().values, Numbers::Bytes(vec![7, 8, 9]));
    }

    #[test]
    fn other_files_are_refused() {
        let check = |content: &[u8], words: &str| {
            let (_folder, path) = file(content);
            let error = floats(&path).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("x.fvecs"), "{error}");
        };
        check(&[], "empty");
        check(&[1, 0, 0, 0, 0, 0, 0], "truncated");
        check(&[0xff; 8], "-1 dimensions");
        let longer = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        check(&longer[..16], "vector 1 has 2 dimensions but the vectors before it have 1");
        // Although its size is no multiple of a vector either.
        check(&longer, "vector 1 has 2 dimensions");
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0], "truncated");
    }
}
