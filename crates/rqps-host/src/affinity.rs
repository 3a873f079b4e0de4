//! CPU affinity of threads, the server thread that serves a connection, and the counters of the CPU.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, CountAndTime, Counter};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thiserror::Error;

use crate::child::{self, ChildTask};
use crate::proc;
use crate::tree::{self, TreeError};
use rqps_model::benchmark::Placement;

/// A failed placement.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AffinityError {
    /// The operating system refused.
    #[error("pin {what} to CPUs {cpus:?}: {reason}")]
    Refused {
        /// `this thread`, `thread 123`.
        what: String,
        /// The intended CPUs.
        cpus: Vec<usize>,
        /// The reason.
        reason: String,
    },
    /// A CPU number that no set can hold, or no CPU at all.
    #[error("pin to CPUs {0:?}: not a valid set of CPUs")]
    NoSuchSet(Vec<usize>),
    /// The process cannot be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Disjoint sets need two CPUs.
    #[error(
        "place clients and server apart: rqps may use only {0} CPU; use --placement together or \
         os, or allow more CPUs"
    )]
    TooFew(usize),
    /// No CPU to place anything on.
    #[error("place clients: rqps may use no CPU")]
    NoCpu,
}

/// The CPUs that this process may use, ascending. Empty if the operating system does not tell.
pub fn allowed_cpus() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

fn cpu_set(cpus: &[usize]) -> Result<CpuSet, AffinityError> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(AffinityError::NoSuchSet(cpus.to_vec()));
        }
        set.set(cpu);
    }
    if cpus.is_empty() { Err(AffinityError::NoSuchSet(Vec::new())) } else { Ok(set) }
}

/// Pins the calling thread.
pub fn pin_thread(cpus: &[usize]) -> Result<(), AffinityError> {
    sched_setaffinity(None, &cpu_set(cpus)?).map_err(|error| AffinityError::Refused {
        what: "this thread".to_string(),
        cpus: cpus.to_vec(),
        reason: error.to_string(),
    })
}

/// Pins one thread of any process.
pub fn pin_tid(tid: u32, cpus: &[usize]) -> Result<(), AffinityError> {
    let gone = || AffinityError::Tree(TreeError::Gone(tid));
    let raw = i32::try_from(tid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    match sched_setaffinity(Some(raw), &cpu_set(cpus)?) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::SRCH) => Err(gone()),
        Err(error) => Err(AffinityError::Refused {
            what: format!("thread {tid}"),
            cpus: cpus.to_vec(),
            reason: error.to_string(),
        }),
    }
}

/// Pins all threads of a process. New threads inherit the set of the thread that starts them, so
/// the list is read again until it has no new thread.
pub fn pin_process(pid: u32, cpus: &[usize]) -> Result<(), AffinityError> {
    let mut done = BTreeSet::new();
    loop {
        let fresh: Vec<u32> =
            tree::threads(pid)?.into_iter().filter(|tid| !done.contains(tid)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        for tid in fresh {
            match pin_tid(tid, cpus) {
                // A thread may end at any time; the process itself is found gone by the next list.
                Ok(()) | Err(AffinityError::Tree(TreeError::Gone(_))) => done.insert(tid),
                Err(error) => return Err(error),
            };
        }
    }
}

/// Pins all threads of a process and of the processes below it.
pub fn pin_tree(root: u32, cpus: &[usize]) -> Result<(), AffinityError> {
    pin_process(root, cpus)?;
    for pid in tree::processes(root)?.into_iter().skip(1) {
        match pin_process(pid, cpus) {
            Ok(()) | Err(AffinityError::Tree(TreeError::Gone(_))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Thread → times that it was put on a CPU.
pub type ThreadSnapshot = BTreeMap<u32, u64>;

/// The number of times that each thread of a process was put on a CPU.
pub fn thread_snapshot(pid: u32) -> Result<ThreadSnapshot, TreeError> {
    let turns = tree::threads(pid)?.into_iter().filter_map(|tid| Some((tid, turns(pid, tid)?)));
    Ok(turns.collect())
}

/// Timeslices, or where the kernel does not count those, the times that it went to sleep.
fn turns(pid: u32, tid: u32) -> Option<u64> {
    let file = |name| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{name}")).ok();
    let timeslices = file("schedstat").and_then(|text| proc::sched_stat(&text).ok());
    match timeslices.filter(|stat| stat.timeslices > 0) {
        Some(stat) => Some(stat.timeslices),
        None => file("status").and_then(|text| proc::voluntary_switches(&text).ok()),
    }
}

/// The thread that was put on a CPU most often between two snapshots. Take one, send twenty pings
/// on a connection, take the other: the thread that answers it stands out. `None` if nobody moved
/// or two moved alike.
pub fn busiest_thread(before: &ThreadSnapshot, after: &ThreadSnapshot) -> Option<u32> {
    let mut moved: Vec<(u64, u32)> = after
        .iter()
        .map(|(tid, turns)| (turns.saturating_sub(before.get(tid).copied().unwrap_or(0)), *tid))
        .collect();
    moved.sort_unstable_by(|a, b| b.cmp(a));
    match moved.as_slice() {
        [(0, _), ..] | [] => None,
        [(first, _), (second, _), ..] if first == second => None,
        [(_, tid), ..] => Some(*tid),
    }
}

/// The CPUs of one client and of the server's side of its connection. An empty set means that it is
/// not pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuAssignment {
    /// The client's thread.
    pub client: Vec<usize>,
    /// The server's process or thread for its connection.
    pub server: Vec<usize>,
}

/// The CPUs of each client and its server side, among those that may be used.
///
/// Together: client i and its connection on CPU i mod n. Apart: the server on the lower half of the
/// CPUs, clients on the upper half (of an odd number, the server gets one more).
pub fn plan(
    placement: Placement,
    clients: u32,
    cpus: &[usize],
) -> Result<Vec<CpuAssignment>, AffinityError> {
    let clients = clients as usize;
    match placement {
        Placement::Os => Ok(vec![CpuAssignment::default(); clients]),
        _ if cpus.is_empty() => Err(AffinityError::NoCpu),
        Placement::Together => {
            let seats = cpus.iter().cycle().take(clients);
            Ok(seats.map(|&cpu| CpuAssignment { client: vec![cpu], server: vec![cpu] }).collect())
        }
        Placement::Apart if cpus.len() < 2 => Err(AffinityError::TooFew(cpus.len())),
        Placement::Apart => {
            let (server, client) = cpus.split_at(cpus.len().div_ceil(2));
            Ok(vec![CpuAssignment { client: client.to_vec(), server: server.to_vec() }; clients])
        }
    }
}

// The counters of the CPU, by perf_event_open: what threads execute in user space.

/// An event that a CPU or the kernel counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// Instructions executed.
    Instructions,
    /// Cycles of the CPU, at whatever frequency.
    Cycles,
    /// Nanoseconds on a CPU. The kernel counts them where the CPU counts nothing.
    TaskClock,
}

impl CountedEvent {
    fn builder(self) -> Builder<'static> {
        match self {
            CountedEvent::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            CountedEvent::Cycles => Builder::new(Hardware::CPU_CYCLES),
            CountedEvent::TaskClock => Builder::new(Software::TASK_CLOCK),
        }
    }
}

/// Counters of some threads, and of the threads and processes that they start.
pub struct EventCounters {
    /// For each event, a counter of each thread with its first reading.
    events: Vec<Vec<(Counter, CountAndTime)>>,
}

impl EventCounters {
    /// Counts these events from now on. Threads that have ended are left out.
    ///
    /// # Errors
    /// The CPU has no such counter, or rqps may not read it; the text says which.
    pub fn open(threads: &[u32], events: &[CountedEvent]) -> Result<EventCounters, String> {
        let counters = |event: &CountedEvent| -> io::Result<Vec<(Counter, CountAndTime)>> {
            let mut all = Vec::with_capacity(threads.len());
            for thread in threads {
                let thread = libc::pid_t::try_from(*thread).map_err(io::Error::other)?;
                let mut builder = event.builder();
                match builder.observe_pid(thread).any_cpu().inherit(true).enabled(true).build() {
                    Ok(mut counter) => {
                        let first = counter.read_count_and_time()?;
                        all.push((counter, first));
                    }
                    Err(error) if is(&error, Errno::SRCH) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(all)
        };
        let events: io::Result<Vec<_>> = events.iter().map(counters).collect();
        Ok(EventCounters { events: events.map_err(|error| reason(&error))? })
    }

    /// Takes the counts so far as zero.
    ///
    /// # Errors
    /// A counter cannot be read.
    pub fn begin(&mut self) -> Result<(), String> {
        for (counter, first) in self.events.iter_mut().flatten() {
            *first = counter.read_count_and_time().map_err(|error| reason(&error))?;
        }
        Ok(())
    }

    /// The sum over the threads for each event since [`EventCounters::begin`]. Where counters took
    /// turns because the CPU has too few, a thread's count is count × time enabled / time counting.
    ///
    /// # Errors
    /// A counter cannot be read, or had no turn.
    pub fn moved(&mut self) -> Result<Vec<f64>, String> {
        let sum = |counters: &mut Vec<(Counter, CountAndTime)>| {
            let mut sum = 0.0;
            for (counter, first) in counters {
                let now = counter.read_count_and_time().map_err(|error| reason(&error))?;
                sum += scaled(first, &now)?;
            }
            Ok(sum)
        };
        self.events.iter_mut().map(sum).collect()
    }
}

/// The change of one counter, extrapolated to the time in which it was to count.
fn scaled(first: &CountAndTime, now: &CountAndTime) -> Result<f64, String> {
    let count = now.count.saturating_sub(first.count) as f64;
    let enabled = now.time_enabled.saturating_sub(first.time_enabled) as f64;
    let counting = now.time_running.saturating_sub(first.time_running) as f64;
    match (enabled > 0.0, counting > 0.0) {
        (true, true) => Ok(count * enabled / counting),
        (true, false) => Err("another program has all counters of the CPU".to_owned()),
        // It was on no CPU.
        (false, _) => Ok(count),
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// The reason in words.
fn reason(error: &io::Error) -> String {
    if [Errno::NOENT, Errno::OPNOTSUPP, Errno::NODEV].iter().any(|errno| is(error, *errno)) {
        return "this CPU shows no counters of instructions and cycles; most virtual machines hide \
                them"
            .to_owned();
    }
    if [Errno::ACCESS, Errno::PERM].iter().any(|errno| is(error, *errno)) {
        return "rqps may not read the counters of the CPU: set kernel.perf_event_paranoid to 2 or \
                less, or give rqps CAP_PERFMON; containers also need a seccomp profile that \
                permits perf_event_open"
            .to_owned();
    }
    format!("read the counters of the CPU: {error}")
}

// Keeps CPUs from halting while something is measured.
//
// Waking a halted CPU of a virtual machine can cost more than a query (docs/measuring.md). The
// spinner is a process of its own, so that its CPU time can be told from everyone else's: one
// thread per CPU in the idle scheduling class, which gives way at once to any other thread. It
// also holds /dev/cpu_dma_latency at 0 where that can be opened, which keeps bare metal out of
// deep idle states. It ends when its standard input closes, so it cannot outlive its parent.

/// First word of the line by which a spinner says that it spins.
const READY: &str = "spinning:";

/// The reason why CPUs could not be kept awake.
#[derive(Debug, Error)]
pub enum SpinnerError {
    /// The process could not be started.
    #[error("start the spinner: {0}; use --idle os to do without it")]
    Start(io::Error),
    /// It ended before it said that it spins.
    #[error("start the spinner: it ended at once with {0:?}; use --idle os to do without it")]
    Ended(String),
    /// The scheduler does not let it be idle, and so it must not spin.
    #[error("enter the idle scheduling class: {0}")]
    Class(io::Error),
}

/// A spinner process; dropped, it is stopped.
#[derive(Debug)]
pub struct Spinner {
    child: Child,
    description: String,
}

impl Spinner {
    /// Starts `program spinner` and waits until it spins.
    pub fn start(program: &Path) -> Result<Spinner, SpinnerError> {
        let mut command = child::command(program, ChildTask::Work);
        command.arg("spinner");
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Result<Spinner, SpinnerError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().map_err(SpinnerError::Start)?;
        // From here on, dropping it ends the process.
        let mut spinner = Spinner { child, description: String::new() };
        let mut said = String::new();
        if let Some(out) = spinner.child.stdout.take() {
            for line in BufReader::new(out).lines() {
                let line = line.map_err(SpinnerError::Start)?;
                if let Some((_, told)) = line.split_once(READY) {
                    spinner.description = told.trim().to_string();
                    return Ok(spinner);
                }
                said.push_str(&line);
                said.push('\n');
            }
        }
        Err(SpinnerError::Ended(said))
    }

    /// Its process id, for [`crate::sample::CounterSampler`].
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A description: `1 thread on each of 2 CPUs, cpu_dma_latency held`.
    pub fn description(&self) -> &str {
        &self.description
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It may hang or be gone; both are well after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The spinner process itself: spins until `input` ends or the parent is gone. Writes one line to
/// `output` when it spins.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), SpinnerError> {
    let parent = rustix::process::getppid();
    let cpus = allowed_cpus();
    let latency = hold_latency();
    // Threads inherit both. Niced, its time shows as `nice` and not as `user` in /proc/stat.
    rustix::process::setpriority_process(None, 19).map_err(|e| SpinnerError::Class(e.into()))?;
    enter_idle_class().map_err(SpinnerError::Class)?;
    for &cpu in &cpus {
        std::thread::spawn(move || {
            // Not pinned, two might share a CPU and leave another one to halt; better than none.
            let _ = pin_thread(&[cpu]);
            loop {
                // The pause instruction, which leaves the core to a sibling thread.
                std::hint::spin_loop();
            }
        });
    }
    let held = if latency.is_some() { "held" } else { "unavailable" };
    let line = format!("{READY} 1 thread on each of {} CPUs, cpu_dma_latency {held}", cpus.len());
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(SpinnerError::Start)?;
    wait_for_end(input, parent);
    Ok(())
}

/// The end of `input` is the parent's end, however it came. Asking for the parent as well covers a
/// pipe that somebody else holds open.
fn wait_for_end(mut input: impl Read + Send + 'static, parent: Option<rustix::process::Pid>) {
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = ended.send(());
    });
    while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(Duration::from_secs(1)) {
        if rustix::process::getppid() != parent {
            return;
        }
    }
}

/// The wish for no latency holds as long as the file is open.
fn hold_latency() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0i32.to_ne_bytes()).ok()?;
    Some(file)
}

#[allow(unsafe_code)]
fn enter_idle_class() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and the struct outlives the call.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::tree;

    fn seats(seats: &[(&[usize], &[usize])]) -> Vec<CpuAssignment> {
        let seat = |(client, server): &(&[usize], &[usize])| CpuAssignment {
            client: client.to_vec(),
            server: server.to_vec(),
        };
        seats.iter().map(seat).collect()
    }

    #[test]
    fn together_goes_round_the_cpus_that_may_be_used() {
        let planned = plan(Placement::Together, 3, &[4, 6]).unwrap();
        assert_eq!(planned, seats(&[(&[4], &[4]), (&[6], &[6]), (&[4], &[4])]));
        assert_eq!(plan(Placement::Together, 1, &[]), Err(AffinityError::NoCpu));
    }

    #[test]
    fn apart_shares_no_cpu() {
        let planned = plan(Placement::Apart, 2, &[0, 1, 2]).unwrap();
        assert_eq!(planned, seats(&[(&[2], &[0, 1]), (&[2], &[0, 1])]));
        assert_eq!(plan(Placement::Apart, 1, &[3, 5]).unwrap(), seats(&[(&[5], &[3])]));
        let fault = plan(Placement::Apart, 1, &[3]).unwrap_err();
        assert!(fault.to_string().contains("--placement together"), "{fault}");
    }

    #[test]
    fn os_pins_nothing() {
        assert_eq!(plan(Placement::Os, 2, &[]).unwrap(), vec![CpuAssignment::default(); 2]);
    }

    #[test]
    fn the_busiest_stands_out_or_there_is_none() {
        let shot = |turns: &[(u32, u64)]| turns.iter().copied().collect::<ThreadSnapshot>();
        let check = |after: &[(u32, u64)], expected| {
            let before = shot(&[(1, 100), (2, 50), (3, 7)]);
            assert_eq!(busiest_thread(&before, &shot(after)), expected, "{after:?}");
        };
        check(&[(1, 103), (2, 71), (3, 7)], Some(2));
        check(&[(1, 103), (2, 50), (4, 20)], Some(4));
        check(&[(1, 100), (2, 50), (3, 7)], None);
        check(&[(1, 110), (2, 60), (3, 7)], None);
        check(&[], None);
        check(&[(3, 9)], Some(3));
    }

    #[test]
    fn a_thread_is_pinned_and_only_it() {
        let all = allowed_cpus();
        let last = *all.last().unwrap();
        let pinned = std::thread::spawn(move || {
            pin_thread(&[last]).unwrap();
            allowed_cpus()
        });
        assert_eq!(pinned.join().unwrap(), [last]);
        assert_eq!(allowed_cpus(), all);
        assert_eq!(pin_thread(&[]), Err(AffinityError::NoSuchSet(vec![])));
        assert!(matches!(pin_thread(&[1 << 20]), Err(AffinityError::NoSuchSet(_))));
    }

    fn cpus_of(tid: u32) -> Vec<usize> {
        let pid = Pid::from_raw(i32::try_from(tid).unwrap());
        let set = sched_getaffinity(pid).unwrap();
        (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
    }

    #[test]
    fn a_tree_is_pinned_whole() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let below: u32 = line.trim().parse().unwrap();
        let first = allowed_cpus()[0];
        pin_tree(child.id(), &[first]).unwrap();
        assert_eq!((cpus_of(child.id()), cpus_of(below)), (vec![first], vec![first]));
        // The shell's end does not end what it has in the background.
        let below = Pid::from_raw(i32::try_from(below).unwrap()).unwrap();
        let _ = rustix::process::kill_process(below, rustix::process::Signal::KILL);
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = pin_process(child.id(), &[first]).unwrap_err();
        assert_eq!(gone, AffinityError::Tree(TreeError::Gone(child.id())));
    }

    #[test]
    fn the_thread_that_answers_is_found() {
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answers) = mpsc::channel();
        let answering = std::thread::spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            while asked.recv().is_ok() {
                answer.send(tid).unwrap();
            }
        });
        ask.send(()).unwrap();
        let tid = u32::try_from(answers.recv().unwrap()).unwrap();
        let me = std::process::id();
        let before = thread_snapshot(me).unwrap();
        for _ in 0..200 {
            ask.send(()).unwrap();
            answers.recv().unwrap();
        }
        let after = thread_snapshot(me).unwrap();
        drop(ask);
        answering.join().unwrap();
        // The asking thread moves as often, and other tests run beside it: look at the count.
        let moved = |tid: u32| after[&tid].saturating_sub(before[&tid]);
        assert!(moved(tid) > 0, "{} {:?}", moved(tid), busiest_thread(&before, &after));
    }

    fn burn(milliseconds: u64) {
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(milliseconds) {
            std::hint::black_box(started);
        }
    }

    /// Opens a counter of nanoseconds; prints why if it cannot, and gives none.
    fn task_clock(threads: &[u32]) -> Option<EventCounters> {
        match EventCounters::open(threads, &[CountedEvent::TaskClock]) {
            Ok(counters) => Some(counters),
            Err(why) => {
                println!("SKIPPED: {why}");
                None
            }
        }
    }

    #[test]
    fn the_time_of_a_thread_and_of_those_that_it_starts_is_counted_once() {
        let (to_thread, orders) = mpsc::channel::<()>();
        let (answers, from_thread) = mpsc::channel();
        let busy = std::thread::spawn(move || {
            answers.send(tree::thread_id()).unwrap();
            orders.recv().unwrap();
            let before = tree::thread_cpu_ns();
            burn(30);
            let child = std::thread::spawn(|| {
                burn(30);
                tree::thread_cpu_ns()
            });
            let of_child = child.join().unwrap();
            tree::thread_cpu_ns() - before + of_child
        });
        let thread = from_thread.recv().unwrap();
        // A thread that does not exist is left out.
        let Some(mut counters) = task_clock(&[thread, u32::MAX / 2]) else { return };
        counters.begin().unwrap();
        to_thread.send(()).unwrap();
        let used = busy.join().unwrap() as f64;
        let counted = counters.moved().unwrap()[0];
        assert!((0.9..1.1).contains(&(counted / used)), "{counted} of {used}");
    }

    #[test]
    fn counters_that_took_turns_are_extrapolated() {
        let at =
            |count, time_enabled, time_running| CountAndTime { count, time_enabled, time_running };
        let first = at(100, 1000, 500);
        assert_eq!(scaled(&first, &at(300, 2000, 1000)), Ok(400.0));
        assert_eq!(scaled(&first, &at(300, 2000, 1500)), Ok(200.0));
        assert_eq!(scaled(&first, &first), Ok(0.0));
        assert!(scaled(&first, &at(100, 2000, 500)).unwrap_err().contains("another program"));
    }

    #[test]
    fn a_missing_counter_has_its_reason_and_a_way_out() {
        let why = |errno: Errno| reason(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(why(Errno::NOENT).contains("virtual machines"));
        assert!(why(Errno::ACCESS).contains("perf_event_paranoid"));
        assert!(why(Errno::MFILE).contains("open files"));
    }
}

#[cfg(test)]
mod spinner_tests {
    use super::*;
    use crate::tree;

    /// Not a test of its own: the other tests start it as the spinner process.
    #[test]
    #[ignore = "started by the other tests"]
    fn as_a_process() {
        serve(io::stdin(), &mut io::stdout()).unwrap();
    }

    fn spinner() -> Spinner {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--ignored",
            "--exact",
            "--nocapture",
            "affinity::spinner_tests::as_a_process",
        ]);
        Spinner::start_command(command).unwrap()
    }

    #[test]
    #[allow(unsafe_code)]
    fn it_spins_on_every_cpu_in_the_idle_class_and_ends_when_dropped() {
        let spinner = spinner();
        let pid = spinner.pid();
        let cpus = allowed_cpus().len();
        assert!(spinner.description().contains(&format!("each of {cpus} CPUs")));
        let mut idle = 0;
        for tid in tree::threads(pid).unwrap() {
            // SAFETY: the call takes a number and returns one.
            let class = unsafe { libc::sched_getscheduler(i32::try_from(tid).unwrap()) };
            idle += usize::from(class == libc::SCHED_IDLE);
        }
        assert!(idle >= cpus, "{idle} threads in the idle class, {cpus} CPUs");
        // It gives way to everyone, so this may take a while on a busy machine, but not for ever.
        let before = tree::process_clock_ns(pid).unwrap();
        while tree::process_clock_ns(pid).unwrap() <= before {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(spinner);
        assert_eq!(tree::stat_of(pid), Err(tree::TreeError::Gone(pid)));
    }

    #[test]
    fn it_ends_with_its_input() {
        let mut spinner = spinner();
        assert_eq!(spinner.child.try_wait().unwrap(), None);
        drop(spinner.child.stdin.take());
        // Without an end of its own it would spin, and this would wait, for ever. How it ended says
        // nothing: the harness around it may miss the standard output that nobody reads any more.
        spinner.child.wait().unwrap();
    }

    #[test]
    fn a_program_that_is_no_spinner_is_told() {
        let fault = Spinner::start(Path::new("/bin/true")).unwrap_err();
        assert!(matches!(fault, SpinnerError::Ended(_)), "{fault}");
        let fault = Spinner::start(Path::new("/no/such/program")).unwrap_err().to_string();
        assert!(fault.contains("--idle os"), "{fault}");
    }
}
