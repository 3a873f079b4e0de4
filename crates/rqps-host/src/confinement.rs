//! Takes rights from this process before it runs code that a user brought.
//!
//! This is no sandbox: such code may do whatever an unprivileged user of the host may do.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal};
use rustix::stdio;

use crate::child;
use crate::user::{Identity, is_root};

/// The environment variables that such code finds, if they are set.
const VARIABLES: [&str; 2] = ["PATH", "LANG"];

/// The variable with the places of Lua modules, separated by semicolons.
const LUA_PATH: &str = "LUA_PATH";

/// Their numbers are below.
const STANDARD_STREAMS: RawFd = 3;

/// The environment of a process for such code, without the PATH of root. It works in another
/// folder, so relative places of modules become absolute.
pub fn environment(variable: impl Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> =
        VARIABLES.into_iter().filter_map(|name| Some((name, variable(name)?))).collect();
    for (_, path) in all.iter_mut().filter(|(name, _)| is_root() && *name == "PATH") {
        child::PATH.clone_into(path);
    }
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
    // The folder of root may be closed to others.
    let left = user.map_or(Ok(()), |_| std::env::set_current_dir("/"));
    left.and_then(|()| give_up_rights(user)).map_err(|error| {
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
        let mark = mark_of(std::process::id());
        // SAFETY: the list has one group.
        let marked = succeeded(unsafe { libc::setgroups(1, &raw const mark) });
        if marked.is_err() {
            // A container that knows few groups.
            // SAFETY: numbers only; with a length of 0 the list of groups is not read.
            succeeded(unsafe { libc::setgroups(0, std::ptr::null()) })?;
        }
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

/// The group of a process that gave up the rights of root, and of all that it starts, which cannot
/// leave it. Nobody else has it: directories of users give numbers up to 2,000,200,000 (sssd), and
/// systemd none from 0x7000_0000 to 0x7fff_ffff (its UIDS-GIDS).
fn mark_of(process: u32) -> libc::gid_t {
    0x7f00_0000 | process
}

/// Ends what a process has left behind that gave up the rights of root: daemons, which have left
/// its session. Returns their names. An ordinary user's cannot be told from what else runs.
pub fn end_left(process: u32) -> Vec<String> {
    let mark = mark_of(process).to_string();
    let begun = Instant::now();
    let mut names = BTreeMap::new();
    while is_root() && begun.elapsed() < END_PATIENCE {
        let left = marked(&mark);
        if left.is_empty() {
            break;
        }
        for (pid, name) in left {
            // Stopped first, so that it cannot start others while the rest is looked for.
            let signal = if names.contains_key(&pid) { Signal::KILL } else { Signal::STOP };
            let opened = Pid::from_raw(pid)
                .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
            // It may have ended, and another process have its number: the handle is looked at again.
            if let Some(handle) = opened.filter(|_| marked_name(pid, &mark).is_some()) {
                let _ = rustix::process::pidfd_send_signal(handle, signal);
                names.insert(pid, name);
            }
        }
    }
    names.into_iter().map(|(pid, name)| format!("{name} (process {pid})")).collect()
}

/// The time that killed processes may take to go: one waits for a disk.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Processes of the group of a mark that have not ended, with their names.
fn marked(mark: &str) -> Vec<(i32, String)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, marked_name(pid, mark)?))).collect()
}

/// The name of a process of that group which can gain no rights, as rqps makes them, if it has not
/// ended.
fn marked_name(pid: i32, mark: &str) -> Option<String> {
    let text = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let is_there = !field("State:")?.starts_with(['Z', 'X']);
    let is_marked = field("Groups:")?.split(' ').any(|group| group == mark);
    (is_there && is_marked && field("NoNewPrivs:")? == "1")
        .then(|| field("Name:").unwrap_or("?").to_owned())
}

fn succeeded(code: libc::c_int) -> io::Result<libc::c_int> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(code) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_output;

    #[test]
    fn what_a_stranger_leaves_running_is_ended() {
        if !is_root() {
            return;
        }
        // Not even with another session, another parent and another name.
        let daemon = "(setsid sh -c 'exec sleep 300' >/dev/null 2>&1 &) ; echo $$";
        let mut command = child::stranger("/bin/sh".as_ref()).unwrap();
        let said = command.args(["-c", daemon]).output().unwrap();
        let pid: u32 = String::from_utf8(said.stdout).unwrap().trim().parse().unwrap();
        let left = end_left(pid);
        assert!(left.len() == 1 && left[0].contains(" (process "), "{left:?}");
        assert!(marked(&mark_of(pid).to_string()).is_empty());
        let mut command = child::stranger("/bin/sh".as_ref()).unwrap();
        command.args(["-c", daemon]);
        let said = command_output::run_stranger(command).unwrap();
        let pid: u32 = said.output.trim().parse().unwrap();
        assert!(marked(&mark_of(pid).to_string()).is_empty());
    }

    #[test]
    fn scripts_find_few_variables_and_absolute_places() {
        let all = environment(|name| match name {
            "LUA_PATH" => Some("./lib/?.lua;/opt/?.lua;;".to_owned()),
            "LANG" => None,
            name => Some(name.to_lowercase()),
        });
        let here = std::path::absolute("lib/?.lua").unwrap().display().to_string();
        let places = format!("{here};/opt/?.lua;;");
        let path = if is_root() { child::PATH } else { "path" };
        assert_eq!(all, [("PATH", path.to_owned()), ("LUA_PATH", places)]);
    }
}
