//! A file that one process at a time may lock, with the id of that process.
//!
//! The lock is flock(2): the kernel lets go of it when its holder ends, however it ends. Whoever
//! can open a file can lock it, so the lock of a host is a file that only its user can open; beside
//! it, a claim in a place for everyone tells other users that somebody measures.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};
use thiserror::Error;

use crate::beneath::Folder;
use crate::user::Identity;

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
            fs::create_dir_all(folder).map_err(fault)?;
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

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refusal = Lock::acquire(&file.join("lock"), "x").unwrap_err();
        assert!(matches!(refusal, LockError::Io { .. }), "{refusal}");
    }
}
