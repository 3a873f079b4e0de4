//! This rqps as a file that other hosts get: they keep it by its hash.

use std::path::Path;

use anyhow::{Context, Result, bail};

use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

/// The file name of a copy of the program with this SHA-256.
pub(in crate::lab) fn program_name(digest: &str) -> String {
    format!("rqps-{}", digest.get(..12).unwrap_or(digest))
}

/// SHA-256 of a large file, by the system's program for it.
///
/// # Errors
/// It is missing or cannot read the file.
pub(in crate::lab) fn digest_of(file: &Path) -> Result<String> {
    let mut command = child::command("sha256sum", ChildTask::Work);
    command.arg(file);
    let said = command_output::run(command).context("start sha256sum")?;
    match said.output.split_whitespace().next() {
        // A name with a backslash in it would begin the line with one.
        Some(digest) if said.success() => Ok(digest.trim_start_matches('\\').to_owned()),
        _ => bail!("read {}: {}", file.display(), said.complaint()),
    }
}
