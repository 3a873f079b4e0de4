//! The part of one target in a step in turns.

use std::cell::Cell;

use anyhow::{Result, bail};

use crate::lab::turn_page::TurnPage;
use rqps_driver::turns::token::{Heartbeat, STALL_TIMEOUT, TurnRequest};
use rqps_model::run::{HostUsage, Usage};

/// The reason why figures of the whole host are missing.
const OF_ALL: &str = "targets took turns, and this counter covers all of them together";

/// The part of one target in the turns of a step.
pub(super) struct TurnParticipant<'a> {
    page: &'a TurnPage,
    place: usize,
    freezes: Option<u32>,
    /// Signs of life of the driver, if it is on this host.
    heartbeat: Cell<Heartbeat>,
}

impl<'a> TurnParticipant<'a> {
    /// Takes part at this place; the process tree of `freezes` stands still in the turns of
    /// others.
    pub(super) fn new(
        page: &'a TurnPage,
        place: usize,
        freezes: Option<u32>,
    ) -> TurnParticipant<'a> {
        TurnParticipant { page, place, freezes, heartbeat: Cell::new(Heartbeat::of(place)) }
    }

    /// The request to the driver.
    pub(super) fn request(&self) -> TurnRequest {
        TurnRequest {
            page: self.page.path().to_owned(),
            place: self.place as u32,
            rules: self.page.rules().clone(),
            freezes: self.freezes,
        }
    }

    /// Number of targets that may be waited for.
    pub(super) fn targets(&self) -> u32 {
        self.page.rules().targets() as u32
    }

    /// The counters before the window have been read.
    pub(super) fn counters_read(&self) {
        self.page.sampled(self.place);
    }

    /// This target takes no more turns. Called at once, so that no other target waits for it.
    pub(super) fn leave(&self) {
        self.page.leave(self.place);
    }

    /// True while others are waited for: then this one has nothing to say.
    pub(super) fn is_waiting(&self) -> bool {
        self.page.waits(self.place)
    }

    /// Looks whether the driver lives while it has the token.
    ///
    /// # Errors
    /// It does not, or the turns cannot be seen any more.
    pub(super) fn check(&self) -> Result<()> {
        let mut heartbeat = self.heartbeat.get();
        let is_stuck = self.page.is_stuck(self.place, &mut heartbeat)?;
        self.heartbeat.set(heartbeat);
        if is_stuck {
            let seconds = STALL_TIMEOUT.as_secs();
            bail!("the driver was stuck for {seconds} s in its turn (stopped by a signal?)");
        }
        Ok(())
    }
}

impl Drop for TurnParticipant<'_> {
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
