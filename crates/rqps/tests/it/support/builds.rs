//! Builds to test against: those that an environment variable names, else fetched by rqps itself
//! into
//! its cache, as a user would. Use it with `mod builds;`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Roots of builds: the folders in the environment variable, separated by colons, else the builds
/// of
/// `words` (`mysql@8.0.33`) that can be had here.
///
/// # Errors
/// There is none. The text is the reason, for the line about the skipped test.
pub(crate) fn roots(variable: &str, words: &[&str]) -> Result<Vec<PathBuf>, String> {
    if let Some(list) = std::env::var_os(variable).filter(|list| !list.is_empty()) {
        return Ok(std::env::split_paths(&list).collect());
    }
    let mut roots = Vec::new();
    let mut why = String::new();
    for word in words {
        match fetch(word) {
            Ok(root) => roots.push(root),
            Err(error) => why = format!("{word}: {error}"),
        }
    }
    if roots.is_empty() { Err(why) } else { Ok(roots) }
}

/// `rqps get`: a build that is in the cache costs nothing.
fn fetch(word: &str) -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .args(["get", word])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let root = said.lines().find_map(|line| line.strip_prefix("  in "));
    root.map(PathBuf::from).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}
