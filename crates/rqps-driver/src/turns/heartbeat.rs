//! Signs of life of drivers that take turns: whoever has the token gives four a second.

use std::time::{Duration, Instant};

use crate::turns::token::TurnToken;

/// After so long without a sign of life a driver in its turn stands still, whatever its server
/// does.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The signs of life of one target's driver.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    place: usize,
    /// Signs so far.
    ticks: u32,
    /// When the last one was seen, or the last turn of another target.
    since: Instant,
}

impl Heartbeat {
    /// The driver of the target at `place`, which lives now.
    pub fn of(place: usize) -> Heartbeat {
        Heartbeat { place, ticks: 0, since: Instant::now() }
    }

    /// Looks: true if the driver has the token and gave no sign of life for [`STALL_TIMEOUT`].
    pub fn is_gone(&mut self, token: &TurnToken) -> bool {
        let ticks = token.ticks(self.place);
        if ticks != self.ticks || token.holder() != Some(self.place) {
            (self.ticks, self.since) = (ticks, Instant::now());
        }
        self.since.elapsed() > STALL_TIMEOUT
    }
}
