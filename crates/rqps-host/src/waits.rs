//! Observes the waits of the threads that serve clients: looks at `/proc/PID/task/TID/syscall` many
//! times a second.
//!
//! The kernel's event `sched:sched_switch` would give each wait with its stack. But a server of
//! short statements sleeps and wakes tens of thousands of times a second, and perf would have to
//! write and read a record for each. A look costs microseconds, however often threads switch, needs
//! neither tracefs nor root, and works in containers.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{proc, tree};
use rqps_model::counted::Waited;

/// Looks per second: no divisor of the periods in which servers do something.
const HERTZ: u32 = 97;

/// After so many looks the time without a CPU is read.
const LOOKS_OF_QUEUES: u64 = 10;

/// Between two searches for threads that began since.
const SEARCH: Duration = Duration::from_secs(1);

/// A thread that waits longer than this for an event, or without end, waits for a client.
/// Background threads wake up to look for work.
const CLIENT_PATIENCE_MS: i32 = 600_000;

/// Threads of a client with a library in it that do its work have names that begin like this.
const CLIENT_THREADS: &str = "client ";

/// The state of a thread in a look.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    /// It runs, or is ready to run.
    Running,
    /// It waits for an event, for at most so many milliseconds (-1: without end), at the place that
    /// a number names, 0 if that is not known.
    Event { limit_ms: i32, place: u64 },
    /// It reads from or writes to what a descriptor names.
    Descriptor { number: u64, call: &'static str },
    /// Something else.
    Wait(&'static str),
    /// A system call that has no name here.
    Other(i64),
}

/// `202 0x7f.. 0x80 …`, `running`, `-1 0x7f.. 0x7f..`.
fn seen(text: &str) -> Option<Seen> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Seen::Running);
    }
    let number: i64 = first.parse().ok()?;
    let arguments: Vec<u64> =
        words.map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
    let argument = |place: usize| arguments.get(place).copied().unwrap_or(0);
    Some(of_call(number, argument))
}

/// The wait of a system call with these arguments.
fn of_call(number: i64, argument: impl Fn(usize) -> u64) -> Seen {
    // Limits are of 32 bits: -1 is 0xffffffff.
    let limit_ms = |place: usize| argument(place) as u32 as i32;
    match number {
        -1 => Seen::Wait("memory: page fault"),
        libc::SYS_futex => Seen::Wait("lock: futex"),
        libc::SYS_semop | libc::SYS_semtimedop => Seen::Wait("lock: semaphore"),
        libc::SYS_flock | libc::SYS_fcntl => Seen::Wait("lock: file"),
        libc::SYS_epoll_pwait => Seen::Event { limit_ms: limit_ms(3), place: argument(0) },
        libc::SYS_ppoll => Seen::Event { limit_ms: -1, place: 0 },
        // Without descriptors it only sleeps.
        libc::SYS_pselect6 if argument(0) == 0 => Seen::Wait("sleep"),
        libc::SYS_pselect6 => Seen::Event { limit_ms: -1, place: 0 },
        libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_accept
        | libc::SYS_accept4 => Seen::Event { limit_ms: -1, place: 0 },
        libc::SYS_read | libc::SYS_readv => {
            Seen::Descriptor { number: argument(0), call: "IO: read" }
        }
        libc::SYS_write | libc::SYS_writev => {
            Seen::Descriptor { number: argument(0), call: "IO: write" }
        }
        libc::SYS_pread64 | libc::SYS_preadv | libc::SYS_preadv2 => Seen::Wait("IO: read"),
        libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => Seen::Wait("IO: write"),
        libc::SYS_fsync => Seen::Wait("IO: fsync"),
        libc::SYS_fdatasync => Seen::Wait("IO: fdatasync"),
        libc::SYS_sync_file_range => Seen::Wait("IO: sync_file_range"),
        libc::SYS_msync | libc::SYS_sync | libc::SYS_syncfs => Seen::Wait("IO: other sync"),
        libc::SYS_io_getevents | libc::SYS_io_uring_enter => Seen::Wait("IO: asynchronous"),
        libc::SYS_openat | libc::SYS_unlinkat | libc::SYS_ftruncate | libc::SYS_fallocate => {
            Seen::Wait("IO: files made or removed")
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Seen::Wait("sleep"),
        libc::SYS_mmap | libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_madvise => {
            Seen::Wait("memory: map")
        }
        other => of_old_call(other, &argument),
    }
}

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
fn of_old_call(number: i64, argument: &impl Fn(usize) -> u64) -> Seen {
    let limit_ms = |place: usize| argument(place) as u32 as i32;
    match number {
        libc::SYS_epoll_wait => Seen::Event { limit_ms: limit_ms(3), place: argument(0) },
        libc::SYS_poll => Seen::Event { limit_ms: limit_ms(2), place: 0 },
        libc::SYS_select if argument(0) == 0 => Seen::Wait("sleep"),
        libc::SYS_select => Seen::Event { limit_ms: -1, place: 0 },
        libc::SYS_open | libc::SYS_unlink | libc::SYS_rename => {
            Seen::Wait("IO: files made or removed")
        }
        other => Seen::Other(other),
    }
}

/// Calls that newer architectures do not have.
#[cfg(not(target_arch = "x86_64"))]
fn of_old_call(number: i64, _: &impl Fn(usize) -> u64) -> Seen {
    Seen::Other(number)
}

/// A thread that serves clients.
#[derive(Debug)]
struct Serving {
    pid: u32,
    /// The place where it waits for its client, if that has a number.
    place: u64,
    /// Time ready to run without a CPU, ns: when it was found, and when that was last read.
    queued: Option<(u64, u64)>,
}

impl Serving {
    fn queued_ns(&self) -> u64 {
        self.queued.map_or(0, |(first, last)| last.saturating_sub(first))
    }
}

/// The threads of a tree of processes.
#[derive(Debug)]
pub struct Waits {
    root: u32,
    in_client: bool,
    /// Threads that waited like this before the clients came, such as a collector of statistics.
    background: HashSet<u32>,
    serving: HashMap<u32, Serving>,
    waited: Waited,
    /// Nanoseconds without a CPU of threads that are gone.
    queued_ns: u64,
    /// The reason why a file of /proc could not be read.
    refused: Option<String>,
}

impl Waits {
    /// The waits of the server `root` and its descendants; `in_client` if that is a client with the
    /// library in it.
    pub fn of(root: u32, in_client: bool) -> Waits {
        Waits {
            root,
            in_client,
            background: HashSet::new(),
            serving: HashMap::new(),
            waited: Waited { hertz: HERTZ, ..Waited::default() },
            queued_ns: 0,
            refused: None,
        }
    }

    /// The waits of the server `root` and its descendants before its clients come: a thread that
    /// waits now serves none of them.
    pub fn before_clients(root: u32) -> Waits {
        let mut waits = Waits::of(root, false);
        waits.search();
        waits.background = waits.serving.drain().map(|(tid, _)| tid).collect();
        waits
    }

    /// Finds the threads that wait for their clients now: those serve them.
    pub fn search(&mut self) {
        // A process that has ended meanwhile serves nobody.
        for pid in tree::processes(self.root).unwrap_or_default() {
            for tid in tree::threads(pid).unwrap_or_default() {
                if !self.serving.contains_key(&tid)
                    && !self.background.contains(&tid)
                    && let Some(place) = self.serves(pid, tid)
                {
                    let queued = waiting_ns(pid, tid).map(|ns| (ns, ns));
                    self.serving.insert(tid, Serving { pid, place, queued });
                }
            }
        }
    }

    /// The place where a thread waits for its client; `None` if it does not.
    fn serves(&mut self, pid: u32, tid: u32) -> Option<u64> {
        if self.in_client {
            let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
            return name.starts_with(CLIENT_THREADS).then_some(0);
        }
        match self.look_at(pid, tid)? {
            Seen::Event { limit_ms, place } if is_for_client(limit_ms) => Some(place),
            Seen::Descriptor { number, .. } if is_connection(pid, number) => Some(0),
            _ => None,
        }
    }

    fn look_at(&mut self, pid: u32, tid: u32) -> Option<Seen> {
        let path = format!("/proc/{pid}/task/{tid}/syscall");
        match fs::read_to_string(&path) {
            Ok(text) => seen(&text),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                self.refused = Some(format!("read {path}: {error}: run rqps as root"));
                None
            }
            Err(_) => None,
        }
    }

    /// Looks once at each thread that serves.
    fn look(&mut self) {
        self.waited.looks += 1;
        // Clients may be gone before the last look, and their threads with them.
        if self.waited.looks.is_multiple_of(LOOKS_OF_QUEUES) {
            self.read_queues();
        }
        let threads: Vec<(u32, u32, u64)> =
            self.serving.iter().map(|(tid, it)| (*tid, it.pid, it.place)).collect();
        for (tid, pid, own_place) in threads {
            let wait = match self.look_at(pid, tid) {
                None => continue,
                Some(Seen::Running) => {
                    self.waited.running += 1;
                    continue;
                }
                Some(Seen::Event { limit_ms, place }) => {
                    let elsewhere = own_place != 0 && place != own_place;
                    if !elsewhere && is_for_client(limit_ms) {
                        continue;
                    }
                    // Postgres waits for locks and other processes like that.
                    "lock: event of another process".to_owned()
                }
                Some(Seen::Descriptor { number, .. }) if is_connection(pid, number) => continue,
                Some(Seen::Descriptor { call, .. }) => call.to_owned(),
                Some(Seen::Wait(what)) => what.to_owned(),
                Some(Seen::Other(number)) => format!("other: system call {number}"),
            };
            *self.waited.seen.entry(wait).or_default() += 1;
        }
    }

    fn read_queues(&mut self) {
        for (tid, it) in &mut self.serving {
            if let (Some((_, last)), Some(now)) = (&mut it.queued, waiting_ns(it.pid, *tid)) {
                *last = now;
            }
        }
    }

    /// The observations over `seconds`.
    fn end(mut self, seconds: f64) -> Result<Waited, String> {
        if let Some(reason) = self.refused {
            return Err(reason);
        }
        if self.serving.is_empty() {
            return Err("no thread of the server was seen waiting for a client, so it is not \
                        known which threads serve them"
                .to_owned());
        }
        self.read_queues();
        self.queued_ns += self.serving.values().map(Serving::queued_ns).sum::<u64>();
        let serving = self.serving.len() as u32;
        let queued_seconds = self.queued_ns as f64 / 1e9;
        Ok(Waited { serving, seconds, queued_seconds, ..self.waited })
    }
}

fn is_for_client(limit_ms: i32) -> bool {
    !(0..CLIENT_PATIENCE_MS).contains(&limit_ms)
}

/// True for sockets and pipes.
fn is_connection(pid: u32, number: u64) -> bool {
    let link = fs::read_link(format!("/proc/{pid}/fd/{number}"));
    let link = link.map(|link| link.to_string_lossy().into_owned());
    link.is_ok_and(|link| link.starts_with("socket:") || link.starts_with("pipe:"))
}

fn waiting_ns(pid: u32, tid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    proc::sched_stat(&text).ok().map(|stat| stat.waiting_ns)
}

/// Looks from now on, on a thread of its own.
#[derive(Debug)]
pub struct Looking {
    over: Arc<AtomicBool>,
    thread: JoinHandle<(Waits, f64)>,
}

impl Looking {
    /// Begins.
    pub fn begin(mut waits: Waits) -> Looking {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        for (tid, it) in &mut waits.serving {
            it.queued = waiting_ns(it.pid, *tid).map(|ns| (ns, ns));
        }
        let thread = thread::spawn(move || {
            let began = Instant::now();
            let mut searched = began;
            let between = Duration::from_secs(1) / HERTZ;
            let mut next = began;
            while !told.load(Ordering::Relaxed) {
                waits.look();
                if searched.elapsed() > SEARCH {
                    waits.search();
                    waits.drop_ended();
                    searched = Instant::now();
                }
                // A look that comes late is not made up for.
                next = (next + between).max(Instant::now());
                thread::sleep(next - Instant::now().min(next));
            }
            (waits, began.elapsed().as_secs_f64())
        });
        Looking { over, thread }
    }

    /// Ends, and says what was seen.
    ///
    /// # Errors
    /// Waits could not be read; the text is the reason.
    pub fn end(self) -> Result<Waited, String> {
        self.over.store(true, Ordering::Relaxed);
        let (waits, seconds) =
            self.thread.join().map_err(|_| "the thread that looks has ended early".to_owned())?;
        waits.end(seconds)
    }
}

impl Waits {
    /// Forgets threads that have ended.
    fn drop_ended(&mut self) {
        let living: HashSet<u32> = tree::processes(self.root)
            .unwrap_or_default()
            .into_iter()
            .flat_map(|pid| tree::threads(pid).unwrap_or_default())
            .collect();
        let ended = self.serving.extract_if(|tid, _| !living.contains(tid));
        self.queued_ns += ended.map(|(_, it)| it.queued_ns()).sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_of_the_kernel_says() {
        assert_eq!(seen("running\n"), Some(Seen::Running));
        assert_eq!(seen("-1 0x7ffe 0x7f00\n"), Some(Seen::Wait("memory: page fault")));
        let call = |number: i64, arguments: &str| {
            seen(&format!("{number} {arguments} 0x7ffe83e606b8 0x7fa0ef8ab2ad\n"))
        };
        assert_eq!(call(libc::SYS_futex, "0x1 0x80 0x0"), Some(Seen::Wait("lock: futex")));
        assert_eq!(
            call(libc::SYS_epoll_pwait, "0x5 0x0 0x1 0xffffffff 0x0 0x8"),
            Some(Seen::Event { limit_ms: -1, place: 5 })
        );
        assert_eq!(
            call(libc::SYS_read, "0x11 0x0 0x2000"),
            Some(Seen::Descriptor { number: 17, call: "IO: read" })
        );
        assert_eq!(call(libc::SYS_fdatasync, "0x4"), Some(Seen::Wait("IO: fdatasync")));
        assert_eq!(call(9999, "0x4"), Some(Seen::Other(9999)));
        for garbage in ["", "what", "0x7 0x8"] {
            assert_eq!(seen(garbage), None, "{garbage}");
        }
        assert!(is_for_client(-1) && is_for_client(28_800_000) && !is_for_client(200));
    }

    #[test]
    fn the_waits_of_a_thread_are_seen() {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let (named, is_named) = std::sync::mpsc::channel();
        let sleeper = thread::Builder::new().name("client 7".to_owned()).spawn(move || {
            named.send(()).unwrap();
            while !told.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
        });
        // A thread has its name once it runs.
        is_named.recv().unwrap();
        let mut waits = Waits::of(std::process::id(), true);
        waits.search();
        let looking = Looking::begin(waits);
        thread::sleep(Duration::from_millis(120));
        let waited = looking.end();
        over.store(true, Ordering::Relaxed);
        sleeper.unwrap().join().unwrap();
        let waited = waited.unwrap();
        assert_eq!(waited.serving, 1);
        assert!(waited.seen.get("sleep").is_some_and(|count| *count > 0), "{waited:?}");
        assert!(waited.looks > 1 && waited.seconds > 0.1, "{waited:?}");
    }
}
