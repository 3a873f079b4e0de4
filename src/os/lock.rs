//! A file that one process at a time may lock, with the id of that process.
//!
//! The lock is flock(2): the kernel lets go of it when its holder ends, however it ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

/// A process that is killed while it starts another leaves a copy of itself that holds its locks
/// until the other program runs: so long that may take.
const LETTING_GO: Duration = Duration::from_secs(2);
/// A holder that says nothing of itself.
const UNKNOWN_HOLDER: &str = "another process that wrote no description";
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
    pub fn acquire(path: &Path, doing: &str) -> Result<Lock, LockError> {
        let fault = |source| LockError::Io { path: path.to_path_buf(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(fault)?;
        }
        let (mut file, writable) = open(path).map_err(fault)?;
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
            let text = format!("process {}: {doing}\n", std::process::id());
            let written = file.set_len(0).and_then(|()| file.write_all(text.as_bytes()));
            written.map_err(fault)?;
        }
        Ok(Lock { file })
    }
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
    if file.metadata()?.is_file() {
        Ok((file, writable))
    } else {
        Err(io::Error::other("it is not a regular file"))
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
    let pid = who.strip_prefix("process ").and_then(|rest| rest.split_once(':'));
    let pid = pid.and_then(|(pid, _)| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

/// The text of the holder. `None` if there is none: the holder has just taken the lock, is about to
/// release it, or cannot write the file.
fn holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(500).read_to_string(&mut text)).ok()?;
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
        assert_eq!(fs::read_to_string(&precious).unwrap(), "data");
        assert!(matches!(Lock::acquire(folder.path(), "x"), Err(LockError::Io { .. })));
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
