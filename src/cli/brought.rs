//! SQL and scripts that a plan brings: rqps lists those that nobody has named on a command line of
//! this host, and asks before they run.
//!
//! What was named or allowed is remembered in the state folder by its SHA-256, so that a plan that
//! `rqps plan` wrote, or a result folder to resume, raises no question on the host of its author.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::benchmarks;
use crate::benchmarks::spec::Brought;
use crate::cli::confirm::confirm;
use crate::cli::folders;
use crate::plan::Plan;

/// Remembers what the user has named on this command line.
pub(super) fn remember(plan: &Plan) {
    let brought = (benchmarks::of(&plan.workload).brought)(&plan.workload);
    if let Err(error) = keep(&brought) {
        tell!("rqps: {error:#}; `rqps run` will ask before it runs a plan with these files");
    }
}

/// Asks before SQL and scripts run that nobody has named on a command line of this host. The plan
/// comes from `plan_file`.
///
/// # Errors
///
/// The answer is no, or standard input is no terminal and they are not `allowed`.
pub(super) fn ask(plan: &Plan, plan_file: &Path, allowed: bool) -> Result<()> {
    let mut brought = (benchmarks::of(&plan.workload).brought)(&plan.workload);
    if brought.is_empty() {
        return Ok(());
    }
    let known = known().context("read which scripts were named on this host")?;
    brought.retain(|one| !known.contains(&line_of(one)));
    if brought.is_empty() {
        return Ok(());
    }
    let list: String = brought.iter().map(described).collect();
    let what = format!("{} brings SQL or scripts that are new on this host", plan_file.display());
    if allowed {
        tell!("rqps: {what}:{list}");
    } else if std::io::stdin().is_terminal() {
        let rights = "They may do whatever their user may.";
        if !confirm(&format!("rqps: {what}:{list}\n{rights} Run them?"))? {
            bail!("run {}: not confirmed", plan_file.display());
        }
    } else {
        bail!("run what others wrote: {what}:{list}\nhint: read them, then add --allow-scripts");
    }
    if let Err(error) = keep(&brought) {
        tell!("rqps: {error:#}; resuming will need --allow-scripts again");
    }
    Ok(())
}

/// A line of the list.
fn described(one: &Brought) -> String {
    // A name may contain what moves the cursor of a terminal.
    format!("\n  {}  sha256:{}", one.name.escape_debug(), one.sha256)
}

/// What is known of it: its text, and where it stands if other files there matter.
fn line_of(one: &Brought) -> String {
    match &one.place {
        Some(place) => format!("{} {}", one.sha256, place.display().to_string().escape_debug()),
        None => one.sha256.clone(),
    }
}

/// The lines of all that was named or allowed before.
fn known() -> io::Result<BTreeSet<String>> {
    let Some(path) = folders::known_scripts() else { return Ok(BTreeSet::new()) };
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// Appends those that are not known yet. Does nothing if there is no home folder.
fn keep(brought: &[Brought]) -> Result<()> {
    let Some(path) = folders::known_scripts().filter(|_| !brought.is_empty()) else {
        return Ok(());
    };
    let doing = || format!("remember scripts in {}", path.display());
    let known = known().with_context(doing)?;
    let lines = brought.iter().map(line_of).filter(|line| !known.contains(line));
    let text: String = lines.map(|line| line + "\n").collect();
    if text.is_empty() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(doing)?;
    }
    // One write, so that lines of two programs do not mix.
    let mut file = File::options().append(true).create(true).open(&path).with_context(doing)?;
    file.write_all(text.as_bytes()).with_context(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_known_by_its_place_and_sql_by_its_text() {
        let one = |place: Option<&str>| Brought {
            name: "a\u{1b}[2K".to_owned(),
            sha256: "9f".to_owned(),
            place: place.map(Into::into),
        };
        assert_eq!(line_of(&one(None)), "9f");
        assert_eq!(line_of(&one(Some("/own/a.lua"))), "9f /own/a.lua");
        assert_eq!(line_of(&one(Some("/a\n7e"))), "9f /a\\n7e");
        assert_eq!(described(&one(None)), "\n  a\\u{1b}[2K  sha256:9f");
    }
}
