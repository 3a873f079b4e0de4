//! The one way to start other programs. A child gets the few variables of this environment that its
//! task needs, so no recipe, package or library sees the keys and tokens of whoever started rqps.
//! What a stranger made runs as the unprivileged user, with nothing of the environment but PATH.

#![allow(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io};

use rustix::io::FdFlags;
use rustix::process::Signal;

use crate::beneath::FreshFolder;
use crate::confinement::give_up_rights;
use crate::user::{self, Identity, UserError};

/// The variables of every child.
const OF_ALL: &[&str] = &["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "RUST_BACKTRACE"];

/// PATH where this process has none, or that of root.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The task of a child, which decides about its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildTask {
    /// Measures, computes or watches: rqps itself, compilers, perf, valgrind.
    Work,
    /// Loads a library that is under test, in rqps itself: as [`ChildTask::Work`], without the PATH
    /// of root.
    Library,
    /// Fetches packages as the user has set it up: Maven, apt, pip.
    Fetch,
    /// Reaches another host with the keys of the user: ssh.
    Reach,
    /// Asks Slurm, which passes its environment on to jobs.
    Submit,
    /// Reads a repository, with the list of those that the user trusts.
    Repository,
}

impl ChildTask {
    /// Variables by name beside [`OF_ALL`].
    fn names(self) -> &'static [&'static str] {
        match self {
            ChildTask::Work | ChildTask::Library => &[],
            ChildTask::Fetch => &[
                "HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "APT_CONFIG", "http_proxy",
                "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
                "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
                "CURL_CA_BUNDLE",
            ],
            ChildTask::Reach => &["HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "KRB5CCNAME"],
            ChildTask::Submit => &["HOME", "USER", "LOGNAME", "XDG_CACHE_HOME", "XDG_STATE_HOME"],
            ChildTask::Repository => &["HOME", "XDG_CONFIG_HOME", "SUDO_UID"],
        }
    }

    /// Beginnings of names of more variables.
    fn prefixes(self) -> &'static [&'static str] {
        match self {
            ChildTask::Work | ChildTask::Library | ChildTask::Reach | ChildTask::Repository => &[],
            ChildTask::Fetch => &["PIP_", "MAVEN_", "M2_", "JAVA_"],
            ChildTask::Submit => {
                &["RQPS_", "SLURM", "SBATCH_", "SRUN_", "SQUEUE_", "SCANCEL_", "SINFO_"]
            }
        }
    }

    /// `value` is not passed on to what root starts if it is a file or folder of another user,
    /// who could put programs and settings there: HOME of whoever called sudo.
    fn passes(self, name: &OsStr, value: &OsStr) -> bool {
        let is_of_others = |value: &Path| {
            let facts = fs::metadata(value).ok().filter(|facts| facts.is_dir() || facts.is_file());
            facts.is_some_and(|facts| facts.uid() != 0)
        };
        if user::is_root() && name != "PATH" && is_of_others(Path::new(value)) {
            return false;
        }
        let Some(name) = name.to_str() else { return false };
        if name == "PATH" && self == ChildTask::Library && user::is_root() {
            return false;
        }
        OF_ALL.contains(&name)
            || self.names().contains(&name)
            || self.prefixes().iter().any(|prefix| name.starts_with(prefix))
    }
}

/// A program of this host, or of the user's, not started. It gets no terminal, neither its
/// Ctrl-C nor a way to type into the shell of whoever started rqps. ssh, which may need one to ask
/// an agent, has a process group of its own.
pub fn command(program: impl AsRef<OsStr>, task: ChildTask) -> Command {
    #[expect(clippy::disallowed_methods, reason = "its environment is chosen here")]
    let mut command = Command::new(program);
    command.env_clear().envs(variables(task));
    match task {
        ChildTask::Reach => {
            command.process_group(0);
        }
        _ => leave_terminal(&mut command),
    }
    command
}

/// Has a program run in a session, and so a process group, of its own.
fn leave_terminal(command: &mut Command) {
    let settle = || Ok(rustix::process::setsid().map(drop)?);
    // SAFETY: between fork and exec the closure makes one system call and touches no memory that
    // another thread could hold locked.
    unsafe { command.pre_exec(settle) };
}

/// The variables of this process that a child with this task gets.
#[expect(clippy::disallowed_methods, reason = "they are chosen here")]
fn variables(task: ChildTask) -> Vec<(OsString, OsString)> {
    let mut passed: Vec<_> =
        env::vars_os().filter(|(name, value)| task.passes(name, value)).collect();
    if !passed.iter().any(|(name, _)| name == "PATH") {
        passed.push(("PATH".into(), PATH.into()));
    }
    passed
}

/// A program that is under test, or that a build made, not started: it runs as the unprivileged
/// user if rqps is root, and sees nothing of the environment but PATH.
///
/// # Errors
/// There is no such user, or it cannot get to `program`.
pub fn stranger(program: &Path) -> Result<Command, UserError> {
    let user = user::choose(None)?;
    if let Some(user) = &user
        && program.is_absolute()
    {
        user::check_reachable(program, user)?;
    }
    #[expect(clippy::disallowed_methods, reason = "its environment is chosen here")]
    let mut command = Command::new(program);
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C").env("HOME", "/nonexistent");
    leave_terminal(&mut command);
    if let Some(user) = &user {
        become_user(&mut command, user.identity());
    }
    Ok(command)
}

/// Has a program run as a user, in the root folder unless it has another one, without other groups
/// and without a way to gain rights.
pub fn become_user(command: &mut Command, user: Identity) {
    let program = Path::new(command.get_program());
    let is_by_place = program.is_relative() && program.components().count() > 1;
    if command.get_current_dir().is_none() && !is_by_place {
        // That of root may be closed to others.
        command.current_dir("/");
    }
    // SAFETY: between fork and exec the closure makes system calls and touches no memory that
    // another thread could hold locked.
    unsafe { command.pre_exec(move || give_up_rights(Some(user))) };
}

/// Has a program killed when the thread that starts it ends.
pub fn end_with_thread(command: &mut Command) {
    let settle = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
    // SAFETY: between fork and exec the closure makes one system call and touches no memory that
    // another thread could hold locked.
    unsafe { command.pre_exec(settle) };
}

/// Keeps what this process inherited beside its standard streams from all that it starts.
pub fn keep_descriptors() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: only a number for the kernel, which refuses one that is closed by now.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        // One that is closed is passed on to nobody.
        let _ = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

// Removes a new folder when this process is gone, however it went: a second Ctrl-C, or a kill.

/// Waits for the end of its input, and removes the folder, unless that is gone. Servers in it may
/// need a moment to end. It follows no link, and nobody else can put one in the place of the folder.
const KEEPER: &str = "read -r nothing; tries=0; \
                      while [ -d \"$0\" ] && [ $tries -lt 60 ]; do \
                      rm -rf --one-file-system -- \"$0\" 2> /dev/null || sleep 1; \
                      tries=$((tries + 1)); done";

/// The process that does so. Dropping it has it look.
#[derive(Debug)]
pub struct Keeper {
    process: Child,
    folder: PathBuf,
}

impl Keeper {
    /// Starts it for a folder that this process alone has made, or is about to make.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn of(folder: &Path) -> io::Result<Keeper> {
        let mut command = command("sh", ChildTask::Work);
        command.args(["-c", KEEPER]).arg(folder).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Keeper { process: command.spawn()?, folder: folder.to_owned() })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Otherwise it goes on alone.
        if !self.folder.exists() {
            let _ = self.process.wait();
        }
    }
}

/// A new folder, which goes with this process.
#[derive(Debug)]
pub struct KeptFolder {
    folder: FreshFolder,
    _keeper: Keeper,
}

impl KeptFolder {
    /// Makes it.
    ///
    /// # Errors
    /// It cannot be made, or is not empty.
    pub fn make(path: &Path, mode: u32) -> io::Result<KeptFolder> {
        let folder = FreshFolder::take(path, mode)?;
        let keeper = Keeper::of(path);
        if keeper.is_err() {
            folder.remove()?;
        }
        Ok(KeptFolder { folder, _keeper: keeper? })
    }

    /// The folder.
    pub fn folder(&self) -> &FreshFolder {
        &self.folder
    }
}

impl Drop for KeptFolder {
    fn drop(&mut self) {
        // The keeper tries again.
        let _ = self.folder.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_what_its_task_needs() {
        let check = |task: ChildTask, name: &str, passes: bool| {
            assert_eq!(task.passes(OsStr::new(name), OsStr::new("/")), passes, "{task:?}: {name}");
        };
        use ChildTask::{Fetch, Library, Reach, Repository, Submit, Work};
        for task in [Work, Library, Fetch, Reach, Submit, Repository] {
            check(task, "PATH", task != Library || !user::is_root());
            for secret in ["AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "GITHUB_TOKEN", "LD_PRELOAD"] {
                check(task, secret, false);
            }
            check(task, "SSH_AUTH_SOCK", task == Reach);
            check(task, "https_proxy", task == Fetch);
            check(task, "SLURM_CONF", task == Submit);
        }
        check(Fetch, "PIP_INDEX_URL", true);
        check(Work, "HOME", false);
    }

    #[test]
    fn a_child_is_in_a_session_of_its_own() {
        let check = |mut command: Command| {
            let said = command.args(["-c", "cut -d' ' -f6 /proc/$$/stat; echo $$"]).output();
            let text = String::from_utf8(said.unwrap().stdout).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() == 2 && lines[0] == lines[1], "{text}");
        };
        check(command("sh", ChildTask::Work));
        check(stranger(Path::new("/bin/sh")).unwrap());
    }

    #[test]
    fn a_stranger_sees_nothing_and_is_nobody() {
        let mut command = stranger(Path::new("/usr/bin/env")).unwrap();
        let said = command.output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        assert_eq!(names.len(), 3, "{text}");
        assert!(names.iter().all(|name| ["PATH", "LC_ALL", "HOME"].contains(name)), "{text}");
        let said = stranger(Path::new("/usr/bin/id")).unwrap().arg("-u").output().unwrap();
        assert_ne!(String::from_utf8_lossy(&said.stdout).trim(), "0");
    }
}
