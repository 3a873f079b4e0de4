//! Signs of life of drivers that take turns: whoever has the token gives four a second.

use std::time::{Duration, Instant};

use crate::driver::ring::Ring;

/// After so long without a sign of life a driver in its turn stands still, whatever its server
/// does.
pub const FROZEN: Duration = Duration::from_secs(5);

/// The signs of life of one target's driver.
#[derive(Clone, Copy, Debug)]
pub struct LifeSigns {
    place: usize,
    /// Signs so far.
    beats: u32,
    /// When the last one was seen, or the last turn of another target.
    since: Instant,
}

impl LifeSigns {
    /// The driver of the target at `place`, which lives now.
    pub fn of(place: usize) -> LifeSigns {
        LifeSigns { place, beats: 0, since: Instant::now() }
    }

    /// Looks: true if the driver has the token and gave no sign of life for [`FROZEN`].
    pub fn is_gone(&mut self, ring: &Ring) -> bool {
        let beats = ring.beats(self.place);
        if beats != self.beats || ring.holder() != Some(self.place) {
            (self.beats, self.since) = (beats, Instant::now());
        }
        self.since.elapsed() > FROZEN
    }
}
