//! Work that is done on all CPUs, in an order that nobody can tell.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// More threads than this do not help work that shares memory and a disk.
const THREADS_MAX: usize = 16;

/// The work of each item, in the order of the items. Threads take the next one when they are done:
/// one that is slow, or a CPU that others use, holds up nobody. A panic is passed on.
pub fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = cpus.min(THREADS_MAX).min(items.len());
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
    #[should_panic(expected = "seven")]
    fn a_panic_is_passed_on() {
        map((0..100).collect(), |number: u32| assert!(number != 7, "seven"));
    }
}
