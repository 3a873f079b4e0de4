//! Takes rights from this process before it runs code that a user brought.
//!
//! This is no sandbox: such code may do whatever an unprivileged user of the host may do.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::process::{DumpableBehavior, Signal};
use rustix::stdio;

use crate::user::{Identity, is_root};

/// The environment variables that such code finds, if they are set.
const VARIABLES: [&str; 2] = ["PATH", "LANG"];

/// The variable with the places of Lua modules, separated by semicolons.
const LUA_PATH: &str = "LUA_PATH";

/// Their numbers are below.
const STANDARD_STREAMS: RawFd = 3;

/// The environment of a process for such code. It works in another folder, so relative places of
/// modules become absolute.
pub fn environment(variable: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> =
        VARIABLES.into_iter().filter_map(|name| Some((name, variable(name)?))).collect();
    if let Some(places) = variable(LUA_PATH) {
        all.push((LUA_PATH, absolute_places(&places)));
    }
    all
}

/// Places of modules (`./lib/?.lua;;`) from the root. An empty one means the default places.
fn absolute_places(places: &str) -> String {
    let absolute = |place: &str| match (place, std::path::absolute(place)) {
        ("", _) | (_, Err(_)) => place.to_owned(),
        (_, Ok(absolute)) => absolute.display().to_string(),
    };
    places.split(';').map(absolute).collect::<Vec<_>>().join(";")
}

/// Keeps this process's standard input and output for the conversation with its parent, and leaves
/// an empty input, and the log as output, to the code that it runs.
///
/// # Errors
///
/// The process has too many open files, or a stream is closed.
pub fn take_streams() -> io::Result<(File, File)> {
    let (input, output) = (duplicate(stdio::stdin())?, duplicate(stdio::stdout())?);
    stdio::dup2_stdin(File::open("/dev/null")?)?;
    stdio::dup2_stdout(stdio::stderr())?;
    Ok((input, output))
}

/// The log of this process: its standard error.
///
/// # Errors
///
/// As [`take_streams`].
pub fn log() -> io::Result<File> {
    duplicate(stdio::stderr())
}

fn duplicate(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(rustix::io::fcntl_dupfd_cloexec(stream, STANDARD_STREAMS)?))
}

/// Becomes that user, if rqps runs as root, before this process loads a library that is under test.
/// A process that runs scripts has done so already.
///
/// # Errors
///
/// The process may not change its user. The text is a complete message.
pub fn become_unprivileged(user: Option<Identity>) -> Result<(), String> {
    let user = user.filter(|_| is_root());
    give_up_rights(user).map_err(|error| {
        let user = user.map_or("an unprivileged user".to_owned(), |user| user.uid.to_string());
        format!(
            "become user {user} for a library: {error}\nhint: start rqps as a user who is not root"
        )
    })
}

/// Becomes `user`, if rqps runs as root, and can no longer gain rights by executing a program.
///
/// # Errors
///
/// The process may not change its user, as in some containers.
pub fn give_up_rights(user: Option<Identity>) -> io::Result<()> {
    if let Some(Identity { uid, gid }) = user {
        // The calls of libc change all threads of the process, those of the kernel only one.
        // SAFETY: numbers only; with a length of 0 the list of groups is not read.
        succeeded(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        // SAFETY: numbers only.
        succeeded(unsafe { libc::setresgid(gid, gid, gid) })?;
        // SAFETY: numbers only.
        succeeded(unsafe { libc::setresuid(uid, uid, uid) })?;
        // The kernel undoes both for a process that changes its user. Without the first, it could
        // not look at its own files in /proc.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    }
    Ok(rustix::thread::set_no_new_privs(true)?)
}

fn succeeded(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_find_few_variables_and_absolute_places() {
        let all = environment(|name| match name {
            "LUA_PATH" => Some("./lib/?.lua;/opt/?.lua;;".to_owned()),
            "LANG" => None,
            name => Some(name.to_lowercase()),
        });
        let here = std::path::absolute("lib/?.lua").unwrap().display().to_string();
        let places = format!("{here};/opt/?.lua;;");
        assert_eq!(all, [("PATH", "path".to_owned()), ("LUA_PATH", places)]);
    }
}
