//! The schedule of a client's events under an open pace.

use crate::clock::SECOND;
use rqps_model::benchmark::Pace;
use rqps_model::datagen::rng::Rng;

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
