//! Reads the subset of HDF5 that ann-benchmarks writes: superblock 0, object headers 1, groups as
//! symbol tables, contiguous datasets, attributes 1. Other features are refused by name; `h5repack
//! -l CONTI -f NONE --low=0 --high=0` converts most files to this form.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use super::dataset::{Matrix, Numbers, VectorSet};
use super::truth::Truth;
use crate::data::DataError;
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
