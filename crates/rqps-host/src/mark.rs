//! The mark of folders that rqps makes and removes: nothing without it is removed.
//!
//! A mark is a file in the folder with a keyed hash of the folder's inode. The key is in the state
//! folder of the user, so a mark that came with a file of somebody else, or that was copied from
//! another folder, counts for nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use thiserror::Error;

use crate::beneath::Folder;
use crate::disk::DiskError;
use crate::secret;
use crate::user::Identity;
use rqps_model::units;

/// The file of the mark.
const MARK: &str = ".rqps-mark";
/// The file of the key, in the state folder.
const KEY: &str = "mark.key";
/// All may pass through: servers run as another user.
const PASSABLE: u32 = 0o711;
/// Bytes of a mark, and of a key as text.
const LENGTH: usize = 64;

/// The key that this user's rqps marks its folders with.
#[derive(Clone, PartialEq, Eq)]
pub struct MarkKey {
    key: String,
}

impl std::fmt::Debug for MarkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MarkKey")
    }
}

/// A folder that cannot be taken for rqps's own.
#[derive(Debug, Error)]
pub enum MarkError {
    /// It is there, and somebody else made it.
    #[error(
        "{path} is there, and rqps did not make it: {why}; rqps removes nothing of others, so \
         move it away or choose another place"
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// `it is a link`, `it has no mark of this user's rqps`.
        why: String,
    },
    /// The system refuses.
    #[error("make {path}: {source}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The proof that rqps made a folder: only by it can what is in there be removed.
#[derive(Debug)]
pub struct OwnFolder {
    above: Folder,
    name: OsString,
    folder: Folder,
}

impl MarkKey {
    /// The key in the state folder, made if it is not there. Without a state folder, or where it
    /// cannot be kept, the key lasts as long as this process: folders of one that was killed are
    /// then not recognised, and stay.
    pub fn open(state: Option<&Path>) -> io::Result<MarkKey> {
        let kept = state.filter(|state| state.is_absolute()).and_then(|state| kept(state).ok());
        Ok(MarkKey { key: kept.map_or_else(secret::key, Ok)? })
    }

    /// A name that others cannot foresee and this user's rqps finds again, for a folder of this
    /// purpose in a place for everyone.
    pub fn name(&self, purpose: &[u8]) -> String {
        let hash = units::sha256([self.key.as_bytes(), b" name ", purpose].concat());
        hash.chars().take(16).collect()
    }

    fn mark(&self, folder: &Folder) -> io::Result<String> {
        let inode = folder.facts()?.ino();
        Ok(units::sha256(format!("{} mark {inode}", self.key)))
    }

    /// Makes a folder with a mark, or finds the one that rqps made there. Folders above it are made
    /// if need be. An empty folder of this user is taken: rqps may have been killed before it wrote
    /// the mark.
    ///
    /// # Errors
    /// Something else is there, a link for instance; the system refuses.
    pub fn claim(&self, path: &Path) -> Result<OwnFolder, MarkError> {
        let io = |source| MarkError::Io { path: path.to_owned(), source };
        let (above, name) = Folder::made_above(path).map_err(io)?;
        if let Some(found) = self.look(path, true)? {
            return Ok(found);
        }
        let folder = above.make(name, PASSABLE).map_err(io)?;
        self.write(&folder).map_err(io)?;
        Ok(OwnFolder { above, name: name.to_owned(), folder })
    }

    /// Marks a folder that this process has just made.
    ///
    /// # Errors
    /// A link is in its place; the system refuses.
    pub fn mark_made(&self, path: &Path) -> Result<(), MarkError> {
        let io = |source| MarkError::Io { path: path.to_owned(), source };
        let (above, name) = Folder::above(path).map_err(io)?;
        let folder = above.below(Path::new(name)).map_err(io)?;
        folder.check_own().and_then(|()| self.write(&folder)).map_err(io)
    }

    /// The folder that rqps made there; `None` if nothing is there.
    ///
    /// # Errors
    /// Something else is there; the system refuses.
    pub fn find(&self, path: &Path) -> Result<Option<OwnFolder>, MarkError> {
        self.look(path, false)
    }

    fn look(&self, path: &Path, take_empty: bool) -> Result<Option<OwnFolder>, MarkError> {
        let io = |source| MarkError::Io { path: path.to_owned(), source };
        let not_ours =
            |why: &str| MarkError::NotOurs { path: path.to_owned(), why: why.to_owned() };
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
            Ok(facts) if facts.is_symlink() => return Err(not_ours("it is a link")),
            Ok(facts) if !facts.is_dir() => return Err(not_ours("it is no folder")),
            Ok(_) => {}
        }
        let (above, name) = Folder::above(path).map_err(io)?;
        let folder = above.below(Path::new(name)).map_err(io)?;
        folder.check_own().map_err(|error| not_ours(&error.to_string()))?;
        let read = folder.text_of(OsStr::new(MARK), None, LENGTH as u64 + 1).unwrap_or_default();
        if read != self.mark(&folder).map_err(io)? {
            let entries = folder.entries().map_err(io)?;
            let is_begun = read.is_empty()
                && entries
                    .iter()
                    .all(|entry| entry.name == MARK && entry.kind == FileType::RegularFile);
            if !(take_empty && is_begun) {
                return Err(not_ours("it has no mark of this user's rqps"));
            }
            self.write(&folder).map_err(io)?;
        }
        Ok(Some(OwnFolder { above, name: name.to_owned(), folder }))
    }

    fn write(&self, folder: &Folder) -> io::Result<()> {
        // All may read it: it is good for no other folder.
        folder.replace(OsStr::new(MARK), self.mark(folder)?.as_bytes(), 0o644)?;
        // After a power cut, data without a mark would be nobody's.
        folder.regular(OsStr::new(MARK))?.sync_all()?;
        folder.file().sync_all()
    }
}

/// The key of the state folder.
fn kept(state: &Path) -> io::Result<String> {
    std::fs::create_dir_all(state)?;
    let folder = Folder::open(state)?;
    folder.check_own()?;
    if let Some(key) = read_key(&folder)? {
        return Ok(key);
    }
    let partial = OsString::from(format!(".{}.partial", secret::name()?));
    let mut file = folder.new_file(&partial, 0o600)?;
    file.write_all(secret::key()?.as_bytes())?;
    file.sync_all()?;
    let renamed = folder.rename(&partial, OsStr::new(KEY));
    folder.file().sync_all()?;
    if renamed.is_err() {
        // Another rqps was faster.
        folder.remove(&partial)?;
    }
    read_key(&folder)?.ok_or_else(|| io::Error::other("the key is not there"))
}

fn read_key(folder: &Folder) -> io::Result<Option<String>> {
    let mut file = match folder.read_of(OsStr::new(KEY), None) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut key = String::new();
    Read::by_ref(&mut file).take(LENGTH as u64 + 1).read_to_string(&mut key)?;
    let is_private = file.metadata()?.mode() & 0o077 == 0;
    if key.len() == LENGTH && is_private {
        Ok(Some(key))
    } else {
        Err(io::Error::other("the key is no key, or others can read it"))
    }
}

impl OwnFolder {
    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder, open.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Removes what lies below the folder at this path, which is one from the root or from the
    /// folder. Links are not followed. What is not there is no fault.
    ///
    /// # Errors
    /// It lies elsewhere, a link is on the way, or the system refuses.
    pub fn remove_below(&self, path: &Path) -> Result<(), DiskError> {
        let io = |source| DiskError::Io { doing: "remove", path: path.to_owned(), source };
        let below = match path.strip_prefix(self.path()) {
            Ok(below) => below,
            Err(_) if path.is_relative() => path,
            Err(_) => return Err(io(io::Error::other("it is in no folder of rqps"))),
        };
        let name = below.file_name().ok_or_else(|| io(io::Error::other("it has no name")))?;
        let above = match self.folder.below(below.parent().unwrap_or(Path::new(""))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            above => above.map_err(io)?,
        };
        above.remove(name).map_err(io)
    }

    /// Removes the folder with all that is in it, the mark last: a removal that is cut short can be
    /// taken up again.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(&self) -> Result<(), DiskError> {
        self.removed().map_err(|source| DiskError::Io {
            doing: "remove",
            path: self.path().to_owned(),
            source,
        })
    }

    fn removed(&self) -> io::Result<()> {
        let entries = self.folder.entries()?;
        for entry in entries.iter().filter(|entry| entry.name != MARK) {
            self.folder.remove(&entry.name)?;
        }
        self.folder.remove(OsStr::new(MARK))?;
        // Only an empty folder goes by its name.
        self.above.unlink_folder(&self.name)
    }
}

// Folders for the sockets of a server: only its user may enter them, and they go with it.

/// A folder that only one user may enter. It is removed, with all in it, when this is dropped.
pub(super) struct PrivateFolder {
    above: Folder,
    folder: Folder,
    /// The folder above, if this process made it, and the one that it lies in.
    made_above: Option<(Folder, OsString)>,
}

impl PrivateFolder {
    /// Makes the folder, which must be new, for a user, by default the warden's own.
    pub(super) fn make(path: &Path, user: Option<Identity>) -> io::Result<PrivateFolder> {
        PrivateFolder::made(path, user).map_err(|error| {
            let place = format!("make the private folder {}: {error}", path.display());
            io::Error::new(error.kind(), place)
        })
    }

    fn made(path: &Path, user: Option<Identity>) -> io::Result<PrivateFolder> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        // The user of the folder cannot put another in its place: that is in this one's hands.
        let made_above = if parent.exists() {
            None
        } else {
            let (place, name) = Folder::above(parent)?;
            place.make(name, 0o711)?;
            Some((place, name.to_owned()))
        };
        let (mut above, name) = Folder::above(path)?;
        if let Some((place, name)) = &made_above {
            above = place.below(Path::new(name))?;
        }
        let folder = above.make(name, 0o700)?;
        let made = PrivateFolder { above, folder, made_above };
        if let Some(user) = user {
            made.folder.give(user)?;
        }
        Ok(made)
    }
}

impl Drop for PrivateFolder {
    /// Its owner may have put another folder in its place: then that one stays.
    fn drop(&mut self) {
        let _ = self.folder.empty();
        if let Some(name) = self.folder.path().file_name()
            && self.folder.is_at(&self.above, name)
        {
            let _ = self.above.unlink_folder(name);
        }
        if let Some((place, name)) = &self.made_above {
            let _ = place.unlink_folder(name);
        }
    }
}

/// Removes the private folder of a warden that could not. Its name is random and only this process
/// and its warden know it; links in it are removed, not followed.
pub(super) fn remove_private_folder(path: &Path) {
    let _ = Folder::above(path).and_then(|(above, name)| above.remove(name));
    // Only an empty one goes, and the place for everyone is none of its own.
    let above = path.parent().unwrap_or(Path::new(""));
    let _ = Folder::above(above).and_then(|(place, name)| place.unlink_folder(name));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn key(work: &Path) -> MarkKey {
        MarkKey::open(Some(&work.join("state"))).unwrap()
    }

    #[test]
    fn only_what_rqps_made_is_found_and_removed() {
        let work = tempfile::tempdir().unwrap();
        let ours = work.path().join("sub/ours");
        key(work.path()).claim(&ours).unwrap();
        fs::create_dir(ours.join("data")).unwrap();
        // A later process of the same user.
        let found = key(work.path()).find(&ours).unwrap().unwrap();
        found.remove_below(&ours.join("data")).unwrap();
        found.remove_below(Path::new("absent/data")).unwrap();
        assert!(!ours.join("data").exists());
        assert!(found.remove_below(work.path()).is_err());
        assert!(found.remove_below(Path::new("../x")).is_err());
        found.remove().unwrap();
        assert!(!ours.exists());
        assert!(key(work.path()).find(&ours).unwrap().is_none());
    }

    #[test]
    fn nothing_of_others_is_taken_for_ours() {
        let work = tempfile::tempdir().unwrap();
        let key = key(work.path());
        let refused = |name: &str, why: &str| {
            let path = work.path().join(name);
            for said in [key.find(&path).map(drop), key.claim(&path).map(drop)] {
                let said = said.unwrap_err().to_string();
                assert!(said.contains(why), "{name}: {said}");
            }
        };
        let ours = work.path().join("ours");
        key.claim(&ours).unwrap();
        symlink(&ours, work.path().join("link")).unwrap();
        refused("link", "it is a link");
        fs::write(work.path().join("file"), "").unwrap();
        refused("file", "no folder");
        fs::create_dir(work.path().join("photos")).unwrap();
        fs::write(work.path().join("photos/me"), "").unwrap();
        refused("photos", "no mark");
        // A copied mark is one of another folder.
        fs::copy(ours.join(MARK), work.path().join("photos").join(MARK)).unwrap();
        refused("photos", "no mark");
        // A mark of another key.
        let other = MarkKey::open(None).unwrap();
        other.claim(&work.path().join("other")).unwrap();
        refused("other", "no mark");
        assert!(work.path().join("photos/me").exists());
    }

    #[test]
    fn an_empty_folder_is_taken_and_a_begun_mark_is_written_anew() {
        let work = tempfile::tempdir().unwrap();
        let key = key(work.path());
        for name in ["empty", "begun"] {
            fs::create_dir(work.path().join(name)).unwrap();
        }
        fs::write(work.path().join("begun").join(MARK), "").unwrap();
        for name in ["empty", "begun"] {
            let path = work.path().join(name);
            assert!(key.find(&path).is_err(), "not to be removed");
            key.claim(&path).unwrap();
            assert!(key.find(&path).unwrap().is_some());
        }
    }

    #[test]
    fn a_key_that_others_can_read_does_not_last() {
        use std::os::unix::fs::PermissionsExt;
        let work = tempfile::tempdir().unwrap();
        let first = key(work.path());
        assert!(first == key(work.path()));
        let file = work.path().join("state").join(KEY);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(first != key(work.path()));
        assert_eq!(first.name(b"x").len(), 16);
        assert_ne!(first.name(b"x"), first.name(b"y"));
    }
}
