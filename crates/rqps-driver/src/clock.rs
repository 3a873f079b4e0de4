//! The clock of one client, the measured window, the schedule of an open pace.
//!
//! The clock is the host's, or that of the client's fake session. An enum, so that the loop reads it
//! without an indirect call.

use std::time::Duration;

use crate::request::StepRequest;
use rqps_host::clock::{FakeClock, RealClock, TimeSource as _};
use rqps_model::benchmark::{Pace, RateUnit};
use rqps_model::datagen::rng::Rng;

/// Nanoseconds per second.
pub const SECOND: f64 = 1e9;

/// A clock in nanoseconds since a common start.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The monotonic clock of the host.
    Real(RealClock),
    /// Advanced by the client's fake session.
    Fake(FakeClock),
}

impl Clock {
    /// The clock of the host; its zero is now. Who shares the zero takes a clone.
    pub fn real() -> Clock {
        Clock::Real(RealClock::new())
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> u64 {
        match self {
            Clock::Real(clock) => clock.now_ns(),
            Clock::Fake(clock) => clock.now_ns(),
        }
    }

    /// Waits until `time`, to within a few microseconds. Returns the time then.
    pub fn wait_until(&self, time: u64) -> u64 {
        match self {
            Clock::Real(clock) => clock.sleep_until(time),
            Clock::Fake(clock) => clock.sleep_until(time),
        }
        self.now()
    }
}

/// Drivers of several hosts that wake so much later than the common start still begin their windows
/// together.
pub const LATE: Duration = Duration::from_millis(10);

/// The measured window on the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first nanosecond.
    pub start: u64,
    /// Its end, nanoseconds. Later events do not count.
    pub end: u64,
    /// True if every client begins an event at the start and finishes the event in flight at the
    /// end: for events so long that a cut would falsify the count.
    pub whole_events: bool,
}

/// True if the step needs whole events: a scan may last as long as the window.
pub fn counts_whole_events<B>(task: &StepRequest<B>) -> bool {
    task.rate == RateUnit::RowsScanned
}

/// The window that begins at `start`.
pub fn window<B>(task: &StepRequest<B>, start: u64) -> Window {
    let length = (task.seconds * SECOND) as u64;
    Window { start, end: start + length.max(1), whole_events: counts_whole_events(task) }
}

/// A seeded Poisson schedule: gaps are exponential, so all clients together arrive like many
/// independent users. Times are nanoseconds of the client's clock.
pub struct ArrivalSchedule {
    rng: Rng,
    mean_gap_ns: f64,
    /// In floating point, so that gaps of any size add up without a bias.
    next: f64,
}

impl ArrivalSchedule {
    /// The share of client `index` of `clients` in an open pace; `None` under a closed pace.
    pub fn of(pace: Pace, seed: u64, index: u32, clients: u32) -> Option<ArrivalSchedule> {
        let Pace::Open { events_per_second } = pace else { return None };
        let mean_gap_ns = SECOND * f64::from(clients.max(1)) / events_per_second;
        Some(ArrivalSchedule {
            rng: Rng::stream(seed, "pace", u64::from(index)),
            mean_gap_ns,
            next: 0.0,
        })
    }

    /// Starts anew: the first event is one gap after `now`.
    pub fn restart(&mut self, now: u64) {
        self.next = now as f64;
        self.advance();
    }

    /// The time of the next event.
    pub fn next_time(&self) -> u64 {
        self.next as u64
    }

    /// Takes the next event and returns its time.
    pub fn take(&mut self) -> u64 {
        let due = self.next_time();
        self.advance();
        due
    }

    /// Takes the events that were due before `end` and had no turn. Returns their number, and how
    /// late the first one is, nanoseconds.
    pub fn backlog(&mut self, end: u64) -> (u64, u64) {
        let behind = end.saturating_sub(self.next_time());
        let mut due = 0;
        while self.next < end as f64 {
            due += 1;
            self.advance();
        }
        (due, behind)
    }

    fn advance(&mut self) {
        self.next += self.rng.exponential() * self.mean_gap_ns;
    }
}
