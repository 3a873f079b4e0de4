//! Folders for the sockets of a server: only its user may enter them, and they go with it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use crate::beneath::Folder;
use crate::user::Identity;

/// A folder that only one user may enter. It is removed, with all in it, when this is dropped.
pub(super) struct PrivateFolder {
    above: Folder,
    folder: Folder,
    /// The folder above, if this process made it, and the one that it lies in.
    made_above: Option<(Folder, OsString)>,
}

impl PrivateFolder {
    /// Makes the folder, which must be new, for a user, by default the warden's own.
    pub(super) fn make(path: &Path, user: Option<Identity>) -> io::Result<PrivateFolder> {
        PrivateFolder::made(path, user).map_err(|error| {
            let place = format!("make the private folder {}: {error}", path.display());
            io::Error::new(error.kind(), place)
        })
    }

    fn made(path: &Path, user: Option<Identity>) -> io::Result<PrivateFolder> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        // The user of the folder cannot put another in its place: that is in this one's hands.
        let made_above = match (parent.parent(), parent.file_name()) {
            (Some(place), Some(name)) if !parent.exists() => {
                let place = Folder::open(place)?;
                place.make(name, 0o711)?;
                Some((place, name.to_owned()))
            }
            _ => None,
        };
        let above = match &made_above {
            Some((place, name)) => place.below(Path::new(name))?,
            None => Folder::open(parent)?,
        };
        let folder = above.make(name, 0o700)?;
        let made = PrivateFolder { above, folder, made_above };
        if let Some(user) = user {
            made.folder.give(user)?;
        }
        Ok(made)
    }
}

impl Drop for PrivateFolder {
    /// Its owner may have put another folder in its place: then that one stays.
    fn drop(&mut self) {
        let _ = self.folder.empty();
        if let Some(name) = self.folder.path().file_name()
            && self.folder.is_at(&self.above, name)
        {
            let _ = self.above.unlink_folder(name);
        }
        if let Some((place, name)) = &self.made_above {
            let _ = place.unlink_folder(name);
        }
    }
}

/// Removes the private folder of a warden that could not. Its name is random and only this process
/// and its warden know it; links in it are removed, not followed.
pub(super) fn remove_private_folder(path: &Path) {
    let _ = in_folder(path, |above, name| above.remove(name));
    if let Some(above) = path.parent() {
        // Only an empty one goes, and the place for everyone is none of its own.
        let _ = in_folder(above, |place, name| place.unlink_folder(name));
    }
}

/// Does something in the folder of a path, with its last name.
pub(super) fn in_folder<T>(
    path: &Path,
    act: impl Fn(&Folder, &OsStr) -> io::Result<T>,
) -> io::Result<T> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    act(&Folder::open(path.parent().unwrap_or(Path::new("/")))?, name)
}
