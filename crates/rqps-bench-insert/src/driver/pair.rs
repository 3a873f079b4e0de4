//! Shared state of one client's workers: turns, the smallest key, and the end of the writers.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::driver::turns::{Side, Turns, WriterTurn};

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
