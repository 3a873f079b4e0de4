//! Folders on disks: how large, how much room, copies that share blocks where the file system can,
//! and the device under them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Uid};
use thiserror::Error;

use crate::beneath::Folder;
use crate::proc;

/// An error, with its place.
#[derive(Debug, Error)]
pub enum DiskError {
    /// An operation on a file or folder failed.
    #[error("{doing} {path}: {source}{}", way_out(source))]
    Io {
        /// `copy`, `read`, `remove` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A copy was to go where something is.
    #[error("copy to {0}: the folder is not empty; remove it or choose another one")]
    NotEmpty(PathBuf),
}

fn way_out(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or choose a folder on a larger disk"
        }
        _ => "",
    }
}

fn fault<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> DiskError + 'a {
    move |source| DiskError::Io { doing, path: path.to_path_buf(), source }
}

/// Folders within each other that are read: a data folder has a handful, and one that a hostile
/// process made must not exhaust descriptors.
pub(crate) const DEPTH: usize = 100;
/// What is said of more.
pub(crate) const TOO_DEEP: &str = "too many folders within each other";

/// Bytes that a folder takes on its disk, as `du` counts: allocated blocks, files with several
/// names once. Files that vanish meanwhile do not count.
pub fn folder_bytes(folder: &Path) -> Result<u64, DiskError> {
    let opened = Folder::open(folder).map_err(fault("read", folder))?;
    let own = opened.facts().map_err(fault("read", folder))?;
    let mut bytes = own.blocks().saturating_mul(512);
    let mut seen = BTreeSet::new();
    each_entry(&opened, 0, &mut |folder, name, _| {
        // A file may vanish at any moment.
        let facts = rustix::fs::statat(folder.file(), name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(facts) = facts else { return Ok(()) };
        let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
        if facts.st_nlink == 1 || is_folder || seen.insert((facts.st_dev, facts.st_ino)) {
            let blocks = u64::try_from(facts.st_blocks).unwrap_or_default();
            bytes = bytes.saturating_add(blocks.saturating_mul(512));
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// Calls `look` with each entry of a folder and of those below it. Links are not followed; folders
/// that vanish meanwhile are passed over.
fn each_entry(
    folder: &Folder,
    depth: usize,
    look: &mut dyn FnMut(&Folder, &OsStr, FileType) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let at = folder.path();
    if depth > DEPTH {
        return Err(fault("read", at)(io::Error::other(TOO_DEEP)));
    }
    for entry in folder.entries().map_err(fault("read", at))? {
        look(folder, &entry.name, entry.kind)?;
        if entry.kind == FileType::Directory {
            match folder.below(Path::new(&entry.name)) {
                Ok(below) => each_entry(&below, depth + 1, look)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(fault("read", &at.join(&entry.name))(error)),
            }
        }
    }
    Ok(())
}

/// Bytes that an unprivileged user may still write into the file system under `path`.
pub fn free_bytes(path: &Path) -> Result<u64, DiskError> {
    let stat = rustix::fs::statvfs(path).map_err(|error| fault("read", path)(error.into()))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// The result of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Their bytes, holes included.
    pub bytes: u64,
    /// Files that share their blocks with the original.
    pub cloned: u64,
}

/// Copies a folder with permissions, owners, times, symbolic links and holes into `to`, which must
/// be absent or empty. Blocks are shared where the file system can (btrfs, XFS), else copied. What
/// the copy wrote is on the disk when this returns, so that it is not written while something is
/// measured. Sockets and pipes are left out: they belong to a process, not to the data. Reports the
/// copied bytes and the total to `progress`. After a fault `to` holds a part of the copy, for the
/// caller to remove.
///
/// The folder may belong to a user whom this one does not trust: links are not followed, no device
/// and no set-user-id bit is copied, and a file in another user's folder must be that user's, or it
/// may be a hard link to what only this user may read.
pub fn copy_tree(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Copied, DiskError> {
    let copied = copy_files(from, to, progress)?;
    let target = Folder::open(to).map_err(fault("open", to))?;
    rustix::fs::syncfs(target.file()).map_err(|error| fault("write out", to)(error.into()))?;
    Ok(copied)
}

/// As [`copy_tree`], and leaves it to the system when to write to the disk.
pub fn copy_files(
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Copied, DiskError> {
    if fs::read_dir(to).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(DiskError::NotEmpty(to.to_path_buf()));
    }
    let source = Folder::open(from).map_err(fault("read", from))?;
    let mut of = 0;
    each_entry(&source, 0, &mut |folder, name, kind| {
        if kind == FileType::RegularFile {
            let facts = rustix::fs::statat(folder.file(), name, AtFlags::SYMLINK_NOFOLLOW);
            of += facts.map_or(0, |facts| u64::try_from(facts.st_size).unwrap_or_default());
        }
        Ok(())
    })?;
    let target = Folder::made_above(to).and_then(|(above, name)| above.make_or_find(name, 0o700));
    let target = target.map_err(fault("make", to))?;
    let mut copier = Copier { of, progress, copied: Copied::default() };
    copier.folder(&source, &target)?;
    Ok(copier.copied)
}

/// Takes the files of a folder out of the page cache, as far as they are on the disk: a process
/// whose memory is limited pays only for pages that it brings in itself.
pub fn drop_cached(folder: &Path) -> Result<(), DiskError> {
    let opened = Folder::open(folder).map_err(fault("read", folder))?;
    each_entry(&opened, 0, &mut |folder, name, kind| {
        if kind == FileType::RegularFile {
            let path = folder.path().join(name);
            let file = folder.regular(name).map_err(fault("open", &path))?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .map_err(|error| fault("uncache", &path)(error.into()))?;
        }
        Ok(())
    })
}

struct Copier<'a> {
    of: u64,
    progress: &'a mut dyn FnMut(u64, u64),
    copied: Copied,
}

/// So much is copied between two calls of `progress`.
const CHUNK_BYTES: u64 = 64 << 20;
/// Permissions that a copy keeps: not set-user-id and set-group-id.
const KEPT_MODE: u32 = 0o1777;

impl Copier<'_> {
    /// The new folder belongs to this user until all is in it.
    fn folder(&mut self, from: &Folder, to: &Folder) -> Result<(), DiskError> {
        let facts = from.facts().map_err(fault("read", from.path()))?;
        for entry in from.entries().map_err(fault("read", from.path()))? {
            let (name, path) = (entry.name.as_os_str(), from.path().join(&entry.name));
            match entry.kind {
                FileType::Directory => {
                    let source = from.below(Path::new(name)).map_err(fault("read", &path))?;
                    let made = to.make(name, 0o700);
                    let target = made.map_err(fault("make", &to.path().join(name)))?;
                    check_owner(&facts, &source.facts().map_err(fault("read", &path))?, &path)?;
                    self.folder(&source, &target)?;
                }
                FileType::Symlink => link(from, to, name).map_err(fault("copy", &path))?,
                FileType::RegularFile => {
                    let source = from.regular(name).map_err(fault("read", &path))?;
                    check_owner(&facts, &source.metadata().map_err(fault("read", &path))?, &path)?;
                    self.file(&source, to, name)?;
                }
                _ => {}
            }
        }
        // Last, since a folder may forbid writing into it, and writing moves its time.
        dress(to.file(), to.path(), &facts)
    }

    fn file(&mut self, source: &File, folder: &Folder, name: &OsStr) -> Result<(), DiskError> {
        let to = &folder.path().join(name);
        let meta = source.metadata().map_err(fault("read", to))?;
        let target = folder.new_file(name, 0o600).map_err(fault("make", to))?;
        if rustix::fs::ioctl_ficlone(&target, source).is_ok() {
            self.copied.cloned += 1;
            self.copied.bytes += meta.len();
        } else {
            self.extents(source, &target, meta.len()).map_err(fault("copy to", to))?;
        }
        self.copied.files += 1;
        (self.progress)(self.copied.bytes, self.of);
        dress(&target, to, &meta)
    }

    /// Copies what lies between holes.
    fn extents(&mut self, source: &File, target: &File, len: u64) -> io::Result<()> {
        target.set_len(len)?;
        let mut at = 0;
        while at < len {
            let Some((data, hole)) = extent(source, at, len)? else { break };
            self.copied.bytes += data - at;
            at = data;
            while at < hole {
                let chunk = CHUNK_BYTES.min(hole - at);
                let (mut reader, mut writer) = (source, target);
                reader.seek(SeekFrom::Start(at))?;
                writer.seek(SeekFrom::Start(at))?;
                let done = io::copy(&mut io::Read::take(reader, chunk), &mut writer)?;
                if done == 0 {
                    return Err(io::Error::other("the original shrank during the copy"));
                }
                at += done;
                self.copied.bytes += done;
                (self.progress)(self.copied.bytes, self.of);
            }
        }
        self.copied.bytes += len - at;
        let mut writer = target;
        writer.flush()
    }
}

/// The first data at or after `at` and the hole behind it; `None` if only a hole is left. A file
/// system that knows no holes has one extent.
fn extent(source: &File, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::SeekFrom::{Data, Hole};
    use rustix::io::Errno;
    match rustix::fs::seek(source, Data(at)) {
        Ok(data) => {
            let hole = rustix::fs::seek(source, Hole(data))?;
            Ok(Some((data.min(len), hole.min(len))))
        }
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL) => Ok(Some((at, len))),
        Err(error) => Err(error.into()),
    }
}

/// In a folder of another user, what is not that user's may be a hard link to anything.
fn check_owner(folder: &fs::Metadata, found: &fs::Metadata, path: &Path) -> Result<(), DiskError> {
    let own = rustix::process::geteuid().as_raw();
    if folder.uid() == own || found.uid() == folder.uid() {
        return Ok(());
    }
    let (owner, other) = (folder.uid(), found.uid());
    Err(fault("copy", path)(io::Error::other(format!(
        "it belongs to user {other} and lies in a folder of user {owner}"
    ))))
}

fn link(from: &Folder, to: &Folder, name: &OsStr) -> io::Result<()> {
    let facts = rustix::fs::statat(from.file(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    let text = rustix::fs::readlinkat(from.file(), name, Vec::new())?;
    rustix::fs::symlinkat(text, to.file(), name)?;
    let (uid, gid) = (Uid::from_raw(facts.st_uid), Gid::from_raw(facts.st_gid));
    if uid != rustix::process::geteuid() || gid != rustix::process::getegid() {
        rustix::fs::chownat(to.file(), name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// Owner first, since giving a file away takes bits from its mode.
fn dress(made: &File, path: &Path, like: &fs::Metadata) -> Result<(), DiskError> {
    let now = made.metadata().map_err(fault("read", path))?;
    if (now.uid(), now.gid()) != (like.uid(), like.gid()) {
        std::os::unix::fs::fchown(made, Some(like.uid()), Some(like.gid()))
            .map_err(fault("give away", path))?;
    }
    let mode = fs::Permissions::from_mode(like.mode() & KEPT_MODE);
    made.set_permissions(mode).map_err(fault("set the mode of", path))?;
    let modified = like.modified().map_err(fault("read", path))?;
    made.set_modified(modified).map_err(fault("set the time of", path))
}

/// The block device of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name in /proc/diskstats, for [`crate::sample::CounterSampler`]: `vda1`, `dm-0`. `None` for
    /// tmpfs, overlay, network.
    pub name: Option<String>,
    /// True if it spins, as the kernel thinks.
    pub rotational: Option<bool>,
    /// Type of the file system.
    pub filesystem: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

/// The mount and the device under `path`, or under its nearest parent that exists.
pub fn device_under(path: &Path) -> Result<Device, DiskError> {
    let absolute = std::path::absolute(path).map_err(fault("read", path))?;
    let there = absolute.ancestors().find_map(|folder| fs::canonicalize(folder).ok());
    let there = there.unwrap_or_else(|| PathBuf::from("/"));
    let table = Path::new("/proc/self/mountinfo");
    let text = fs::read_to_string(table).map_err(fault("read", table))?;
    let mounts = proc::mounts(&text);
    let mount = proc::mount_of(&mounts, &there).ok_or_else(|| {
        fault("find the mount of", &there)(io::Error::from(io::ErrorKind::NotFound))
    })?;
    let number = fs::metadata(&there).map_err(fault("read", &there))?.dev();
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = [number, mount.device]
        .iter()
        .find_map(|(major, minor)| fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok())
        .or_else(|| named_device(&mount.source));
    let rotational = folder.as_deref().and_then(rotational);
    let name = folder.as_deref().and_then(Path::file_name);
    Ok(Device {
        name: name.map(|name| name.to_string_lossy().into_owned()),
        rotational,
        filesystem: mount.filesystem.clone(),
        options: mount.options.clone(),
    })
}

/// btrfs mounts have a number of their own, but name one of their devices.
fn named_device(source: &str) -> Option<PathBuf> {
    let device = fs::canonicalize(source).ok().filter(|path| path.starts_with("/dev"))?;
    fs::canonicalize(Path::new("/sys/class/block").join(device.file_name()?)).ok()
}

/// Partitions have it in the folder of their disk.
fn rotational(device: &Path) -> Option<bool> {
    let text = [device, device.parent()?]
        .iter()
        .find_map(|folder| fs::read_to_string(folder.join("queue/rotational")).ok())?;
    Some(text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_copy_keeps_all_but_sockets() {
        let work = tempfile::tempdir().unwrap();
        let (from, to) = (work.path().join("from"), work.path().join("new/to"));
        fs::create_dir_all(from.join("base/1")).unwrap();
        fs::write(from.join("base/1/data"), vec![7u8; 300_000]).unwrap();
        fs::write(from.join("empty"), "").unwrap();
        symlink("base/1", from.join("link")).unwrap();
        symlink("/nowhere", from.join("broken")).unwrap();
        fs::set_permissions(from.join("empty"), fs::Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(from.join("base"), fs::Permissions::from_mode(0o500)).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let mut told = Vec::new();
        let copied = copy_tree(&from, &to, &mut |bytes, of| told.push((bytes, of))).unwrap();
        assert_eq!((copied.files, copied.bytes), (2, 300_000));
        assert_eq!(told.last(), Some(&(300_000, 300_000)));
        assert_eq!(fs::read(to.join("base/1/data")).unwrap(), vec![7u8; 300_000]);
        assert_eq!(fs::read_link(to.join("broken")).unwrap(), Path::new("/nowhere"));
        assert!(!to.join("socket").exists());
        for name in ["base", "empty", "base/1/data", ""] {
            let (old, new) = (from.join(name), to.join(name));
            let (old, new) = (fs::metadata(old).unwrap(), fs::metadata(new).unwrap());
            assert_eq!((old.mode(), old.uid()), (new.mode(), new.uid()), "{name}");
            assert_eq!(old.modified().unwrap(), new.modified().unwrap(), "{name}");
        }
        for folder in [&from, &to] {
            fs::set_permissions(folder.join("base"), fs::Permissions::from_mode(0o700)).unwrap();
        }
    }

    #[test]
    fn holes_stay_holes_and_data_its_place() {
        let work = tempfile::tempdir().unwrap();
        let (from, to) = (work.path().join("from"), work.path().join("to"));
        fs::create_dir(&from).unwrap();
        let file = File::create(from.join("sparse")).unwrap();
        file.set_len(64 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"in the middle", 32 << 20).unwrap();
        drop(file);
        let copied = copy_tree(&from, &to, &mut |_, _| {}).unwrap();
        assert_eq!(copied.bytes, 64 << 20);
        let text = fs::read(to.join("sparse")).unwrap();
        assert_eq!(text.len(), 64 << 20);
        assert_eq!(&text[32 << 20..(32 << 20) + 13], b"in the middle");
        assert_eq!(text.iter().filter(|&&byte| byte != 0).count(), 13);
        let blocks = |folder: &Path| fs::metadata(folder.join("sparse")).unwrap().blocks();
        // A file system without holes fills both.
        assert!(blocks(&to) <= blocks(&from) + 256, "{} {}", blocks(&to), blocks(&from));
    }

    /// Only root can make what is refused: a file of a third user in a folder of another.
    #[test]
    fn a_copy_takes_no_bits_that_give_rights_and_no_file_of_a_third() {
        let work = tempfile::tempdir().unwrap();
        let from = work.path().join("from");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("tool"), "").unwrap();
        fs::set_permissions(from.join("tool"), fs::Permissions::from_mode(0o6755)).unwrap();
        copy_tree(&from, &work.path().join("to"), &mut |_, _| {}).unwrap();
        let mode = fs::metadata(work.path().join("to/tool")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&from, Some(65_534), Some(65_534)).unwrap();
            let fault = copy_tree(&from, &work.path().join("again"), &mut |_, _| {}).unwrap_err();
            assert!(fault.to_string().contains("belongs to user 0 and lies in"), "{fault}");
        }
    }

    #[test]
    fn a_copy_never_overwrites() {
        let work = tempfile::tempdir().unwrap();
        fs::write(work.path().join("x"), "").unwrap();
        let fault = copy_tree(work.path(), work.path(), &mut |_, _| {}).unwrap_err();
        assert!(matches!(fault, DiskError::NotEmpty(_)), "{fault}");
        let absent = work.path().join("absent");
        let fault = copy_tree(&absent, &work.path().join("to"), &mut |_, _| {}).unwrap_err();
        assert!(fault.to_string().contains("absent"), "{fault}");
    }

    #[test]
    fn folders_are_as_large_as_their_blocks() {
        let work = tempfile::tempdir().unwrap();
        let empty = folder_bytes(work.path()).unwrap();
        fs::write(work.path().join("a"), vec![1u8; 1 << 20]).unwrap();
        // Delayed allocation gives blocks when the file is written out.
        File::open(work.path().join("a")).unwrap().sync_all().unwrap();
        let one = folder_bytes(work.path()).unwrap() - empty;
        assert!(((1 << 20)..(1 << 20) + 65_536).contains(&one), "{one}");
        fs::hard_link(work.path().join("a"), work.path().join("b")).unwrap();
        assert_eq!(folder_bytes(work.path()).unwrap() - empty, one, "two names, one file");
        assert!(folder_bytes(&work.path().join("absent")).is_err());
    }

    #[test]
    fn what_lies_under_a_folder() {
        let work = tempfile::tempdir().unwrap();
        assert!(free_bytes(work.path()).unwrap() > 0);
        let device = device_under(work.path()).unwrap();
        assert!(!device.filesystem.is_empty() && device.options.contains('r'), "{device:?}");
        let absent = work.path().join("not/yet/made");
        assert_eq!(device_under(&absent).unwrap(), device);
        let none = device_under(Path::new("/proc")).unwrap();
        assert_eq!((none.name, none.filesystem.as_str()), (None, "proc"));
    }
}
