//! `accepted.json` of a result set: steps whose speed in it was accepted as a new level of a
//! history.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::atomic;
use super::error::ResultsError;
use super::files;
use super::store::json;

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
    Ok(read(set)?.steps.into_iter().map(|accepted| accepted.step).collect())
}

fn read(set: &Path) -> Result<AcceptedSteps, ResultsError> {
    let read = files::versioned(&set.join(NAME), FORMAT, |file: &AcceptedSteps| file.format)?;
    Ok(read.unwrap_or(AcceptedSteps { format: FORMAT, steps: Vec::new() }))
}

/// Records steps as accepted in a result set, at this time.
///
/// # Errors
/// The file cannot be read or written.
pub fn keep_accepted(set: &Path, steps: &[String], at: &str) -> Result<(), ResultsError> {
    let mut accepted = read(set)?;
    for step in steps {
        if !accepted.steps.iter().any(|other| other.step == *step) {
            accepted.steps.push(AcceptedStep { step: step.clone(), at: at.to_owned() });
        }
    }
    atomic::write(&set.join(NAME), &json(&accepted, "accepted steps")?)
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
