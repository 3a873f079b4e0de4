//! A run of rqps that is watched: what it says, which steps it has reported, how it ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::kinds::Role;
use crate::scene::below;

/// Between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A started rqps.
pub(crate) struct Running {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    began: Instant,
    reader: Option<thread::JoinHandle<()>>,
}

/// How it ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; 128 and the number of the signal that ended it.
    pub(crate) code: i32,
    pub(crate) lines: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command, output: &Path) -> Result<Running, String> {
        let file = fs::File::create(output).map_err(|error| error.to_string())?;
        command.args(["--progress", "json"]).stdout(file).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().map_err(|error| format!("start rqps: {error}"))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (told, from) = (Arc::clone(&lines), child.stderr.take().ok_or("no stderr")?);
        let reader = thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                told.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Running { child, lines, began, reader: Some(reader) })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or_default()
    }

    pub(crate) fn milliseconds(&self) -> u128 {
        self.began.elapsed().as_millis()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)) | Err(_))
    }

    /// Waits for so many lines of progress. False if it ends before.
    pub(crate) fn wait_for_lines(&mut self, count: u64) -> bool {
        while (self.lines().len() as u64) < count {
            if self.has_ended() {
                return false;
            }
            thread::sleep(LOOK_AGAIN);
        }
        true
    }

    /// Its end; `None` if that does not come in time. Then it is killed.
    pub(crate) fn end(mut self, limit: Duration) -> Result<Ended, Vec<String>> {
        let deadline = Instant::now() + limit;
        while !self.has_ended() {
            if Instant::now() > deadline {
                self.child.kill().ok();
                self.child.wait().ok();
                return Err(self.lines());
            }
            thread::sleep(LOOK_AGAIN);
        }
        let status = self.child.wait().unwrap_or_default();
        // Children may hold its stderr for a moment, or for ever.
        let reader = self.reader.take();
        let deadline = Instant::now() + Duration::from_secs(2);
        while reader.as_ref().is_some_and(|reader| !reader.is_finished()) {
            if Instant::now() > deadline {
                break;
            }
            thread::sleep(LOOK_AGAIN);
        }
        Ok(Ended { code: code(status), lines: self.lines() })
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Files of steps that are whole on disk, with their bytes.
pub(crate) fn steps(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_step = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        path.parent().is_some_and(|parent| parent.ends_with("steps")) && !name.starts_with('.')
    };
    // Elsewhere, what a cell has is not reported yet.
    let is_reported = |path: &PathBuf| !path.starts_with(out.join(".cells"));
    let files = below(out).into_iter().filter(is_step).filter(is_reported);
    files.filter_map(|path| fs::read(&path).ok().map(|bytes| (path, bytes))).collect()
}

/// Block, target and step of each measurement that was reported.
pub(crate) fn reported(lines: &[String]) -> Vec<(u64, String, String)> {
    let event = |line: &String| {
        let event: Json = serde_json::from_str(line).ok()?;
        let word = |name: &str| event[name].as_str().map(str::to_owned);
        (event["event"] == "measured").then_some(())?;
        Some((event["block"].as_u64()?, word("target")?, word("step")?))
    };
    lines.iter().filter_map(event).collect()
}

// Processes of this namespace, and the part that each has in a run.

/// A process that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) words: Vec<String>,
}

/// All that are not the first one or this one.
pub(crate) fn all() -> Vec<Process> {
    let me = i32::try_from(std::process::id()).unwrap_or_default();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let (state, parent) = (fields.next().unwrap_or("Z"), fields.next());
        if pid == 1 || pid == me || ["Z", "X", ""].contains(&state) {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let words = line.split_terminator('\0').map(str::to_owned).collect();
        let parent = parent.and_then(|parent| parent.parse().ok()).unwrap_or_default();
        found.push(Process { pid, parent, words });
    }
    found
}

impl Process {
    fn is(&self, word: &str) -> bool {
        self.words.iter().take(2).any(|it| it == word)
    }
}

/// Processes among `all` that have this part. `lab` is the rqps that was started.
pub(crate) fn of_role(all: &[Process], role: Role, lab: i32) -> Vec<i32> {
    let wardens: Vec<i32> = all.iter().filter(|one| one.is("warden")).map(|one| one.pid).collect();
    let is_server = |one: &&Process| wardens.contains(&one.parent);
    let servers: Vec<i32> = all.iter().filter(is_server).map(|one| one.pid).collect();
    let has_part = |one: &&Process| match role {
        Role::Lab => one.pid == lab,
        // Under valgrind, too.
        Role::Driver => one.words.iter().any(|word| word == "driver"),
        Role::Warden => wardens.contains(&one.pid),
        Role::Server => servers.contains(&one.pid),
        Role::Backend => servers.contains(&one.parent),
        Role::Far => one.is("block"),
        // The process that keeps a connection calls itself so: `ssh: /tmp/… [mux]`.
        Role::Ssh => one.words.first().is_some_and(|word| {
            word == "ssh" || word.ends_with("/ssh") || word.starts_with("ssh: ")
        }),
    };
    all.iter().filter(has_part).map(|one| one.pid).collect()
}

/// One that is gone is no error.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        kill_process(pid, signal).ok();
    }
}
