//! Rates of relinked builds: one file for each host and product, in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ResultsError;
use crate::store::json;
use crate::{atomic, files};
use rqps_model::layout::{LAYOUT_FORMAT, LayoutRates};

/// Stores rates in `folder`, in the place of earlier ones of the same host and product. Returns
/// the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep_layout(folder: &Path, known: &LayoutRates) -> Result<PathBuf, ResultsError> {
    fs::create_dir_all(folder).map_err(ResultsError::io("create", folder))?;
    let path = folder.join(format!("{}-{}.json", known.host_fingerprint, known.dbms));
    atomic::write(&path, &json(known, "layout noise")?)?;
    Ok(path)
}

/// All rates in `folder`. A folder that is not there has none.
///
/// # Errors
/// A file cannot be read, or is one of a newer rqps.
pub fn read_layouts(folder: &Path) -> Result<Vec<LayoutRates>, ResultsError> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let names = files::entries(folder)?;
    let files = names.iter().filter(|name| name.ends_with(".json")).map(|name| folder.join(name));
    files.map(|path| one(&path)).collect()
}

fn one(path: &Path) -> Result<LayoutRates, ResultsError> {
    let known: LayoutRates = files::json(path)?;
    if known.format > LAYOUT_FORMAT {
        let path = path.to_owned();
        return Err(ResultsError::Newer { path, found: known.format, known: LAYOUT_FORMAT });
    }
    Ok(known)
}
