//! Limits the background writer: grants bytes in portions, ten per second, like RocksDB's own rate
//! limiter, so that the writer is as bursty as db_bench's.

/// Time per portion, nanoseconds.
const PERIOD_NS: u64 = 100_000_000;

/// Grants one portion per period; unused bytes and time are lost.
pub(super) struct Limiter {
    portion: u64,
    available: u64,
    next_fill: u64,
}

impl Limiter {
    /// Grants `mb_per_second` MiB/s from `now` on.
    pub(super) fn new(mb_per_second: f64, now: u64) -> Limiter {
        let portion = ((mb_per_second * f64::from(1 << 20)) as u64 / 10).max(1);
        Limiter { portion, available: 0, next_fill: now }
    }

    /// Takes `bytes`. Calls `wait_until` with a time for each portion that it must wait for; the
    /// call returns the time then.
    pub(super) fn take(&mut self, bytes: u64, now: u64, mut wait_until: impl FnMut(u64) -> u64) {
        let mut wanted = bytes;
        let mut now = now;
        while wanted > self.available {
            wanted -= self.available;
            self.available = 0;
            if now < self.next_fill {
                now = wait_until(self.next_fill);
            }
            self.available = self.portion;
            self.next_fill = now + PERIOD_NS;
        }
        self.available -= wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of `count` calls for 420 bytes with `work_ns` of work each.
    fn times(count: usize, work_ns: u64) -> Vec<u64> {
        let mut limiter = Limiter::new(2.0, 0);
        let mut now = 0;
        let takes = (0..count).map(|_| {
            now += work_ns;
            let mut woken = now;
            limiter.take(420, now, |time| {
                woken = woken.max(time);
                woken
            });
            now = woken;
            now
        });
        takes.collect()
    }

    #[test]
    fn two_megabytes_are_4993_puts_a_second_in_bursts() {
        let times = times(20_000, 2_000);
        let in_second =
            |second: u64| times.iter().filter(|time| *time / 1_000_000_000 == second).count();
        // 2 × 2^20 / 420 = 4993; a put may straddle the second.
        for second in 1..3 {
            assert!((4985..=5000).contains(&in_second(second)), "{}", in_second(second));
        }
        // A tenth comes at once, then the writer sleeps.
        let burst = times.iter().filter(|time| (100..101).contains(&(*time / 1_000_000))).count();
        assert!((490..=500).contains(&burst), "{burst}");
    }

    #[test]
    fn unused_time_is_not_saved_up() {
        let mut limiter = Limiter::new(2.0, 0);
        // After ten idle seconds there is one portion, not a hundred.
        let mut waits = 0;
        for _ in 0..1000 {
            limiter.take(420, 10_000_000_000, |time| {
                waits += 1;
                time
            });
        }
        assert!(waits >= 1, "{waits}");
    }
}
