//! Files and folders as they are read: text, JSON, names.

use std::cell::RefCell;
use std::fs::{self, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::ResultsError;
use rqps_model::bounded;
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
    record(&folder.join("run.json"), |run| run.format)
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
    let text = text(path)?;
    serde_json::from_str(&text).map_err(|fault| ResultsError::json(path, &text, &fault))
}

/// Reads the record of a step.
pub(super) fn step_record(path: &Path) -> Result<StepRecord, ResultsError> {
    record(path, |step| step.format)
}

fn record<T: DeserializeOwned>(path: &Path, format: fn(&T) -> u32) -> Result<T, ResultsError> {
    let found = versioned(path, FORMAT, format)?;
    found.ok_or_else(|| ResultsError::io("read", path)(ErrorKind::NotFound.into()))
}

/// A file of JSON that has its format version; `None` if there is no file. The error for a later
/// version is [`ResultsError::Newer`], whatever else is wrong with the file.
pub(super) fn versioned<T: DeserializeOwned>(
    path: &Path,
    known: u32,
    format: fn(&T) -> u32,
) -> Result<Option<T>, ResultsError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let read = |text: &str| {
        let value = serde_json::from_str::<T>(text);
        let found = match &value {
            Ok(value) => format(value),
            Err(_) => serde_json::from_str::<Head>(text).map_or(known, |head| head.format),
        };
        if found > known {
            Err(ResultsError::Newer { path: path.to_owned(), found, known })
        } else {
            value.map_err(|fault| ResultsError::json(path, text, &fault))
        }
    };
    with_text(path, read)?.transpose()
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

#[cfg(test)]
mod tests {
    use super::*;

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
