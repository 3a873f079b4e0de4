//! Writing what was imported as a result set, through the writer that every run goes through.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::published::Published;
use super::{Format, ImportError};
use crate::os::host::fingerprint;
use crate::results::ResultSet;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Labels.
    pub targets: usize,
    /// Run folders.
    pub runs: usize,
    /// Steps of all runs.
    pub steps: usize,
}

/// Writes run folders into `out`, which must be new or empty.
///
/// # Errors
/// As [`ResultSet::create`] and its kin.
pub fn write(format: Format, published: &Published, out: &Path) -> Result<Written, ImportError> {
    let plan = plan(format, published);
    let hash: String =
        Sha256::digest(plan.as_bytes()).iter().take(6).map(|b| format!("{b:02x}")).collect();
    let set = ResultSet::create(out, &plan, &published.host)?;
    let mut labels: Vec<String> = Vec::new();
    let mut order: Vec<&str> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label) {
            labels.push(run.record.key.label.clone());
        }
        // A step that the runs before do not have comes where this one has it.
        let mut next = 0;
        for step in &run.steps {
            match order.iter().position(|name| *name == step.name) {
                Some(place) => next = place + 1,
                None => {
                    order.insert(next, &step.name);
                    next += 1;
                }
            }
        }
    }
    let notices: String = published.notices.iter().map(|notice| format!("{notice}\n")).collect();
    let mut steps = 0;
    for run in &published.runs {
        let mut record = run.record.clone();
        let place = labels.iter().position(|label| *label == record.key.label).unwrap_or(0);
        record.key.order = u32::try_from(place + 1).unwrap_or(u32::MAX);
        record.targets = labels.clone();
        record.plan_hash = hash.clone();
        record.host_fingerprint = fingerprint(&published.host);
        let folder = set.begin_run(&record)?;
        for step in &run.steps {
            let mut step = step.clone();
            let place = order.iter().position(|name| *name == step.name).unwrap_or(0);
            step.index = u32::try_from(place + 1).unwrap_or(u32::MAX);
            folder.write_step(&step, &[])?;
            steps += 1;
        }
        for (name, text) in &run.logs {
            folder.write_log(name, text)?;
        }
        if !notices.is_empty() {
            folder.write_log("import.txt", &notices)?;
        }
    }
    Ok(Written { targets: labels.len(), runs: published.runs.len(), steps })
}

/// What stands where a plan would: such a result set was not planned and cannot be taken up again.
fn plan(format: Format, published: &Published) -> String {
    let mut text = format!(
        "# Imported with `rqps import {}`: these results were measured and published by others.\n\
         # They can be reported, not run.\n",
        format.word()
    );
    for run in &published.runs {
        let files = run.steps.iter().filter_map(|step| step.imported.as_ref());
        let mut files: Vec<&String> = files.flat_map(|imported| &imported.files).collect();
        files.sort();
        files.dedup();
        let key = &run.record.key;
        text.push_str(&format!("# {} block {}:\n", key.label, key.block));
        for file in files {
            text.push_str(&format!("#   {file}\n"));
        }
    }
    text
}
