//! Decides when the inserter and the deleter of a client may continue: the published client's
//! generator with its two bounded queues, as a state machine without a thread.
//!
//! In the published client, one process makes batches, waits for its pace, and puts each batch into
//! the queues of the inserter and the deleter; each side waits for the other when a queue is full.
//! Here a worker makes a batch when it needs one: text costs so little that no thread need be woken
//! for it. The times of the batches are those of the generator.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rqps_model::insert::Pacing;

const SECOND: u64 = 1_000_000_000;
/// A second that has already taken this long is not slept out (published).
const WHOLE_SECOND: u64 = SECOND / 100 * 95;

/// A writing worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Insert,
    Delete,
}

/// The next action of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriterTurn {
    /// Execute this batch, not before `ready`. The response time counts from `intended`.
    Go { batch: u64, intended: u64, ready: u64 },
    /// Wait for the other side.
    Blocked,
    /// Query the smallest key first; all batches wait for the answer. Only for the deleter.
    Resync,
    /// All batches are taken.
    Over,
}

/// The pace of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pacer {
    /// As fast as the queues accept batches.
    Closed,
    /// Batch i is due at `start + (phase + i) × gap`.
    Open { start: f64, phase: f64, gap: f64 },
    /// The published rule: see [`Pacer::after`].
    Compat { batches_per_second: u64, last_check: u64 },
}

impl Pacer {
    /// The pace of one client: `rate` rows per second in batches of `rows`, from `start` on.
    /// `phase` in [0, 1) delays an open schedule by that share of a gap, so that clients do not
    /// write in step.
    pub(crate) fn new(
        rate: Option<u32>,
        rows: u32,
        pacing: Pacing,
        start: u64,
        phase: f64,
    ) -> Pacer {
        let Some(rate) = rate.filter(|rate| *rate > 0) else { return Pacer::Closed };
        match pacing {
            Pacing::Open => {
                let gap = SECOND as f64 * f64::from(rows) / f64::from(rate);
                Pacer::Open { start: start as f64, phase, gap }
            }
            Pacing::Compat => Pacer::Compat {
                batches_per_second: u64::from(rate.div_ceil(rows.max(1))).max(1),
                last_check: start,
            },
        }
    }

    /// The due time of a batch under a pace that fixes it.
    fn intended(&self, batch: u64) -> u64 {
        match self {
            Pacer::Open { start, phase, gap } => (start + (phase + batch as f64) * gap) as u64,
            Pacer::Closed | Pacer::Compat { .. } => 0,
        }
    }

    /// The time at which the generator continues after it made `batch` at `made`. The published
    /// client makes b batches per second. After every b-th batch it sleeps for the rest of the
    /// second if less than 0.95 s have passed; in any case a new second begins. So the first second
    /// has one batch, later ones begin with a burst of b, and the loss of a stall is not made up
    /// for.
    fn after(&mut self, batch: u64, made: u64) -> u64 {
        let Pacer::Compat { batches_per_second, last_check } = self else { return made };
        if !batch.is_multiple_of(*batches_per_second) {
            return made;
        }
        let elapsed = made.saturating_sub(*last_check);
        let next = if elapsed < WHOLE_SECOND { made + (SECOND - elapsed) } else { made };
        *last_check = next;
        next
    }

    /// The end of an open schedule of `batches` at its rate.
    pub(crate) fn end(&self, batches: u64) -> u64 {
        match self {
            Pacer::Open { start, gap, .. } => (start + batches as f64 * gap) as u64,
            Pacer::Closed | Pacer::Compat { .. } => 0,
        }
    }
}

/// Turns taken by one side.
#[derive(Clone, Debug)]
struct Queue {
    taken: u64,
    /// The time at which batch i was taken, at index i modulo the length.
    taken_at: Vec<u64>,
}

/// The generator and its queues.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    batches: u64,
    depth: u64,
    pacer: Pacer,
    /// Number of batches made.
    made: u64,
    /// The time at which batch i entered the queues, at index i modulo the length.
    ready: Vec<u64>,
    /// The time at which the generator can make the next batch.
    free: u64,
    inserts: Queue,
    /// `None` without deletes.
    deletes: Option<Queue>,
    /// Batches between two queries for the smallest key; 0 for one query at the start.
    resync_every: u64,
    /// The batch of the last such query.
    resynced: Option<u64>,
}

impl Turns {
    /// For `batches` batches from `start` on. Each side may be `depth` statements ahead, besides
    /// the one in flight. `deletes`: batches between two queries for the smallest key.
    pub(crate) fn new(
        batches: u64,
        depth: u32,
        start: u64,
        pacer: Pacer,
        deletes: Option<u32>,
    ) -> Turns {
        let depth = u64::from(depth.max(1));
        let ring = || vec![0; 2 * depth as usize + 2];
        let queue = || Queue { taken: 0, taken_at: ring() };
        Turns {
            batches,
            depth,
            pacer,
            made: 0,
            ready: ring(),
            free: start,
            inserts: queue(),
            deletes: deletes.map(|_| queue()),
            resync_every: u64::from(deletes.unwrap_or(0)),
            resynced: None,
        }
    }

    /// The action of `side` at `now`. [`WriterTurn::Go`] takes the batch.
    pub(crate) fn take(&mut self, side: Side, now: u64) -> WriterTurn {
        let batch = match (side, &self.deletes) {
            (Side::Insert, _) => self.inserts.taken,
            (Side::Delete, Some(queue)) => queue.taken,
            (Side::Delete, None) => return WriterTurn::Over,
        };
        if batch == self.batches {
            return WriterTurn::Over;
        }
        while self.made <= batch {
            if let Some(wait) = self.make(side) {
                return wait;
            }
        }
        let ready = self.ready[slot(&self.ready, batch)];
        let intended = match self.pacer {
            Pacer::Open { .. } => self.pacer.intended(batch),
            Pacer::Closed | Pacer::Compat { .. } => ready.max(now),
        };
        let queue = match side {
            Side::Insert => &mut self.inserts,
            Side::Delete => match &mut self.deletes {
                Some(queue) => queue,
                None => return WriterTurn::Over,
            },
        };
        queue.taken += 1;
        let place = slot(&queue.taken_at, batch);
        queue.taken_at[place] = ready.max(now);
        WriterTurn::Go { batch, intended, ready }
    }

    /// Makes the next batch, or returns what it waits for.
    fn make(&mut self, side: Side) -> Option<WriterTurn> {
        let batch = self.made;
        let queues = [Some(&self.inserts), self.deletes.as_ref()];
        let full = |queue: &&Queue| queue.taken + self.depth <= batch;
        if queues.into_iter().flatten().any(|queue| full(&queue)) {
            return Some(WriterTurn::Blocked);
        }
        if self.resync_is_due(batch) {
            return Some(if side == Side::Delete {
                WriterTurn::Resync
            } else {
                WriterTurn::Blocked
            });
        }
        // A full queue got room when the batch `depth` earlier was taken.
        let room = batch.checked_sub(self.depth).map_or(0, |freed| {
            let at = |queue: &Queue| queue.taken_at[slot(&queue.taken_at, freed)];
            at(&self.inserts).max(self.deletes.as_ref().map_or(0, at))
        });
        let made = self.free.max(room).max(self.pacer.intended(batch));
        let place = slot(&self.ready, batch);
        self.ready[place] = made;
        self.made += 1;
        self.free = self.pacer.after(batch, made);
        None
    }

    /// Published: at the first batch, and again after each `resync_every` batches.
    fn resync_is_due(&self, batch: u64) -> bool {
        let due =
            batch == 0 || (self.resync_every > 0 && batch.is_multiple_of(self.resync_every + 1));
        self.deletes.is_some() && due && self.resynced != Some(batch)
    }

    /// The query for the smallest key was answered at `now`.
    pub(crate) fn resynced(&mut self, now: u64) {
        self.resynced = Some(self.made);
        self.free = self.free.max(now);
    }
}

fn slot(ring: &[u64], batch: u64) -> usize {
    (batch % ring.len() as u64) as usize
}

// Shared state of one client's workers: turns, the smallest key, and the end of the writers.

/// Time between two checks whether the step was aborted.
const LOOK: Duration = Duration::from_millis(100);

/// The shared part of one client.
pub(crate) struct Pair {
    state: Mutex<State>,
    changed: Condvar,
    /// The deleter's guess of the smallest key.
    pub(crate) min_key: Arc<AtomicI64>,
    over: AtomicBool,
}

struct State {
    turns: Turns,
    waiting: u32,
    writers: u32,
}

impl Pair {
    /// For `writers` writing workers.
    pub(crate) fn new(turns: Turns, writers: u32) -> Pair {
        Pair {
            state: Mutex::new(State { turns, waiting: 0, writers }),
            changed: Condvar::new(),
            min_key: Arc::default(),
            over: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the schedule once the start is known.
    pub(crate) fn begin(&self, turns: Turns) {
        self.lock().turns = turns;
    }

    /// The next turn of `side`; waits for the other side if necessary. `None` if the step was
    /// aborted meanwhile.
    pub(crate) fn wait(
        &self,
        side: Side,
        now: impl Fn() -> u64,
        is_over: impl Fn() -> bool,
    ) -> Option<WriterTurn> {
        let mut state = self.lock();
        loop {
            let turn = state.turns.take(side, now());
            if turn != WriterTurn::Blocked {
                if state.waiting > 0 {
                    self.changed.notify_all();
                }
                return Some(turn);
            }
            state.waiting += 1;
            let (woken, _) =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.waiting -= 1;
            if is_over() {
                return None;
            }
        }
    }

    /// The next turn of `side`, without waiting.
    pub(crate) fn look(&self, side: Side, now: u64) -> WriterTurn {
        self.lock().turns.take(side, now)
    }

    /// The smallest key is known again.
    pub(crate) fn resynced(&self, now: u64) {
        let mut state = self.lock();
        state.turns.resynced(now);
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// One writer is done; the last one ends the step of this client.
    pub(crate) fn done(&self) {
        let mut state = self.lock();
        state.writers = state.writers.saturating_sub(1);
        if state.writers == 0 {
            self.over.store(true, Ordering::Release);
        }
    }

    /// True if all writers are done; then queries end too.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One side of a client on a server with statements of this `service` time.
    struct Worker {
        side: Side,
        now: u64,
        blocked: bool,
        over: bool,
        /// Actual and intended start of its statements.
        started: Vec<(u64, u64)>,
    }

    fn worker(side: Side) -> Worker {
        Worker { side, now: 0, blocked: false, over: false, started: Vec::new() }
    }

    /// Runs both sides, always the one furthest behind. `check` gets the number of completed
    /// batches after each statement.
    fn run(
        turns: &mut Turns,
        workers: &mut [Worker],
        service: impl Fn(Side, u64) -> u64,
        mut check: impl FnMut(u64, u64),
    ) {
        loop {
            let able = workers.iter_mut().filter(|worker| !worker.over && !worker.blocked);
            let Some(worker) = able.min_by_key(|worker| worker.now) else { break };
            match turns.take(worker.side, worker.now) {
                WriterTurn::Go { intended, ready, .. } => {
                    let start = worker.now.max(ready);
                    worker.started.push((start, intended));
                    worker.now = start + service(worker.side, start);
                }
                WriterTurn::Resync => turns.resynced(worker.now),
                WriterTurn::Over => worker.over = true,
                WriterTurn::Blocked => {
                    worker.blocked = true;
                    continue;
                }
            }
            workers.iter_mut().for_each(|worker| worker.blocked = false);
            let done = |side| {
                let of_side = workers.iter().find(|worker| worker.side == side);
                of_side.map_or(0, |worker| worker.started.len() as u64)
            };
            check(done(Side::Insert), done(Side::Delete));
        }
        assert!(workers.iter().all(|worker| worker.over), "nobody waits for ever");
    }

    fn per_second(worker: &Worker, seconds: u64) -> Vec<usize> {
        let within = |second: u64| {
            let begun = worker.started.iter().map(|(start, _)| start / SECOND);
            begun.filter(|at| *at == second).count()
        };
        (0..seconds).map(within).collect()
    }

    /// As the published client does with 1000 inserts/s, 50 a commit, on an instant server.
    #[test]
    fn compat_gives_one_batch_in_the_first_second_and_twenty_in_each_later_one() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Compat, 0, 0.5);
        let mut turns = Turns::new(181, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        run(&mut turns, &mut workers, |_, _| 0, |_, _| {});
        let mut want = vec![20; 10];
        want[0] = 1;
        assert_eq!(per_second(&workers[0], 10), want);
    }

    /// The same with a stall of 5 s at the beginning of second 3: the generator waits with a full
    /// queue, and what it did not make meanwhile is not made up for.
    #[test]
    fn compat_does_not_recover_what_a_stall_has_cost() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Compat, 0, 0.5);
        let mut turns = Turns::new(181, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        let mut stalled = std::cell::Cell::new(false);
        let service = |_, start: u64| {
            let stalls = start / SECOND == 3 && !stalled.replace(true);
            if stalls { 5 * SECOND } else { MS }
        };
        run(&mut turns, &mut workers, service, |_, _| {});
        assert!(*stalled.get_mut());
        let counts = per_second(&workers[0], 12);
        // At 8 s the rest of the burst that was broken off, of which 8 were in the queue, and that
        // of the second that begins then. The 80 of the seconds 4 to 7 are lost.
        assert_eq!(counts, [1, 20, 20, 1, 0, 0, 0, 0, 19 + 20, 20, 20, 20]);
    }

    /// An open schedule: in each second what the rate says to within a batch, and all of it after a
    /// stall.
    #[test]
    fn an_open_schedule_errs_by_less_than_a_batch_and_loses_nothing() {
        let pacer = Pacer::new(Some(1000), 50, Pacing::Open, 0, 0.3);
        let mut turns = Turns::new(200, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        run(&mut turns, &mut workers, |_, _| 3 * MS, |_, _| {});
        assert!(per_second(&workers[0], 10).iter().all(|count| count.abs_diff(20) <= 1));
        assert!(workers[0].started.iter().all(|(start, intended)| start == intended));

        let mut turns = Turns::new(200, 8, 0, pacer, None);
        let mut workers = [worker(Side::Insert)];
        let stall = |_, start: u64| if start / SECOND == 2 { 3 * SECOND } else { 3 * MS };
        run(&mut turns, &mut workers, stall, |_, _| {});
        let counts = per_second(&workers[0], 10);
        assert_eq!(counts.iter().sum::<usize>(), 200, "{counts:?}");
        assert_eq!(counts[9], 20, "caught up in the end: {counts:?}");
        let late = workers[0].started.iter().map(|(start, intended)| start - intended).max();
        assert!(late > Some(2 * SECOND), "response time counts from the schedule: {late:?}");
    }

    /// Two bounded queues couple both sides: neither is ever more than the queue and the batch in
    /// flight ahead.
    #[test]
    fn inserts_and_deletes_stay_together_and_end_equal() {
        for (insert_ms, delete_ms) in [(1, 20), (20, 1), (5, 5), (0, 3)] {
            let mut turns = Turns::new(3000, 8, 0, Pacer::Closed, Some(1000));
            let mut workers = [worker(Side::Insert), worker(Side::Delete)];
            let service = |side, _| match side {
                Side::Insert => insert_ms * MS,
                Side::Delete => delete_ms * MS,
            };
            let mut furthest = 0;
            run(&mut turns, &mut workers, service, |inserted, deleted| {
                furthest = furthest.max(inserted.abs_diff(deleted));
            });
            assert!(furthest <= 9, "{furthest}");
            assert!(workers.iter().all(|worker| worker.started.len() == 3000));
        }
    }

    #[test]
    fn the_smallest_key_is_asked_for_at_first_and_after_every_1001st_batch() {
        let asked = |resync_every: u32| {
            let mut turns = Turns::new(3500, 8, 0, Pacer::Closed, Some(resync_every));
            let (mut asked, mut now) = (Vec::new(), 0);
            for batch in 0..3500 {
                while turns.take(Side::Delete, now) == WriterTurn::Resync {
                    asked.push(batch);
                    assert_eq!(turns.take(Side::Insert, now), WriterTurn::Blocked, "all wait");
                    now += 7;
                    turns.resynced(now);
                }
                assert!(matches!(turns.take(Side::Insert, now), WriterTurn::Go { .. }));
            }
            asked
        };
        assert_eq!(asked(1000), [0, 1001, 2002, 3003]);
        assert_eq!(asked(0), [0]);
    }
}
