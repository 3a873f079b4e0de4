//! A/A calibrations: one file for each host and way of measuring, in a folder of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::ResultsError;
use crate::store::json;
use crate::{atomic, files};
use rqps_model::gate::{Calibration, GATE_FORMAT};

/// Stores a calibration in `folder`, in the place of an earlier one of the same host, product and
/// way of measuring. Returns the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep_calibration(folder: &Path, known: &Calibration) -> Result<PathBuf, ResultsError> {
    fs::create_dir_all(folder).map_err(ResultsError::io("create", folder))?;
    let path = folder.join(file_name(known));
    atomic::write(&path, &json(known, "calibration")?)?;
    Ok(path)
}

fn file_name(known: &Calibration) -> String {
    let word = |value: serde_json::Result<serde_json::Value>| {
        let value = value.unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    };
    format!(
        "{}-{}-{}c-{}-{}{}.json",
        known.host_fingerprint,
        known.dbms,
        known.clients,
        word(serde_json::to_value(known.placement)),
        word(serde_json::to_value(known.idle)),
        if known.turns { "-turns" } else { "" }
    )
}

/// The calibrations in `folder`, and why others cannot be read. A folder that is not there has
/// none.
pub fn read_calibrations(folder: &Path) -> (Vec<Calibration>, Vec<ResultsError>) {
    if !folder.is_dir() {
        return (Vec::new(), Vec::new());
    }
    let names = match files::entries(folder) {
        Ok(names) => names,
        Err(error) => return (Vec::new(), vec![error]),
    };
    let files = names.iter().filter(|name| name.ends_with(".json")).map(|name| folder.join(name));
    let (mut known, mut faults) = (Vec::new(), Vec::new());
    for path in files {
        match one(&path) {
            Ok(calibration) => known.push(calibration),
            Err(error) => faults.push(error),
        }
    }
    (known, faults)
}

fn one(path: &Path) -> Result<Calibration, ResultsError> {
    let known: Calibration = files::json(path)?;
    if known.format > GATE_FORMAT {
        let path = path.to_owned();
        return Err(ResultsError::Newer { path, found: known.format, known: GATE_FORMAT });
    }
    Ok(known)
}
