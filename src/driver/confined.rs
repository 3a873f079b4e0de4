//! Prepares this process for scripts that the user brought: an unprivileged user, a working folder
//! of its own, no way back to root.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::driver::request::DriverRequest;
use crate::driver::script_places::ScriptPlaces;
use crate::os::confinement;
use crate::os::user::{self, User};

/// The copy of a script's folder, in the working folder.
const COPY: &str = "scripts";

/// Gives up rights, and changes to a new working folder, in /tmp if `scratch` names none. The
/// process can read `script` and the scripts beside it afterwards.
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
        None => PathBuf::from(format!("/tmp/rqps-script-{}", std::process::id())),
    };
    let copy = made(&scratch)
        .and_then(|()| copied(&folder, script, &scratch, user))
        .map_err(|error| format!("failed to make {} for scripts: {error}", scratch.display()))?;
    if let Some(user) = user {
        user::chown_tree(&scratch, user).map_err(|error| format!("failed to {error}"))?;
        user::check_reachable(&scratch, user).map_err(|error| format!("failed to {error}"))?;
    }
    rustix::process::chdir(&scratch)
        .map_err(|error| format!("failed to enter {}: {error}", scratch.display()))?;
    confinement::give_up_rights(user).map_err(|error| {
        let user = user.map_or("an unprivileged user", |user| user.name.as_str());
        format!(
            "failed to become {user} for scripts: {error}\nhint: start rqps as a user who is not \
             root"
        )
    })?;
    Ok(ScriptPlaces { start, folder, copy, scratch })
}

/// As [`enter`], for a driver.
///
/// # Errors
///
/// Also if the page of turns cannot be opened.
pub(super) fn confine(mut request: DriverRequest, script: &Path) -> Result<DriverRequest, String> {
    open_turns(&mut request)?;
    request.places = Some(enter(script, request.scratch.as_deref())?);
    Ok(request)
}

/// Gives up rights for a driver that loads a library that is under test.
///
/// # Errors
///
/// As [`confine`].
pub(super) fn confine_library(mut request: DriverRequest) -> Result<DriverRequest, String> {
    open_turns(&mut request)?;
    confinement::load_foreign_code().map_err(|error| format!("failed to {error}"))?;
    Ok(request)
}

/// Opens the page of turns.
fn open_turns(request: &mut DriverRequest) -> Result<(), String> {
    if let Some(turns) = &mut request.turns {
        // Its path leads through another user's process, and only works until rights are given up.
        let page = File::options().read(true).write(true).open(&turns.page).map_err(|error| {
            format!("failed to open the page of turns {}: {error}", turns.page.display())
        })?;
        turns.page = PathBuf::from(format!("/proc/self/fd/{}", page.into_raw_fd()));
    }
    Ok(())
}

/// Makes an empty folder that only this user may enter.
fn made(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    DirBuilder::new().mode(0o700).create(folder)
}

/// Copies the Lua files of a folder if `user` may not read all of them. Returns the copy.
fn copied(
    folder: &Path,
    script: &Path,
    scratch: &Path,
    user: Option<&User>,
) -> io::Result<Option<PathBuf>> {
    let Some(user) = user else { return Ok(None) };
    let mut files = vec![script.to_owned()];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path != script && path.extension().is_some_and(|end| end == "lua") && path.is_file() {
            files.push(path);
        }
    }
    if files.iter().all(|file| user::can_read(file, user)) {
        return Ok(None);
    }
    let copy = scratch.join(COPY);
    fs::create_dir(&copy)?;
    for file in files {
        let Some(name) = file.file_name() else { continue };
        let own = copy.join(name);
        fs::copy(&file, &own)?;
        fs::set_permissions(&own, Permissions::from_mode(0o600))?;
    }
    Ok(Some(copy))
}
