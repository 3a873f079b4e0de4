//! Reads the subset of HDF5 that ann-benchmarks writes: superblock 0, object headers 1, groups as
//! symbol tables, contiguous datasets, attributes 1. Other features are refused by name; `h5repack
//! -l CONTI -f NONE --low=0 --high=0` converts most files to this form.

mod parse;

use std::path::Path;

use self::parse::{Array, DatatypeClass, File};
use crate::data::dataset::VectorSet;
use crate::data::error::DataError;
use crate::data::matrix::{Matrix, Numbers};
use crate::data::truth::Truth;
use rqps_model::bounded;
use rqps_model::vector::Distance;

/// Reads a file of ann-benchmarks: `train`, `test`, and `neighbors` and `distances` if they exist;
/// the attribute `distance` names the distance.
///
/// # Errors
///
/// The file is unreadable, or has an unsupported feature; the text names it.
pub fn dataset(path: &Path) -> Result<VectorSet, DataError> {
    let bytes = bounded::data(path).map_err(DataError::io("read the vectors of", path))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    read(&bytes, name.unwrap_or_default()).map_err(|what| DataError::form(path, what))
}

fn read(bytes: &[u8], name: String) -> Result<VectorSet, String> {
    let file = File::open(bytes)?;
    let attribute = |name: &str| file.attributes.get(name).cloned();
    let distance = match attribute("distance").as_deref() {
        Some("euclidean") => Distance::Euclidean,
        Some("angular") => Distance::Cosine,
        Some(other) => {
            return Err(format!(
                "its distance is {other}; rqps measures euclidean and angular, not bits or sets"
            ));
        }
        None => {
            let why = "it has no attribute `distance`; does it come from ann-benchmarks?";
            return Err(why.to_owned());
        }
    };
    if attribute("type").is_some_and(|kind| kind != "dense") {
        return Err("its vectors are sparse; rqps measures only dense vectors".to_owned());
    }
    let train = matrix(&file, "train")?;
    let test = matrix(&file, "test")?;
    let given = given(&file, test.rows())?;
    let mut data = VectorSet::new(name, train, test, distance);
    data.given = given;
    Ok(data)
}

fn matrix(file: &File<'_>, name: &str) -> Result<Matrix, String> {
    let array = file.dataset(name)?.ok_or_else(|| {
        let known: Vec<&str> = file.names().collect();
        format!("it has no dataset `{name}` (it has {})", known.join(", "))
    })?;
    let [_, dims] = array.shape[..] else {
        return Err(format!("`{name}` has {} dimensions instead of 2", array.shape.len()));
    };
    let values = match array.kind {
        DatatypeClass::Unsigned(1) => {
            return Ok(Matrix { dims, values: Numbers::Bytes(array.bytes.to_vec()) });
        }
        DatatypeClass::Float(_) => numbers(&array)?,
        _ => return Err(format!("`{name}` holds neither floats nor bytes")),
    };
    Ok(Matrix::of_floats(dims, values.into_iter().map(|value| value as f32).collect()))
}

/// Neighbours and their distances, if the file has both.
fn given(file: &File<'_>, queries: usize) -> Result<Option<Truth>, String> {
    let (Some(ids), Some(distances)) = (file.dataset("neighbors")?, file.dataset("distances")?)
    else {
        return Ok(None);
    };
    if ids.shape != distances.shape || ids.shape.first() != Some(&queries) {
        return Err(format!(
            "`neighbors` has shape {:?} and `distances` {:?} for {queries} queries",
            ids.shape, distances.shape
        ));
    }
    let k = ids.shape.get(1).copied().unwrap_or(0);
    let ids = numbers(&ids)?.into_iter().map(|id| id as u32).collect();
    Ok(Some(Truth { k, ids, distances: numbers(&distances)? }))
}

/// All values as doubles, which are exact for them (row numbers are below 2^32).
fn numbers(array: &Array<'_>) -> Result<Vec<f64>, String> {
    let bytes = array.bytes;
    Ok(match array.kind {
        DatatypeClass::Float(4) => {
            let numbers = bytes.as_chunks::<4>().0.iter();
            numbers.map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect()
        }
        DatatypeClass::Float(8) => {
            bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
        }
        DatatypeClass::Signed(4) => {
            let numbers = bytes.as_chunks::<4>().0.iter();
            numbers.map(|bytes| f64::from(i32::from_le_bytes(*bytes))).collect()
        }
        DatatypeClass::Signed(8) => {
            let numbers = bytes.as_chunks::<8>().0.iter();
            numbers.map(|bytes| i64::from_le_bytes(*bytes) as f64).collect()
        }
        kind => return Err(format!("unsupported value type {kind:?}")),
    })
}

#[cfg(test)]
mod tests;
