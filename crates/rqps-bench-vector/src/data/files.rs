//! Reads the files of the TEXMEX sets. Each vector is its number of dimensions as a 32-bit integer,
//! then its values: floats in fvecs, bytes in bvecs, 32-bit integers in ivecs. Little-endian.

use std::path::Path;

use super::dataset::{Matrix, Numbers, VectorSet};
use super::truth::Truth;
use crate::data::DataError;
use rqps_model::bounded;
use rqps_model::datagen::rng::Rng;

/// Reads an fvecs file.
///
/// # Errors
///
/// It is unreadable, or its vectors differ in length.
pub fn floats(path: &Path) -> Result<Matrix, DataError> {
    let (dims, values) = read_fvecs(path, 4)?;
    let numbers = values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(Matrix::of_floats(dims, numbers.collect()))
}

/// Reads a bvecs file.
///
/// # Errors
///
/// As [`floats`].
pub fn bytes(path: &Path) -> Result<Matrix, DataError> {
    let (dims, values) = read_fvecs(path, 1)?;
    Ok(Matrix { dims, values: Numbers::Bytes(values) })
}

/// Reads an ivecs file: numbers per vector, and all numbers.
///
/// # Errors
///
/// As [`floats`].
pub fn integers(path: &Path) -> Result<(usize, Vec<i32>), DataError> {
    let (dims, values) = read_fvecs(path, 4)?;
    let numbers = values.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
    Ok((dims, numbers.collect()))
}

/// Dimensions, and the bytes of all values without the lengths between them.
fn read_fvecs(path: &Path, width: usize) -> Result<(usize, Vec<u8>), DataError> {
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

// Reads NumPy's array files: a header in the form of a Python dictionary, then the values.
// Supports little-endian float32, float64 and uint8 with two dimensions in C order.

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an npy file.
///
/// # Errors
///
/// The file is unreadable, or an array of another kind; the text names the feature.
pub fn read_npy(path: &Path) -> Result<Matrix, DataError> {
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

// Reads neighbours that the user supplies from ivecs, and compares them with exact ones.

/// Reads row numbers of the neighbours of each query of `data`, the nearest first, and computes
/// their distances.
///
/// # Errors
///
/// The file is unreadable, has another number of queries, or names rows that do not exist.
pub fn read_given(path: &Path, data: &VectorSet) -> Result<Truth, DataError> {
    let (k, numbers) = integers(path)?;
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
    use std::fs;

    use super::*;
    use crate::data::dataset::{Matrix, Numbers};
    use crate::data::truth::exact;
    use rqps_model::vector::{DataSource, Distance, Neighbours};

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

#[cfg(test)]
mod npy_tests {
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
