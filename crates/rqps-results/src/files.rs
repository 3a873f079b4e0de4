//! Files and folders as they are read: text, JSON, names.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, FileType};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use memchr::{memchr2, memchr3};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ResultsError;
use rqps_model::bounded;
use rqps_model::json;
use rqps_model::run::{FORMAT, RunRecord, StepRecord};

/// A folder that holds a run.
pub(super) struct FolderOfRun {
    /// In the folder that was listed.
    pub path: PathBuf,
    pub is_link: bool,
}

/// Folders in a result set that hold a run, by name.
pub(super) fn run_folders(dir: &Path) -> Result<Vec<FolderOfRun>, ResultsError> {
    let listed = listed(dir)?.into_iter().filter(|(_, kind)| !kind.is_file());
    let folders =
        listed.map(|(name, kind)| FolderOfRun { path: dir.join(name), is_link: kind.is_symlink() });
    Ok(folders.filter(|folder| folder.path.join("run.json").is_file()).collect())
}

/// Reads `run.json` of a run folder.
pub(super) fn run_record(folder: &Path) -> Result<RunRecord, ResultsError> {
    RecordReader::new(&KnownShapes::default()).run(folder)
}

/// Names in a folder, sorted, without those that begin with a dot.
pub fn entries(dir: &Path) -> Result<Vec<String>, ResultsError> {
    Ok(listed(dir)?.into_iter().map(|(name, _)| name).collect())
}

/// As [`entries`], with the kind of each.
fn listed(dir: &Path) -> Result<Vec<(String, FileType)>, ResultsError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(ResultsError::io("read", dir))? {
        let entry = entry.map_err(ResultsError::io("read", dir))?;
        // Every name that rqps writes is UTF-8.
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            let kind = entry.file_type().map_err(ResultsError::io("read", dir))?;
            found.push((name, kind));
        }
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ResultsError> {
    bounded::text(path, bounded::RECORD_MAX).map_err(ResultsError::io("read", path))
}

thread_local! {
    /// The memory of [`with_text`]: the text of one file of many, all of which are short.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The result of `read` for the text of a file; `None` if there is no file. `read` opens no other
/// file in this way.
pub(super) fn with_text<R>(
    path: &Path,
    read: impl FnOnce(&str) -> R,
) -> Result<Option<R>, ResultsError> {
    // Asking first whether it is there would take another call of the kernel.
    let text = |file| TEXT.with_borrow_mut(|buffer| text_in(buffer, file).map(read));
    match bounded::open(path).and_then(text) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(ResultsError::io("read", path)),
    }
}

/// A file of JSON.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    json_with_unknown(path, &mut BTreeSet::new())
}

/// A file of JSON. Adds the fields that this rqps does not know to `unknown`, without positions in
/// lists.
pub(super) fn json_with_unknown<T: DeserializeOwned>(
    path: &Path,
    unknown: &mut BTreeSet<String>,
) -> Result<T, ResultsError> {
    let text = text(path)?;
    let mut note = |field: String| {
        let names = field.split('.').filter(|name| name.parse::<usize>().is_err());
        unknown.insert(names.collect::<Vec<_>>().join("."));
    };
    json::read_with_unknown(&text, &mut note)
        .map_err(|fault| ResultsError::json(path, &text, &fault))
}

/// Shapes of records without unknown fields. Looking for unknown fields takes longer than reading a
/// record. The records of a dataset have few shapes, so rqps looks only in the first of each shape.
#[derive(Default)]
pub(super) struct KnownShapes(RwLock<HashSet<u64>>);

impl KnownShapes {
    fn has(&self, shape: u64) -> bool {
        self.0.read().is_ok_and(|shapes| shapes.contains(&shape))
    }

    fn add(&self, shape: u64) {
        if let Ok(mut shapes) = self.0.write() {
            shapes.insert(shape);
        }
    }
}

/// A hash of the keys and braces of a JSON text, and of the type that is read from it.
fn shape<T>(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut hasher = DefaultHasher::new();
    type_name::<T>().hash(&mut hasher);
    let mut at = 0;
    while let Some(next) = memchr3(b'"', b'{', b'}', &bytes[at..]) {
        at += next;
        if bytes[at] != b'"' {
            hasher.write_u8(bytes[at]);
            at += 1;
            continue;
        }
        let end = string_end(bytes, at + 1);
        let after = bytes[end..].iter().skip(1).find(|byte| !byte.is_ascii_whitespace());
        if after == Some(&b':') {
            hasher.write(&bytes[at..end]);
        }
        at = (end + 1).min(bytes.len());
    }
    hasher.finish()
}

/// The position of the quote that ends a string that begins at `from`.
fn string_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(next) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += next;
        if bytes[at] == b'"' {
            return at;
        }
        at = (at + 2).min(bytes.len());
    }
    bytes.len()
}

/// Enough for most records.
const BUFFER_BYTES: usize = 16 << 10;

/// The text of a file, in `buffer`. The general readers ask the kernel for the size of each file,
/// or read it in several pieces, which takes as long as two of the calls here.
fn text_in(buffer: &mut Vec<u8>, mut file: impl Read) -> io::Result<&str> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length as u64 >= bounded::RECORD_MAX {
                return Err(bounded::too_long(bounded::RECORD_MAX));
            }
            buffer.resize((2 * length).max(BUFFER_BYTES), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    std::str::from_utf8(&buffer[..length])
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Reads the records of one run folder.
pub(super) struct RecordReader<'a> {
    /// Fields that this rqps does not know.
    pub unknown: BTreeSet<String>,
    shapes: &'a KnownShapes,
    /// Memory for the text of a file.
    buffer: Vec<u8>,
}

impl RecordReader<'_> {
    pub(super) fn new(shapes: &KnownShapes) -> RecordReader<'_> {
        RecordReader { unknown: BTreeSet::new(), shapes, buffer: vec![0; BUFFER_BYTES] }
    }

    /// Reads `run.json`.
    pub(super) fn run(&mut self, folder: &Path) -> Result<RunRecord, ResultsError> {
        self.read(&folder.join("run.json"), |record: &RunRecord| record.format)
    }

    /// Reads the record of a step.
    pub(super) fn step(&mut self, path: &Path) -> Result<StepRecord, ResultsError> {
        self.read(path, |step: &StepRecord| step.format)
    }

    /// Reads a record with its format version. The error for a later version is
    /// [`ResultsError::Newer`], whatever else is wrong with the file.
    fn read<T: DeserializeOwned>(
        &mut self,
        path: &Path,
        format: impl Fn(&T) -> u32,
    ) -> Result<T, ResultsError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let RecordReader { unknown, shapes, buffer } = self;
        let newer =
            |found: u32| ResultsError::Newer { path: path.to_owned(), found, known: FORMAT };
        let text = bounded::open(path)
            .and_then(|file| text_in(buffer, file))
            .map_err(ResultsError::io("read", path))?;
        let shape = shape::<T>(text);
        // On any failure, the second reading below gives the error.
        if shapes.has(shape)
            && let Ok(value) = json::read_fast::<T>(text)
            && format(&value) <= FORMAT
        {
            return Ok(value);
        }
        let mut is_known = true;
        let mut note = |field| {
            is_known = false;
            unknown.insert(field);
        };
        match json::read_with_unknown::<T>(text, &mut note) {
            Ok(value) if format(&value) > FORMAT => Err(newer(format(&value))),
            Ok(value) => {
                if is_known {
                    shapes.add(shape);
                }
                Ok(value)
            }
            Err(fault) => match json::read::<Head>(text) {
                Ok(head) if head.format > FORMAT => Err(newer(head.format)),
                _ => Err(ResultsError::json(path, text, &fault)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_one_shape_differ_in_values_alone() {
        let same = |a: &str, b: &str| shape::<RunRecord>(a) == shape::<RunRecord>(b);
        let record = r#"{"a": "x", "b": [1, 2], "c": {"d": null}}"#;
        assert!(!same(record, r#"{"a":"y:\"z\"","b":[],"c":{"d":{}}}"#));
        assert!(same(record, r#"{"a":"\\","b":["{"],"c":{"d":3}}"#));
        assert!(!same(record, r#"{"a": "x", "b": [1, 2], "c": {"e": null}}"#));
        assert!(!same(record, r#"{"a": "x", "b": [1, 2], "c": {}, "d": null}"#));
        assert!(!same(record, r#"{"a": "x", "b": [1, 2], "c": {"d": null}, "n": 1}"#));
        assert_ne!(shape::<RunRecord>(record), shape::<u32>(record));
        shape::<u32>("{\"a");
        shape::<u32>("{\"a\\");
    }

    #[test]
    fn a_text_fills_the_buffer_as_often_as_it_must() {
        let long = "é".repeat(2 * BUFFER_BYTES);
        let mut buffer = vec![0; 3];
        for text in ["", "ab", &long, "abc"] {
            assert_eq!(text_in(&mut buffer, text.as_bytes()).unwrap(), text);
        }
        let error = text_in(&mut buffer, &b"\xff"[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
