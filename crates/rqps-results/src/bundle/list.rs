//! `bundle.json`, the first file of a bundle: what it is of, and every file in it.

use serde::{Deserialize, Serialize};

use rqps_model::build::Manifest;
use rqps_model::label;

/// The format version of bundles that this program writes.
pub const BUNDLE_FORMAT: u32 = 1;

/// The folder that all entries of the archive lie in.
pub(super) const ROOT: &str = "rqps-bundle/";

/// The first entry.
pub(super) const LIST: &str = "bundle.json";

/// Folders that a bundle may contain.
pub(super) const FOLDERS: [&str; 3] = ["results/", "configs/", "files/"];

/// `bundle.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleHead {
    /// [`BUNDLE_FORMAT`].
    pub format: u32,
    /// Version of the rqps that wrote the bundle.
    pub rqps_version: String,
    /// Hash of the plan.
    pub plan_hash: String,
    /// The targets with their builds, in the order of the plan.
    pub targets: Vec<BundledTarget>,
    /// Files that the plan reads and the bundle does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// All other files, in the order of the archive.
    pub files: Vec<BundledFile>,
}

/// A target, and what was measured under its label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundledTarget {
    /// Its label.
    #[serde(deserialize_with = "label::checked")]
    pub label: String,
    /// The target word of the plan, without a password.
    pub word: String,
    /// Its builds: coordinates and checksum. More than one if runs differ.
    pub builds: Vec<Manifest>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledFile {
    /// Its path in the bundle: `results/plan.toml`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// The reason for refusing a path in a bundle; `None` if it stays inside the bundle's folder.
pub(super) fn path_fault(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("has an absolute path");
    }
    if path.split('/').any(|part| part == "..") {
        return Some("leaves the folder");
    }
    if path.contains('\0') || path.split('/').any(|part| part.is_empty() || part == ".") {
        return Some("has no plain path");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_folder() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(path_fault(path), expected, "{path}");
        };
        check("results/b01-1-a/run.json", None);
        check("results/..x/a..b", None);
        check("/etc/passwd", Some("has an absolute path"));
        check("results/../../evil", Some("leaves the folder"));
        check("..", Some("leaves the folder"));
        check("results//x", Some("has no plain path"));
        check("results/./x", Some("has no plain path"));
        check("", Some("has no plain path"));
    }
}
