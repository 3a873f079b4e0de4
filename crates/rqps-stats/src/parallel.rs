//! A map on all CPUs, in no particular order of execution.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// More threads than this do not help work that shares memory and a disk.
const THREADS_MAX: usize = 16;

/// Between two looks at work that is watched.
const TICK: Duration = Duration::from_millis(5);

/// CPUs that this process may use.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The work of each item, in the order of the items, on a few threads: for work that shares memory
/// and a disk.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    map_on(cpus().min(THREADS_MAX), items, work)
}

/// The work of each item, in the order of the items, on `threads` threads. Threads take the next
/// one when they are done: one that is slow, or a CPU that others use, holds up nobody. A panic is
/// passed on.
pub fn map_on<T: Send, R: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || -> Vec<(usize, R)> {
        std::iter::from_fn(take).map(|(place, item)| (place, work(item))).collect()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        // The thread that asks works too.
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            // A worker that panicked is a bug in here: let it be seen.
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Work on a thread of its own, and `tick` every few milliseconds until it is done. An error of
/// `tick` is returned when the work has ended.
///
/// # Errors
/// The first error of `tick`.
pub fn watched<T: Send, E>(
    work: impl FnOnce() -> T + Send,
    mut tick: impl FnMut() -> Result<(), E>,
) -> Result<T, E> {
    thread::scope(|scope| {
        let work = scope.spawn(work);
        while !work.is_finished() {
            tick()?;
            thread::sleep(TICK);
        }
        Ok(work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, 2, 1000] {
            let doubled = map((0..count).collect(), |number: u32| 2 * number);
            assert_eq!(doubled, (0..count).map(|number| 2 * number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn watched_work_gives_its_result_or_the_error_of_the_watcher() {
        assert_eq!(watched(|| 7, || Ok::<(), &str>(())), Ok(7));
        let slow = || thread::sleep(4 * TICK);
        assert_eq!(watched(slow, || Err("stopped")), Err("stopped"));
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_is_passed_on() {
        map((0..100).collect(), |number: u32| assert!(number != 7, "seven"));
    }
}
