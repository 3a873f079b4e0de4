//! A file that one process at a time may lock, with the id of that process.
//!
//! The lock is flock(2): the kernel lets go of it when its holder ends, however it ends. Whoever
//! can open a file can lock it, so the lock of a host is a file that only its user can open; beside
//! it, a claim in a place for everyone tells other users that somebody measures.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, flock};
use thiserror::Error;

use crate::beneath::Folder;
use crate::disk::DiskError;
use crate::user::{self, Identity};
use rqps_model::{safe_path, units};

/// A process that is killed while it starts another leaves a copy of itself that holds its locks
/// until the other program runs: so long that may take.
const LETTING_GO: Duration = Duration::from_secs(2);
/// A holder that says nothing of itself.
const UNKNOWN_HOLDER: &str = "another process that wrote no description";
/// Bytes that are read of what a holder says.
const MOST: u64 = 500;
/// Claims have the number of their user behind this.
const CLAIM: &str = "rqps.measuring.";
/// Between two looks whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// The reason why a lock was not available.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("{path} is held by {who}")]
    Held {
        /// The lock file.
        path: PathBuf,
        /// `process 123: measuring into rqps-results`, as the holder wrote it.
        who: String,
    },
    /// Another user says so, by a claim.
    #[error("user {uid} says in {path}: {who}")]
    Claimed {
        /// The claim.
        path: PathBuf,
        /// `process 123: measuring into rqps-results`.
        who: String,
        /// The user.
        uid: u32,
    },
    /// The file cannot be made or locked.
    #[error("lock {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock at `path`, making the file and its folder if need be, and writes into it who
    /// holds it: this process, and `doing`, what it does.
    ///
    /// # Errors
    /// Another process holds it, or the file cannot be made.
    pub fn acquire(path: &Path, doing: &str) -> Result<Lock, LockError> {
        Lock::take(path, doing, false)
    }

    /// As [`Lock::acquire`], with a file that other users cannot open, and so not lock.
    ///
    /// # Errors
    /// As there; the folder of the file belongs to another user.
    pub fn acquire_private(path: &Path, doing: &str) -> Result<Lock, LockError> {
        Lock::take(path, doing, true)
    }

    fn take(path: &Path, doing: &str, private: bool) -> Result<Lock, LockError> {
        let fault = |source| LockError::Io { path: path.to_path_buf(), source };
        if let Some(folder) = path.parent() {
            safe_path::make_folder(folder).map_err(fault)?;
            if private {
                let owner = fs::symlink_metadata(folder).map_err(fault)?.uid();
                let own = rustix::process::geteuid().as_raw();
                // Also that of a link.
                Folder::open(folder).and_then(|folder| folder.check_own()).map_err(fault)?;
                if owner != own {
                    let what = format!("user {owner} owns {}", folder.display());
                    return Err(fault(io::Error::other(what)));
                }
            }
        }
        let (mut file, writable) = open(path).map_err(fault)?;
        if private {
            rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
                .map_err(|error| fault(error.into()))?;
        }
        let deadline = Instant::now() + LETTING_GO;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let who = holder(&mut file);
                    if who.as_deref().is_some_and(|who| !is_gone(who)) || Instant::now() > deadline
                    {
                        let who = who.unwrap_or_else(|| UNKNOWN_HOLDER.to_owned());
                        return Err(LockError::Held { path: path.to_path_buf(), who });
                    }
                    thread::sleep(LOOK_AGAIN);
                }
                Err(error) => return Err(fault(error.into())),
            }
        }
        if writable {
            if is_of_others(&mut file).map_err(fault)? {
                let what = "it holds what no rqps has written; name another file";
                return Err(fault(io::Error::other(what)));
            }
            // Reading who held it has moved the place to write at.
            file.rewind().map_err(fault)?;
            let written = file.set_len(0).and_then(|()| file.write_all(text(doing).as_bytes()));
            written.map_err(fault)?;
        }
        Ok(Lock { file })
    }
}

/// What the holder of a lock or claim writes into it.
fn text(doing: &str) -> String {
    format!("process {}: {doing}\n", std::process::id())
}

/// Tells other users that this process measures here. They may believe it or not: it keeps nobody
/// from anything.
#[derive(Debug)]
pub struct HostClaim {
    /// The place, and the name of the file there, if it could be made.
    made: Option<(Folder, OsString)>,
}

impl HostClaim {
    /// Refuses if a living process of another user has a claim in `folder`, a place for everyone;
    /// then makes one.
    ///
    /// # Errors
    /// [`LockError::Claimed`].
    pub fn make(folder: &Path, doing: &str) -> Result<HostClaim, LockError> {
        let own = rustix::process::geteuid().as_raw();
        let Ok(folder) = Folder::open(folder) else { return Ok(HostClaim { made: None }) };
        for entry in folder.entries().unwrap_or_default() {
            let uid = entry.name.to_str().and_then(|name| name.strip_prefix(CLAIM)?.parse().ok());
            let Some(uid) = uid.filter(|uid| *uid != own) else { continue };
            // A claim counts only for the user who wrote it, and for a process of that user.
            let identity = Identity { uid, gid: 0 };
            let said = folder.text_of(&entry.name, Some(identity), MOST).unwrap_or_default();
            let who = said.lines().next().unwrap_or_default();
            if is_at_work(who, uid) {
                let path = folder.path().join(&entry.name);
                return Err(LockError::Claimed { path, who: who.to_owned(), uid });
            }
        }
        // Whoever has taken the name keeps only others from knowing.
        let name = OsString::from(format!("{CLAIM}{own}"));
        let written = write_claim(&folder, &name, doing);
        Ok(HostClaim { made: written.is_ok().then_some((folder, name)) })
    }
}

fn write_claim(folder: &Folder, name: &OsStr, doing: &str) -> io::Result<()> {
    let mut file = match folder.new_file(name, 0o644) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => folder.own_file(name)?,
        file => file?,
    };
    file.set_len(0)?;
    file.write_all(text(doing).as_bytes())
}

impl Drop for HostClaim {
    fn drop(&mut self) {
        if let Some((folder, name)) = &self.made {
            let _ = folder.remove_file(Path::new(name));
        }
    }
}

/// True if the holder names a process that is there and belongs to this user.
fn is_at_work(who: &str, uid: u32) -> bool {
    let process = pid(who).map(|pid| Path::new("/proc").join(pid.to_string()));
    process.is_some_and(|process| fs::metadata(process).is_ok_and(|facts| facts.uid() == uid))
}

/// The file, and whether it can be written to. A lock in a folder for everyone, such as /tmp, may
/// have been made by another user: then it can still be locked, but not say who holds it. It may
/// also be a trap: a link to a file of ours that we would truncate, so links are refused.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let mut writing = options.clone();
    writing.write(true);
    let (above, name) = safe_path::parent(path)?;
    let path = &Path::new("/proc/self/fd").join(above.as_raw_fd().to_string()).join(name);
    // Not made if it is there: /tmp may forbid to open somebody's file for making.
    let file = match writing.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => writing.create(true).open(path),
        opened => opened,
    };
    let (file, writable) = match file {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            (options.open(path)?, false)
        }
        opened => (opened?, true),
    };
    let facts = file.metadata()?;
    // With a second name it may be any file of ours, which somebody else has put here.
    if facts.is_file() && facts.nlink() <= 1 {
        Ok((file, writable))
    } else {
        Err(io::Error::other("it is not a regular file with one name"))
    }
}

impl Drop for Lock {
    /// The file stays: to remove it would let a second process lock a file that a third no longer
    /// finds.
    fn drop(&mut self) {
        // Only for readers of the file; the lock itself ends when the file is closed.
        let _ = self.file.set_len(0);
    }
}

/// True if the holder has said which process it is, and there is none of that id.
fn is_gone(who: &str) -> bool {
    pid(who).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

fn pid(who: &str) -> Option<u32> {
    who.strip_prefix("process ")?.split_once(':')?.0.parse().ok()
}

/// The text of the holder. `None` if there is none: the holder has just taken the lock, is about to
/// release it, or cannot write the file.
fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(MOST).read_to_string(&mut text)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// True if the file holds anything but the text of a holder.
fn is_of_others(file: &mut File) -> io::Result<bool> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(!bytes.is_empty() && pid(&String::from_utf8_lossy(&bytes)).is_none())
}

// The mark of folders that rqps makes and removes: nothing without it is removed.
//
// A mark is a file in the folder with a keyed hash of the folder's inode. The key is in the state
// folder of the user, so a mark that came with a file of somebody else, or that was copied from
// another folder, counts for nothing.

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
        Ok(MarkKey { key: kept.map_or_else(user::key, Ok)? })
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
    safe_path::make_folder(state)?;
    let folder = Folder::open(state)?;
    folder.check_own()?;
    if let Some(key) = read_key(&folder)? {
        return Ok(key);
    }
    let partial = OsString::from(format!(".{}.partial", user::name()?));
    let mut file = folder.new_file(&partial, 0o600)?;
    file.write_all(user::key()?.as_bytes())?;
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
    use super::*;

    #[test]
    fn a_dead_holder_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let copy = Lock::acquire(&path, "starting another").unwrap();
        // No process has an id as high as that: the kernel's limit is 2^22.
        fs::write(&path, "process 4194305: starting another\n").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                drop(copy);
            });
            let lock = Lock::acquire(&path, "measuring").unwrap();
            let said = fs::read_to_string(&path).unwrap();
            assert_eq!(said, format!("process {}: measuring\n", std::process::id()));
            drop(lock);
        });
    }

    /// A holder empties the file before it lets go.
    #[test]
    fn a_holder_that_says_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::acquire(&path, "ending").unwrap();
        fs::write(&path, "").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(100));
                drop(first);
            });
            Lock::acquire(&path, "measuring").unwrap();
        });
        let _held = Lock::acquire(&path, "").unwrap();
        fs::write(&path, "").unwrap();
        let refusal = Lock::acquire(&path, "measuring").unwrap_err().to_string();
        assert!(refusal.ends_with(UNKNOWN_HOLDER), "{refusal}");
    }

    #[test]
    fn the_second_is_told_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/lock");
        let lock = Lock::acquire(&path, "measuring into results").unwrap();
        // A lock belongs to the open file, so a second opening in this process is refused too.
        let refusal = Lock::acquire(&path, "something else").unwrap_err().to_string();
        let expected = format!("process {}: measuring into results", std::process::id());
        assert!(refusal.ends_with(&expected), "{refusal}");
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        Lock::acquire(&path, "something else").unwrap();
    }

    #[test]
    fn a_link_is_not_followed_and_a_folder_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (precious, link) = (folder.path().join("precious"), folder.path().join("lock"));
        fs::write(&precious, "data").unwrap();
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(matches!(Lock::acquire(&link, "x"), Err(LockError::Io { .. })));
        fs::remove_file(&link).unwrap();
        fs::hard_link(&precious, &link).unwrap();
        assert!(matches!(Lock::acquire(&link, "x"), Err(LockError::Io { .. })));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
        assert!(matches!(Lock::acquire(folder.path(), "x"), Err(LockError::Io { .. })));
    }

    #[test]
    fn others_cannot_open_a_private_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/lock");
        let _lock = Lock::acquire_private(&path, "measuring").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Lock::acquire_private(&path, "x"), Err(LockError::Held { .. })));
    }

    /// The claim of another user, as far as this user can make one.
    #[test]
    fn a_claim_counts_for_its_user_and_a_living_process() {
        let folder = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        drop(HostClaim::make(folder.path(), "measuring").unwrap());
        let claim = HostClaim::make(folder.path(), "measuring").unwrap();
        let path = folder.path().join(format!("{CLAIM}{own}"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text("measuring"));
        drop(claim);
        assert!(!path.exists());
        // One that speaks for somebody else.
        fs::write(folder.path().join(format!("{CLAIM}4000000")), "process 1: x\n").unwrap();
        HostClaim::make(folder.path(), "measuring").unwrap();
        let precious = folder.path().join("precious");
        fs::write(&precious, "data").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        HostClaim::make(folder.path(), "measuring").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
        if own == 0 {
            let path = folder.path().join(format!("{CLAIM}65534"));
            let claim = |pid| {
                fs::write(&path, format!("process {pid}: measuring\n")).unwrap();
                std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
                HostClaim::make(folder.path(), "x").map(drop)
            };
            claim(1).expect("process 1 is not theirs");
            let mut command = std::process::Command::new("sleep");
            std::os::unix::process::CommandExt::uid(&mut command, 65_534);
            let mut process = command.arg("60").spawn().unwrap();
            let said = claim(process.id()).unwrap_err().to_string();
            process.kill().unwrap();
            process.wait().unwrap();
            assert!(said.contains("user 65534 says in"), "{said}");
        }
    }

    #[test]
    fn the_text_of_the_last_holder_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "process 1: something that took far longer to say, and crashed").unwrap();
        let _lock = Lock::acquire(&path, "x").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("process {}: x\n", std::process::id()));
    }

    /// A file of the user's is named by mistake, or by a variable that somebody else has set.
    #[test]
    fn what_rqps_has_not_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        for text in ["root:x:0:0:root:/root:/bin/bash\n", "process of elimination", "\u{0}\u{1}"] {
            fs::write(&path, text).unwrap();
            let refusal = Lock::acquire(&path, "x").unwrap_err().to_string();
            assert!(refusal.contains("what no rqps has written"), "{refusal}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Lock::acquire(&path, "x").is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refusal = Lock::acquire(&file.join("lock"), "x").unwrap_err();
        assert!(matches!(refusal, LockError::Io { .. }), "{refusal}");
    }
}

#[cfg(test)]
mod mark_tests {
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
