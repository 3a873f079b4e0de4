//! Opens files and folders that rqps writes or reads.
//!
//! As root it follows no link of another user. Whoever may write to a folder of the path could swap
//! what was looked at for a link, so each part is looked at through the descriptor that leads on.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, mkdirat, open, openat, readlinkat,
    renameat,
};
use rustix::io::Errno;

/// Links in one path, as the kernel allows.
const LINKS_MOST: u32 = 40;
const PART: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder.
///
/// # Errors
/// It is not there, or no folder; for root, a link of another user leads there.
pub fn folder(path: &Path) -> io::Result<File> {
    walked(path, false)
}

/// Opens a folder. What is missing of its path is made.
///
/// # Errors
/// As [`folder`]; a folder cannot be made.
pub fn make_folder(path: &Path) -> io::Result<File> {
    walked(path, true)
}

/// Opens the folder that holds a file, which has this name there.
///
/// # Errors
/// As [`folder`]; the path has no name at its end.
pub fn parent(path: &Path) -> io::Result<(File, &OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    Ok((folder(path.parent().unwrap_or(Path::new("")))?, name))
}

/// Opens a file for new content, or makes it.
///
/// # Errors
/// As [`parent`]; for root, it is a link of another user, or a file of several names in a folder of
/// another user.
pub fn create_file(path: &Path) -> io::Result<File> {
    if !rustix::process::geteuid().is_root() {
        #[expect(clippy::disallowed_methods, reason = "no root")]
        return File::create(path);
    }
    let (file, folder) = reached(path, OFlags::WRONLY | OFlags::CREATE)?;
    emptied(file, folder.as_ref())
}

/// Opens a file to read it, without waiting, whatever it is.
///
/// # Errors
/// As [`create_file`], but for root, a file of several names may belong to the owner of its folder.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if !rustix::process::geteuid().is_root() {
        return Ok(File::from(open(path, flags, Mode::empty())?));
    }
    if path.file_name().is_none() {
        return folder(path);
    }
    let (file, folder) = reached(path, flags)?;
    folder.map_or(Ok(()), |folder| check_names(&file, &folder))?;
    Ok(file)
}

/// Refuses a file of several names in a folder of another user than its own: one of its names may
/// be in a folder of root, and this one is the other user's.
///
/// # Errors
/// That; the system refuses.
pub fn check_names(file: &File, folder: &File) -> io::Result<()> {
    let (facts, owner) = (file.metadata()?, folder.metadata()?.uid());
    if facts.is_file() && facts.nlink() > 1 && owner != 0 && owner != facts.uid() {
        return Err(io::Error::other(format!(
            "it belongs to user {}, has several names, and lies in a folder of user {owner}",
            facts.uid()
        )));
    }
    Ok(())
}

/// The file at the end of a path for root, and the folder that holds it; none for one of /proc.
fn reached(path: &Path, flags: OFlags) -> io::Result<(File, Option<File>)> {
    let (mut path, flags) = (path.to_owned(), flags | OFlags::CLOEXEC);
    for _ in 0..LINKS_MOST {
        let (folder, name) = parent(&path)?;
        let mode = Mode::from_raw_mode(0o666);
        // A link of /proc leads to an open file, not to a path.
        if fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC {
            return Ok((File::from(openat(&folder, name, flags, mode)?), None));
        }
        match openat(&folder, name, flags | OFlags::NOFOLLOW, mode) {
            Err(Errno::LOOP) => {
                let link = openat(&folder, name, PART, Mode::empty())?;
                check_link(&link, name)?;
                path = path.with_file_name(target_of(&link)?);
            }
            opened => return Ok((File::from(opened?), Some(folder))),
        }
    }
    Err(Errno::LOOP.into())
}

/// Makes a file, which must be new.
///
/// # Errors
/// As [`parent`]; something is there, a link included.
pub fn new_file(path: &Path) -> io::Result<File> {
    let (folder, name) = parent(path)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o666))?))
}

/// Makes a folder, which must be new.
///
/// # Errors
/// As [`new_file`].
pub fn new_folder(path: &Path, mode: u32) -> io::Result<()> {
    let (folder, name) = parent(path)?;
    Ok(mkdirat(folder, name, Mode::from_raw_mode(mode))?)
}

/// Writes a whole file, in the place of its content.
///
/// # Errors
/// As [`create_file`].
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create_file(path)?.write_all(content.as_ref())
}

/// Copies what is left of an open file, and its mode.
///
/// # Errors
/// As [`create_file`].
pub fn copy(mut from: &File, to: &Path) -> io::Result<File> {
    let mut file = create_file(to)?;
    io::copy(&mut from, &mut file)?;
    let mode = from.metadata()?.permissions().mode() & 0o777;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Gives a file or folder another name, or another place on the same disk.
///
/// # Errors
/// As [`parent`], for both paths; the system refuses.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let ((of, old), (into, new)) = (parent(from)?, parent(to)?);
    Ok(renameat(of, old, into, new)?)
}

/// The path of a folder from the root, without links.
///
/// # Errors
/// As [`folder`].
pub fn whole(path: &Path) -> io::Result<PathBuf> {
    let folder = folder(path)?;
    std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// The path of a file without links.
///
/// # Errors
/// As [`folder`]; the file is not there, or root finds a link of another user in its place.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    if !rustix::process::geteuid().is_root() {
        return std::fs::canonicalize(path);
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS_MOST {
        let (folder, name) = parent(&path)?;
        let found = openat(&folder, name, PART, Mode::empty())?;
        if !check_link(&found, name)? {
            return Ok(whole(path.parent().unwrap_or(Path::new("")))?.join(name));
        }
        path = path.with_file_name(target_of(&found)?);
    }
    Err(Errno::LOOP.into())
}

/// The file without its content.
fn emptied(file: File, folder: Option<&File>) -> io::Result<File> {
    let facts = file.metadata()?;
    if facts.is_file() {
        if let Some(folder) = folder
            && facts.nlink() > 1
            && folder.metadata()?.uid() != 0
        {
            return Err(io::Error::other("it has another name elsewhere; remove it first"));
        }
        file.set_len(0)?;
    }
    Ok(file)
}

fn walked(path: &Path, make: bool) -> io::Result<File> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    if !rustix::process::geteuid().is_root() {
        if make {
            #[expect(clippy::disallowed_methods, reason = "no root")]
            std::fs::create_dir_all(path)?;
        }
        let opened = match open(path, FOLDER, Mode::empty()) {
            // One that may be entered, not read: all but reading and syncing it works.
            Err(Errno::ACCESS) => open(path, FOLDER | OFlags::PATH, Mode::empty()),
            opened => opened,
        };
        return Ok(File::from(opened?));
    }
    let (mut at, mut links) = (start(path)?, 0);
    let mut rest: VecDeque<OsString> = parts(path).collect();
    while let Some(part) = rest.pop_front() {
        let found = match openat(&at, &part, PART, Mode::empty()) {
            Err(Errno::NOENT) if make => {
                match mkdirat(&at, &part, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&at, &part, PART, Mode::empty())?
            }
            found => found?,
        };
        if !check_link(&found, &part)? {
            at = found;
            continue;
        }
        links += 1;
        if links > LINKS_MOST {
            return Err(Errno::LOOP.into());
        }
        let target = target_of(&found)?;
        if target.is_absolute() {
            at = start(&target)?;
        }
        rest = parts(&target).chain(rest).collect();
    }
    Ok(File::from(openat(&at, ".", FOLDER, Mode::empty())?))
}

fn target_of(link: &OwnedFd) -> io::Result<PathBuf> {
    Ok(OsString::from_vec(readlinkat(link, "", Vec::new())?.into_bytes()).into())
}

fn start(path: &Path) -> io::Result<OwnedFd> {
    let at = if path.is_absolute() { "/" } else { "." };
    Ok(open(at, FOLDER, Mode::empty())?)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let is_step =
        |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_step).map(|part| part.as_os_str().to_owned())
}

/// True for a link that root follows, false for what is no link.
fn check_link(found: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let facts = fstat(found)?;
    match (FileType::from_raw_mode(facts.st_mode), facts.st_uid) {
        (FileType::Symlink, 0) => Ok(true),
        (FileType::Symlink, user) => Err(io::Error::other(format!(
            "`{}` is a link of user {user}, which root does not follow; name what it leads to",
            name.display()
        ))),
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    #[test]
    fn root_follows_only_links_of_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("victim")).unwrap();
        fs::write(at("victim/file"), "mine").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink(at("victim/file"), at("out")).unwrap();
        let check = |is_followed: bool| {
            let is = |done: io::Result<File>| assert_eq!(done.is_ok(), is_followed);
            is(folder(&at("link")));
            is(folder(&at("link/../victim")));
            is(make_folder(&at("link/new/deep")));
            is(create_file(&at("link/file")));
            is(create_file(&at("out")));
            is(open_file(&at("out")));
            is(open_file(&at("link/file")));
            assert_eq!(at("victim/new/deep").exists(), is_followed);
            assert_eq!(fs::read(at("victim/file")).unwrap().is_empty(), is_followed);
        };
        check(true);
        fs::remove_dir_all(at("victim/new")).unwrap();
        fs::write(at("victim/file"), "mine").unwrap();
        for link in ["link", "out"] {
            lchown(at(link), Some(1234), None).unwrap();
        }
        check(false);
        // A second name in a folder of theirs.
        fs::create_dir(at("theirs")).unwrap();
        lchown(at("theirs"), Some(1234), None).unwrap();
        fs::hard_link(at("victim/file"), at("theirs/hard")).unwrap();
        assert!(create_file(&at("theirs/hard")).is_err());
        assert!(open_file(&at("theirs/hard")).is_err());
        assert_eq!(fs::read(at("victim/file")).unwrap(), b"mine");
        assert!(
            create_file(&at("theirs/new")).is_ok() && create_file(Path::new("/dev/null")).is_ok()
        );
        let open = File::open(at("victim/file")).unwrap();
        let same = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        assert!(create_file(Path::new(&same)).is_ok(), "what /dev/stdout leads to");
        assert!(open_file(Path::new(&same)).is_ok() && open_file(Path::new("..")).is_ok());
        symlink("loop", at("loop")).unwrap();
        assert!(create_file(&at("loop")).is_err());
        assert!(folder(&at("loop")).is_err() && folder(&at("victim/file")).is_err());
    }
}
