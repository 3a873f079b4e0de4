//! Work on several targets at the same time, with one line of progress.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, available_parallelism};

use crate::lab::progress::{Progress, Told};

/// Calls `work` with each item, on as many threads as there are CPUs, but at most `at_most`.
/// Returns the results in the order of the items.
pub(super) fn side_by_side<T: Send, R: Send>(
    items: Vec<T>,
    at_most: usize,
    progress: &mut Progress<'_>,
    work: impl Fn(T, &mut Progress<'_>) -> R + Sync,
) -> Vec<R> {
    let workers =
        available_parallelism().map_or(1, NonZero::get).min(items.len()).min(at_most.max(1));
    let waiting = Mutex::new(items.into_iter().enumerate());
    let (told, received) = mpsc::channel();
    thread::scope(|scope| {
        let start = |_| {
            let (told, waiting, work) = (told.clone(), &waiting, &work);
            scope.spawn(move || {
                // Sending fails only after a panic has ended the work.
                let mut pass = |it| _ = told.send(it);
                let mut progress = Progress::of_part(&mut pass);
                let mut done = Vec::new();
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = next else { break done };
                    done.push((place, work(item, &mut progress)));
                }
            })
        };
        let handles: Vec<_> = (0..workers).map(start).collect();
        drop(told);
        for told in received {
            match told {
                Told::Event(event) => progress.event(event),
                Told::Time(change) => progress.beside(change),
            }
        }
        let ended = |handle: thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            handle.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        let mut results: Vec<(usize, R)> = handles.into_iter().flat_map(ended).collect();
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::lab::progress::Event;
    use crate::lab::progress::TimeChange;
    use crate::plan::cost::{PlannedTask, WorkKind};

    #[test]
    fn results_keep_their_order_and_progress_adds_up() {
        let mut told = Vec::new();
        let mut pass = |it| told.push(it);
        let mut progress = Progress::of_part(&mut pass);
        let results = side_by_side(vec![3, 1, 2], usize::MAX, &mut progress, |item, progress| {
            progress.end(PlannedTask {
                part: WorkKind::Load,
                count: 1.0,
                seconds: f64::from(item),
            });
            progress.note("done");
            item * 10
        });
        assert_eq!(results, [30, 10, 20]);
        let ended = told.iter().filter_map(|told| match told {
            Told::Time(TimeChange::End(task)) => Some(task.seconds),
            _ => None,
        });
        assert_eq!(ended.sum::<f64>(), 6.0);
        let is_note = |told: &&Told| matches!(told, Told::Event(Event::Note(_)));
        assert_eq!(told.iter().filter(is_note).count(), 3);
    }

    #[test]
    fn two_items_are_at_work_at_once() {
        let workers = available_parallelism().map_or(1, NonZero::get).min(2);
        let barrier = Barrier::new(workers);
        let items: Vec<usize> = (0..workers).collect();
        let mut progress = |_| ();
        let mut progress = Progress::of_part(&mut progress);
        let leads = |_, _: &mut Progress<'_>| barrier.wait().is_leader();
        let results = side_by_side(items, usize::MAX, &mut progress, leads);
        assert_eq!(results.iter().filter(|leads| **leads).count(), 1);
    }

    #[test]
    fn one_at_a_time_is_on_one_thread() {
        let mut progress = |_| ();
        let mut progress = Progress::of_part(&mut progress);
        let threads = side_by_side(vec![1, 2, 3], 1, &mut progress, |_, _| thread::current().id());
        assert!(threads.windows(2).all(|pair| pair[0] == pair[1]), "{threads:?}");
    }
}
