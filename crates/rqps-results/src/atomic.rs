//! Files that are there whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ResultsError;

/// The end of a temporary name.
const PARTIAL: &str = ".partial";

/// Writes `bytes` to `path`: to a temporary name beside it, fsynced, renamed over it, and the
/// folder fsynced. A kill at any moment leaves the old file or the new one, and perhaps a
/// temporary file, whose name begins with a dot: readers pass those over.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let temporary = Temporary::beside(path);
    let mut file = new_file(&temporary.0).map_err(temporary.fault("create"))?;
    file.write_all(bytes).map_err(temporary.fault("write"))?;
    file.sync_all().map_err(temporary.fault("flush"))?;
    temporary.put_in_place(path)?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// As [`write`], but without fsync: for output that can be made again after a power failure.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> Result<(), ResultsError> {
    let temporary = Temporary::beside(path);
    new_file(&temporary.0)
        .and_then(|mut file| file.write_all(content.as_ref()))
        .map_err(temporary.fault("write"))?;
    temporary.put_in_place(path)
}

/// The name of a file until it is whole. An error removes the file: a full disk needs the room.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(path: &Path) -> Temporary {
        Temporary(temporary_name(path))
    }

    fn fault(&self, doing: &'static str) -> impl FnOnce(std::io::Error) -> ResultsError {
        ResultsError::io(doing, &self.0)
    }

    fn put_in_place(self, path: &Path) -> Result<(), ResultsError> {
        fs::rename(&self.0, path).map_err(ResultsError::io("put in place", path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is none of that name.
        let _ = fs::remove_file(&self.0);
    }
}

/// A new file. What has its name is removed: a rest of a killed process, or a link or a pipe that
/// somebody else put there.
pub(super) fn new_file(path: &Path) -> std::io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(PARTIAL);
    path.with_file_name(name)
}

/// Removes what [`write`] had not finished when it was killed, here and in the folders below. No
/// link is followed. What begins with a dot is for others.
pub(super) fn sweep(folder: &Path) {
    // What cannot be removed stays; readers pass it over.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        match entry.file_type() {
            Ok(kind) if kind.is_file() && name.starts_with('.') && name.ends_with(PARTIAL) => {
                let _ = fs::remove_file(entry.path());
            }
            Ok(kind) if kind.is_dir() && !name.starts_with('.') => sweep(&entry.path()),
            _ => {}
        }
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.json");
        // A folder cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"text").is_err() && replace(&path, "text").is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "only the folder");
    }

    #[test]
    fn a_link_in_place_of_a_temporary_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for write_one in [|path: &Path| write(path, b"new"), |path: &Path| replace(path, "new")] {
            symlink(&victim, folder.path().join(".run.json.partial")).unwrap();
            write_one(&folder.path().join("run.json")).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
            assert_eq!(fs::read_to_string(folder.path().join("run.json")).unwrap(), "new");
        }
    }

    #[test]
    fn a_sweep_takes_only_unfinished_files_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join(".x.partial"), "").unwrap();
        symlink(other.path(), at("link")).unwrap();
        symlink(other.path().join(".x.partial"), at(".linked.partial")).unwrap();
        for folder in [".work", "run"] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join(".x.partial"), "").unwrap();
        }
        for name in [".host.json.partial", "x.partial", ".lock"] {
            fs::write(at(name), "").unwrap();
        }
        sweep(folder.path());
        let gone = [".host.json.partial", "run/.x.partial"];
        assert!(gone.iter().all(|name| !at(name).exists()));
        let kept = ["x.partial", ".lock", ".work/.x.partial", "link/.x.partial", ".linked.partial"];
        assert!(kept.iter().all(|name| at(name).exists()));
    }
}
