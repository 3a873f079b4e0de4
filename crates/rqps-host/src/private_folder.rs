//! Folders for the sockets of a server: only its user may enter them, and they go with it.

use std::ffi::OsString;
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
        let parent = path.parent().unwrap_or(Path::new("/"));
        // The user of the folder cannot put another in its place: that is in this one's hands.
        let made_above = if parent.exists() {
            None
        } else {
            let (place, name) = Folder::above(parent)?;
            place.make(name, 0o711)?;
            Some((place, name.to_owned()))
        };
        let (mut above, name) = Folder::above(path)?;
        if let Some((place, name)) = &made_above {
            above = place.below(Path::new(name))?;
        }
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
    let _ = Folder::above(path).and_then(|(above, name)| above.remove(name));
    // Only an empty one goes, and the place for everyone is none of its own.
    let above = path.parent().unwrap_or(Path::new(""));
    let _ = Folder::above(above).and_then(|(place, name)| place.unlink_folder(name));
}
