//! Processes that die with their parent: the warden.
//!
//! A server must never outlive rqps, also when rqps is ended by `kill -9`, when the server is
//! stopped (SIGSTOP), and when its children have made sessions of their own. So rqps never starts a
//! server itself: it starts its own program again as a *warden*, which starts the server and waits
//! on a pipe whose other end only rqps holds. When that pipe closes, rqps is gone, and the warden
//! ends the whole tree.
//!
//! The two link in lines. To the warden: the job as one JSON line, then `stop SIGNAL TIMEOUT_MS`.
//! From the warden: `pid N`, then `exited STATUS`; or `failed WHY`.
//!
//! This is the lab's side; the warden's is in `warden.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::child::{self, ChildTask};
use crate::lock::remove_private_folder;
use crate::shared_memory::{self, SharedPiece};
use crate::tree::{self, stat_of};
use crate::user::Identity;

/// The hidden subcommand that runs [`crate::warden::main`].
pub const WARDEN_COMMAND: &str = "warden";

/// The answer of [`Warden::has_exited`] for a process that ended without an error.
pub const CLEAN_EXIT: &str = "exit status 0";

/// Time beyond its own timeout that a warden gets before its tree is killed from outside.
const WARDEN_GRACE: Duration = Duration::from_secs(20);

/// Between two looks at what a killed warden has left.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How long the processes of a server may take to stand after SIGSTOP.
const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// How long a process may be in the middle of a fork.
const IN_FORK_MOST: Duration = Duration::from_millis(50);
/// How long the children of a server whose warden was killed may take to end.
const ORPHANS_GRACE: Duration = Duration::from_secs(2);

/// Signals by which servers are asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// Postgres: disconnect everybody and shut down (fast).
    Int,
    /// MySQL, MariaDB: shut down.
    Term,
    /// Postgres: end at once, recover at the next start (immediate).
    Quit,
    /// Ends anything.
    Kill,
}

impl StopSignal {
    pub(super) fn name(self) -> &'static str {
        match self {
            StopSignal::Int => "INT",
            StopSignal::Term => "TERM",
            StopSignal::Quit => "QUIT",
            StopSignal::Kill => "KILL",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<StopSignal> {
        [StopSignal::Int, StopSignal::Term, StopSignal::Quit, StopSignal::Kill]
            .into_iter()
            .find(|signal| signal.name() == name)
    }

    pub(super) fn signal(self) -> Signal {
        match self {
            StopSignal::Int => Signal::INT,
            StopSignal::Term => Signal::TERM,
            StopSignal::Quit => Signal::QUIT,
            StopSignal::Kill => Signal::KILL,
        }
    }
}

/// The way to end a tree: the signal goes to its root; after the timeout the rest is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    /// For the root of the tree.
    pub signal: StopSignal,
    /// Milliseconds until the rest is killed.
    pub timeout_ms: u64,
}

impl StopOrder {
    /// At once.
    pub const HARD: StopOrder = StopOrder { signal: StopSignal::Kill, timeout_ms: 0 };
}

/// A process for a warden to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpec {
    /// The program, as an absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment: nothing is inherited, so that a run does not depend on the shell
    /// that started it.
    pub env: BTreeMap<String, String>,
    /// Its working folder, which the user of `run_as` must be able to enter.
    pub folder: PathBuf,
    /// The file for its standard input; `None` for an empty one.
    pub stdin: Option<PathBuf>,
    /// Standard output and error are appended here.
    pub log: PathBuf,
    /// Only when rqps runs as root.
    pub run_as: Option<Identity>,
    /// A control group that it is started in. If rqps is gone before it, the warden removes it.
    pub memory_group: Option<PathBuf>,
    /// The warden makes this folder, which only the process may enter, and removes it with all in
    /// it after the last process has ended. It must be new; if the folder above it is not there,
    /// the warden makes that one, too, for its own user. In a place for everyone, the outer one has
    /// a name that nobody foresees.
    pub private_folder: Option<PathBuf>,
    /// The way to end the tree if rqps is gone.
    pub on_loss: StopOrder,
}

/// An error of a warden or its process.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// A program or a signal.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted, and its object.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It did not start, or does not end.
    #[error("{0}")]
    Failed(String),
}

/// The lab's side: a running process and the warden that watches it. Dropping it ends both.
#[derive(Debug)]
pub struct Warden {
    child: Child,
    commands: Option<ChildStdin>,
    server: u32,
    said: Arc<Said>,
    private_folder: Option<PathBuf>,
    log: PathBuf,
    /// Shared memory of the server, and its user.
    memory: (BTreeSet<SharedPiece>, u32),
    /// The time before it was started.
    begun: SystemTime,
}

/// The messages of the warden so far.
#[derive(Debug, Default)]
struct Said {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Starting,
    Running(u32),
    Failed(String),
    Exited(String),
    /// The warden fell silent before it said how its process ended.
    Gone,
}

impl Said {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// Waits until the state satisfies `done`, at most `limit`. Returns the state at the end.
    fn wait(&self, limit: Duration, done: impl Fn(&State) -> bool) -> State {
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), limit, |state| !done(state))
            .unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }
}

impl Warden {
    /// Starts `job` under a warden. `program_self` is the program of rqps: the warden is its hidden
    /// subcommand [`WARDEN_COMMAND`]. Returns when the process has started (not when it is ready).
    pub fn spawn(job: &ProcessSpec, program_self: &Path) -> Result<Warden, ProcessError> {
        let (program, warden) = (job.program.display(), program_self.display());
        let doing = format!("start {program} through {warden}");
        let fault = |source| ProcessError::Io { doing: doing.clone(), source };
        let begun = SystemTime::now();
        let mut child = child::command(program_self, ChildTask::Work)
            .arg(WARDEN_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(fault)?;
        let said = Arc::new(Said::default());
        if let Some(output) = child.stdout.take() {
            let said = Arc::clone(&said);
            thread::spawn(move || listen(output, &said));
        }
        let commands = child.stdin.take();
        let memory = (BTreeSet::new(), job.uid());
        let (private_folder, log) = (job.private_folder.clone(), job.log.clone());
        let mut warden =
            Warden { child, commands, server: 0, said, private_folder, log, memory, begun };
        let mut line = serde_json::to_string(job).map_err(io::Error::other).map_err(fault)?;
        line.push('\n');
        // If the warden is gone already, what it said explains it better than "broken pipe".
        let sent = warden.send(&line);
        match warden.said.wait(WARDEN_GRACE, |state| *state != State::Starting) {
            State::Running(pid) => warden.server = pid,
            // A process that ended at once: `has_exited` says how.
            State::Exited(_) if sent.is_ok() => {}
            State::Failed(why) => {
                return Err(ProcessError::Failed(format!("start {program}: {why}")));
            }
            _ => {
                let silence = io::Error::other("it does not answer like a warden");
                return Err(fault(sent.err().unwrap_or(silence)));
            }
        }
        Ok(warden)
    }

    /// The process that was asked for; all others of the server descend from it or were adopted by
    /// the warden.
    pub fn server_pid(&self) -> u32 {
        self.server
    }

    /// All processes of the server, root first.
    pub fn tree(&self) -> Vec<u32> {
        tree(self.child.id()).split_off(1)
    }

    /// Looks at the shared memory of the server, which may stay on the host when it ends.
    pub fn look_at_memory(&mut self) {
        self.memory.0.extend(shared_memory::mapped_by(self.tree()));
    }

    /// Stops all processes of the server from running (SIGSTOP). One that the kernel does not let
    /// stop is not waited for longer than [`STOPS_WITHIN`].
    pub fn pause(&self) -> Result<(), ProcessError> {
        // The root first, so that it starts no more children; then until nothing new is seen. A
        // process may be about to have a child until it stands. In a wait that nothing ends it
        // stands, too: for a disk, or after vfork for a child that was stopped first.
        let (mut stopped, begun) = (Vec::new(), Instant::now());
        loop {
            let states = if begun.elapsed() > IN_FORK_MOST { "TtZXD" } else { "TtZX" };
            let stands = |pid: &u32| stat_of(*pid).map_or(true, |stat| states.contains(stat.state));
            let is_still = stopped.iter().all(stands) || begun.elapsed() > STOPS_WITHIN;
            let new: Vec<u32> =
                self.tree().into_iter().filter(|pid| !stopped.contains(pid)).collect();
            if new.is_empty() && is_still {
                return Ok(());
            }
            if new.is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
            for pid in new {
                send(pid, Signal::STOP, "SIGSTOP")?;
                stopped.push(pid);
            }
        }
    }

    /// Lets all processes of the server run again (SIGCONT).
    pub fn resume(&self) -> Result<(), ProcessError> {
        // The root last: what it waits for runs already.
        for pid in self.tree().into_iter().rev() {
            send(pid, Signal::CONT, "SIGCONT")?;
        }
        Ok(())
    }

    /// The end of the process ([`CLEAN_EXIT`], `exit status 1`, `killed by signal 9`); `None` while
    /// it runs.
    pub fn has_exited(&self) -> Option<String> {
        match &*self.said.lock() {
            State::Exited(status) | State::Failed(status) => Some(status.clone()),
            State::Gone => Some("its warden, which was killed".to_owned()),
            State::Starting | State::Running(_) => None,
        }
    }

    /// Waits at most `limit` for the process to end by itself; see [`Warden::has_exited`].
    pub fn wait(&self, limit: Duration) -> Option<String> {
        self.said.wait(limit, State::is_over);
        self.has_exited()
    }

    /// Ends the process: resumes it, sends `signal` to it, kills all that is left after `timeout`,
    /// and removes its private folder. Returns how it ended. Does nothing if it has ended.
    pub fn stop(&mut self, signal: StopSignal, timeout: Duration) -> Result<String, ProcessError> {
        let milliseconds = timeout.as_millis();
        // A warden that is gone does not take commands; the state tells.
        let _ = self.send(&format!("stop {} {milliseconds}\n", signal.name()));
        self.wait_for_end(timeout + WARDEN_GRACE)
    }

    /// As [`Warden::stop`], but a process that is there after `patience` gets the harder order. Tells
    /// whether that was needed.
    pub fn stop_or(
        &mut self,
        signal: StopSignal,
        patience: Duration,
        harder: StopOrder,
    ) -> Result<(String, bool), ProcessError> {
        // The warden kills nothing before the harder order comes.
        let milliseconds = (patience + WARDEN_GRACE).as_millis();
        let _ = self.send(&format!("stop {} {milliseconds}\n", signal.name()));
        let is_needed = self.wait(patience).is_none();
        let order = if is_needed { harder } else { StopOrder { signal, ..harder } };
        let status = self.stop(order.signal, Duration::from_millis(order.timeout_ms))?;
        Ok((status, is_needed))
    }

    /// Waits until the warden says that all is over; kills what is left when it does not.
    fn wait_for_end(&mut self, limit: Duration) -> Result<String, ProcessError> {
        let state = self.said.wait(limit, State::is_over);
        let stuck = !state.is_over();
        if stuck {
            for pid in tree(self.child.id()) {
                let _ = send(pid, Signal::KILL, "SIGKILL");
            }
        }
        self.commands = None;
        if stuck {
            // Even SIGKILL ends no process in an uninterruptible system call.
            let (pid, seconds) = (self.server, limit.as_secs());
            return Err(ProcessError::Failed(format!(
                "end process {pid}: it or one of its children is still running after {seconds} s; \
                 a disk that does not respond may block it (see its state in /proc/{pid}/status)"
            )));
        }
        if state == State::Gone {
            self.end_orphans();
        }
        let _ = self.child.wait();
        if let (State::Gone, Some(folder)) = (&state, &self.private_folder) {
            // A warden that was killed could not remove it.
            remove_private_folder(folder);
        }
        self.remove_memory(state == State::Gone);
        Ok(self.has_exited().unwrap_or_default())
    }

    /// Ends what a killed warden has left of its process group, and who writes to the log of the
    /// server. The server ends with its warden, but its children may not: those of Postgres have
    /// groups of their own, and do not see its end while they are paused. Until the warden is
    /// waited for, nobody else has a group of its id.
    fn end_orphans(&self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // There may be none left.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        for pid in tree::all_processes().filter(|pid| writes_to(*pid, &self.log)) {
            let _ = send(pid, Signal::KILL, "SIGKILL");
        }
    }

    /// Removes what a server has left that ended by itself, or whose warden `is_gone`, killed: then
    /// its children end when they see that, and what they map is nobody's only afterwards.
    fn remove_memory(&self, is_gone: bool) {
        let (known, uid) = &self.memory;
        let begun = Instant::now();
        loop {
            let mut pieces = known.clone();
            pieces.extend(shared_memory::left_since(self.begun, *uid));
            let is_used = shared_memory::remove_abandoned(&pieces, *uid);
            let limit = match (is_used, is_gone) {
                (true, _) => WARDEN_GRACE,
                (false, true) => ORPHANS_GRACE,
                (false, false) => return,
            };
            if begun.elapsed() >= limit {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        match &mut self.commands {
            Some(commands) => commands.write_all(line.as_bytes()),
            None => Ok(()),
        }
    }
}

impl State {
    fn is_over(&self) -> bool {
        matches!(self, State::Exited(_) | State::Failed(_) | State::Gone)
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        // As if rqps were gone: quickly, but so that nothing stays in the kernel (Postgres keeps
        // shared memory when it is killed).
        self.commands = None;
        let _ = self.wait_for_end(WARDEN_GRACE);
    }
}

/// Reads what the warden says until it ends.
fn listen(output: impl Read, said: &Said) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match word {
            "pid" => {
                if let Ok(pid) = rest.parse() {
                    said.set(State::Running(pid));
                }
            }
            "exited" => said.set(State::Exited(rest.to_owned())),
            "failed" => said.set(State::Failed(rest.to_owned())),
            _ => {}
        }
    }
    if !said.lock().is_over() {
        said.set(State::Gone);
    }
}

/// All processes of the tree of `root`, `root` first, parents before children. A process that is
/// gone has only itself.
///
/// All of /proc is read, unlike in [`crate::tree::processes`]: the kernel's lists of children
/// may lack some while others come and go, and here none may be missed.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children = tree::children_of_all();
    let (mut found, mut next) = (vec![root], 0);
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// The parent of a process, or `None` if there is no such process.
pub fn parent_of(pid: u32) -> Option<u32> {
    Some(stat_of(pid).ok()?.parent)
}

/// The short name of a process (`postgres`, at most 15 bytes), or `None` if there is none.
pub fn name_of(pid: u32) -> Option<String> {
    Some(stat_of(pid).ok()?.name)
}

/// The process that listens on a unix socket, if it is on this host and in this namespace.
pub fn owner_of_unix_socket(path: &Path) -> Option<u32> {
    let stream = UnixStream::connect(path).ok()?;
    let owner = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    u32::try_from(owner.pid.as_raw_nonzero().get()).ok()
}

/// The process that listens at a TCP port of this host, as far as this process may look.
pub fn owner_of_port(port: u16) -> Option<u32> {
    const LISTENS: &str = "0A";
    let end = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).ok());
    let sockets: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields.get(1)?.ends_with(&end) && *fields.get(3)? == LISTENS;
            is_it.then(|| format!("socket:[{}]", fields.get(9).copied().unwrap_or_default()))
        })
        .collect();
    let has_it = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Workers inherit the socket; the first process opened it.
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has_it).min()
}

/// Sends a signal; a process that is gone already is no error.
pub(super) fn send(pid: u32, signal: Signal, name: &'static str) -> Result<(), ProcessError> {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    match rustix::process::kill_process(target, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(ProcessError::Io {
            doing: format!("send {name} to process {pid}"),
            source: errno.into(),
        }),
    }
}

/// True if the standard output or error of a process goes to this file.
fn writes_to(pid: u32, log: &Path) -> bool {
    // A link to /dev/null would name half of the processes of the host.
    let Some(log) = fs::symlink_metadata(log).ok().filter(fs::Metadata::is_file) else {
        return false;
    };
    let is_log = |fd| {
        let written = fs::metadata(format!("/proc/{pid}/fd/{fd}"));
        written.is_ok_and(|it| (it.dev(), it.ino()) == (log.dev(), log.ino()))
    };
    [1, 2].into_iter().any(is_log)
}

// Stops the processes of a tree from running and lets them run again, many times a second: by
// handles of the processes, so that a signal never meets another process with an old number.

/// The processes of one tree.
#[derive(Debug)]
pub struct ProcessFreezer {
    root: u32,
    members: Vec<(u32, OwnedFd)>,
}

impl ProcessFreezer {
    /// The tree below `root`, as it is now.
    pub fn of(root: u32) -> ProcessFreezer {
        let mut freezer = ProcessFreezer { root, members: Vec::new() };
        freezer.refresh();
        freezer
    }

    /// Looks again who belongs to it: a fraction of a millisecond. What has ended is left out; what
    /// has lost its root runs again, because nobody else lets it.
    pub fn refresh(&mut self) {
        let now = tree::processes(self.root).unwrap_or_default();
        self.members
            .extract_if(.., |(pid, _)| !now.contains(pid))
            .for_each(|member| signal(&member, Signal::CONT));
        for pid in now {
            if self.members.iter().any(|(known, _)| *known == pid) {
                continue;
            }
            let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
            if let Some(handle) = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
            {
                self.members.push((pid, handle));
            }
        }
    }

    /// Stops all that were there at the last refresh, the root first.
    pub fn freeze(&self) {
        self.members.iter().for_each(|member| signal(member, Signal::STOP));
    }

    /// True if all threads of the root have stopped, or it has ended. The root must be a child of
    /// this process.
    pub fn has_root_stopped(&self) -> bool {
        let how = WaitIdOptions::STOPPED
            | WaitIdOptions::EXITED
            | WaitIdOptions::NOWAIT
            | WaitIdOptions::NOHANG;
        let root = self.members.iter().find(|(pid, _)| *pid == self.root);
        // An error: its parent has collected it.
        root.is_none_or(|(_, root)| {
            waitid(WaitId::PidFd(root.as_fd()), how).map_or(true, |status| status.is_some())
        })
    }

    /// Lets them run again, the root last: what it waits for runs already.
    pub fn thaw(&self) {
        self.members.iter().rev().for_each(|member| signal(member, Signal::CONT));
    }
}

impl Drop for ProcessFreezer {
    /// Nothing is left standing by a process that ends in order.
    fn drop(&mut self) {
        self.thaw();
    }
}

/// One that has ended needs no signal.
fn signal((_, handle): &(u32, OwnedFd), signal: Signal) {
    let _ = pidfd_send_signal(handle, signal);
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_listening_port_leads_to_its_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(owner_of_port(port), Some(std::process::id()));
    }

    #[test]
    fn a_tree_begins_with_its_root_and_holds_its_children() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let found = tree(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found[0], std::process::id());
        assert!(found.contains(&child.id()));
        assert_eq!(tree(child.id()), [child.id()]);
    }

    fn state(pid: u32) -> char {
        tree::stat_of(pid).map_or('?', |stat| stat.state)
    }

    fn until(pid: u32, stopped: bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while (state(pid) == 'T') != stopped {
            assert!(Instant::now() < deadline, "process {pid} is {}", state(pid));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_tree_stands_still_and_goes_on() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60 & echo; wait"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0];
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut all = ProcessFreezer::of(child.id());
        let pids: Vec<u32> = all.members.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(pids.len(), 3);
        all.freeze();
        pids.iter().for_each(|pid| until(*pid, true));
        all.thaw();
        pids.iter().for_each(|pid| until(*pid, false));
        all.freeze();
        pids.iter().for_each(|pid| until(*pid, true));
        drop(all);
        pids.iter().for_each(|pid| until(*pid, false));
        for pid in &pids {
            signal(
                &(0, pidfd_open(Pid::from_raw(*pid as i32).unwrap(), PidfdFlags::empty()).unwrap()),
                Signal::KILL,
            );
        }
        child.wait().unwrap();
        all = ProcessFreezer::of(pids[0]);
        assert!(all.members.is_empty());
    }

    #[test]
    fn a_log_that_is_a_link_names_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let [log, link] = ["log", "link"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&log, &link).unwrap();
        let mut writer = Command::new("sleep");
        let mut writer = writer.arg("60").stdout(fs::File::create(&log).unwrap()).spawn().unwrap();
        assert!(writes_to(writer.id(), &log));
        assert!(!writes_to(writer.id(), &link) && !writes_to(writer.id(), Path::new("/dev/null")));
        writer.kill().unwrap();
        writer.wait().unwrap();
    }

    /// The root was killed while its children stood: they run on when the tree is looked at again.
    #[test]
    fn what_has_lost_its_root_does_not_stand_for_ever() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped());
        let mut root = command.spawn().unwrap();
        let mut line = String::new();
        let output = std::io::BufReader::new(root.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut { output }, &mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        let mut all = ProcessFreezer::of(root.id());
        all.freeze();
        until(child, true);
        root.kill().unwrap();
        root.wait().unwrap();
        all.refresh();
        until(child, false);
        send(child, Signal::KILL, "SIGKILL").unwrap();
    }
}
