//! A folder of sources that is no git repository: its state is the hash of its files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::obtain::error::Reason;
use crate::obtain::progress::Progress;
use crate::units;

/// Files of a folder of sources: its own path and that of each file below it, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Reason> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).map_err(Reason::io("read", &next))? {
            let path = entry.map_err(Reason::io("read", &next))?.path();
            let kind = fs::symlink_metadata(&path).map_err(Reason::io("look at", &path))?;
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() || kind.is_symlink() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// SHA-256 of names and contents of all files, hexadecimal.
pub(super) fn hash(folder: &Path, progress: &mut Progress<'_>) -> Result<String, Reason> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    for path in files(folder)? {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        hash.update(name.as_os_str().as_bytes());
        hash.update([0]);
        if path.is_symlink() {
            let to = fs::read_link(&path).map_err(Reason::io("read", &path))?;
            hash.update(to.as_os_str().as_bytes());
        } else {
            let mut file = open(&path).map_err(Reason::io("open", &path))?;
            loop {
                match file.read(&mut buffer).map_err(Reason::io("read", &path))? {
                    0 => break,
                    count => hash.update(&buffer[..count]),
                }
            }
        }
        hash.update([0]);
        progress.tick(|| "reading the sources".to_owned())?;
    }
    Ok(units::hex(&hash.finalize()))
}

/// Copies all files to another folder.
pub(super) fn copy(from: &Path, to: &Path, progress: &mut Progress<'_>) -> Result<(), Reason> {
    for path in files(from)? {
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(Reason::io("create", parent))?;
        }
        copy_one(&path, &target).map_err(Reason::io("copy", &path))?;
        progress.tick(|| "copying the sources".to_owned())?;
    }
    Ok(())
}

/// Copies a folder with all that is in it, also empty folders, with their permissions.
pub(super) fn mirror(from: &Path, to: &Path, progress: &mut Progress<'_>) -> Result<(), Reason> {
    let from = &from.canonicalize().map_err(Reason::io("find", from))?;
    fs::create_dir_all(to).map_err(Reason::io("create", to))?;
    for entry in fs::read_dir(from).map_err(Reason::io("read", from))? {
        let path = entry.map_err(Reason::io("read", from))?.path();
        let target = to.join(path.strip_prefix(from).unwrap_or(&path));
        if path.is_dir() && !path.is_symlink() {
            mirror(&path, &target, progress)?;
        } else {
            copy_one(&path, &target).map_err(Reason::io("copy", &path))?;
        }
        progress.tick(|| "copying a build".to_owned())?;
    }
    let permissions = fs::metadata(from).map_err(Reason::io("look at", from))?.permissions();
    fs::set_permissions(to, permissions).map_err(Reason::io("chmod", to))
}

fn copy_one(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    let mut source = open(from)?;
    let facts = source.metadata()?;
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(fs::Permissions::from_mode(facts.permissions().mode() & 0o777))?;
    // Generated files must not look older than what they are made of.
    target.set_modified(facts.modified()?)
}

/// Opens a plain file of a folder that others may change meanwhile: no link may be put in its place
/// or above it, where rqps as root would read what they may not.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a container that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags, Mode::empty())?,
        opened => opened?,
    };
    let file = File::from(opened);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no plain file any more")),
    }
}
