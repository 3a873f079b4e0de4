//! The clock of one client: the host's, or that of its fake session. An enum, so that reading it in
//! the loop is no indirect call.

use crate::os::clock::{FakeClock, RealClock, TimeSource as _};

/// Nanoseconds of a second.
pub const SECOND: f64 = 1e9;

/// Nanoseconds since a common start.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The monotonic clock of the host.
    Real(RealClock),
    /// Advanced by the fake session of the same client.
    Fake(FakeClock),
}

impl Clock {
    /// Now.
    #[inline]
    pub fn now(&self) -> u64 {
        match self {
            Clock::Real(clock) => clock.now_ns(),
            Clock::Fake(clock) => clock.now_ns(),
        }
    }

    /// Waits until `time`, to within a few microseconds, and returns the time then.
    pub fn wait_until(&self, time: u64) -> u64 {
        match self {
            Clock::Real(clock) => clock.sleep_until(time),
            Clock::Fake(clock) => clock.sleep_until(time),
        }
        self.now()
    }
}
