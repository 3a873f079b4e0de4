//! A folder of sources that is no git repository: its state is the hash of its files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
            let mut file = File::open(&path).map_err(Reason::io("open", &path))?;
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
    fs::copy(from, to)?;
    // Generated files must not look older than what they are made of.
    let modified = fs::metadata(from)?.modified()?;
    File::open(to)?.set_modified(modified)
}
