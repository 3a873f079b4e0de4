//! The counters of the CPU, by perf_event_open: what threads execute in user space.

use std::io;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, CountAndTime, Counter};
use rustix::io::Errno;

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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use crate::tree;

    use super::*;

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
