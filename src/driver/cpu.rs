//! CPU time of this process and of its threads.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::domain::run::CpuTime;

/// CPU time of this process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuMark {
    total_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
}

impl CpuMark {
    /// Now.
    pub(crate) fn take() -> CpuMark {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user_ticks, system_ticks) = user_and_system(&stat).unwrap_or_default();
        CpuMark { total_ns: nanoseconds(ClockId::ProcessCPUTime), user_ticks, system_ticks }
    }

    /// CPU time since `earlier`. The sum is exact to the nanosecond; it divides into user and
    /// system as the kernel sampled it, as getrusage does too. Too short for one sample, it is all
    /// user.
    pub(crate) fn since(self, earlier: CpuMark) -> CpuTime {
        let total_us = self.total_ns.saturating_sub(earlier.total_ns) as f64 / 1e3;
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let user_share = if user + system > 0.0 { user / (user + system) } else { 1.0 };
        CpuTime { user_us: total_us * user_share, system_us: total_us * (1.0 - user_share) }
    }
}

/// CPU time of the calling thread so far, nanoseconds.
pub(crate) fn of_thread() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Fields 14 and 15 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses.
fn user_and_system(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_fields_are_found_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 75 0 0 20 0 1 0 5 6 7";
        assert_eq!(user_and_system(stat), Some((150, 75)));
        assert_eq!(user_and_system("7 (x) S 1"), None);
    }

    #[test]
    fn the_sum_divides_as_the_ticks_do() {
        let earlier = CpuMark { total_ns: 1_000, user_ticks: 10, system_ticks: 10 };
        let later = CpuMark { total_ns: 41_000, user_ticks: 13, system_ticks: 11 };
        let time = later.since(earlier);
        assert_eq!(time, CpuTime { user_us: 30.0, system_us: 10.0 });
        assert_eq!(earlier.since(earlier), CpuTime::default());
    }

    #[test]
    fn work_moves_the_clocks() {
        let (process, thread) = (CpuMark::take(), of_thread());
        let sum: u64 = (0..2_000_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0 && of_thread() > thread);
        assert!(CpuMark::take().since(process).total_us() > 0.0);
    }
}
