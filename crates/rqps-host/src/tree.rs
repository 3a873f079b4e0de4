//! The processes below a root: who they are, what CPU they used, what memory they hold.
//!
//! CPU time of a tree must not go back when a process in it ends. The kernel keeps two accounts per
//! process: its own time, and that of children which ended and were waited for. The sum of both
//! over all living processes is kept when a child ends, since its time moves into its parent's
//! second account. Three things disturb the sum, and [`TreeCpu`] answers each:
//!
//! * A child ends while the tree is being read. Parents are read before their children, so a
//!   reading can only miss time, never count it twice; and a reading during which a child vanished
//!   or an account of the waited-for moved is done again.
//! * The second account is told in ticks of 10 ms, rounded down once for user and once for system
//!   time, while the first is known to the nanosecond. So up to 20 ms hide when the first child
//!   ends. They do not add up: the kernel keeps the account itself exactly.
//! * So readings never report less than the one before: what hid shows up later.
//!
//! A child that ends and is waited for by nobody in the tree (its parent ignores SIGCHLD, or ended
//! first) takes its time along: the kernel keeps no account of it. Postgres waits for its backends,
//! and servers of threads have no children.

#![allow(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;

use rustix::time::ClockId;
use thiserror::Error;

use crate::clock;
use crate::proc::{self, ProcessStat};
use rqps_model::run::CpuTime;

/// The reason why a tree could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// There is no such process, or another one has its number now.
    #[error("process {0} has ended")]
    Gone(u32),
    /// /proc says something that is not understood.
    #[error("read process {pid}: {fault}")]
    Unreadable {
        /// The process.
        pid: u32,
        /// The problem.
        fault: String,
    },
}

/// Cumulative CPU time of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// User and system, ns.
    pub total_ns: u64,
    /// The user part in clock ticks: good for the split only.
    pub user_ticks: u64,
    /// The system part in clock ticks.
    pub system_ticks: u64,
}

impl Cpu {
    /// CPU time since `earlier`. The total is split like the ticks; in halves if no tick was
    /// counted.
    pub fn since(self, earlier: Cpu) -> CpuTime {
        let total_us = self.total_ns.saturating_sub(earlier.total_ns) as f64 / 1e3;
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let share = if user + system > 0.0 { user / (user + system) } else { 0.5 };
        CpuTime { user_us: total_us * share, system_us: total_us * (1.0 - share) }
    }

    fn at_least(self, other: Cpu) -> Cpu {
        Cpu {
            total_ns: self.total_ns.max(other.total_ns),
            user_ticks: self.user_ticks.max(other.user_ticks),
            system_ticks: self.system_ticks.max(other.system_ticks),
        }
    }
}

/// The source of CPU time of living processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterSource {
    /// The process CPU clock, ns.
    TaskClock,
    /// /proc/PID/stat, ticks of 10 ms.
    ProcStat,
}

impl CounterSource {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            CounterSource::TaskClock => "task clock",
            CounterSource::ProcStat => "proc stat",
        }
    }
}

/// Reads the CPU time of one tree again and again; the readings never go back.
#[derive(Clone, Debug)]
pub struct TreeCpu {
    root: u32,
    start: u64,
    source: CounterSource,
    tick_ns: u64,
    highest: Cpu,
}

impl TreeCpu {
    /// Watches the tree below `root`.
    pub fn new(root: u32) -> Result<Self, TreeError> {
        let stat = stat_of(root)?;
        let source = match process_clock_ns(root) {
            Ok(_) => CounterSource::TaskClock,
            Err(_) => CounterSource::ProcStat,
        };
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Ok(Self { root, start: stat.start, source, tick_ns, highest: Cpu::default() })
    }

    /// The source of the time of living processes.
    pub fn source(&self) -> CounterSource {
        self.source
    }

    /// The time used so far by the tree: the living, and the ended that were waited for.
    pub fn read(&mut self) -> Result<Cpu, TreeError> {
        // A tree that forks without end is never still; the fourth reading must do.
        for _ in 0..4 {
            let (cpu, still) = self.pass()?;
            self.highest = self.highest.at_least(cpu);
            if still {
                break;
            }
        }
        Ok(self.highest)
    }

    /// One reading, and whether the tree stood still meanwhile.
    fn pass(&self) -> Result<(Cpu, bool), TreeError> {
        let (mut cpu, mut still) = (Cpu::default(), true);
        let mut parents = Vec::new();
        let mut children = Children::default();
        let mut queue = VecDeque::from([self.root]);
        while let Some(pid) = queue.pop_front() {
            let stat = match stat_of(pid) {
                Ok(stat) if pid == self.root && stat.start != self.start => {
                    return Err(TreeError::Gone(pid));
                }
                Ok(stat) => stat,
                Err(TreeError::Gone(_)) if pid != self.root => {
                    still = false;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.own_ns(&stat) {
                Some(own_ns) => self.add(&mut cpu, &stat, own_ns),
                None => still = false,
            }
            let below = children.of(&stat);
            if !below.is_empty() || stat.waited_user + stat.waited_system > 0 {
                parents.push((pid, stat.waited_user, stat.waited_system));
            }
            queue.extend(below);
        }
        for (pid, user, system) in parents {
            let now = stat_of(pid);
            still &= now.is_ok_and(|now| (now.waited_user, now.waited_system) == (user, system));
        }
        Ok((cpu, still))
    }

    /// `None` if it has vanished.
    fn own_ns(&self, stat: &ProcessStat) -> Option<u64> {
        match self.source {
            CounterSource::TaskClock => process_clock_ns(stat.pid).ok(),
            CounterSource::ProcStat => Some((stat.user + stat.system).saturating_mul(self.tick_ns)),
        }
    }

    fn add(&self, cpu: &mut Cpu, stat: &ProcessStat, own_ns: u64) {
        let waited = stat.waited_user.saturating_add(stat.waited_system);
        cpu.total_ns += own_ns.saturating_add(waited.saturating_mul(self.tick_ns));
        cpu.user_ticks += stat.user.saturating_add(stat.waited_user);
        cpu.system_ticks += stat.system.saturating_add(stat.waited_system);
    }
}

/// The processes of the tree below `root` now, `root` first.
pub fn processes(root: u32) -> Result<Vec<u32>, TreeError> {
    let mut children = Children::default();
    let mut found = vec![root];
    let mut next = 0;
    let mut stat = stat_of(root)?;
    loop {
        found.extend(children.of(&stat));
        // A process that ends meanwhile is left out.
        stat = loop {
            next += 1;
            let Some(&pid) = found.get(next) else { return Ok(found) };
            match stat_of(pid) {
                Ok(stat) => break stat,
                Err(_) => {
                    found.remove(next);
                    next -= 1;
                }
            }
        };
    }
}

/// The threads of a process now.
pub fn threads(pid: u32) -> Result<Vec<u32>, TreeError> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| fault(pid, &error))?;
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Memory of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes.
    pub bytes: u64,
    /// Processes for which shared pages were divided among their users (Pss).
    pub proportional: u32,
    /// Processes of which only the resident set is known, so shared pages count again.
    pub resident: u32,
}

/// Resident memory of the tree below `root`. Walks page tables: milliseconds for a large cache, so
/// not for each second.
pub fn memory(root: u32) -> Result<Memory, TreeError> {
    let mut memory = Memory::default();
    for pid in processes(root)? {
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
        if let Some(bytes) = rollup.ok().and_then(|text| proc::proportional_bytes(&text).ok()) {
            memory.bytes += bytes;
            memory.proportional += 1;
            continue;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        if let Some(bytes) = status.ok().and_then(|text| proc::resident_bytes(&text).ok()) {
            memory.bytes += bytes;
            memory.resident += 1;
        }
    }
    if memory.proportional + memory.resident == 0 { Err(TreeError::Gone(root)) } else { Ok(memory) }
}

/// CPU time of this process so far, all threads.
pub fn own_cpu() -> Cpu {
    let stat = stat_of(std::process::id()).unwrap_or_default();
    Cpu {
        total_ns: clock::now(ClockId::ProcessCPUTime),
        user_ticks: stat.user,
        system_ticks: stat.system,
    }
}

/// The id of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// CPU time of the calling thread so far, ns.
pub fn thread_cpu_ns() -> u64 {
    clock::now(ClockId::ThreadCPUTime)
}

/// /proc/PID/stat.
pub fn stat_of(pid: u32) -> Result<ProcessStat, TreeError> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).map_err(|error| fault(pid, &error))?;
    let text = String::from_utf8_lossy(&bytes);
    proc::process_stat(&text)
        .map_err(|error| TreeError::Unreadable { pid, fault: error.to_string() })
}

/// A process that ends while its file is open gives ESRCH instead of ENOENT.
fn fault(pid: u32, error: &io::Error) -> TreeError {
    let ended = error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
    if ended {
        TreeError::Gone(pid)
    } else {
        TreeError::Unreadable { pid, fault: error.to_string() }
    }
}

/// CPU time of a process, all threads, the ended ones too, ns. Any process may be asked about.
pub fn process_clock_ns(pid: u32) -> io::Result<u64> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let mut id: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls only write to the one place whose address they are given, and it is alive.
    match unsafe { (libc::clock_getcpuclockid(pid, &mut id), libc::clock_gettime(id, &mut time)) } {
        (0, 0) => Ok(clock::nanoseconds(time.tv_sec, time.tv_nsec)),
        (0, _) => Err(io::Error::last_os_error()),
        (error, _) => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Finds children, the cheap way if there is one.
#[derive(Default)]
struct Children {
    /// Parent → children, from a look at every process of the host; made when first needed.
    all: Option<BTreeMap<u32, Vec<u32>>>,
}

/// Above this many threads a look at every process of the host costs less than one file per thread
/// (15 µs a process, 6 µs a thread on the machine where this was measured, with 126 processes).
const THREADS_ASKED: u32 = 256;

impl Children {
    fn of(&mut self, parent: &ProcessStat) -> Vec<u32> {
        if parent.threads <= THREADS_ASKED
            && self.all.is_none()
            && let Some(children) = children_by_thread(parent)
        {
            return children;
        }
        let all = self.all.get_or_insert_with(children_of_all);
        all.get(&parent.pid).cloned().unwrap_or_default()
    }
}

/// `None` if the kernel has no such files.
fn children_by_thread(parent: &ProcessStat) -> Option<Vec<u32>> {
    let pid = parent.pid;
    let tids = if parent.threads <= 1 { vec![pid] } else { threads(pid).ok()? };
    let mut children = Vec::new();
    for tid in tids {
        match fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
            Ok(text) => children.extend(text.split_ascii_whitespace().flat_map(str::parse::<u32>)),
            // A thread that ended hands its children to another one; a kernel without these files
            // has none for the main thread either.
            Err(_) if tid != pid => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

/// Parent → children, of all processes of the host.
pub(crate) fn children_of_all() -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for stat in all_processes().filter_map(|pid| stat_of(pid).ok()) {
        all.entry(stat.parent).or_default().push(stat.pid);
    }
    all
}

/// The numbers of all processes of the host.
pub(crate) fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that runs `script`, killed when the test ends.
    struct Shell(Child);

    impl Shell {
        fn run(script: &str) -> Shell {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            Shell(command.spawn().unwrap())
        }

        /// Lets a script that waits in `read` go on.
        fn tell(&mut self) {
            use std::io::Write;
            self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        }

        /// Waits for one line of the script.
        fn hear(&mut self) {
            use std::io::Read;
            let out = self.0.stdout.as_mut().unwrap();
            let mut byte = [0];
            while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {}
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A child of the shell that uses some CPU; the loop is short enough for a slow machine.
    const BURN: &str = "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";

    #[test]
    fn time_of_ended_children_is_kept() {
        let script = format!("echo; read x; {BURN}; {BURN}; {BURN}; echo; read x");
        let mut shell = Shell::run(&script);
        shell.hear();
        let mut tree = TreeCpu::new(shell.0.id()).unwrap();
        let before = tree.read().unwrap();
        shell.tell();
        shell.hear();
        let after = tree.read().unwrap();
        let stat = stat_of(shell.0.id()).unwrap();
        let waited_ns = (stat.waited_user + stat.waited_system) * tree.tick_ns;
        assert!(waited_ns > 0, "the children used less than a tick: the test shows nothing");
        let moved = after.total_ns - before.total_ns;
        assert!(moved >= waited_ns, "{moved} ns in the tree, {waited_ns} ns in ended children");
    }

    #[test]
    fn readings_never_go_back_while_children_come_and_go() {
        let script = format!("while :; do {BURN} & {BURN} & wait; done");
        let shell = Shell::run(&script);
        let mut tree = TreeCpu::new(shell.0.id()).unwrap();
        let mut last = tree.read().unwrap();
        let mut ended = 0;
        // Ends when a dozen children have been waited for, however slow the machine is.
        while ended < 12 {
            let now = tree.read().unwrap();
            assert!(now.total_ns >= last.total_ns, "{now:?} after {last:?}");
            assert!(now.user_ticks >= last.user_ticks && now.system_ticks >= last.system_ticks);
            let stat = stat_of(shell.0.id()).unwrap();
            ended = stat.waited_user + stat.waited_system;
            last = now;
        }
        // And nothing counts twice.
        let live: u64 = processes(shell.0.id())
            .unwrap()
            .into_iter()
            .filter_map(|pid| process_clock_ns(pid).ok())
            .sum();
        let stat = stat_of(shell.0.id()).unwrap();
        let waited = (stat.waited_user + stat.waited_system + 2) * tree.tick_ns;
        assert!(last.total_ns <= live + waited, "{} > {live} + {waited}", last.total_ns);
    }

    #[test]
    fn both_ways_to_find_children_agree() {
        let mut shell = Shell::run("sleep 60 & sh -c 'sleep 60 & echo; wait' & wait");
        shell.hear();
        let root = stat_of(shell.0.id()).unwrap();
        let found = processes(root.pid).unwrap();
        assert_eq!(found[0], root.pid);
        assert_eq!(found.len(), 4, "{found:?}");
        let all = children_of_all();
        let mut by_scan = all.get(&root.pid).cloned().unwrap();
        by_scan.sort_unstable();
        if let Some(mut by_thread) = children_by_thread(&root) {
            by_thread.sort_unstable();
            assert_eq!(by_thread, by_scan);
        }
        for pid in &found[1..] {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        }
    }

    #[test]
    fn an_ended_process_is_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        let mut tree = TreeCpu::new(child.id()).unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(tree.read(), Err(TreeError::Gone(pid)));
        assert_eq!(memory(pid), Err(TreeError::Gone(pid)));
        assert_eq!(TreeCpu::new(pid).unwrap_err().to_string(), format!("process {pid} has ended"));
    }

    #[test]
    fn a_zombie_keeps_its_time() {
        let mut child = Command::new("sh").args(["-c", BURN]).spawn().unwrap();
        let mut tree = TreeCpu::new(child.id()).unwrap();
        while stat_of(child.id()).unwrap().state != 'Z' {
            tree.read().unwrap();
            std::thread::yield_now();
        }
        assert!(tree.read().unwrap().total_ns > 0);
        child.wait().unwrap();
    }

    #[test]
    fn the_split_follows_the_ticks() {
        let cpu = |total_ns, user_ticks, system_ticks| Cpu { total_ns, user_ticks, system_ticks };
        let moved = cpu(5_000_000, 40, 12).since(cpu(1_000_000, 10, 2));
        assert_eq!(moved, CpuTime { user_us: 3000.0, system_us: 1000.0 });
        let still = cpu(5_000, 1, 1).since(cpu(1_000, 1, 1));
        assert_eq!(still, CpuTime { user_us: 2.0, system_us: 2.0 });
        assert_eq!(cpu(1, 1, 1).since(cpu(2, 2, 2)).total_us(), 0.0);
    }

    #[test]
    fn own_time_moves_with_work() {
        let (process, thread) = (own_cpu(), thread_cpu_ns());
        let mut sum = 0u64;
        while thread_cpu_ns() - thread < 1_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(own_cpu().total_ns - process.total_ns >= 1_000_000);
    }

    #[test]
    fn memory_counts_every_process_of_the_tree() {
        let mut shell = Shell::run("sleep 60 & echo; wait");
        shell.hear();
        let memory = memory(shell.0.id()).unwrap();
        assert_eq!(memory.proportional + memory.resident, 2);
        assert!(memory.bytes > 4096, "{memory:?}");
        for pid in &processes(shell.0.id()).unwrap()[1..] {
            let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
}
