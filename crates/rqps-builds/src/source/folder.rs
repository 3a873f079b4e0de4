//! A folder of sources that is no git repository: its state is the hash of its files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::Reason;
use crate::progress::Progress;
use rqps_host::fingerprint::{self, Fingerprint};
use rqps_host::plain;

/// Files of a folder of sources: its own path and that of each file below it, in order.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, Reason> {
    fingerprint::sources_below(folder).map_err(Reason::io("read", folder))
}

/// SHA-256 of names and contents of all files, hexadecimal.
pub(super) fn hash(folder: &Path, progress: &mut Progress<'_>) -> Result<String, Reason> {
    let mut stopped = None;
    let print = Fingerprint::of_sources(folder, &mut || {
        stopped = progress.tick(|| "reading the sources".to_owned()).err();
        stopped.is_none()
    });
    match stopped {
        Some(reason) => Err(reason),
        None => Ok(print.map_err(Reason::io("read", folder))?.sha256),
    }
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

/// Copies a folder with all that is in it, also empty folders, with their permissions. `from` is the
/// path without links.
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
    let mut source = plain::open_without_links(from)?;
    let facts = source.metadata()?;
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    target.set_permissions(fs::Permissions::from_mode(facts.permissions().mode() & 0o777))?;
    // Generated files must not look older than what they are made of.
    target.set_modified(facts.modified()?)
}
