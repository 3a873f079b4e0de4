//! The part of one target in a step in turns.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::domain::run::{HostUsage, Usage};
use crate::driver::ring::{Ring, TurnPhase, TurnRequest};

/// A driver that has the token gives a sign of life four times a second. After so long without one
/// it stands still, whatever its server does.
const FROZEN: Duration = Duration::from_secs(5);

/// The reason why figures of the whole host are missing.
const OF_ALL: &str = "targets took turns, and this counter covers all of them together";

/// The part of one target in the turns of a step.
pub(super) struct Taking<'a> {
    ring: &'a Ring,
    place: usize,
    standstill: Option<u32>,
    /// Signs of life of the driver so far, and when the last one was seen.
    pulse: Cell<(u32, Instant)>,
}

impl<'a> Taking<'a> {
    /// Takes part in `ring` at this place; the process tree of `standstill` stands still in the
    /// turns of others.
    pub(super) fn new(ring: &'a Ring, place: usize, standstill: Option<u32>) -> Taking<'a> {
        Taking { ring, place, standstill, pulse: Cell::new((0, Instant::now())) }
    }

    /// The request to the driver.
    pub(super) fn request(&self) -> TurnRequest {
        TurnRequest {
            page: self.ring.path().to_owned(),
            place: self.place as u32,
            rules: self.ring.rules().clone(),
            standstill: self.standstill,
        }
    }

    /// Number of targets that may be waited for.
    pub(super) fn targets(&self) -> u32 {
        self.ring.targets() as u32
    }

    /// The counters before the window have been read.
    pub(super) fn sampled(&self) {
        self.ring.arrive(self.place, TurnPhase::Sample);
    }

    /// This target takes no more turns. Called at once, so that no other target waits for it.
    pub(super) fn leave(&self) {
        self.ring.bury(self.place);
    }

    /// True while others are waited for: then this one has nothing to say.
    pub(super) fn waits(&self) -> bool {
        self.ring.is_others(self.place)
    }

    /// Looks whether the driver lives while it has the token.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn check(&self) -> Result<()> {
        let (beats, since) = self.pulse.get();
        let now = self.ring.beats(self.place);
        if now != beats || self.ring.holder() != Some(self.place) {
            self.pulse.set((now, Instant::now()));
        } else if since.elapsed() > FROZEN {
            let seconds = FROZEN.as_secs();
            bail!("the driver was stuck for {seconds} s in its turn (stopped by a signal?)");
        }
        Ok(())
    }
}

impl Drop for Taking<'_> {
    /// No target waits for it, however it ends.
    fn drop(&mut self) {
        self.leave();
    }
}

/// Takes out what cannot be divided among targets.
pub(super) fn hide_host(usage: &mut Usage) {
    usage.host = HostUsage::default();
    usage.disk = None;
    for counter in ["host", "disk"] {
        usage.missing.insert(counter.to_owned(), OF_ALL.to_owned());
    }
}
