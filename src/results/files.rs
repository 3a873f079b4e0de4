//! Files and folders as they are read: text, JSON, names.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::domain::run::{FORMAT, RunRecord};
use crate::json;
use crate::results::error::ResultsError;

/// Folders in a result set that hold a run, by name.
pub(super) fn run_folders(dir: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let names = entries(dir)?;
    Ok(names
        .into_iter()
        .map(|name| dir.join(name))
        .filter(|path| path.join("run.json").is_file())
        .collect())
}

/// Reads `run.json` of a run folder.
pub(super) fn run_record(folder: &Path) -> Result<RunRecord, ResultsError> {
    versioned_run(folder, &mut String::new(), &mut BTreeSet::new())
}

/// Reads `run.json` of a run folder as [`versioned`] does.
pub(super) fn versioned_run(
    folder: &Path,
    text: &mut String,
    unknown: &mut BTreeSet<String>,
) -> Result<RunRecord, ResultsError> {
    versioned(&folder.join("run.json"), text, unknown, |record: &RunRecord| record.format)
}

/// Names in a folder, sorted, without those that begin with a dot.
pub fn entries(dir: &Path) -> Result<Vec<String>, ResultsError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(ResultsError::io("read", dir))? {
        let entry = entry.map_err(ResultsError::io("read", dir))?;
        // Every name that rqps writes is UTF-8.
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ResultsError> {
    fs::read_to_string(path).map_err(ResultsError::io("read", path))
}

/// A file of JSON.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    json_noting(path, &mut BTreeSet::new())
}

/// The same; fields that this rqps does not know are added to `unknown`, those of a list without
/// their positions.
pub(super) fn json_noting<T: DeserializeOwned>(
    path: &Path,
    unknown: &mut BTreeSet<String>,
) -> Result<T, ResultsError> {
    let text = text(path)?;
    let mut note = |field: String| {
        let names = field.split('.').filter(|name| name.parse::<usize>().is_err());
        unknown.insert(names.collect::<Vec<_>>().join("."));
    };
    json::read_noting(&text, &mut note).map_err(|fault| ResultsError::json(path, &text, &fault))
}

/// A record that carries its format version: a later version is said to be one, whatever else is
/// the matter with the file. `text` is room for it, which the next file can have again. Fields that
/// this rqps does not know are added to `unknown`.
pub(super) fn versioned<T: DeserializeOwned>(
    path: &Path,
    text: &mut String,
    unknown: &mut BTreeSet<String>,
    format: impl Fn(&T) -> u32,
) -> Result<T, ResultsError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let newer = |found: u32| ResultsError::Newer { path: path.to_owned(), found, known: FORMAT };
    text.clear();
    fs::File::open(path)
        .and_then(|mut file| file.read_to_string(text))
        .map_err(ResultsError::io("read", path))?;
    let mut note = |field| _ = unknown.insert(field);
    match json::read_noting::<T>(text, &mut note) {
        Ok(value) if format(&value) > FORMAT => Err(newer(format(&value))),
        Ok(value) => Ok(value),
        Err(fault) => match json::read::<Head>(text) {
            Ok(head) if head.format > FORMAT => Err(newer(head.format)),
            _ => Err(ResultsError::json(path, text, &fault)),
        },
    }
}
