//! Processes of this namespace, and the part that each has in a run.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::kinds::Role;

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
