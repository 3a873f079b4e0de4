//! What a state folder and a result set keep for later judgements.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::read::{self, ResultsError};
use super::store::{self, json};
use rqps_model::gate::{
    self, Calibration, GATE_FORMAT, LAYOUT_FORMAT, LayoutRates, LedgerFault, SittingScatter,
};
use rqps_model::{bounded, safe_path};

// A/A calibrations: one file for each host and way of measuring, in a folder of their own.

/// Stores a calibration in `folder`, in the place of an earlier one of the same host, product and
/// way of measuring. Returns the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep_calibration(folder: &Path, known: &Calibration) -> Result<PathBuf, ResultsError> {
    safe_path::make_folder(folder).map_err(ResultsError::io("create", folder))?;
    let path = folder.join(file_name(known));
    store::write_whole(&path, &json(known, "calibration")?)?;
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
    let names = match read::entries(folder) {
        Ok(names) => names,
        Err(error) => return (Vec::new(), vec![error]),
    };
    let files = names.iter().filter(|name| name.ends_with(".json")).map(|name| folder.join(name));
    let (mut known, mut faults) = (Vec::new(), Vec::new());
    for path in files {
        match read::versioned(&path, GATE_FORMAT, |known: &Calibration| known.format) {
            Ok(calibration) => known.extend(calibration),
            Err(error) => faults.push(error),
        }
    }
    (known, faults)
}

/// The ledger of a host; one that is not there has no lines.
///
/// # Errors
/// It cannot be read, is damaged, or is of another version; the text names the way out.
pub fn read_ledger(path: &Path) -> Result<Vec<SittingScatter>, ResultsError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let fault = |line: usize, why: String| ResultsError::malformed(path, line, None, why);
    let text = bounded::text(path, bounded::WRITTEN_MAX);
    let text = text.map_err(|error| fault(0, error.to_string()))?;
    gate::parse_ledger(&text).map_err(|LedgerFault { line, why }| fault(line, why))
}

/// Adds lines to the ledger of a host, in the place of earlier ones of the same origin.
///
/// # Errors
/// As [`read_ledger`]; it cannot be written.
pub fn keep_in_ledger(path: &Path, more: &[SittingScatter]) -> Result<(), ResultsError> {
    let all = read_ledger(path)?;
    let is_of = |line: &SittingScatter, other: &SittingScatter| {
        (line.dbms, &line.kind, &line.origin) == (other.dbms, &other.kind, &other.origin)
    };
    let old = all.iter().filter(|line| !more.iter().any(|other| is_of(line, other)));
    let lines = old.chain(more).map(SittingScatter::line);
    let text = gate::empty_ledger() + &lines.collect::<String>();
    let parent = path.parent().unwrap_or(Path::new("."));
    safe_path::make_folder(parent).map_err(ResultsError::io("create", parent))?;
    store::write_whole(path, text.as_bytes())
}

/// Stores rates in `folder`, in the place of earlier ones of the same host and product. Returns
/// the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep_layout(folder: &Path, known: &LayoutRates) -> Result<PathBuf, ResultsError> {
    safe_path::make_folder(folder).map_err(ResultsError::io("create", folder))?;
    let path = folder.join(format!("{}-{}.json", known.host_fingerprint, known.dbms));
    store::write_whole(&path, &json(known, "layout noise")?)?;
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
    let names = read::entries(folder)?;
    let files = names.iter().filter(|name| name.ends_with(".json")).map(|name| folder.join(name));
    let read = |path: PathBuf| {
        read::versioned(&path, LAYOUT_FORMAT, |known: &LayoutRates| known.format).transpose()
    };
    files.filter_map(read).collect()
}

// `accepted.json` of a result set: steps whose speed in it was accepted as a new level of a
// history.

/// Name of the file.
const NAME: &str = "accepted.json";
/// Its format.
const FORMAT: u32 = 1;

/// The file.
#[derive(Serialize, Deserialize)]
struct AcceptedSteps {
    format: u32,
    steps: Vec<AcceptedStep>,
}

/// One step.
#[derive(Serialize, Deserialize)]
struct AcceptedStep {
    step: String,
    /// RFC 3339, UTC.
    at: String,
}

/// The steps that were accepted in a result set; none without the file.
///
/// # Errors
/// The file cannot be read, or is one of a newer rqps.
pub fn read_accepted(set: &Path) -> Result<BTreeSet<String>, ResultsError> {
    Ok(accepted_read(set)?.steps.into_iter().map(|accepted| accepted.step).collect())
}

fn accepted_read(set: &Path) -> Result<AcceptedSteps, ResultsError> {
    let read = read::versioned(&set.join(NAME), FORMAT, |file: &AcceptedSteps| file.format)?;
    Ok(read.unwrap_or(AcceptedSteps { format: FORMAT, steps: Vec::new() }))
}

/// Records steps as accepted in a result set, at this time.
///
/// # Errors
/// The file cannot be read or written.
pub fn keep_accepted(set: &Path, steps: &[String], at: &str) -> Result<(), ResultsError> {
    let mut accepted = accepted_read(set)?;
    for step in steps {
        if !accepted.steps.iter().any(|other| other.step == *step) {
            accepted.steps.push(AcceptedStep { step: step.clone(), at: at.to_owned() });
        }
    }
    store::write_whole(&set.join(NAME), &json(&accepted, "accepted steps")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_is_kept() {
        let folder = tempfile::tempdir().expect("folder");
        let steps =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(read_accepted(folder.path()).expect("none"), BTreeSet::new());
        keep_accepted(folder.path(), &steps(&["scan"]), "2026-01-01T00:00:00Z").expect("kept");
        keep_accepted(folder.path(), &steps(&["scan", "load"]), "2026-01-02T00:00:00Z")
            .expect("kept");
        let both: BTreeSet<String> = steps(&["load", "scan"]).into_iter().collect();
        assert_eq!(read_accepted(folder.path()).expect("both"), both);
        let text = std::fs::read_to_string(folder.path().join(NAME)).expect("text");
        assert_eq!(text.matches("\"at\": \"2026-01-01").count(), 1, "{text}");
    }
}
