//! A/A calibrations: one file for each host and way of measuring, kept beside neither results nor
//! builds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::domain::gate::Calibration;
use crate::lab::Execution;
use crate::lab::progress::Progress;
use crate::plan::Interleave;

/// Keeps a calibration in `folder`, in the place of an earlier one of the same host, product and
/// way of measuring. Returns the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn keep(folder: &Path, known: &Calibration) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let name = format!(
        "{}-{}-{}c-{}-{}{}.json",
        known.host_fingerprint,
        known.dbms,
        known.clients,
        word(serde_json::to_value(known.placement)?),
        word(serde_json::to_value(known.idle)?),
        if known.turns { "-turns" } else { "" }
    );
    let (path, partial) = (folder.join(&name), folder.join(format!(".{name}.partial")));
    let mut text = serde_json::to_vec_pretty(known)?;
    text.push(b'\n');
    fs::write(&partial, text).with_context(|| format!("write {}", partial.display()))?;
    fs::rename(&partial, &path).with_context(|| format!("put {} in place", path.display()))?;
    Ok(path)
}

/// The calibration in `folder` that fits best: of this host, and of a product, a number of clients,
/// a placement and an idle state as like those of the plan as there are; of equals the latest.
/// Files that cannot be read are passed over with a note.
pub(super) fn find(
    folder: &Path,
    bench: &Execution<'_>,
    progress: &mut Progress<'_>,
) -> Option<Calibration> {
    let plan = &bench.assignment.plan;
    let dbms = plan.targets.first().map(|target| target.dbms);
    let likeness = |known: &Calibration| {
        let workload = &plan.workload;
        [
            Some(known.dbms) == dbms,
            known.placement == workload.placement,
            known.idle == workload.idle,
            known.clients == workload.clients,
        ]
        .iter()
        .filter(|same| **same)
        .count()
    };
    let mut found: Option<Calibration> = None;
    for file in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let read = fs::read(&path).map_err(anyhow::Error::from);
        let known = read.and_then(|bytes| Ok(serde_json::from_slice::<Calibration>(&bytes)?));
        match known {
            Err(error) => progress.note(&format!("calibration {}: {error}", path.display())),
            Ok(known) if known.host_fingerprint != bench.host_fingerprint => {}
            // The noise of steps in turns says nothing about that of whole steps.
            Ok(known) if known.turns != (plan.interleave == Interleave::Turns) => {}
            Ok(known) => {
                let rank = |known: &Calibration| (likeness(known), known.made.clone());
                if found.as_ref().is_none_or(|best| rank(best) < rank(&known)) {
                    found = Some(known);
                }
            }
        }
    }
    found
}
