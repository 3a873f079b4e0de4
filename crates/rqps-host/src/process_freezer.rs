//! Stops the processes of a tree from running and lets them run again, many times a second: by
//! handles of the processes, so that a signal never meets another process with an old number.

use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use crate::tree;

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

    /// Looks again who belongs to it: a fraction of a millisecond. What has ended is left out.
    pub fn refresh(&mut self) {
        let now = tree::processes(self.root).unwrap_or_default();
        self.members.retain(|(pid, _)| now.contains(pid));
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
}
