//! Reads the files of the TEXMEX sets. Each vector is its number of dimensions as a 32-bit integer,
//! then its values: floats in fvecs, bytes in bvecs, 32-bit integers in ivecs. Little-endian.

use std::collections::BTreeMap;
use std::path::Path;

use super::truth::Truth;
use super::{Matrix, Numbers, VectorSet};
use crate::data::DataError;
use rqps_model::bounded;
use rqps_model::datagen::rng::Rng;
use rqps_model::vector::Distance;

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

// Reads the subset of HDF5 that ann-benchmarks writes: superblock 0, object headers 1, groups as
// symbol tables, contiguous datasets, attributes 1. Other features are refused by name; `h5repack
// -l CONTI -f NONE --low=0 --high=0` converts most files to this form.

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

// Parses structures of an HDF5 file from a slice. It checks every offset, because a file may claim
// anything.

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// The address of nothing.
const UNDEFINED: u64 = u64::MAX;
/// Most parts of headers, trees and heaps; a sound file has far fewer.
const MOST_PARTS: usize = 10_000;
/// Most bytes of a name or a value that are kept.
const TEXT_BYTES: usize = 4096;

/// A file whose root group is open.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    /// Address of the object header by name.
    links: BTreeMap<String, u64>,
    /// Attributes of the root group that are text or numbers.
    pub(super) attributes: BTreeMap<String, String>,
}

/// A dataset.
pub(super) struct Array<'a> {
    pub(super) shape: Vec<usize>,
    pub(super) kind: DatatypeClass,
    pub(super) bytes: &'a [u8],
}

/// The type of values, with their width in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatatypeClass {
    Float(usize),
    Signed(usize),
    Unsigned(usize),
    Text(usize),
    /// Text in the global heap.
    VariableText,
    Other(u8),
}

struct Message<'a> {
    kind: u16,
    body: &'a [u8],
}

impl<'a> File<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<File<'a>, String> {
        if !bytes.starts_with(SIGNATURE) {
            return Err("it does not begin like an HDF5 file".to_owned());
        }
        match bytes.get(8) {
            Some(0) => {}
            Some(version) => {
                return Err(format!(
                    "its superblock has version {version}; rqps reads only version 0 (convert with \
                     h5repack --low=0 --high=0)"
                ));
            }
            None => return Err(cut_off()),
        }
        if bytes.get(13..15) != Some(&[8, 8]) {
            return Err("its offsets and lengths are not 8 bytes long".to_owned());
        }
        let root = u64_at(bytes, 64)?;
        let mut file = File { bytes, links: BTreeMap::new(), attributes: BTreeMap::new() };
        for message in file.messages(root)? {
            match message.kind {
                0x11 => {
                    let (tree, heap) = (u64_at(message.body, 0)?, u64_at(message.body, 8)?);
                    file.links = file.symbols(tree, heap)?;
                }
                0x0c => {
                    if let Some((name, value)) = file.attribute(message.body)? {
                        file.attributes.insert(name, value);
                    }
                }
                0x02 | 0x06 => {
                    return Err(
                        "its groups have the newer form (links); rqps reads only symbol tables \
                         (convert with h5repack --low=0 --high=0)"
                            .to_owned(),
                    );
                }
                _ => {}
            }
        }
        Ok(file)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.links.keys().map(String::as_str)
    }

    pub(super) fn dataset(&self, name: &str) -> Result<Option<Array<'a>>, String> {
        let Some(address) = self.links.get(name) else { return Ok(None) };
        self.array(*address).map(Some).map_err(|what| format!("`{name}`: {what}"))
    }

    fn array(&self, address: u64) -> Result<Array<'a>, String> {
        let (mut shape, mut kind, mut place) = (None, None, None);
        for message in self.messages(address)? {
            match message.kind {
                0x01 => shape = Some(dataspace(message.body)?),
                0x03 => kind = Some(datatype(message.body)?),
                0x08 => place = Some(contiguous(message.body)?),
                0x0b => {
                    let why = "it is filtered or compressed; convert with h5repack -f NONE";
                    return Err(why.to_owned());
                }
                _ => {}
            }
        }
        let (Some(shape), Some(kind), Some((at, length))) = (shape, kind, place) else {
            return Err("it is not a dataset".to_owned());
        };
        let width = match kind {
            DatatypeClass::Float(width)
            | DatatypeClass::Signed(width)
            | DatatypeClass::Unsigned(width) => width,
            other => return Err(format!("unsupported value type {other:?}")),
        };
        let size = shape.iter().try_fold(width, |size, extent| size.checked_mul(*extent));
        if at == UNDEFINED {
            return Err("it has no data".to_owned());
        }
        if size.map(|size| size as u64) != Some(length) {
            return Err(format!("its shape is {shape:?} but it holds {length} bytes"));
        }
        Ok(Array { shape, kind, bytes: slice(self.bytes, at, length as usize)? })
    }

    /// The messages of an object header of version 1 with its continuations.
    fn messages(&self, address: u64) -> Result<Vec<Message<'a>>, String> {
        let head = slice(self.bytes, address, 16)?;
        if head[0] != 1 {
            return Err(format!(
                "an object header has version {}; rqps reads only version 1 (convert with h5repack \
                 --low=0 --high=0)",
                if head.starts_with(b"OHDR") { 2 } else { head[0] }
            ));
        }
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let mut blocks = vec![(address + 16, u64::from(length))];
        let mut messages = Vec::new();
        let mut next = 0;
        while let Some(&(at, length)) = blocks.get(next) {
            next += 1;
            let mut rest = slice(self.bytes, at, length as usize)?;
            while let [a, b, c, d, _, _, _, _, body @ ..] = rest {
                let size = usize::from(u16::from_le_bytes([*c, *d]));
                let (body, after) = body.split_at_checked(size).ok_or_else(cut_off)?;
                let kind = u16::from_le_bytes([*a, *b]);
                if kind == 0x10 {
                    blocks.push((u64_at(body, 0)?, u64_at(body, 8)?));
                }
                messages.push(Message { kind, body });
                rest = after;
                if messages.len() > MOST_PARTS {
                    return Err("an object header has no end".to_owned());
                }
            }
        }
        Ok(messages)
    }

    /// The links of a group: a tree with symbol nodes as leaves, and names in a heap.
    fn symbols(&self, tree: u64, heap: u64) -> Result<BTreeMap<String, u64>, String> {
        let heap_head = slice(self.bytes, heap, 32)?;
        if !heap_head.starts_with(b"HEAP") {
            return Err("a group's names are not in a heap".to_owned());
        }
        let (size, names) = (u64_at(heap_head, 8)?, u64_at(heap_head, 24)?);
        let names = slice(self.bytes, names, size as usize)?;
        let mut links = BTreeMap::new();
        let mut todo = vec![tree];
        let mut seen = 0;
        while let Some(address) = todo.pop() {
            let head = slice(self.bytes, address, 8)?;
            let entries = u64::from(u16::from_le_bytes([head[6], head[7]]));
            // Many nodes may be one.
            seen += 1 + entries as usize;
            if seen > MOST_PARTS {
                return Err("a group's tree has no end".to_owned());
            }
            if head.starts_with(b"TREE") {
                let head = slice(self.bytes, address, 24)?;
                let entries = u64::from(u16::from_le_bytes([head[6], head[7]]));
                for entry in 0..entries {
                    todo.push(u64_at(self.bytes, (address + 32 + 16 * entry) as usize)?);
                }
            } else if head.starts_with(b"SNOD") {
                for entry in 0..entries {
                    let at = (address + 8 + 40 * entry) as usize;
                    let name = u64_at(self.bytes, at)?;
                    let name = names.get(name as usize..).ok_or_else(cut_off)?;
                    links.insert(text(name), u64_at(self.bytes, at + 8)?);
                }
            } else {
                return Err("a group has a node of an unknown form".to_owned());
            }
        }
        Ok(links)
    }

    /// Name and value of an attribute of version 1; `None` for an unused kind.
    fn attribute(&self, body: &[u8]) -> Result<Option<(String, String)>, String> {
        let [version, _, a, b, c, d, e, f, rest @ ..] = body else { return Err(cut_off()) };
        if *version != 1 {
            return Err(format!(
                "an attribute has version {version}; rqps reads only version 1 (convert with \
                 h5repack --low=0 --high=0)"
            ));
        }
        let padded = |low: &u8, high: &u8| {
            usize::from(u16::from_le_bytes([*low, *high])).next_multiple_of(8)
        };
        let (name, rest) = rest.split_at_checked(padded(a, b)).ok_or_else(cut_off)?;
        let (kind, rest) = rest.split_at_checked(padded(c, d)).ok_or_else(cut_off)?;
        let (_, value) = rest.split_at_checked(padded(e, f)).ok_or_else(cut_off)?;
        let value = match datatype(kind)? {
            DatatypeClass::Text(width) => text(value.get(..width).ok_or_else(cut_off)?),
            DatatypeClass::Signed(8) => (u64_at(value, 0)? as i64).to_string(),
            DatatypeClass::VariableText => {
                let length = u32_at(value, 0)? as usize;
                let (collection, index) = (u64_at(value, 4)?, u32_at(value, 12)?);
                text(self.heap_object(collection, index)?.get(..length).ok_or_else(cut_off)?)
            }
            _ => return Ok(None),
        };
        Ok(Some((text(name), value)))
    }

    /// An object of the global heap.
    fn heap_object(&self, collection: u64, index: u32) -> Result<&'a [u8], String> {
        let head = slice(self.bytes, collection, 16)?;
        if !head.starts_with(b"GCOL") {
            return Err("a text is not in a heap".to_owned());
        }
        let size = u64_at(head, 8)?;
        let mut rest = slice(self.bytes, collection, size as usize)?.get(16..).unwrap_or_default();
        while rest.len() >= 16 {
            let number = u32::from(u16::from_le_bytes([rest[0], rest[1]]));
            let length = u64_at(rest, 8)? as usize;
            let body = slice(rest, 16, length)?;
            if number == index {
                return Ok(body);
            }
            if number == 0 {
                break;
            }
            rest = rest.get(16 + length.next_multiple_of(8)..).unwrap_or_default();
        }
        Err("a text is missing from its heap".to_owned())
    }
}

/// Extents of a dataspace of version 1 or 2.
fn dataspace(body: &[u8]) -> Result<Vec<usize>, String> {
    let [version, rank, ..] = body else { return Err(cut_off()) };
    let first = match version {
        1 => 8,
        2 => 4,
        other => return Err(format!("its dataspace has version {other}; rqps reads 1 and 2")),
    };
    (0..usize::from(*rank))
        .map(|place| {
            let extent = u64_at(body, first + 8 * place)?;
            usize::try_from(extent).map_err(|_| format!("an extent is {extent}"))
        })
        .collect()
}

fn datatype(body: &[u8]) -> Result<DatatypeClass, String> {
    let [class, bits, _, _, a, b, c, d, ..] = body else { return Err(cut_off()) };
    let width = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    let class = class & 0x0f;
    if class <= 1 && bits & 1 == 1 {
        return Err("its numbers are big-endian; rqps reads only little-endian numbers".to_owned());
    }
    Ok(match class {
        0 if bits & 8 != 0 => DatatypeClass::Signed(width),
        0 => DatatypeClass::Unsigned(width),
        1 => DatatypeClass::Float(width),
        3 => DatatypeClass::Text(width),
        // In class 9, type 1 is text.
        9 if bits & 0x0f == 1 => DatatypeClass::VariableText,
        other => DatatypeClass::Other(other),
    })
}

/// Address and length of the data of a layout message of version 3.
fn contiguous(body: &[u8]) -> Result<(u64, u64), String> {
    match body {
        [3, 1, ..] => Ok((u64_at(body, 2)?, u64_at(body, 10)?)),
        [3, 0, ..] => Err("it is compact; convert with h5repack -l CONTI".to_owned()),
        [3 | 4, 2, ..] => Err("it is chunked; convert with h5repack -l CONTI -f NONE".to_owned()),
        [version, class, ..] => Err(format!(
            "its layout has class {class} and version {version}; rqps reads only contiguous \
             datasets of version 3 (convert with h5repack -l CONTI --low=0 --high=0)"
        )),
        _ => Err(cut_off()),
    }
}

fn slice(bytes: &[u8], at: u64, length: usize) -> Result<&[u8], String> {
    let start = usize::try_from(at).map_err(|_| cut_off())?;
    let end = start.checked_add(length).ok_or_else(cut_off)?;
    bytes.get(start..end).ok_or_else(cut_off)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, String> {
    let rest = bytes.get(at..).ok_or_else(cut_off)?;
    Ok(u64::from_le_bytes(*rest.first_chunk::<8>().ok_or_else(cut_off)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, String> {
    let rest = bytes.get(at..).ok_or_else(cut_off)?;
    Ok(u32::from_le_bytes(*rest.first_chunk::<4>().ok_or_else(cut_off)?))
}

/// The text up to the first zero; no more than its beginning, because many may share one end.
fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES)];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn cut_off() -> String {
    "it is truncated or damaged".to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::truth::exact;
    use crate::data::{Matrix, Numbers};
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

#[cfg(test)]
mod hdf5_tests {
    //! Tests with files built byte by byte by the format's specification; the tests of the program
    //! read one that h5py wrote.

    use super::*;

    /// Builds a file of the subset.
    struct Builder {
        bytes: Vec<u8>,
    }

    impl Builder {
        fn new() -> Builder {
            let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
            bytes.extend([0, 0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
            bytes.resize(96, 0);
            Builder { bytes }
        }

        fn put(&mut self, bytes: &[u8]) -> u64 {
            self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
            let at = self.bytes.len() as u64;
            self.bytes.extend(bytes);
            at
        }

        fn header(&mut self, messages: &[(u16, Vec<u8>)]) -> u64 {
            let mut body = Vec::new();
            for (kind, message) in messages {
                let padded = message.len().next_multiple_of(8);
                body.extend(kind.to_le_bytes());
                body.extend((padded as u16).to_le_bytes());
                body.extend([0; 4]);
                body.extend(message);
                body.resize(body.len() + padded - message.len(), 0);
            }
            let mut header = vec![1, 0];
            header.extend((messages.len() as u16).to_le_bytes());
            header.extend(1u32.to_le_bytes());
            header.extend((body.len() as u32).to_le_bytes());
            header.extend([0; 4]);
            header.extend(body);
            self.put(&header)
        }

        fn dataset(&mut self, shape: [u64; 2], kind: Vec<u8>, values: &[u8]) -> u64 {
            let at = self.put(values);
            let mut space = vec![1, 2, 0, 0, 0, 0, 0, 0];
            space.extend(shape.iter().flat_map(|extent| extent.to_le_bytes()));
            let mut layout = vec![3, 1];
            layout.extend(at.to_le_bytes());
            layout.extend((values.len() as u64).to_le_bytes());
            self.header(&[(1, space), (3, kind), (8, layout)])
        }

        /// Adds the root with these links and an attribute `distance`.
        fn finish(mut self, links: &[(&str, u64)], distance: &str) -> Vec<u8> {
            let (mut names, mut node) = (vec![0; 8], b"SNOD\x01\x00".to_vec());
            node.extend((links.len() as u16).to_le_bytes());
            for (name, header) in links {
                node.extend((names.len() as u64).to_le_bytes());
                node.extend(header.to_le_bytes());
                node.extend([0; 24]);
                names.extend(name.as_bytes());
                names.resize((names.len() + 1).next_multiple_of(8), 0);
            }
            let node = self.put(&node);
            let mut tree = b"TREE\x00\x00\x01\x00".to_vec();
            tree.extend([0xff; 16]);
            tree.extend(0u64.to_le_bytes());
            tree.extend(node.to_le_bytes());
            tree.extend([0; 8]);
            let tree = self.put(&tree);
            let size = names.len() as u64;
            let names = self.put(&names);
            let mut heap = b"HEAP\x00\x00\x00\x00".to_vec();
            heap.extend(size.to_le_bytes());
            heap.extend(1u64.to_le_bytes());
            heap.extend(names.to_le_bytes());
            let heap = self.put(&heap);
            let mut group = tree.to_le_bytes().to_vec();
            group.extend(heap.to_le_bytes());
            let root = self.header(&[(0x11, group), (0x0c, attribute("distance", distance))]);
            self.bytes[64..72].copy_from_slice(&root.to_le_bytes());
            self.bytes
        }
    }

    /// An attribute with a text of fixed length.
    fn attribute(name: &str, value: &str) -> Vec<u8> {
        let mut body = vec![1, 0];
        for length in [name.len() + 1, 8, 8] {
            body.extend((length as u16).to_le_bytes());
        }
        body.extend(name.as_bytes());
        body.resize(8 + (name.len() + 1).next_multiple_of(8), 0);
        body.extend([0x13, 0, 0, 0]);
        body.extend((value.len() as u32).to_le_bytes());
        body.extend([1, 0, 0, 0, 0, 0, 0, 0]);
        body.extend(value.as_bytes());
        body
    }

    fn float(width: u32) -> Vec<u8> {
        let mut kind = vec![0x11, 0x20, 0x1f, 0];
        kind.extend(width.to_le_bytes());
        kind
    }

    fn signed(width: u32) -> Vec<u8> {
        let mut kind = vec![0x10, 0x08, 0, 0];
        kind.extend(width.to_le_bytes());
        kind
    }

    fn singles(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// A valid file of two rows and one query, with the first neighbour given.
    fn sound(distance: &str) -> Vec<u8> {
        let mut file = Builder::new();
        let train = file.dataset([2, 2], float(4), &singles(&[0.5, 1.0, 2.0, 3.0]));
        let test = file.dataset([1, 2], float(4), &singles(&[0.0, 1.0]));
        let ids = file.dataset([1, 1], signed(4), &0i32.to_le_bytes());
        let distances = file.dataset([1, 1], float(4), &singles(&[0.5]));
        let links =
            [("distances", distances), ("neighbors", ids), ("test", test), ("train", train)];
        file.finish(&links, distance)
    }

    #[test]
    fn a_file_of_the_subset_is_read() {
        let data = read(&sound("euclidean"), "x".to_owned()).unwrap();
        assert_eq!(data.distance, Distance::Euclidean);
        assert_eq!(data.train.values, Numbers::Floats(vec![0.5, 1.0, 2.0, 3.0]));
        assert_eq!((data.test.rows(), data.test.dims), (1, 2));
        assert_eq!(data.given, Some(Truth { k: 1, ids: vec![0], distances: vec![0.5] }));
        assert_eq!(read(&sound("angular"), String::new()).unwrap().distance, Distance::Cosine);
    }

    #[test]
    fn a_file_whose_parts_are_one_costs_no_more_than_it_has() {
        let mut file = sound("euclidean");
        let tree = file.windows(4).position(|window| window == b"TREE").unwrap();
        // All children of the tree are the tree, and there are many of them.
        file[tree + 6..tree + 8].copy_from_slice(&u16::MAX.to_le_bytes());
        let error = read(&file, String::new()).unwrap_err();
        assert!(error.contains("no end"), "{error}");
        let mut heap = b"GCOL\x01\0\0\0\x30\0\0\0\0\0\0\0\x02\0\x01\0\0\0\0\0".to_vec();
        heap.extend(u64::MAX.to_le_bytes());
        heap.resize(48, 0);
        let mut kind = attribute("type", "");
        let at = kind.len() - 16;
        kind[at..at + 2].copy_from_slice(&[0x19, 1]);
        kind.extend(4u32.to_le_bytes());
        kind.extend(96u64.to_le_bytes());
        kind.extend(1u32.to_le_bytes());
        let mut made = Builder::new();
        made.put(&heap);
        let root = made.header(&[(0x0c, kind)]);
        made.bytes[64..72].copy_from_slice(&root.to_le_bytes());
        assert_eq!(read(&made.bytes, String::new()).unwrap_err(), "it is truncated or damaged");
    }

    #[test]
    fn what_is_outside_the_subset_is_named() {
        let check = |change: &dyn Fn(&mut Vec<u8>), words: &str| {
            let mut file = sound("euclidean");
            change(&mut file);
            let error = read(&file, String::new()).unwrap_err();
            assert!(error.contains(words), "{error}");
        };
        let replace = |file: &mut Vec<u8>, from: &[u8], to: &[u8]| {
            let at = file.windows(from.len()).position(|window| window == from).unwrap();
            file[at..at + to.len()].copy_from_slice(to);
        };
        check(&|file| file[0] = b'P', "does not begin");
        check(&|file| file[8] = 3, "superblock has version 3");
        check(&|file| file[13] = 4, "not 8 bytes long");
        check(&|file| replace(file, &[3, 1], &[3, 2]), "chunked");
        check(&|file| replace(file, &[0x11, 0x20], &[0x11, 0x21]), "big-endian");
        check(&|file| replace(file, b"train", b"trail"), "no dataset `train`");
        check(&|file| replace(file, b"euclidean", b"hamming\0\0"), "distance is hamming");
        check(&|file| replace(file, b"SNOD", b"SNOX"), "unknown form");
        for length in [0, 20, 70, 200, 400] {
            let mut file = sound("euclidean");
            file.truncate(length);
            assert!(read(&file, String::new()).is_err(), "{length}");
        }
    }
}
