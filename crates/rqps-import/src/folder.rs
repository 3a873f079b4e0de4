//! Writes imported results as a result set, with the writer of every run.

use std::fs;
use std::path::Path;

use super::format::{ImportError, ImportFormat, Result};
use super::published::Published;
use rqps_model::host::fingerprint;
use rqps_model::run::StepRecord;
use rqps_model::units;
use rqps_results::{ResultSet, ResultsError, entries};

/// The written files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Labels.
    pub targets: usize,
    /// Run folders.
    pub runs: usize,
    /// Steps of all runs.
    pub steps: usize,
}

/// Largest name of a target or step, bytes. Linux allows 255 for a file, and numbers and endings
/// follow the name.
const NAME_MAX: usize = 200;

/// Writes run folders into `out`, which must be new or empty. They are written to a temporary
/// folder first, so that `out` holds all of them or is left as it was.
///
/// # Errors
/// A name of a target or step that is too long for a file; as [`ResultSet::create`] and its kin.
pub fn write(format: ImportFormat, published: &Published, out: &Path) -> Result<Written> {
    check_names(published)?;
    if published.by_date {
        return write_dates(format, published, out);
    }
    let plan = plan(format, published);
    if ResultSet::is_begun(out, &plan)? {
        let why = "it already holds the same results".to_owned();
        return Err(ResultsError::Occupied { path: out.to_owned(), why }.into());
    }
    // In a folder that is there: it may be another file system than what it lies in.
    let there = out.exists();
    let id = std::process::id();
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let temporary = if there {
        out.join(format!(".import.{id}.partial"))
    } else {
        out.with_file_name(format!(".{name}.{id}.partial"))
    };
    if let Some(above) = temporary.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above).map_err(ResultsError::io("create", above))?;
    }
    // New, so that all in it is this import's.
    fs::create_dir(&temporary).map_err(ResultsError::io("create", &temporary))?;
    let written = write_into(&plan, published, &temporary).and_then(|written| {
        put_in_place(&temporary, out, there)?;
        Ok(written)
    });
    if written.is_err() || there {
        // The error that stopped the import says more than one of tidying up.
        #[expect(clippy::disallowed_methods, reason = "it was made here, new")]
        let _ = fs::remove_dir_all(&temporary);
    }
    written
}

/// Writes a result set for each date into a folder of its own.
fn write_dates(format: ImportFormat, published: &Published, out: &Path) -> Result<Written> {
    if out.exists() && !entries(out)?.is_empty() {
        let why = "it is not empty".to_owned();
        return Err(ResultsError::Occupied { path: out.to_owned(), why }.into());
    }
    fs::create_dir_all(out).map_err(ResultsError::io("create", out))?;
    let mut all = Written { targets: 0, runs: 0, steps: 0 };
    for (name, one) in published.dates() {
        let written = write(format, &one, &out.join(name))?;
        all.targets = all.targets.max(written.targets);
        (all.runs, all.steps) = (all.runs + written.runs, all.steps + written.steps);
    }
    Ok(all)
}

/// Moves what is in a folder into another one, the plan last: it makes the folder a result set.
fn put_in_place(from: &Path, to: &Path, there: bool) -> Result<(), ResultsError> {
    if !there {
        return fs::rename(from, to).map_err(ResultsError::io("put in place", to));
    }
    let mut names = entries(from)?;
    names.sort_by_key(|name| name == "plan.toml");
    names.iter().try_for_each(|name| {
        let path = to.join(name);
        fs::rename(from.join(name), &path).map_err(ResultsError::io("put in place", &path))
    })
}

/// Names become names of files: too long ones are refused before anything is written.
fn check_names(published: &Published) -> Result<()> {
    for run in &published.runs {
        let files = |step: &StepRecord| {
            let files = step.imported.as_ref().map(|imported| imported.files.join(", "));
            files.unwrap_or_default()
        };
        let of = run.steps.first().map(files).unwrap_or_default();
        let label = ("target", &run.record.key.label, of);
        let steps = run.steps.iter().map(|step| ("step", &step.name, files(step)));
        for (what, name, files) in steps.chain([label]) {
            if name.len() > NAME_MAX {
                let begin: String = name.chars().take(60).collect();
                let length = name.len();
                return Err(ImportError::Words(format!(
                    "`{files}`: the name of a {what} (`{begin}…`) has {length} bytes, but a file \
                     or folder name can have at most {NAME_MAX}: shorten it"
                )));
            }
        }
    }
    Ok(())
}

fn write_into(plan: &str, published: &Published, out: &Path) -> Result<Written> {
    let hash = units::short_hash(plan);
    let set = ResultSet::create(out, plan, &published.host)?;
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

/// The beginning of the text in place of a plan.
pub const IMPORTED: &str = "# Imported with `rqps import ";

/// Text in place of a plan: an imported result set has no plan and cannot be resumed.
fn plan(format: ImportFormat, published: &Published) -> String {
    let mut text = format!(
        "{IMPORTED}{}`: others measured and published these results.\n# rqps \
         can report them, not run them.\n",
        format.word
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
