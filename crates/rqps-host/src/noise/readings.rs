//! Readings of the host while rqps is idle.

use std::fs;
use std::time::{Duration, Instant};

use crate::noise::disturbance::Watch;
use crate::noise::findings::Idleness;
use crate::proc::{self, HostStat};

/// Watches for `time`, and calls `tick` several times a second with the share that is done; stops
/// when it returns false.
pub fn idleness(time: Duration, tick: &mut dyn FnMut(f64) -> bool) -> Idleness {
    let watch = Watch::begin(&[std::process::id()]);
    let (began, before) = (Instant::now(), stat());
    while began.elapsed() < time && tick(began.elapsed().as_secs_f64() / time.as_secs_f64()) {
        std::thread::sleep(Duration::from_millis(100).min(time));
    }
    let steal = before.and_then(|before| steal(&before, &stat()?));
    let seconds = began.elapsed().as_secs_f64();
    Idleness { seconds, steal, disturbance: watch.end() }
}

fn stat() -> Option<HostStat> {
    proc::host_stat(&fs::read_to_string("/proc/stat").ok()?).ok()
}

/// Share of all ticks between two readings that the hypervisor took.
fn steal(before: &HostStat, after: &HostStat) -> Option<f64> {
    let all = |stat: &HostStat| {
        let cpu = stat.cpu;
        cpu.user + cpu.system + cpu.idle + cpu.iowait + cpu.steal
    };
    let ticks = all(after).saturating_sub(all(before));
    let stolen = after.cpu.steal.saturating_sub(before.cpu.steal);
    (ticks > 0).then(|| stolen as f64 / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::CpuTicks;

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let stat = |factor: u64| {
            let (user, idle, steal) = (40 * factor, 50 * factor, 10 * factor);
            HostStat {
                cpu: CpuTicks { user, idle, steal, ..Default::default() },
                ..Default::default()
            }
        };
        assert_eq!(steal(&stat(1), &stat(3)), Some(0.1));
        assert_eq!(steal(&stat(1), &stat(1)), None);
    }

    #[test]
    fn watching_ends_when_it_is_told_to() {
        let mut ticks = 0;
        let idle = idleness(Duration::from_secs(3600), &mut |_| {
            ticks += 1;
            ticks < 2
        });
        assert!(ticks == 2 && idle.seconds > 0.0 && idle.seconds < 3600.0);
    }
}
