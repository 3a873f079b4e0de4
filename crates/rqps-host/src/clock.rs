//! Time as the driver and the lab see it: monotonic nanoseconds since a start, and a fake that
//! moves only on request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::time::ClockId;

use crate::shared_memory::SharedPage;

/// A source of time.
pub trait TimeSource: Send + Sync {
    /// Nanoseconds since the clock's start; never goes back.
    fn now_ns(&self) -> u64;

    /// Returns when `now_ns` has reached `deadline_ns`; at once if that is past.
    fn sleep_until(&self, deadline_ns: u64);

    /// The wall clock: RFC 3339, UTC, whole seconds.
    fn timestamp(&self) -> String;
}

/// The standstill of this process, if another one stops it and counts the time.
static STANDSTILL: OnceLock<Standstill> = OnceLock::new();

#[derive(Debug)]
struct Standstill {
    page: SharedPage,
    index: usize,
    /// The zero of the own time, nanoseconds of the monotonic clock.
    origin: u64,
    /// The latest own time that was read, nanoseconds. Threads may run for some microseconds after
    /// the moment from which the standstill counts.
    latest: AtomicU64,
}

impl Standstill {
    /// Nanoseconds since the origin, without the standstill; never goes back.
    fn own_ns(&self) -> u64 {
        let stood = self.page.number(self.index);
        loop {
            let before = stood.load(Ordering::SeqCst);
            let elapsed = monotonic_ns().saturating_sub(self.origin);
            // Otherwise the process was stopped between the two looks.
            if stood.load(Ordering::SeqCst) == before {
                let own = elapsed.saturating_sub(before);
                return own.max(self.latest.fetch_max(own, Ordering::SeqCst));
            }
        }
    }
}

/// From now on every new [`RealClock`] of this process leaves out the time in which it is stopped.
/// Whoever stops it adds that time, nanoseconds, to number `index` of `page`, which began with 0,
/// before it goes on.
pub fn leave_out_standstill(page: SharedPage, index: usize) {
    let latest = AtomicU64::new(0);
    // Only the first request of a process counts; a driver has one.
    let _ = STANDSTILL.set(Standstill { page, index, origin: monotonic_ns(), latest });
}

/// The monotonic clock of the host, without the time in which the process is stopped if
/// [`leave_out_standstill`] was called before. Copies share their zero.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    /// Nanoseconds of the monotonic clock. Clients read it for each event: an `Instant` costs a
    /// hundred instructions more.
    start: u64,
    /// The own time at the start, in a process that is stopped.
    own: Option<(&'static Standstill, u64)>,
}

impl RealClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        let own = STANDSTILL.get().map(|standstill| (standstill, standstill.own_ns()));
        Self { start: monotonic_ns(), own }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A sleeping thread wakes up late: on one virtual machine 70 µs in the median, 162 µs at the 99th
/// percentile. So the last 300 µs before a deadline are spent awake.
const AWAKE: Duration = Duration::from_micros(300);

impl TimeSource for RealClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        match self.own {
            None => monotonic_ns().saturating_sub(self.start),
            Some((standstill, at_start)) => standstill.own_ns().saturating_sub(at_start),
        }
    }

    /// Sleeps until shortly before the deadline, then yields the CPU in a loop: the server may run
    /// on the same CPU, so a pure spin would take time from what is measured.
    fn sleep_until(&self, deadline_ns: u64) {
        loop {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(self.now_ns()));
            if left.is_zero() {
                return;
            }
            match left.checked_sub(AWAKE).filter(|coarse| !coarse.is_zero()) {
                Some(coarse) => std::thread::sleep(coarse),
                None => std::thread::yield_now(),
            }
        }
    }

    fn timestamp(&self) -> String {
        now_rfc3339()
    }
}

/// A clock that moves only on request; clones share the time. Its wall clock began with 1970.
#[derive(Clone, Debug, Default)]
pub struct FakeClock {
    now_ns: Arc<AtomicU64>,
}

impl FakeClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns.fetch_add(by, Ordering::SeqCst);
    }
}

impl TimeSource for FakeClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    /// Moves the time to the deadline.
    fn sleep_until(&self, deadline_ns: u64) {
        self.now_ns.fetch_max(deadline_ns, Ordering::SeqCst);
    }

    fn timestamp(&self) -> String {
        let seconds = i64::try_from(self.now_ns() / 1_000_000_000).unwrap_or(i64::MAX);
        rfc3339(jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX))
    }
}

/// The monotonic clock of the host, nanoseconds: the same in all processes.
#[inline]
pub fn monotonic_ns() -> u64 {
    now(ClockId::Monotonic)
}

/// The wall clock, nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    now(ClockId::Realtime)
}

#[inline]
pub(crate) fn now(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

#[inline]
pub(crate) fn nanoseconds(seconds: i64, more: i64) -> u64 {
    let seconds = u64::try_from(seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(more).unwrap_or(0))
}

/// The wall clock: RFC 3339, UTC, whole seconds: `2026-01-31T08:05:09Z`.
pub fn now_rfc3339() -> String {
    rfc3339(jiff::Timestamp::now())
}

/// The time since a moment of the wall clock; `None` if that is no moment, or lies ahead: the clock
/// was set back.
pub fn since(moment: &str) -> Option<Duration> {
    let moment: jiff::Timestamp = moment.parse().ok()?;
    Duration::try_from(jiff::Timestamp::now().duration_since(moment)).ok()
}

fn rfc3339(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fake_time_moves_only_when_told() {
        let clock = FakeClock::new();
        let shared = clock.clone();
        assert_eq!(clock.now_ns(), 0);
        clock.advance(Duration::from_secs(90));
        assert_eq!(shared.now_ns(), 90_000_000_000);
        shared.sleep_until(5);
        assert_eq!(clock.now_ns(), 90_000_000_000, "a past deadline moves nothing");
        shared.sleep_until(100_000_000_000);
        assert_eq!(clock.now_ns(), 100_000_000_000);
        assert_eq!(clock.timestamp(), "1970-01-01T00:01:40Z");
    }

    #[test]
    fn real_time_reaches_a_deadline() {
        let clock = RealClock::new();
        for wait_ns in [0, 50_000, 2_000_000] {
            let deadline = clock.now_ns() + wait_ns;
            clock.sleep_until(deadline);
            assert!(clock.now_ns() >= deadline);
        }
    }

    #[test]
    fn timestamps_are_whole_seconds_in_utc() {
        let text = now_rfc3339();
        assert_eq!(text.len(), 20, "{text}");
        let back: jiff::Timestamp = text.parse().unwrap();
        assert_eq!(rfc3339(back), text);
    }
}
