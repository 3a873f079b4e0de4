//! Files and folders below an opened folder, by descriptors: no link is followed on the way, what
//! is made is new, and a mount point is not crossed to remove.
//!
//! Once code of another user has run in a folder, root works there only by this module: that user
//! may put a link, a pipe or a hard link in the place of any file at any moment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat,
    StatxAttributes, StatxFlags, Uid, openat, openat2,
};
use rustix::io::Errno;

use rqps_model::safe_path;

use crate::disk::{DEPTH, TOO_DEEP};
use crate::user::{self, Identity, User, UserError};

/// A folder is opened as itself, never as what a link leads to.
const AS_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Folders within each other that are removed at once. Each holds a descriptor, and whoever made
/// them may have made thousands: deeper ones are moved up first.
const REMOVED_AT_ONCE: usize = 100;
/// How often others may remove a folder, between its making and its use, before that is an error.
pub const REMOVALS: u32 = 1000;

/// An opened folder.
#[derive(Debug)]
pub struct Folder {
    file: File,
    path: PathBuf,
}

/// A name in a folder, and what it is.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    /// Its name.
    pub name: OsString,
    /// Its type, when the folder was read.
    pub kind: FileType,
}

impl Folder {
    /// Opens a folder that the user named: links on the way are the user's, and for root those of
    /// root.
    ///
    /// # Errors
    /// As [`safe_path::folder`].
    pub fn open(path: &Path) -> io::Result<Folder> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Folder { file: safe_path::folder(path)?, path: path.to_owned() })
    }

    /// The folder that holds `path`, which the user named, and the name there.
    ///
    /// # Errors
    /// The path has no last name; the folder is not there.
    pub(super) fn above(path: &Path) -> io::Result<(Folder, &OsStr)> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
        Ok((Folder::open(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// As [`Folder::above`], which is made if need be.
    ///
    /// # Errors
    /// As there.
    pub(super) fn made_above(path: &Path) -> io::Result<(Folder, &OsStr)> {
        safe_path::make_folder(path.parent().unwrap_or(Path::new("")))?;
        Folder::above(path)
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Owner, mode, inode …
    ///
    /// # Errors
    /// The system refuses.
    pub fn facts(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// The descriptor, for calls on the folder itself.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// A folder below this one, at the end of a path without links.
    ///
    /// # Errors
    /// A part of the path is not there, or a link, or no folder.
    pub fn below(&self, path: &Path) -> io::Result<Folder> {
        let mut folder = Folder { file: self.file.try_clone()?, path: self.path.clone() };
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => folder = folder.child(name)?,
                _ => return Err(io::Error::other(format!("{} leads elsewhere", path.display()))),
            }
        }
        Ok(folder)
    }

    fn child(&self, name: &OsStr) -> io::Result<Folder> {
        let fd = self.at(name, AS_FOLDER, Mode::empty())?;
        Ok(Folder { file: File::from(fd), path: self.path.join(name) })
    }

    fn at(&self, name: &OsStr, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        single(name)?;
        Ok(rustix::fs::openat(&self.file, name, flags, mode)?)
    }

    /// Makes a folder, which must be new, with this mode whatever the umask says.
    ///
    /// # Errors
    /// Something is there; the folder cannot be written.
    pub fn make(&self, name: &OsStr, mode: u32) -> io::Result<Folder> {
        single(name)?;
        rustix::fs::mkdirat(&self.file, name, Mode::RWXU)?;
        let made = self.child(name)?;
        made.check_own()?;
        rustix::fs::fchmod(&made.file, Mode::from_raw_mode(mode))?;
        Ok(made)
    }

    /// As [`Folder::make`]; a folder of this user that is there already will do. Other processes may
    /// remove it at any moment while it is empty.
    ///
    /// # Errors
    /// As there, or another user owns what is there.
    pub fn make_or_find(&self, name: &OsStr, mode: u32) -> io::Result<Folder> {
        let mut tries = 0;
        loop {
            match self.make(name, mode).or_else(|error| self.find_own(name, error)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < REMOVALS => {
                    tries += 1;
                }
                made => return made,
            }
        }
    }

    /// The folder of this user that kept another from being made.
    fn find_own(&self, name: &OsStr, error: io::Error) -> io::Result<Folder> {
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        let found = self.child(name)?;
        found.check_own()?;
        match found.facts()?.mode() & 0o002 {
            0 => Ok(found),
            _ => Err(io::Error::other("every user may write into it")),
        }
    }

    /// True if this very folder has a name in another.
    pub(super) fn is_at(&self, above: &Folder, name: &OsStr) -> bool {
        let (Ok(own), Ok(there)) = (self.facts(), above.facts_of(name)) else { return false };
        there.st_dev == own.dev() && there.st_ino == own.ino()
    }

    /// An error if another user owns the folder.
    ///
    /// # Errors
    /// That.
    pub fn check_own(&self) -> io::Result<()> {
        let (owner, own) = (self.facts()?.uid(), rustix::process::geteuid().as_raw());
        if owner == own {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("user {owner} owns it, and rqps runs as user {own}"),
            ))
        }
    }

    /// Makes a file, which must be new.
    ///
    /// # Errors
    /// Something is there, a link included; the folder cannot be written.
    pub fn new_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(self.at(name, flags, Mode::RUSR | Mode::WUSR)?);
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(file)
    }

    /// Writes a file whole: under a name of its own, then renamed. A link in its place is replaced,
    /// not followed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn replace(&self, name: &OsStr, content: &[u8], mode: u32) -> io::Result<()> {
        single(name)?;
        let partial = OsString::from(format!(".{}.partial", user::name()?));
        let written = self.new_file(&partial, mode).and_then(|mut file| {
            file.write_all(content)?;
            Ok(rustix::fs::renameat(&self.file, &partial, &self.file, name)?)
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.file, &partial, AtFlags::empty());
        }
        written
    }

    /// Opens a regular file to read it, if this user owns it: in a folder of another user, a file
    /// of a third may be a hard link. `None` is the user of rqps.
    ///
    /// # Errors
    /// It is a link, a pipe, a device, or somebody else's.
    pub fn read_of(&self, name: &OsStr, owner: Option<Identity>) -> io::Result<File> {
        let file = self.regular(name)?;
        let own = owner.map_or(rustix::process::geteuid().as_raw(), |owner| owner.uid);
        match file.metadata()?.uid() {
            uid if uid == own => Ok(file),
            uid => Err(io::Error::other(format!(
                "{} is not read: it belongs to user {uid}, not to user {own}",
                self.path.join(name).display()
            ))),
        }
    }

    /// Opens a regular file of this user to write it. One with a second name may be any file of
    /// this user, which somebody else has put here.
    ///
    /// # Errors
    /// It is a link, a pipe, a device, somebody else's, or has several names.
    pub(super) fn own_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(self.at(name, flags, Mode::empty())?);
        let facts = file.metadata()?;
        let is_own = facts.uid() == rustix::process::geteuid().as_raw();
        if facts.is_file() && is_own && facts.nlink() == 1 {
            Ok(file)
        } else {
            Err(io::Error::other("it is no file of this user with one name"))
        }
    }

    /// At most `limit` bytes of such a file, as text.
    ///
    /// # Errors
    /// As [`Folder::read_of`].
    pub fn text_of(&self, name: &OsStr, owner: Option<Identity>, limit: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.read_of(name, owner)?.take(limit).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Opens a regular file to read it, whoever owns it.
    pub(super) fn regular(&self, name: &OsStr) -> io::Result<File> {
        // A pipe would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(self.at(name, flags, Mode::empty())?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other(format!("{} is no regular file", self.path.join(name).display())))
        }
    }

    /// Renames within the folder; nothing is replaced.
    ///
    /// # Errors
    /// Something has the new name; the folder cannot be written.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        single(from)?;
        single(to)?;
        let kept = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(&self.file, from, &self.file, to, kept) {
            // A file system without the flag. Whoever may write here is trusted with the moment.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            renamed => return Ok(renamed?),
        }
        match rustix::fs::statat(&self.file, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(rustix::fs::renameat(&self.file, from, &self.file, to)?),
            Err(error) => Err(error.into()),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// What is in the folder, but `.` and `..`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entries(&self) -> io::Result<Vec<FolderEntry>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let facts = rustix::fs::statat(&self.file, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(facts.st_mode)
                }
                kind => kind,
            };
            found.push(FolderEntry { name, kind });
        }
        Ok(found)
    }

    /// Gives the folder itself, not what is in it, to a user.
    ///
    /// # Errors
    /// The system refuses.
    pub fn give(&self, to: Identity) -> io::Result<()> {
        give_file(&self.file, to)
    }

    /// Removes a file at the end of a path without links; never a folder.
    ///
    /// # Errors
    /// A link is on the way, or the system refuses.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
        let above = match self.below(path.parent().unwrap_or(Path::new(""))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            above => above?,
        };
        if above.unlink(name)? {
            Ok(())
        } else {
            Err(io::Error::other(format!("{} is a folder", path.display())))
        }
    }

    /// Facts of what has this name; of a link itself.
    fn facts_of(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Gives a file or link that satisfies `is_theirs` to a user.
    fn give_file(
        &self,
        name: &OsStr,
        to: Identity,
        is_theirs: impl Fn(&Stat) -> bool,
    ) -> io::Result<()> {
        // Of a link, only the link is opened.
        let file =
            self.at(name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let facts = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(facts.st_mode) == FileType::Directory || !is_theirs(&facts) {
            let path = self.path.join(name);
            return Err(io::Error::other(format!("{} was changed meanwhile", path.display())));
        }
        let (uid, gid) = (Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)));
        rustix::fs::chownat(&file, "", uid, gid, AtFlags::EMPTY_PATH)?;
        let is_file = FileType::from_raw_mode(facts.st_mode) == FileType::RegularFile;
        if to.uid == 0 && is_file && facts.st_mode & 0o022 != 0 {
            // A descriptor of a path alone can change no mode.
            let same = format!("/proc/self/fd/{}", file.as_raw_fd());
            let mode = Mode::from_raw_mode(facts.st_mode & 0o755);
            rustix::fs::chmodat(rustix::fs::CWD, same, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Removes a file, or a folder with all that is in it. Links are removed, not followed, and a
    /// mount point stays. What is not there is no fault.
    ///
    /// Nothing asks here whose it is: see [`crate::mark`].
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        single(name)?;
        if !self.unlink(name)? {
            let Some(folder) = found(self.child(name))? else { return Ok(()) };
            folder.check_same_mount(self)?;
            folder.empty()?;
            self.unlink_folder(name)?;
        }
        Ok(())
    }

    /// Removes all that is in the folder.
    pub(super) fn empty(&self) -> io::Result<()> {
        while self.empty_below(self, 0)? {}
        Ok(())
    }

    /// Returns true if folders were moved up to `top`, which must be emptied again.
    fn empty_below(&self, top: &Folder, depth: usize) -> io::Result<bool> {
        let mut moved = false;
        for FolderEntry { name, kind } in self.entries()? {
            if kind != FileType::Directory && self.unlink(&name)? {
                continue;
            }
            if depth == REMOVED_AT_ONCE {
                let up = format!(".{}", user::name()?);
                rustix::fs::renameat(&self.file, &name, &top.file, up)?;
                moved = true;
                continue;
            }
            let Some(child) = found(self.child(&name))? else { continue };
            child.check_same_mount(self)?;
            moved |= child.empty_below(top, depth + 1)?;
            self.unlink_folder(&name)?;
        }
        Ok(moved)
    }

    /// Removes what is no folder. False if it is one.
    fn unlink(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.file, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::ISDIR) => Ok(false),
            Err(Errno::PERM) if self.child(name).is_ok() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn unlink_folder(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// An error if something is mounted on this folder.
    fn check_same_mount(&self, above: &Folder) -> io::Result<()> {
        // A kernel before 5.8 does not tell; then other devices are found at least.
        let told = rustix::fs::statx(&self.file, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
        let is_root =
            told.is_ok_and(|told| told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        if is_root || self.facts()?.dev() != above.facts()?.dev() {
            let what = format!("{} is a mount point; unmount it", self.path.display());
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
        }
        Ok(())
    }
}

/// The proof that all in a folder came after this process took it: the folder was new or empty.
#[derive(Debug)]
pub struct FreshFolder {
    folder: Folder,
}

impl FreshFolder {
    /// Makes a folder, and those above it if need be, or takes one of this user that is empty.
    ///
    /// # Errors
    /// It is a link, another user's, or not empty.
    pub fn take(path: &Path, mode: u32) -> io::Result<FreshFolder> {
        let (above, name) = Folder::made_above(path)?;
        let folder = above.make_or_find(name, mode)?;
        if folder.entries()?.is_empty() {
            Ok(FreshFolder { folder })
        } else {
            Err(io::ErrorKind::DirectoryNotEmpty.into())
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Removes all that has come into it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn discard(&self) -> io::Result<()> {
        self.folder.empty()
    }

    /// Removes all that has come into it, and the folder.
    ///
    /// # Errors
    /// The system refuses.
    pub fn remove(&self) -> io::Result<()> {
        self.folder.empty()?;
        let (above, name) = Folder::above(self.folder.path())?;
        above.unlink_folder(name)
    }
}

fn found(opened: io::Result<Folder>) -> io::Result<Option<Folder>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Removes a folder that this process, or the one that started it, has made for it alone. `user` is
/// to whom it may have been given.
///
/// # Errors
/// Another user owns it; the system refuses.
pub fn remove_made(path: &Path, user: Option<Identity>) -> io::Result<()> {
    let (above, name) = Folder::above(path)?;
    let folder = above.below(Path::new(name))?;
    let owner = folder.facts()?.uid();
    if user.is_none_or(|user| user.uid != owner) {
        folder.check_own()?;
    }
    above.remove(name)
}

/// Gives an open file to a user.
///
/// # Errors
/// The system refuses.
pub fn give_file(file: &File, to: Identity) -> io::Result<()> {
    Ok(rustix::fs::fchown(file, Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)))?)
}

/// An error unless this is one name.
fn single(name: &OsStr) -> io::Result<()> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next(), name.as_bytes().contains(&b'/')) {
        (Some(Component::Normal(_)), None, false) => Ok(()),
        _ => Err(io::Error::other(format!("{name:?} is no name of a file"))),
    }
}

// Gives folders to another user, with all that is in them.

/// Gives a folder and all in it to `user`, by descriptors. Links are changed, not followed. A file
/// that has a name outside of the folder stays whose it is, and is an error: who could write there
/// may have given a file of others a name in it. What root gets, nobody else can write to any more,
/// whatever its old owner allowed.
pub fn chown_tree(path: &Path, user: &User) -> Result<(), UserError> {
    let doing = format!("give {} to user {}", path.display(), user.name);
    let fault = |source| UserError::Io { doing: doing.clone(), source };
    let folder = Folder::open(path).map_err(fault)?;
    let mut names = BTreeMap::new();
    count_names(&folder, user, &mut names, 0).map_err(fault)?;
    if names.values().any(|(seen, all)| seen < all) {
        let why = "a file in it has another name outside of it, so it may be somebody else's";
        return Err(fault(io::Error::other(why)));
    }
    give_all(&folder, user, &names, 0).map_err(fault)
}

/// Files with several names: how many of them were seen, and how many there are.
type Names = BTreeMap<(u64, u64), (u64, u64)>;

fn count_names(folder: &Folder, user: &User, names: &mut Names, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other(TOO_DEEP));
    }
    for entry in folder.entries()? {
        if entry.kind == FileType::Directory {
            count_names(&folder.below(Path::new(&entry.name))?, user, names, depth + 1)?;
            continue;
        }
        let facts = folder.facts_of(&entry.name)?;
        if facts.st_nlink > 1 && facts.st_uid != user.uid {
            let (file, all) = key(&facts);
            names.entry(file).or_insert((0, all)).0 += 1;
        }
    }
    Ok(())
}

/// A folder goes before what is in it, so that its old owner can put nothing in any more.
fn give_all(folder: &Folder, user: &User, names: &Names, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other(TOO_DEEP));
    }
    folder.give(user.identity())?;
    if user.uid == 0 {
        only_own(folder.file())?;
    }
    for entry in folder.entries()? {
        match entry.kind {
            FileType::Directory => {
                give_all(&folder.below(Path::new(&entry.name))?, user, names, depth + 1)?;
            }
            _ => folder.give_file(&entry.name, user.identity(), |facts| {
                facts.st_nlink == 1 || facts.st_uid == user.uid || names.contains_key(&key(facts).0)
            })?,
        }
    }
    Ok(())
}

/// Takes the right to write from all but the owner.
fn only_own(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode & !0o022))?;
    }
    Ok(())
}

/// The file, and how many names it has.
#[allow(clippy::useless_conversion, reason = "the types differ by architecture")]
fn key(facts: &Stat) -> ((u64, u64), u64) {
    ((u64::from(facts.st_dev), u64::from(facts.st_ino)), u64::from(facts.st_nlink))
}

// Files in folders of others: no link is followed to what only root may read, no pipe is waited
// for, and no length is believed.

/// Opens a plain file to read it.
///
/// # Errors
/// It is a link, or anything else but a file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(FLAGS).open(path)?;
    checked(file, u64::MAX)
}

/// As [`open`], for a path in a tree of others: no part of it may be a link.
///
/// # Errors
/// As there.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a container that forbids the call.
        Err(Errno::NOSYS | Errno::PERM) => open(path)?,
        opened => checked(File::from(opened?), u64::MAX)?,
    };
    if rustix::process::geteuid().is_root() {
        safe_path::check_names(&file, &File::open(path.parent().unwrap_or(path))?)?;
    }
    Ok(file)
}

const FLAGS: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

fn checked(file: File, names_most: u64) -> io::Result<File> {
    let facts = file.metadata()?;
    if facts.is_file() && facts.nlink() <= names_most {
        Ok(file)
    } else {
        Err(io::Error::other("it is no plain file, or has another name elsewhere"))
    }
}

/// Opens a file to append to it, or makes it. No link is followed, and no pipe waited for.
///
/// # Errors
/// It cannot be opened, is no plain file, or has another name elsewhere.
pub fn to_append(path: &Path) -> io::Result<File> {
    let (above, name) = safe_path::parent(path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    checked(File::from(openat(above, name, flags, Mode::from_raw_mode(0o666))?), 1)
}

/// The beginning of a plain file, as text.
///
/// # Errors
/// As [`open`].
pub fn beginning(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a plain file, at most what comes after the byte `from`.
///
/// # Errors
/// As [`open`].
pub fn end(path: &Path, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most).max(from)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn scene() -> (tempfile::TempDir, Folder, PathBuf) {
        let work = tempfile::tempdir().unwrap();
        fs::create_dir(work.path().join("ours")).unwrap();
        fs::create_dir(work.path().join("theirs")).unwrap();
        let canary = work.path().join("theirs/canary");
        fs::write(&canary, "untouched").unwrap();
        let folder = Folder::open(&work.path().join("ours")).unwrap();
        (work, folder, canary)
    }

    #[test]
    fn a_folder_that_another_removes_meanwhile_is_made_again() {
        let (work, ours, _) = scene();
        let (name, path) = (OsStr::new("shared"), work.path().join("ours/shared"));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    fs::remove_dir(&path).ok();
                }
            });
            let made = (0..5000).find_map(|_| ours.make_or_find(name, 0o711).err());
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(made.is_none(), "{made:?}");
        });
    }

    #[test]
    fn no_operation_follows_a_link() {
        let (work, ours, canary) = scene();
        symlink(&canary, work.path().join("ours/file")).unwrap();
        symlink(work.path().join("theirs"), work.path().join("ours/folder")).unwrap();
        let (file, folder) = (OsStr::new("file"), OsStr::new("folder"));
        assert!(ours.new_file(file, 0o600).is_err());
        assert!(ours.read_of(file, None).is_err());
        assert!(ours.below(Path::new("folder")).is_err());
        assert!(ours.make_or_find(folder, 0o700).is_err());
        assert!(ours.below(Path::new("../theirs")).is_err());
        assert!(ours.new_file(OsStr::new("folder/x"), 0o600).is_err());
        assert!(ours.rename(folder, file).is_err(), "nothing is replaced");
        ours.replace(file, b"new", 0o600).unwrap();
        assert_eq!(fs::read_to_string(work.path().join("ours/file")).unwrap(), "new");
        ours.remove(folder).unwrap();
        ours.empty().unwrap();
        assert_eq!(fs::read_to_string(&canary).unwrap(), "untouched");
        assert_eq!(ours.entries().unwrap().len(), 0);
    }

    #[test]
    fn a_pipe_does_not_block_and_is_not_read() {
        let (_work, ours, _) = scene();
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(ours.file(), "pipe", FileType::Fifo, mode, 0).unwrap();
        assert!(ours.read_of(OsStr::new("pipe"), None).is_err());
    }

    #[test]
    fn the_deepest_tree_is_removed() {
        let (work, ours, _) = scene();
        let mut at = ours.below(Path::new("")).unwrap();
        for _ in 0..3 * REMOVED_AT_ONCE {
            at = at.make(OsStr::new("d"), 0o700).unwrap();
        }
        at.new_file(OsStr::new("x"), 0o600).unwrap();
        let above = Folder::open(work.path()).unwrap();
        above.remove(OsStr::new("ours")).unwrap();
        above.remove(OsStr::new("ours")).unwrap();
        assert!(!work.path().join("ours").exists());
    }

    #[test]
    fn folders_within_each_other_have_an_end() {
        let work = tempfile::tempdir().unwrap();
        let mut folder = work.path().to_owned();
        (0..=DEPTH + 1).for_each(|_| folder.push("d"));
        fs::create_dir_all(&folder).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let user = User { name: "own".to_owned(), uid: own, gid: own };
        let said = chown_tree(work.path(), &user).unwrap_err().to_string();
        assert!(said.contains(TOO_DEEP), "{said}");
    }

    #[test]
    fn a_file_with_a_name_elsewhere_is_not_given_away() {
        let work = tempfile::tempdir().unwrap();
        let (tree, elsewhere) = (work.path().join("tree"), work.path().join("precious"));
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("a"), "").unwrap();
        fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, tree.join("link")).unwrap();
        fs::write(&elsewhere, "").unwrap();
        let root = rustix::process::geteuid().is_root();
        let stranger = User { name: "stranger".to_owned(), uid: 4_000_000, gid: 4_000_000 };
        if root {
            chown_tree(&tree, &stranger).unwrap();
            assert_eq!(fs::metadata(tree.join("b")).unwrap().uid(), stranger.uid);
            assert_eq!(fs::metadata(&elsewhere).unwrap().uid(), 0, "a link is not followed");
        }
        if root {
            // Its owner let everybody write, and may have a process that waits for it.
            for name in ["", "a"] {
                fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o777)).unwrap();
            }
            chown_tree(&tree, &User { name: "root".to_owned(), uid: 0, gid: 0 }).unwrap();
            for name in ["", "a"] {
                let facts = fs::metadata(tree.join(name)).unwrap();
                assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o755), "{name}");
            }
        }
        fs::hard_link(&elsewhere, tree.join("trap")).unwrap();
        let said = chown_tree(&tree, &stranger).unwrap_err().to_string();
        assert!(said.contains("another name outside of it"), "{said}");
        assert_ne!(fs::metadata(&elsewhere).unwrap().uid(), stranger.uid);
    }
}

#[cfg(test)]
mod plain_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_plain_files_are_read_and_only_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(beginning(&file, 4).unwrap(), "0123");
        assert_eq!(end(&file, 0, 4).unwrap(), b"6789");
        assert_eq!(end(&file, 7, 40).unwrap(), b"789");
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(open(&link).is_err() && open(folder.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
        // Whoever may link to a file of root has not made it readable for others.
        std::fs::hard_link(&file, folder.path().join("hard")).unwrap();
        let real = folder.path().canonicalize().unwrap();
        assert!(open_without_links(&real.join("hard")).is_ok());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(1234), None).unwrap();
            assert!(open_without_links(&real.join("hard")).is_err());
            std::os::unix::fs::chown(&file, Some(1234), None).unwrap();
            assert!(open_without_links(&real.join("hard")).is_ok());
        }
    }
}
