//! The warden's side of `process.rs`: starts a server, and ends the whole of its tree when it is
//! asked to or when the lab is gone.

#![allow(unsafe_code)] // One block: `pre_exec` in `ProcessSpec::start`.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, Signal, WaitOptions};
use signal_hook::consts::signal::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::beneath::{self, Folder};
use crate::lock::PrivateFolder;
use crate::process::{ProcessSpec, StopOrder, StopSignal, send, tree};
use crate::{cgroup, shared_memory};
use rqps_model::safe_path;

/// Time between two looks at the tree while it is being ended.
const END_POLL: Duration = Duration::from_millis(10);

/// The warden itself: reads its job from standard input, starts the process, and ends its tree when
/// asked to or when standard input closes. This is the whole of the hidden subcommand.
pub fn main() -> ExitCode {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(0) => return ExitCode::SUCCESS,
        Ok(_) => {}
        Err(error) => return refuse(&format!("read the job: {error}")),
    }
    let job: ProcessSpec = match serde_json::from_str(&line) {
        Ok(job) => job,
        Err(error) => return refuse(&format!("understand the job: {error}")),
    };
    match guard(&job, input) {
        Ok(status) => {
            say(&format!("exited {status}"));
            ExitCode::SUCCESS
        }
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(why: &str) -> ExitCode {
    say(&format!("failed {}", why.replace('\n', " ")));
    ExitCode::FAILURE
}

/// Tells the lab. Nobody listens after the lab is gone, and that is no reason to fail.
#[expect(clippy::disallowed_methods, reason = "the lab listens there")]
fn say(line: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// An event for a warden. It sleeps until one comes, because it must not disturb the measurement.
enum Event {
    /// Some child has ended.
    Child,
    /// The lab asks to end the tree.
    Stop(StopOrder),
    /// The lab is gone.
    Lost,
}

/// Starts the process and stays until all of its tree is gone. Returns how it ended.
fn guard(job: &ProcessSpec, input: impl BufRead + Send + 'static) -> io::Result<String> {
    // Orphans of the tree become children of this process, so that none gets away.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    allow_many_files();
    let (tell, events) = mpsc::channel();
    // Before the start, so that an early death is not missed.
    watch_signals(tell.clone())?;
    // Made here, not by the lab: whoever kills the lab at any moment leaves no folder.
    let folder = job.private_folder.as_deref();
    let _folder = folder.map(|path| PrivateFolder::make(path, job.run_as)).transpose()?;
    let begun = SystemTime::now();
    let root = match &job.memory_group {
        Some(group) => cgroup::start_in(group, || job.start())?,
        None => job.start()?,
    };
    // Where memory runs out, the one that cleans up goes last. Only root may say so.
    let _ = safe_path::write(Path::new("/proc/self/oom_score_adj"), "-1000");
    say(&format!("pid {root}"));
    thread::spawn(move || watch_commands(input, &tell));
    let mut status = None;
    let mut lost = false;
    let stop = loop {
        match events.recv() {
            Ok(Event::Child) => {
                reap(root, &mut status);
                if status.is_some() {
                    break StopOrder::HARD;
                }
            }
            Ok(Event::Stop(stop)) => break stop,
            Ok(Event::Lost) | Err(_) => {
                lost = true;
                break job.on_loss;
            }
        }
    };
    lost |= end_tree(job, root, stop, &events, &mut status);
    let left = shared_memory::left_since(begun, job.uid());
    shared_memory::remove_abandoned(&left, job.uid());
    // Its owner can start again in it, and removes it, while there is one.
    if let Some(group) = job.memory_group.as_ref().filter(|_| lost) {
        cgroup::remove(group);
    }
    Ok(status.unwrap_or_else(|| "unknown status".to_owned()))
}

/// Servers size their caches of open tables by this limit, and shells differ in it: take all that
/// is allowed.
fn allow_many_files() {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

impl ProcessSpec {
    /// The user of the process.
    pub(super) fn uid(&self) -> u32 {
        let own = || rustix::process::geteuid().as_raw();
        self.run_as.map_or_else(own, |user| user.uid)
    }

    /// Starts the process and returns its id.
    fn start(&self) -> io::Result<u32> {
        let named = |what: &str, path: &Path| {
            let place = format!("{what} {}", path.display());
            move |error: io::Error| io::Error::new(error.kind(), format!("{place}: {error}"))
        };
        let log = beneath::to_append(&self.log).map_err(named("open the log", &self.log))?;
        let stdin = match &self.stdin {
            Some(path) => {
                let opened =
                    Folder::above(path).and_then(|(above, name)| above.read_of(name, None));
                Stdio::from(opened.map_err(named("open", path))?)
            }
            None => Stdio::null(),
        };
        #[expect(clippy::disallowed_methods, reason = "its environment is told by the lab")]
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(&self.env).current_dir(&self.folder);
        command.stdin(stdin).stdout(log.try_clone()?).stderr(log);
        if let Some(identity) = self.run_as {
            // The standard library drops supplementary groups too when root gives up its user.
            command.uid(identity.uid).gid(identity.gid);
        }
        // SAFETY: between fork and exec the closure makes system calls and touches no memory
        // that another thread could hold locked.
        unsafe {
            command.pre_exec(|| {
                // If the warden itself is killed, its process ends with it.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                Ok(rustix::thread::set_no_new_privs(true)?)
            });
        }
        let folder = self.folder.display();
        let hint = |error: io::Error| {
            io::Error::new(error.kind(), format!("{error} (working folder {folder})"))
        };
        Ok(command.spawn().map_err(hint)?.id())
    }
}

/// Turns signals into events. A warden that is asked to end treats it as the loss of the lab.
fn watch_signals(tell: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let event = if signal == SIGCHLD { Event::Child } else { Event::Lost };
            if tell.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Turns lines of the lab into events; the end of input means that the lab is gone.
fn watch_commands(input: impl BufRead, tell: &Sender<Event>) {
    for line in input.lines().map_while(Result::ok) {
        if let Some(stop) = parse_stop(&line)
            && tell.send(Event::Stop(stop)).is_err()
        {
            return;
        }
    }
    let _ = tell.send(Event::Lost);
}

/// `stop SIGNAL TIMEOUT_MS`.
pub(super) fn parse_stop(line: &str) -> Option<StopOrder> {
    let mut words = line.split_ascii_whitespace();
    (words.next()? == "stop").then_some(())?;
    let signal = StopSignal::from_name(words.next()?)?;
    Some(StopOrder { signal, timeout_ms: words.next()?.parse().ok()? })
}

/// Collects all children that have ended; keeps the status of `root`. Returns true if no child is
/// left at all, adopted ones counted: then nothing is left of the tree.
fn reap(root: u32, status: &mut Option<String>) -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, how))) => {
                if u32::try_from(pid.as_raw_nonzero().get()) == Ok(root) {
                    *status = Some(match (how.exit_status(), how.terminating_signal()) {
                        (Some(code), _) => format!("exit status {code}"),
                        (None, Some(signal)) => format!("killed by signal {signal}"),
                        (None, None) => "unknown status".to_owned(),
                    });
                }
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => return false,
            Err(_) => return true,
        }
    }
}

/// Ends every process below this one, the root in good order if there is time. Returns true if the
/// lab was lost meanwhile.
fn end_tree(
    job: &ProcessSpec,
    root: u32,
    mut stop: StopOrder,
    events: &Receiver<Event>,
    status: &mut Option<String>,
) -> bool {
    let own = std::process::id();
    // A killed process cannot free it.
    let mut shared_memory = BTreeSet::new();
    let signal_all = |signal| {
        for pid in tree(own).into_iter().skip(1) {
            let _ = send(pid, signal, "");
        }
    };
    // A stopped process cannot shut down.
    signal_all(Signal::CONT);
    let mut deadline = Instant::now() + Duration::from_millis(stop.timeout_ms);
    let (mut ask, mut lost) = (true, false);
    loop {
        if reap(root, status) {
            shared_memory::remove_abandoned(&shared_memory, job.uid());
            return lost;
        }
        let hard = stop.signal == StopSignal::Kill;
        if status.is_none() && ask && !hard {
            let _ = send(root, stop.signal.signal(), stop.signal.name());
            ask = false;
        }
        if status.is_some() || hard || Instant::now() >= deadline {
            // Stopped, so that no more of it is made after the look.
            signal_all(Signal::STOP);
            shared_memory.extend(shared_memory::mapped_by(tree(own).into_iter().skip(1)));
            signal_all(Signal::KILL);
        }
        // A harder order may come while the first one is carried out.
        let more = match events.recv_timeout(END_POLL) {
            Ok(Event::Stop(more)) => more,
            Ok(Event::Lost) => {
                lost = true;
                job.on_loss
            }
            Ok(Event::Child) => continue,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(END_POLL);
                continue;
            }
        };
        deadline = deadline.min(Instant::now() + Duration::from_millis(more.timeout_ms));
        stop = more;
        ask = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_understood_or_ignored() {
        let check = |line, stop| assert_eq!(parse_stop(line), stop, "{line}");
        check("stop INT 500", Some(StopOrder { signal: StopSignal::Int, timeout_ms: 500 }));
        check("stop KILL 0", Some(StopOrder::HARD));
        check("stop HUP 0", None);
        check("stop TERM", None);
        check("stop TERM soon", None);
        check("start TERM 1", None);
    }
}
