//! Detects changes of a result set since it was read.

use std::fs::{self, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use super::{ResultsError, entries};

use rqps_model::bounded;
use rqps_model::units;

/// Folders of a result set are not deeper.
const DEPTH_MAX: usize = 6;

/// Reports that rqps writes beside the runs: they are made from the set, and no part of it.
const MADE: &str = "report.html";

/// A hash of the names, sizes and times of all files of a result set. If it is the same, rqps takes
/// the content to be the same.
///
/// # Errors
/// A folder that cannot be read.
pub fn quick_stamp(dir: &Path) -> Result<String, ResultsError> {
    let mut hash = Sha256::new();
    walk(dir, "", DEPTH_MAX, &mut |name, _, metadata| {
        let changed =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = changed.map_or(0, |time| time.as_nanos());
        hash.update(format!("{name}\0{}\0{nanoseconds}\0", metadata.len()));
        Ok(())
    })?;
    Ok(units::hex(&hash.finalize()[..16]))
}

/// A hash of the names and bytes of all files of a result set: a copy has the same.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn content_stamp(dir: &Path) -> Result<String, ResultsError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    walk(dir, "", DEPTH_MAX, &mut |name, path, metadata| {
        hash.update(format!("{name}\0{}\0", metadata.len()));
        // Somebody else's folder may hold a pipe or an endless device: their length is 0.
        let file = bounded::open(path).map_err(ResultsError::io("open", path))?;
        let mut file = file.take(metadata.len());
        loop {
            match file.read(&mut buffer).map_err(ResultsError::io("read", path))? {
                0 => return Ok(()),
                count => hash.update(&buffer[..count]),
            }
        }
    })?;
    Ok(units::hex(&hash.finalize()[..16]))
}

type Visit<'a> = dyn FnMut(&str, &Path, &Metadata) -> Result<(), ResultsError> + 'a;

/// All files, in the order of their names; those that begin with a dot are temporary.
fn walk(dir: &Path, before: &str, depth: usize, visit: &mut Visit<'_>) -> Result<(), ResultsError> {
    for name in entries(dir)? {
        if name == MADE {
            continue;
        }
        let path: PathBuf = dir.join(&name);
        let metadata = fs::metadata(&path).map_err(ResultsError::io("read", &path))?;
        let shown = format!("{before}{name}");
        if !metadata.is_dir() {
            visit(&shown, &path, &metadata)?;
        } else if depth > 0 {
            walk(&path, &format!("{shown}/"), depth - 1, visit)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_same_content_and_a_changed_file_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str| {
            let steps = folder.path().join(name).join("run/steps");
            fs::create_dir_all(&steps).unwrap();
            fs::write(steps.join("01-a.json"), text).unwrap();
            folder.path().join(name)
        };
        let (one, copy, other) = (make("one", "1"), make("copy", "1"), make("other", "2"));
        let of = |path: &Path| content_stamp(path).unwrap();
        assert_eq!(of(&one), of(&copy));
        assert_ne!(of(&one), of(&other));
        let before = quick_stamp(&one).unwrap();
        assert_eq!(before, quick_stamp(&one).unwrap());
        fs::write(one.join("report.html"), "made").unwrap();
        fs::write(one.join("run/.lock"), "").unwrap();
        assert_eq!(before, quick_stamp(&one).unwrap(), "what is made from it is no part of it");
        fs::write(one.join("run/steps/02-b.json"), "").unwrap();
        assert_ne!(before, quick_stamp(&one).unwrap());
        assert!(quick_stamp(&folder.path().join("none")).is_err());
    }
}
