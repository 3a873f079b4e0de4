//! Data folders of servers that are still empty, kept beside their build in the cache: MySQL 8.0
//! takes seven seconds to make one, and a copy takes a fifth of one.
//!
//! ```text
//! CACHE/builds/KEY/new/NAME/      NAME is a hash of all that the data folder was made with
//! CACHE/builds/KEY/new/partial/   one that is being copied
//! CACHE/builds/KEY/new/lock       held by the process that adds or removes one
//! ```

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::config;
use rqps_host::beneath::Folder;
use rqps_host::disk::{self, DiskError};
use rqps_host::lock::{Lock, MarkKey, OwnFolder};
use rqps_model::build::Build;

/// Of one build: two storage engines, and the settings of its own build.
const KEPT: usize = 3;
/// A larger one is mostly a log of the size that the settings ask for.
const BYTES_MOST: u64 = 400 << 20;
const PARTIAL: &str = "partial";
/// The old one that makes room for a new one, on its way out.
const OLD: &str = "old";

/// The place of the data folder of a build that was made in one way.
pub(crate) struct KeptData {
    build: OwnFolder,
    /// `CACHE/builds/KEY/new`.
    place: PathBuf,
    name: String,
}

impl KeptData {
    /// The place, for a build in a cache that this user may write to. `made_with` is all that the
    /// content of the folder depends on beside the build.
    pub(crate) fn of(build: &Build, made_with: &str) -> Option<KeptData> {
        let cache = build.cache.as_deref()?;
        let folder = build.root.as_deref()?.parent()?;
        // A build without the mark is one that this user's rqps did not make.
        let key = MarkKey::open(Some(&cache.join("locks"))).ok()?;
        let build = key.find(folder).ok().flatten()?;
        Some(KeptData { build, place: folder.join("new"), name: config::hash(made_with) })
    }

    /// Copies the folder to `to`, which is not there yet. False if there is none to copy; then and
    /// after an error, something may be at `to`.
    pub(crate) fn copy_to(&self, to: &Path) -> Result<bool, DiskError> {
        let from = self.path();
        let Ok(before) = fs::symlink_metadata(&from) else { return Ok(false) };
        disk::copy_files(&from, to, &mut |_, _| {})?;
        // One that another process removed meanwhile had another name first.
        let after = fs::symlink_metadata(&from);
        Ok(after.is_ok_and(|after| (after.dev(), after.ino()) == (before.dev(), before.ino())))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.join(&self.name)
    }

    /// Keeps a copy of this folder, whose server is down, and removes the oldest of too many. Does
    /// nothing while another process does so, or where the folder is large.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub(crate) fn keep(&self, from: &Path) -> Result<(), DiskError> {
        if disk::folder_bytes(from)? > BYTES_MOST {
            return Ok(());
        }
        let fault = |source| DiskError::Io { doing: "keep", path: self.path(), source };
        let place = self.build.folder().make_or_find(OsStr::new("new"), 0o700).map_err(fault)?;
        let Ok(_held) = Lock::acquire_private(&self.place.join("lock"), "keeping a data folder")
        else {
            return Ok(());
        };
        // What processes left that were killed.
        for left in [PARTIAL, OLD] {
            self.build.remove_below(&self.place.join(left))?;
        }
        let partial = self.place.join(PARTIAL);
        let whole = disk::copy_tree(from, &partial, &mut |_, _| {}).and_then(|_| {
            self.make_room(&place)?;
            place.rename(OsStr::new(PARTIAL), OsStr::new(&self.name)).map_err(fault)
        });
        if whole.is_err() {
            self.build.remove_below(&partial)?;
        }
        match whole {
            Err(DiskError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                Ok(())
            }
            whole => whole,
        }
    }

    fn make_room(&self, place: &Folder) -> Result<(), DiskError> {
        let fault = |source| DiskError::Io { doing: "read", path: self.place.clone(), source };
        let mut kept = Vec::new();
        for entry in place.entries().map_err(fault)? {
            if entry.name != PARTIAL && entry.name != "lock" {
                let facts = place.below(Path::new(&entry.name)).and_then(|one| one.facts());
                let facts = facts.map_err(fault)?;
                kept.push((facts.ctime(), facts.ctime_nsec(), entry.name));
            }
        }
        kept.sort();
        let too_many = (kept.len() + 1).saturating_sub(KEPT);
        for (_, _, name) in kept.drain(..too_many) {
            // Whoever copies it sees by its name that it goes.
            place.rename(&name, OsStr::new(OLD)).map_err(fault)?;
            self.build.remove_below(&self.place.join(OLD))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::build::{Dbms, Manifest, Version};

    /// A cache with one build, which has the mark.
    fn cached(cache: &Path) -> Build {
        let key = MarkKey::open(Some(&cache.join("locks"))).unwrap();
        let folder = cache.join("builds/one");
        key.claim(&folder).unwrap();
        let root = folder.join("tree");
        fs::create_dir(&root).unwrap();
        let version = Version::new("17.6");
        let manifest = Manifest::new(Dbms::Postgres, version, String::new(), String::new());
        Build { root: Some(root), manifest, cache: Some(cache.to_owned()) }
    }

    #[test]
    fn a_folder_is_copied_to_whoever_asks_for_the_same() {
        let place = tempfile::tempdir().unwrap();
        let build = cached(&place.path().join("cache"));
        let data = place.path().join("data");
        fs::create_dir_all(data.join("base/1")).unwrap();
        fs::write(data.join("base/1/2619"), "statistics").unwrap();
        let of = |made_with: &str| KeptData::of(&build, made_with).unwrap();

        assert!(!of("C locale").copy_to(&place.path().join("none")).unwrap());
        of("C locale").keep(&data).unwrap();
        // A second process that made the same.
        of("C locale").keep(&data).unwrap();
        let copy = place.path().join("copy");
        assert!(of("C locale").copy_to(&copy).unwrap());
        assert_eq!(fs::read_to_string(copy.join("base/1/2619")).unwrap(), "statistics");
        assert!(!of("another locale").copy_to(&place.path().join("none")).unwrap());
    }

    #[test]
    fn the_oldest_of_too_many_goes_and_what_a_killed_process_left() {
        let place = tempfile::tempdir().unwrap();
        let build = cached(&place.path().join("cache"));
        let data = place.path().join("data");
        fs::create_dir(&data).unwrap();
        let new = build.root.as_ref().unwrap().with_file_name("new");
        fs::create_dir_all(new.join(PARTIAL).join("half")).unwrap();
        for number in 0..5 {
            KeptData::of(&build, &number.to_string()).unwrap().keep(&data).unwrap();
            // Times of inodes are those of the kernel's clock, which ticks.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let there =
            |number: u32| KeptData::of(&build, &number.to_string()).unwrap().path().exists();
        assert_eq!((0..5).map(there).collect::<Vec<_>>(), [false, false, true, true, true]);
        assert_eq!(fs::read_dir(&new).unwrap().count(), KEPT + 1, "and the lock");
    }

    #[test]
    fn a_build_that_rqps_did_not_make_has_no_place() {
        let place = tempfile::tempdir().unwrap();
        let build = cached(&place.path().join("cache"));
        let elsewhere = Build { cache: None, ..build.clone() };
        assert!(KeptData::of(&elsewhere, "").is_none());
        let theirs = place.path().join("cache/builds/theirs/tree");
        fs::create_dir_all(&theirs).unwrap();
        let theirs = Build { root: Some(theirs), ..build };
        assert!(KeptData::of(&theirs, "").is_none());
    }
}
