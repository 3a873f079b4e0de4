//! Folders for the data of blocks on a host of a pool. A block that was killed leaves its data; the
//! next block on that host removes them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::os::disk;
use crate::os::lock::Lock;
use crate::units::short_hash;

/// The folder of one block, and its lock for as long as this lives.
pub(in crate::lab) struct BlockFolder {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: Lock,
}

impl BlockFolder {
    /// Makes a folder for the block whose results go to `out`, in a folder of this user in `work`.
    /// Removes the folders of blocks that are gone.
    ///
    /// # Errors
    /// The folder cannot be made, or another process measures the same block.
    pub(in crate::lab) fn make(work: &Path, out: &Path) -> Result<BlockFolder> {
        let user = rustix::process::geteuid().as_raw();
        let all = work.join(format!("rqps-blocks-{user}"));
        fs::create_dir_all(&all).with_context(|| format!("make {}", all.display()))?;
        remove_leftovers(&all);
        let out = std::path::absolute(out).context("find the result folder")?;
        let name = short_hash(out.as_os_str().as_encoded_bytes());
        let lock_path = all.join(format!("{name}.lock"));
        let lock = Lock::acquire(&lock_path, &format!("rqps, block in {}", out.display()))?;
        let path = all.join(name);
        fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(BlockFolder { path, lock_path, _lock: lock })
    }

    pub(in crate::lab) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for BlockFolder {
    /// What cannot be removed is removed by the next block.
    fn drop(&mut self) {
        if disk::remove_tree(&self.path).is_ok() {
            fs::remove_file(&self.lock_path).ok();
        }
    }
}

/// Removes the folders whose owners have ended. One that cannot be removed stays until the next
/// block tries: it only takes space, and a block that lacks space says so.
fn remove_leftovers(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let lock_path = path.with_extension("lock");
        let Ok(lock) = Lock::acquire(&lock_path, "rqps, removing what a block left") else {
            continue;
        };
        if disk::remove_tree(&path).is_ok() {
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
        let living = BlockFolder::make(work.path(), Path::new("/results/a")).expect("a folder");
        let all = living.path().parent().expect("a parent").to_owned();
        fs::create_dir(all.join("0123456789ab")).expect("a leftover");
        fs::write(all.join("0123456789ab/data"), "x").expect("its data");
        let next = BlockFolder::make(work.path(), Path::new("/results/b")).expect("a folder");
        assert!(!all.join("0123456789ab").exists());
        assert!(living.path().is_dir() && next.path().is_dir());
        let again = BlockFolder::make(work.path(), Path::new("/results/a")).err();
        assert!(again.is_some_and(|error| error.to_string().contains("is held by")));
        drop((living, next));
        assert_eq!(fs::read_dir(&all).expect("read").count(), 0, "nothing is left");
    }
}
