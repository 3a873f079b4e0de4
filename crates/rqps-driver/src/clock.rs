//! The clock of one client: the host's, or that of its fake session. An enum, so that the loop
//! reads it without an indirect call.

use rqps_host::clock::{FakeClock, RealClock, TimeSource as _};

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
