//! Reads NumPy's array files: a header in the form of a Python dictionary, then the values.
//! Supports little-endian float32, float64 and uint8 with two dimensions in C order.

use std::path::Path;

use crate::data::error::DataError;
use crate::data::matrix::{Matrix, Numbers};
use rqps_model::bounded;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an npy file.
///
/// # Errors
///
/// The file is unreadable, or an array of another kind; the text names the feature.
pub fn read(path: &Path) -> Result<Matrix, DataError> {
    let file = bounded::data(path).map_err(DataError::io("read the vectors of", path))?;
    parse(&file).map_err(|what| DataError::form(path, what))
}

fn parse(file: &[u8]) -> Result<Matrix, String> {
    let rest = file.strip_prefix(MAGIC).ok_or("it does not begin like a NumPy file")?;
    let (head, values) = match rest {
        [1, _, low, high, rest @ ..] => {
            rest.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))
        }
        [2 | 3, _, a, b, c, d, rest @ ..] => {
            rest.split_at_checked(u32::from_le_bytes([*a, *b, *c, *d]) as usize)
        }
        _ => return Err("its version is not 1, 2 or 3".to_owned()),
    }
    .ok_or("its header is truncated")?;
    let head = String::from_utf8_lossy(head);
    if field(&head, "fortran_order")? != "False" {
        return Err("it is in Fortran order; save it with numpy.ascontiguousarray".to_owned());
    }
    let shape = field(&head, "shape")?;
    let sizes: Vec<usize> = shape
        .trim_matches(['(', ')'])
        .split(',')
        .filter_map(|size| size.trim().parse().ok())
        .collect();
    let [rows, dims] = sizes[..] else {
        return Err(format!("its shape is {shape}; rqps needs an array of rows and dimensions"));
    };
    let kind = field(&head, "descr")?;
    let width = match kind.as_str() {
        "'|u1'" => 1,
        "'<f4'" => 4,
        "'<f8'" => 8,
        _ => return Err(format!("its values are {kind}; rqps reads '<f4', '<f8' and '|u1'")),
    };
    if rows.checked_mul(dims).and_then(|count| count.checked_mul(width)) != Some(values.len()) {
        return Err(format!("its shape is {shape} but it holds {} bytes", values.len()));
    }
    Ok(match width {
        1 => Matrix { dims, values: Numbers::Bytes(values.to_vec()) },
        4 => {
            let numbers = values.as_chunks::<4>().0.iter();
            Matrix::of_floats(dims, numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        _ => {
            let numbers = values.as_chunks::<8>().0.iter();
            let single = numbers.map(|bytes| f64::from_le_bytes(*bytes) as f32);
            Matrix::of_floats(dims, single.collect())
        }
    })
}

/// A value of the header `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn field(head: &str, name: &str) -> Result<String, String> {
    let missing = || format!("its header has no {name}");
    let (_, rest) = head.split_once(&format!("'{name}':")).ok_or_else(missing)?;
    let rest = rest.trim_start();
    let end = match rest.strip_prefix('(') {
        Some(inner) => inner.find(')').map(|place| place + 2),
        None => rest.find([',', '}']),
    };
    Ok(rest[..end.ok_or_else(missing)?].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(head: &str, values: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((head.len() as u16).to_le_bytes());
        file.extend(head.as_bytes());
        file.extend(values);
        file
    }

    #[test]
    fn arrays_are_read() {
        let check = |kind: &str, values: &[u8], expected: Numbers| {
            let head =
                format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 1), }}   \n");
            assert_eq!(parse(&file(&head, values)), Ok(Matrix { dims: 1, values: expected }));
        };
        check("|u1", &[3, 4], Numbers::Bytes(vec![3, 4]));
        let singles: Vec<u8> = [0.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        check("<f4", &singles, Numbers::Floats(vec![0.5, -2.0]));
        let doubles: Vec<u8> = [0.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        check("<f8", &doubles, Numbers::Floats(vec![0.5, -2.0]));
    }

    #[test]
    fn other_arrays_are_refused_by_name() {
        let check = |head: &str, words: &str| {
            let error = parse(&file(head, &[0; 8])).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        check("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}", "'>f4'");
        check("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1)}", "Fortran");
        check("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "(2,)");
        check("{'descr': '<f4', 'fortran_order': False, 'shape': (9, 9)}", "8 bytes");
        check("{'descr': '<f4', 'fortran_order': False}", "no shape");
        assert!(parse(b"PK").unwrap_err().contains("NumPy"));
    }
}
