//! Folders for the data of blocks on a host of a pool. A block that was killed leaves its data; who
//! started it removes them, or the next block on that host.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, Result};

use rqps_host::beneath::{self, Folder, REMOVALS};
use rqps_host::lock::{Lock, LockError};
use rqps_host::mark::{MarkKey, OwnFolder};
use rqps_model::units::short_hash;

/// Time for a block to stop its servers after its connection was cut; wardens have the same time
/// after the block was killed.
const ENDING: Duration = Duration::from_secs(60);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(100);

/// The folder of one block, and its lock for as long as this lives.
pub(in crate::lab) struct BlockFolder {
    own: OwnFolder,
    lock_path: PathBuf,
    _lock: Lock,
}

impl BlockFolder {
    /// Makes a folder for the block whose results go to `out`, in a folder of this user in `work`.
    /// Removes the folders of blocks that are gone.
    ///
    /// # Errors
    /// The folder cannot be made, or another process measures the same block.
    pub(in crate::lab) fn make(work: &Path, out: &Path, key: &MarkKey) -> Result<BlockFolder> {
        let (all, path, lock_path) = paths(work, out)?;
        let doing = format!("rqps, block in {}", out.display());
        let mut tries = 0;
        let lock = loop {
            make_folder_of_user(work)?;
            remove_leftovers(&all, key);
            match Lock::acquire(&lock_path, &doing) {
                // A block that ended has removed the empty folder.
                Err(LockError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < REMOVALS =>
                {
                    tries += 1;
                }
                lock => break lock?,
            }
        };
        let own = key.claim(&path).context("keep data of a block")?;
        Ok(BlockFolder { own, lock_path, _lock: lock })
    }

    pub(in crate::lab) fn path(&self) -> &Path {
        self.own.path()
    }
}

/// Checks that this user may keep data of blocks in `work`.
///
/// # Errors
/// No folder can be made there.
pub(in crate::lab) fn check_can_keep(work: &Path) -> Result<()> {
    make_folder_of_user(work)?;
    // Data of other blocks keep it.
    fs::remove_dir(folder_of_user(work)).ok();
    Ok(())
}

/// The folder of all blocks of this user in `work`.
fn folder_of_user(work: &Path) -> PathBuf {
    work.join(format!("rqps-blocks-{}", rustix::process::geteuid().as_raw()))
}

/// Makes it, or finds it: `work` may be a place for everyone. The error says what to do.
fn make_folder_of_user(work: &Path) -> Result<()> {
    let folder = folder_of_user(work);
    let name = folder.file_name().unwrap_or_default();
    let made = fs::create_dir_all(work)
        .and_then(|()| Folder::open(work)?.make_or_find(name, 0o711).map(drop));
    made.map_err(|error| {
        anyhow::anyhow!(
            "keep data in {}: make {}: {error}\nhint: name a folder with --work that you may write \
             to on each host",
            work.display(),
            folder.display()
        )
    })
}

/// The folder of all blocks of this user in `work`, that of the block whose results go to `out`,
/// and its lock.
fn paths(work: &Path, out: &Path) -> Result<(PathBuf, PathBuf, PathBuf)> {
    let all = folder_of_user(work);
    let out = std::path::absolute(out).context("find the result folder")?;
    let name = short_hash(out.as_os_str().as_encoded_bytes());
    let lock_path = all.join(format!("{name}.lock"));
    let path = all.join(name);
    Ok((all, path, lock_path))
}

/// Waits until the block has ended whose results go to `out`, however that comes, and removes its
/// data and the folder around its results.
///
/// # Errors
/// It does not end, or a folder cannot be removed.
pub fn clear_block(work: &Path, out: &Path, key: &MarkKey) -> Result<()> {
    let (all, path, lock_path) = paths(work, out)?;
    let deadline = Instant::now() + ENDING;
    while lock_path.exists() || path.exists() {
        // A server of a killed block may still write until its warden has ended it.
        let removed = Lock::acquire(&lock_path, "rqps, removing what a block left")
            .map_err(anyhow::Error::from)
            .and_then(|lock| {
                key.find(&path)?.map_or(Ok(()), |own| own.remove())?;
                fs::remove_file(&lock_path).ok();
                drop(lock);
                Ok(())
            });
        match removed {
            Ok(()) => break,
            Err(error) if Instant::now() > deadline => {
                return Err(error).context("remove what the block left");
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
    // Data of other blocks keep it.
    fs::remove_dir(&all).ok();
    match out.parent() {
        // Whoever had the block started has made it for the block alone.
        Some(around) if around.exists() => beneath::remove_made(around, None)
            .with_context(|| format!("remove {}", around.display())),
        _ => Ok(()),
    }
}

impl Drop for BlockFolder {
    /// Removes the folder. The next block removes the files that this one cannot.
    fn drop(&mut self) {
        if self.own.remove().is_ok() {
            fs::remove_file(&self.lock_path).ok();
        }
        // Data of other blocks keep it.
        if let Some(all) = self.own.path().parent() {
            fs::remove_dir(all).ok();
        }
    }
}

/// Removes the folders whose owners have ended. One that cannot be removed stays until the next
/// block tries: it only takes space, and a block that lacks space says so.
fn remove_leftovers(all: &Path, key: &MarkKey) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let lock_path = path.with_extension("lock");
        let Ok(lock) = Lock::acquire(&lock_path, "rqps, removing what a block left") else {
            continue;
        };
        if let Ok(Some(own)) = key.find(&path)
            && own.remove().is_ok()
        {
            fs::remove_file(&lock_path).ok();
        }
        drop(lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_removes_what_dead_blocks_left_and_nothing_else() {
        let work = tempfile::tempdir().expect("folder");
        let key = MarkKey::open(None).expect("a key");
        let make = |out: &str| BlockFolder::make(work.path(), Path::new(out), &key);
        let living = make("/results/a").expect("a folder");
        let all = living.path().parent().expect("a parent").to_owned();
        key.claim(&all.join("0123456789ab")).expect("a leftover");
        fs::create_dir(all.join("photos")).expect("a folder of others");
        for file in ["0123456789ab/data", "photos/me"] {
            fs::write(all.join(file), "x").expect("its data");
        }
        let next = make("/results/b").expect("a folder");
        assert!(!all.join("0123456789ab").exists());
        assert!(all.join("photos/me").exists());
        for lock in ["photos/me", "photos.lock"] {
            fs::remove_file(all.join(lock)).expect("remove");
        }
        fs::remove_dir(all.join("photos")).expect("remove");
        assert!(living.path().is_dir() && next.path().is_dir());
        let again = make("/results/a").err();
        assert!(again.is_some_and(|error| error.to_string().contains("is held by")));
        drop((living, next));
        assert!(!all.exists(), "nothing is left");
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let work = tempfile::tempdir().expect("folder");
        let elsewhere = tempfile::tempdir().expect("folder");
        let key = MarkKey::open(None).expect("a key");
        let place = folder_of_user(work.path());
        symlink(elsewhere.path(), &place).expect("a link");
        assert!(BlockFolder::make(work.path(), Path::new("/results/a"), &key).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).expect("folder").count(), 0);
        fs::remove_file(&place).expect("remove");
        fs::create_dir(&place).expect("a folder");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("chmod");
        assert!(check_can_keep(work.path()).is_err());
    }

    #[test]
    fn what_a_killed_block_left_is_removed_for_it() {
        let work = tempfile::tempdir().expect("folder");
        let out = work.path().join("cell/start");
        let (all, data, lock) = paths(work.path(), &out).expect("paths");
        let key = MarkKey::open(None).expect("a key");
        fs::create_dir_all(&out).expect("a folder");
        key.claim(&data).expect("a folder");
        fs::write(&lock, "").expect("its lock");
        clear_block(work.path(), &out, &key).expect("clear");
        assert!(!all.exists());
        assert!(!work.path().join("cell").exists());
        clear_block(work.path(), &out, &key).expect("nothing to clear");
    }

    #[test]
    fn a_block_that_stops_is_waited_for() {
        let work = tempfile::tempdir().expect("folder");
        let out = work.path().join("cell/start");
        let key = MarkKey::open(None).expect("a key");
        let block = BlockFolder::make(work.path(), &out, &key).expect("a folder");
        let data = block.path().to_owned();
        thread::scope(|scope| {
            let clear = scope.spawn(|| clear_block(work.path(), &out, &key));
            thread::sleep(LOOK);
            assert!(data.is_dir(), "it is at work");
            drop(block);
            clear.join().expect("no panic").expect("clear");
        });
        assert!(!data.exists());
    }
}
