//! Prepares this process for scripts that the user brought: an unprivileged user, a working folder
//! of its own, no way back to root.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use crate::request::DriverRequest;
use rqps_host::beneath::{self, Folder, FreshFolder};
use rqps_host::keeper::Keeper;
use rqps_host::user::{self, Identity, User};
use rqps_host::{confinement, secret};

/// The place for everyone.
const OPEN_FOLDER: &str = "/tmp";

/// The copy of a script's folder, in the working folder.
const COPY: &str = "scripts";

/// Gives up rights, and changes to a working folder: `scratch`, which is there and empty, or a new
/// one in /tmp. The process can read `script` and the scripts beside it afterwards.
///
/// # Errors
///
/// There is no unprivileged user, or a folder or the copy cannot be made. The text is a complete
/// message.
pub fn enter(script: &Path, scratch: Option<&Path>) -> Result<ScriptPlaces, String> {
    let user = user::choose(None).map_err(|error| format!("failed to {error}"))?;
    let user = user.as_ref();
    let start = std::path::absolute(".")
        .map_err(|error| format!("failed to find the current folder: {error}"))?;
    let folder = script.parent().unwrap_or(Path::new("/")).to_owned();
    let scratch = match scratch {
        Some(scratch) => scratch.to_owned(),
        None => kept_scratch().map_err(|error| format!("failed to make a folder: {error}"))?,
    };
    let copy = prepared(&scratch, script, user)
        .map_err(|error| format!("failed to make {} for scripts: {error}", scratch.display()))?;
    if let Some(user) = user {
        user::check_reachable(&scratch, user).map_err(|error| format!("failed to {error}"))?;
    }
    rustix::process::chdir(&scratch)
        .map_err(|error| format!("failed to enter {}: {error}", scratch.display()))?;
    confinement::give_up_rights(user.map(User::identity)).map_err(|error| {
        let user = user.map_or("an unprivileged user", |user| user.name.as_str());
        format!(
            "failed to become {user} for scripts: {error}\nhint: start rqps as a user who is not \
             root"
        )
    })?;
    Ok(ScriptPlaces { start, folder, copy, scratch })
}

/// A place for everyone, with a name that nobody foresees. What is made there goes with this process,
/// which is killed if it takes too long.
fn kept_scratch() -> io::Result<PathBuf> {
    let path = Path::new(OPEN_FOLDER).join(format!("rqps-script-{}", secret::name()?));
    std::mem::forget(Keeper::of(&path)?);
    Ok(path)
}

/// Gives up rights before a library under test is loaded.
///
/// # Errors
///
/// The process may not change its user, or the page of turns cannot be opened.
pub(super) fn before_library(mut request: DriverRequest) -> Result<DriverRequest, String> {
    if user::is_root() {
        keep_page(&mut request)?;
        confinement::become_unprivileged(Some(user::of_libraries().identity()))
            .map_err(|error| format!("failed to {error}"))?;
    }
    Ok(request)
}

/// As [`enter`], for a driver.
///
/// # Errors
///
/// Also if the page of turns cannot be opened.
pub(super) fn confine(mut request: DriverRequest, script: &Path) -> Result<DriverRequest, String> {
    keep_page(&mut request)?;
    request.places = Some(enter(script, request.scratch.as_deref())?);
    Ok(request)
}

/// Opens the page of turns while this process may.
fn keep_page(request: &mut DriverRequest) -> Result<(), String> {
    if let Some(turns) = &mut request.turns {
        // Its path leads through another user's process, and only works until rights are given up.
        let page = File::options().read(true).write(true).open(&turns.page).map_err(|error| {
            format!("failed to open the page of turns {}: {error}", turns.page.display())
        })?;
        turns.page = PathBuf::from(format!("/proc/self/fd/{}", page.into_raw_fd()));
    }
    Ok(())
}

/// Makes the working folder, with copies of scripts that `user` may not read, and then gives all of
/// it to `user`. Returns the folder of the copies.
fn prepared(scratch: &Path, script: &Path, user: Option<&User>) -> io::Result<Option<PathBuf>> {
    let Some(user) = user else {
        // The lab may have made it, for a process that is this user's from its start.
        return FreshFolder::take(scratch, 0o700).map(|_| None);
    };
    let made = FreshFolder::take(scratch, 0o700)?;
    let filled = filled(&made, script, user);
    if filled.is_err() {
        made.remove()?;
    }
    filled
}

/// Puts copies into the working folder, and gives it away.
fn filled(made: &FreshFolder, script: &Path, user: &User) -> io::Result<Option<PathBuf>> {
    let copied = match scripts_to_copy(script, user)? {
        scripts if scripts.is_empty() => None,
        scripts => {
            let folder = made.folder().make(OsStr::new(COPY), 0o700)?;
            for (name, mut script) in scripts {
                let mode = if script.metadata()?.mode() & 0o100 != 0 { 0o700 } else { 0o600 };
                let mut copy = folder.new_file(&name, mode)?;
                io::copy(&mut script, &mut copy)?;
                beneath::give_file(&copy, user.identity())?;
            }
            folder.give(user.identity())?;
            Some(made.folder().path().join(COPY))
        }
    };
    made.folder().give(user.identity())?;
    Ok(copied)
}

/// The script and the files of its language beside it, opened, if `user` may not read all of them.
///
/// Reading them for `user` must not open files of a third: a link, or a file that another user than
/// the owner of the script has put beside it, is left out.
fn scripts_to_copy(script: &Path, user: &User) -> io::Result<Vec<(OsString, File)>> {
    let name = script.file_name().ok_or_else(|| io::Error::other("the script has no name"))?;
    let above = script.parent().unwrap_or(Path::new("/"));
    let folder = Folder::open(above)?;
    let language = script.extension();
    let is_script = |name: &OsStr| language.is_some() && Path::new(name).extension() == language;
    let files = folder.entries()?.into_iter().filter(|entry| entry.kind == FileType::RegularFile);
    let mut beside: Vec<OsString> = files.map(|entry| entry.name).collect();
    beside.retain(|other| other != name && is_script(other));
    let can_read = |name: &OsStr| user::can_read(&above.join(name), user);
    if can_read(name) && beside.iter().all(|name| can_read(name)) {
        return Ok(Vec::new());
    }
    let named = own_script(&folder, name)?;
    let owner = Identity { uid: named.metadata()?.uid(), gid: 0 };
    let mut scripts = vec![(name.to_owned(), named)];
    for name in beside {
        if let Ok(script) = folder.read_of(&name, Some(owner)) {
            scripts.push((name, script));
        }
    }
    Ok(scripts)
}

/// Opens the script that the user named. In a folder that others can write, it must belong to the
/// owner of the folder: what they put there may lead to a file that only root may read.
fn own_script(folder: &Folder, name: &OsStr) -> io::Result<File> {
    let facts = folder.facts()?;
    let is_ours = facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0;
    if !is_ours {
        return folder.read_of(name, Some(Identity { uid: facts.uid(), gid: 0 }));
    }
    let script = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(folder.path().join(name))?;
    if script.metadata()?.is_file() {
        Ok(script)
    } else {
        Err(io::Error::other("the script is no regular file"))
    }
}

/// The places of a script's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlaces {
    /// The folder in which the process was started.
    pub start: PathBuf,
    /// The folder of the script as it was named.
    pub(super) folder: PathBuf,
    /// The copy of that folder that is read instead, if the process may not read the folder itself.
    pub(super) copy: Option<PathBuf>,
    /// The working folder.
    pub(super) scratch: PathBuf,
}

impl ScriptPlaces {
    /// Where this process reads a script of the folder.
    pub fn readable(&self, script: &Path) -> PathBuf {
        swapped(script, &self.folder, self.copy.as_deref())
    }

    /// The name, before it was copied, of a file that this process reads.
    pub fn original(&self, file: &Path) -> PathBuf {
        match &self.copy {
            Some(copy) => swapped(file, copy, Some(&self.folder)),
            None => file.to_owned(),
        }
    }

    /// Removes the working folder.
    pub fn clear(&self) {
        // Whatever is left does not concern the request, which has been answered.
        let _ = beneath::remove_made(&self.scratch, None);
    }
}

/// The path with one folder in the place of another.
fn swapped(path: &Path, from: &Path, to: Option<&Path>) -> PathBuf {
    match (path.strip_prefix(from), to) {
        (Ok(rest), Some(to)) => to.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_script_keeps_the_name_that_the_user_knows() {
        let places = |copy: Option<&str>| ScriptPlaces {
            start: "/".into(),
            folder: "/closed/bench".into(),
            copy: copy.map(PathBuf::from),
            scratch: "/tmp/s".into(),
        };
        let check = |copy, script: &str, read: &str| {
            let places = places(copy);
            assert_eq!(places.readable(Path::new(script)), Path::new(read));
            assert_eq!(places.original(Path::new(read)), Path::new(script));
        };
        check(Some("/tmp/s/scripts"), "/closed/bench/a.lua", "/tmp/s/scripts/a.lua");
        check(Some("/tmp/s/scripts"), "/usr/share/b.lua", "/usr/share/b.lua");
        check(None, "/closed/bench/a.lua", "/closed/bench/a.lua");
    }
}
