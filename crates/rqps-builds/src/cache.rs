//! The folder of builds that were fetched.
//!
//! ```text
//! ROOT/
//!   builds/KEY/manifest.json   the domain's Manifest; its presence means that the build is whole
//!   builds/KEY/tree/           bin, share, lib …
//!   builds/KEY/new/            data folders without tables, which `rqps-dbms` keeps to copy
//!   partial/KEY/package-PID/   what the package client is downloading
//!   partial/KEY/build/         a build that is being unpacked; renamed to builds/KEY when done
//!   partial/…-objects-…/       objects that builds in several orders of linking share, as long as
//!                              the cache is open
//!   partial/…-commits-…/       sources and objects of the last commit of a tree that was built, for
//!                              the next, as long as the cache is open
//!   locks/KEY.lock             held while partial/KEY is in use
//!   logs/KEY.log               what a build from sources printed
//! ```
//!
//! The lock is the kernel's and ends with its process, so a partial folder whose lock is free was
//! left by a process that died, and is removed, if it has the cache's own mark: the folder that the
//! user names as a cache may hold anything else. The key of the marks is in `locks`.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::client::{ObtainError, Progress, Reason};
use rqps_host::beneath;
use rqps_host::disk::DiskError;
use rqps_host::lock::{MarkKey, OwnFolder};
use rqps_host::user;
use rqps_model::build::{Build, Manifest};
use rqps_model::{bounded, safe_path};
use rqps_stats::parallel;

/// Time between two attempts to take a lock that another rqps holds.
const RETRY: Duration = Duration::from_millis(100);
const MANIFEST: &str = "manifest.json";
const TREE: &str = "tree";

/// The folder of builds that were fetched.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    key: MarkKey,
    objects: Arc<Mutex<Option<KeptObjects>>>,
    /// Why root puts nothing there; empty where it may.
    shared: String,
}

/// Objects, and the key of what they are.
#[derive(Debug)]
struct KeptObjects {
    key: String,
    partial: Partial,
}

/// Objects that builds share, in the hands of one build.
pub(super) struct SharedObjects<'a> {
    kept: MutexGuard<'a, Option<KeptObjects>>,
    /// The folder in which they are made.
    pub(super) scratch: PathBuf,
    /// The folder of what was built with them; there once it is whole.
    pub(super) tree: PathBuf,
}

impl SharedObjects<'_> {
    /// Removes them: they are not whole.
    pub(super) fn discard(mut self) {
        *self.kept = None;
    }
}

impl Cache {
    /// Opens the cache and makes it if it is not there. What fetches of dead processes left behind
    /// is removed.
    ///
    /// A cache that may be read but not written serves the builds that are in it, and so does to
    /// root one in which other users may change something. One that cannot be made is empty: many
    /// targets need no build.
    pub fn open(root: &Path) -> Result<Cache, ObtainError> {
        let refused = |source| ObtainError::Cache { root: root.to_path_buf(), source };
        let new = !root.exists();
        let made = match safe_path::make_folder(root) {
            Err(error) if new && is_forbidden(&error) => {
                let root = std::path::absolute(root).map_err(refused)?;
                return Cache::to_read(root, String::new()).map_err(refused);
            }
            made => made.map_err(refused)?,
        };
        // Servers may run as another user than rqps; the umask may not allow them to look.
        if new {
            made.set_permissions(Permissions::from_mode(0o755)).map_err(refused)?;
        }
        let root = safe_path::whole(root).map_err(refused)?;
        if let Err(shared) = user::check_roots(&root) {
            return Cache::to_read(root, shared.to_string()).map_err(refused);
        }
        for name in ["builds", "partial", "locks"] {
            let folder = root.join(name);
            // Root puts nothing where a link of another user leads.
            if let Err(error) = make_open_folder(&folder).and_then(|()| safe_path::folder(&folder))
                && !is_forbidden(&error)
            {
                return Err(refused(error));
            }
            if let Err(shared) = user::check_roots(&folder) {
                return Cache::to_read(root, shared.to_string()).map_err(refused);
            }
        }
        let key = MarkKey::open(Some(&root.join("locks"))).map_err(refused)?;
        let cache = Cache { root, key, objects: Arc::default(), shared: String::new() };
        cache.remove_leftovers();
        Ok(cache)
    }

    fn to_read(root: PathBuf, shared: String) -> io::Result<Cache> {
        Ok(Cache { root, key: MarkKey::open(None)?, objects: Arc::default(), shared })
    }

    /// The folder, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The keys and manifests of the builds in the cache, without folders whose manifest is
    /// unreadable.
    pub(super) fn builds(&self) -> Vec<(String, Manifest)> {
        let Ok(entries) = fs::read_dir(self.root.join("builds")) else { return Vec::new() };
        let of_folder = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let manifest = read_manifest(&entry.path().join(MANIFEST))?;
            Some((entry.file_name().into_string().ok()?, manifest))
        };
        entries.filter_map(of_folder).collect()
    }

    /// The manifests of the builds in the cache, by DBMS and version.
    pub fn manifests(&self) -> Vec<Manifest> {
        let mut manifests: Vec<Manifest> =
            self.builds().into_iter().map(|(_, manifest)| manifest).collect();
        manifests.sort_by_key(|manifest| {
            (manifest.dbms, manifest.version.numbers(), manifest.version.as_str().to_string())
        });
        manifests
    }

    /// The manifest of the build with that key ([`crate::catalogue::Entry::key`]), if it is
    /// complete in the cache.
    pub fn manifest(&self, key: &str) -> Option<Manifest> {
        self.get(key).map(|build| build.manifest)
    }

    /// The build of that key, if the cache has it whole.
    pub(super) fn get(&self, key: &str) -> Option<Build> {
        let folder = self.root.join("builds").join(key);
        let manifest = read_manifest(&folder.join(MANIFEST))?;
        let tree = folder.join(TREE);
        let cache = self.shared.is_empty().then(|| self.root.clone());
        tree.is_dir().then_some(Build { root: Some(tree), manifest, cache })
    }

    /// Final path of the tree of a build.
    pub(super) fn tree_of(&self, key: &str) -> PathBuf {
        self.root.join("builds").join(key).join(TREE)
    }

    /// The log of a build from sources, which stays also where the build fails.
    pub(super) fn log_of(&self, key: &str) -> PathBuf {
        self.root.join("logs").join(format!("{key}.log"))
    }

    /// Waits until no other process works on that key, and takes its place. The caller must then
    /// ask [`Cache::get`] again: the other may have fetched the build.
    pub(super) fn begin(&self, key: &str, progress: &mut Progress<'_>) -> Result<Partial, Reason> {
        if !self.shared.is_empty() {
            return Err(Reason::Setup(format!(
                "it is not in the cache {}, and root puts nothing there: {}; name another folder \
                 with RQPS_CACHE",
                self.root.display(),
                self.shared
            )));
        }
        let path = self.lock_path(key);
        let lock = beneath::to_append(&path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotFound => Reason::Setup(format!(
                "it is not in the cache {}, which is not writable; fetch it with `rqps get` as \
                 the owner of the cache, or name another folder with RQPS_CACHE",
                self.root.display()
            )),
            _ => Reason::io("open the lock", &path)(error),
        })?;
        let mut waiting = false;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(Reason::io("lock", &path)(error)),
            }
            if !waiting {
                progress.begin(&format!("waiting for another rqps that fetches {key}"));
                waiting = true;
            }
            progress.tick(|| format!("waiting for another rqps that fetches {key}"))?;
            std::thread::sleep(RETRY);
        }
        let folder = self.root.join("partial").join(key);
        let not_ours = |error| Reason::io("create", &folder)(io::Error::other(error));
        if let Some(old) = self.key.find(&folder).map_err(not_ours)? {
            old.remove().map_err(not_removed)?;
        }
        let own = self.key.claim(&folder).map_err(not_ours)?;
        // A client that outlived its rqps still writes into the folder of that process.
        let package = folder.join(format!("package-{}", std::process::id()));
        make_open_folder(&package).map_err(Reason::io("create", &package))?;
        // The mark goes with it to its final place.
        let build = folder.join("build");
        self.key.claim(&build).map_err(not_ours)?;
        fs::set_permissions(&build, Permissions::from_mode(0o755))
            .map_err(Reason::io("chmod", &build))?;
        let target = self.root.join("builds").join(key);
        Ok(Partial { own, key: self.key.clone(), package, build, target, _lock: lock })
    }

    /// The place of the objects with that key: empty at first, kept until another key is asked for
    /// or the last copy of this cache is dropped. Whoever asks must not hold the place of a build
    /// yet, and gets one such place at a time: two processes that each wait for what the other
    /// holds would wait forever.
    pub(super) fn objects(
        &self,
        key: &str,
        progress: &mut Progress<'_>,
    ) -> Result<SharedObjects<'_>, Reason> {
        let mut kept = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = match kept.take() {
            Some(objects) if objects.key == key => objects,
            other => {
                drop(other);
                KeptObjects { key: key.to_owned(), partial: self.begin(key, progress)? }
            }
        };
        let (scratch, tree) = (objects.partial.package().to_owned(), objects.partial.tree());
        *kept = Some(objects);
        Ok(SharedObjects { kept, scratch, tree })
    }

    fn lock_path(&self, key: &str) -> PathBuf {
        self.root.join("locks").join(format!("{key}.lock"))
    }

    /// Best effort: a cache that cannot be written has no leftovers of ours.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("partial")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(key) = name.to_str() else { continue };
            let Ok(Some(own)) = self.key.find(&entry.path()) else { continue };
            let path = self.lock_path(key);
            if let Ok(lock) = beneath::to_append(&path)
                && lock.try_lock().is_ok()
            {
                // If this fails the next fetch of the key tries again, and says so.
                let _ = own.remove();
            }
        }
    }
}

/// A build on its way into the cache. Dropped before [`Partial::keep`], it leaves nothing.
#[derive(Debug)]
pub(super) struct Partial {
    own: OwnFolder,
    key: MarkKey,
    package: PathBuf,
    build: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Partial {
    /// The package client's file; removed in the end.
    pub(super) fn package(&self) -> &Path {
        &self.package
    }

    /// The folder of the unpacked package.
    pub(super) fn tree(&self) -> PathBuf {
        self.build.join(TREE)
    }

    /// Writes the manifest, brings all to the disk, and puts the build in its place.
    pub(super) fn keep(
        self,
        manifest: &Manifest,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        // Half a gigabyte that need not go to the disk any more.
        self.own.remove_below(&self.package).map_err(not_removed)?;
        let path = self.build.join(MANIFEST);
        let text = serde_json::to_string_pretty(manifest)
            .map_err(|error| Reason::io("write", &path)(io::Error::other(error)))?;
        let mut file = safe_path::create_file(&path).map_err(Reason::io("create", &path))?;
        writeln!(file, "{text}").map_err(Reason::io("write", &path))?;
        file.set_permissions(Permissions::from_mode(0o644)).map_err(Reason::io("chmod", &path))?;
        bring_to_disk(&file, progress)?.map_err(Reason::io("bring to disk", &self.build))?;
        // An existing tree is incomplete, or it would have been used.
        let not_ours = |error| Reason::io("replace", &self.target)(io::Error::other(error));
        if let Some(old) = self.key.find(&self.target).map_err(not_ours)? {
            old.remove().map_err(not_removed)?;
        }
        safe_path::rename(&self.build, &self.target).map_err(Reason::io("rename", &self.build))?;
        let parent = self.target.parent().unwrap_or(&self.target);
        let synced = File::open(parent).and_then(|folder| folder.sync_all());
        synced.map_err(Reason::io("bring to disk", parent))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Whatever remains is removed when the cache is opened again.
        let _ = self.own.remove();
    }
}

/// One call for thousands of files, since fsync of each would take seconds; on a thread of its own,
/// since it may wait for what others have written.
fn bring_to_disk(file: &File, progress: &mut Progress<'_>) -> Result<io::Result<()>, Reason> {
    let sync = || rustix::fs::syncfs(file).map_err(io::Error::from);
    parallel::watched(sync, || progress.tick(|| "writing to the disk".to_string()))
}

/// True if a folder may be read at most.
fn is_forbidden(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn read_manifest(path: &Path) -> Option<Manifest> {
    serde_json::from_slice(&bounded::bytes(path, bounded::WRITTEN_MAX).ok()?).ok()
}

fn make_open_folder(path: &Path) -> io::Result<()> {
    match safe_path::new_folder(path, 0o755) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn not_removed(error: DiskError) -> Reason {
    match error {
        DiskError::Io { path, source, .. } => Reason::io("remove", path)(source),
        other => Reason::io("remove", "")(io::Error::other(other)),
    }
}

/// The first folder on the way to `path` that other users may not enter, if there is one: servers
/// that run as an unprivileged user cannot start from below it.
pub fn closed_folder(path: &Path) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    ancestors
        .into_iter()
        .filter(|folder| folder.as_os_str() != OsStr::new(""))
        .find(|folder| {
            fs::metadata(folder)
                .is_ok_and(|found| found.is_dir() && found.permissions().mode() & 0o001 == 0)
        })
        .map(Path::to_path_buf)
}
