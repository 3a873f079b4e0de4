//! Fetching through the user's own mvn, so that its mirrors, proxies and credentials apply.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::domain::build::Dbms;
use crate::obtain::client::{self, Ended};
use crate::obtain::error::Reason;
use crate::obtain::progress::Progress;

/// Words by which mvn says that it cannot reach a repository, the most telling first.
const UNREACHABLE: [&str; 8] = [
    "Unknown host",
    "Connection refused",
    "Network is unreachable",
    "timed out",
    "status code",
    "in offline mode",
    "Could not transfer ",
    "No plugin found for prefix",
];

/// What to fetch, with what, where to.
pub(super) struct Fetch<'a> {
    /// The program: `mvn`, or a path.
    pub(super) client: &'a Path,
    /// `GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]`.
    pub(super) coordinates: &'a str,
    /// For messages.
    pub(super) dbms: Dbms,
    /// An empty folder.
    pub(super) into: &'a Path,
}

/// Has the client put the package file into the folder, and returns the file.
pub(super) fn fetch(fetch: &Fetch<'_>, progress: &mut Progress<'_>) -> Result<PathBuf, Reason> {
    let mut command = Command::new(fetch.client);
    command
        .args(["-B", "-q", "-Dstyle.color=never"])
        .args(["dependency:copy", "-Dmdep.useBaseVersion=true"])
        .arg(format!("-Dartifact={}", fetch.coordinates))
        .arg(format!("-DoutputDirectory={}", fetch.into.display()))
        // Elsewhere it would read a pom.xml that happens to lie about.
        .current_dir(fetch.into);
    let text = || format!("downloading {}", fetch.coordinates);
    let ended = client::run(&mut command, "maven", fetch.dbms, progress, text)?;
    if !ended.status.success() {
        return Err(classify(fetch, &ended));
    }
    package_file(fetch, &ended.said())
}

fn name(fetch: &Fetch<'_>) -> String {
    fetch.client.display().to_string()
}

/// Tells a version that does not exist from a repository that cannot be reached, by mvn's words.
fn classify(fetch: &Fetch<'_>, ended: &Ended) -> Reason {
    let said = ended.said();
    let mut parts = fetch.coordinates.split(':');
    let artifact =
        format!("{}:{}:", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let about_it = |line: &str, words: &str| line.contains(words) && line.contains(&artifact);
    let lines = || said.lines();
    // The second form is a refusal that mvn remembers from an earlier attempt.
    if lines().any(|line| {
        about_it(line, "Could not find artifact ") || about_it(line, " was not found in ")
    }) {
        return Reason::NoSuchVersion {
            dbms: fetch.dbms,
            coordinates: fetch.coordinates.to_string(),
        };
    }
    let line = UNREACHABLE.iter().find_map(|words| lines().find(|line| line.contains(words)));
    if let Some(line) = line {
        return Reason::Network { client: name(fetch), said: shortened(line), dbms: fetch.dbms };
    }
    let last = lines().find(|line| line.contains("[ERROR]")).or_else(|| lines().last());
    Reason::ClientFailed {
        client: name(fetch),
        ended: ended.how(),
        coordinates: fetch.coordinates.to_string(),
        said: last.map_or("no message".to_string(), shortened),
    }
}

/// The gist of a long line: what follows the name of the goal that failed.
fn shortened(line: &str) -> String {
    let line = line.split_once("[ERROR] ").map_or(line, |(_, rest)| rest).trim();
    let gist = line.split_once("on project standalone-pom: ").map_or(line, |(_, gist)| gist);
    client::shortened(gist)
}

/// The one file that the client left.
fn package_file(fetch: &Fetch<'_>, said: &str) -> Result<PathBuf, Reason> {
    let mut files = Vec::new();
    for entry in fs::read_dir(fetch.into).map_err(Reason::io("read", fetch.into))? {
        let entry = entry.map_err(Reason::io("read", fetch.into))?;
        let metadata = entry.metadata().map_err(Reason::io("look at", entry.path()))?;
        if metadata.is_file() && metadata.len() > 0 {
            files.push(entry.path());
        }
    }
    match (files.pop(), files.is_empty()) {
        (Some(file), true) => Ok(file),
        _ => Err(Reason::ClientFailed {
            client: name(fetch),
            ended: "succeeded but left no package file".to_string(),
            coordinates: fetch.coordinates.to_string(),
            said: said.lines().last().map_or("no message".to_string(), shortened),
        }),
    }
}
