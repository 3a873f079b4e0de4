//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ResultsError;

/// Writes `bytes` to `path`: to a temporary name beside it, fsynced, renamed over it, and the
/// folder fsynced. A kill at any moment leaves the old file or the new one, and perhaps a
/// temporary file, whose name begins with a dot: readers pass those over.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let temporary = temporary_name(path);
    let mut file = File::create(&temporary).map_err(ResultsError::io("create", &temporary))?;
    file.write_all(bytes).map_err(ResultsError::io("write", &temporary))?;
    file.sync_all().map_err(ResultsError::io("flush", &temporary))?;
    fs::rename(&temporary, path).map_err(ResultsError::io("put in place", path))?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// As [`write`], but without fsync: for output that can be made again after a power failure.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<(), ResultsError> {
    let temporary = temporary_name(path);
    fs::write(&temporary, content).map_err(ResultsError::io("write", &temporary))?;
    fs::rename(&temporary, path).map_err(ResultsError::io("put in place", path))
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".partial");
    path.with_file_name(name)
}

/// Creates a folder that may be there already, durably.
pub(super) fn create_folder(path: &Path) -> Result<(), ResultsError> {
    fs::create_dir_all(path).map_err(ResultsError::io("create", path))?;
    sync_folder(path)?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => Ok(()),
    }
}

fn sync_folder(path: &Path) -> Result<(), ResultsError> {
    let folder = File::open(path).map_err(ResultsError::io("open", path))?;
    folder.sync_all().map_err(ResultsError::io("flush", path))
}
