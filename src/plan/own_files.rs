//! The files of the user's that a plan reads.

use std::path::{Component, Path, PathBuf};

use crate::benchmarks;
use crate::plan::definition::Plan;

/// Bytes of the largest file of which results keep a copy.
const COPIED_BYTES: u64 = 1 << 20;

/// A file of which results keep a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Where it is.
    pub path: PathBuf,
    /// What its copy is called: as the workload names it, below its folder.
    pub copy: PathBuf,
}

/// Scripts and small files of data that the workload reads, so that a report can be walked back.
pub fn own_files(plan: &Plan) -> Vec<OwnFile> {
    let Some(own) = &benchmarks::of(&plan.workload).file else { return Vec::new() };
    let folder = (own.folder)(&plan.workload).unwrap_or_default();
    let files = (own.files)(&plan.workload).into_iter();
    let small = files.filter_map(|(name, known)| {
        let file = known.filter(|file| file.bytes <= COPIED_BYTES)?;
        let copy = copy_name(Path::new(&name), &file.sha256);
        Some(OwnFile { path: folder.join(&name), copy })
    });
    small.collect()
}

/// The name as it stands; that of the file alone, after its hash, where it leads elsewhere.
fn copy_name(name: &Path, sha256: &str) -> PathBuf {
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    if is_below {
        return name.to_owned();
    }
    let last = name.file_name().map(|last| last.to_string_lossy().into_owned());
    let hash = sha256.get(..8).unwrap_or(sha256);
    PathBuf::from(format!("{hash}-{}", last.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_never_leaves_its_folder() {
        let check = |name: &str, want: &str| {
            assert_eq!(copy_name(Path::new(name), "0123456789ab"), Path::new(want), "{name}");
        };
        check("a.sql", "a.sql");
        check("data/a.csv", "data/a.csv");
        check("../a.csv", "01234567-a.csv");
        check("/usr/share/x.lua", "01234567-x.lua");
    }
}
