//! The part of one target in a step in turns.

use std::cell::Cell;

use anyhow::{Result, bail};

use crate::lab::process_turns::ProcessTurns;
use crate::lab::turn_page::TurnPage;
use rqps_driver::request::DriverRequest;
use rqps_driver::turns::token::{Heartbeat, STALL_TIMEOUT, TurnRequest};
use rqps_model::run::{HostUsage, Outcome, Usage};

/// Shares of its time alone, and of turns in which it did not stand still, from which on a target
/// says so.
const TOLD: f64 = 0.1;

/// The reason why figures of the whole host are missing.
const OF_ALL: &str = "targets took turns, and this counter covers all of them together";

/// The part of one target in the turns of a step.
pub(super) struct TurnParticipant<'a> {
    turns: TakenTurns<'a>,
    place: usize,
}

/// How the targets take turns.
enum TakenTurns<'a> {
    /// Their clients pass a token on.
    Clients {
        page: &'a TurnPage,
        freezes: Option<u32>,
        /// Signs of life of the driver, if it is on this host.
        heartbeat: Cell<Heartbeat>,
    },
    /// The lab stops all processes of the others, the server among them.
    Processes { turns: &'a ProcessTurns, server: Option<u32> },
}

impl<'a> TurnParticipant<'a> {
    /// Its clients take part at this place; the process tree of `freezes` stands still in the turns
    /// of others.
    pub(super) fn of_clients(page: &'a TurnPage, place: usize, freezes: Option<u32>) -> Self {
        let heartbeat = Cell::new(Heartbeat::of(place));
        TurnParticipant { turns: TakenTurns::Clients { page, freezes, heartbeat }, place }
    }

    /// Its processes take part at this place, with those of a server.
    pub(super) fn of_processes(turns: &'a ProcessTurns, place: usize, server: Option<u32>) -> Self {
        TurnParticipant { turns: TakenTurns::Processes { turns, server }, place }
    }

    /// Puts its part into the request to the driver.
    pub(super) fn put(&self, request: &mut DriverRequest) {
        match &self.turns {
            TakenTurns::Clients { page, freezes, .. } => {
                request.turns = Some(TurnRequest {
                    page: page.path().to_owned(),
                    place: self.place as u32,
                    rules: page.rules().clone(),
                    freezes: *freezes,
                });
            }
            TakenTurns::Processes { turns, .. } => {
                request.standstill = Some(turns.page(self.place));
            }
        }
    }

    /// The driver has started.
    pub(super) fn driver_started(&self, driver: Option<u32>) {
        if let (TakenTurns::Processes { turns, server }, Some(driver)) = (&self.turns, driver) {
            turns.begin(self.place, driver, *server);
        }
    }

    /// Number of targets that may be waited for.
    pub(super) fn targets(&self) -> u32 {
        let rules = match &self.turns {
            TakenTurns::Clients { page, .. } => page.rules(),
            TakenTurns::Processes { turns, .. } => turns.rules(),
        };
        rules.targets() as u32
    }

    /// The counters before the window have been read; it begins or began at this moment of the
    /// driver's host.
    pub(super) fn counters_read(&self, window_start_ns: u64) {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.sampled(self.place),
            TakenTurns::Processes { turns, .. } => {
                turns.window_began(self.place, window_start_ns);
            }
        }
    }

    /// Adds what the lab knows of the turns; clients report their own.
    pub(super) fn report(&self, outcome: &mut Outcome) {
        let TakenTurns::Processes { turns, .. } = &self.turns else { return };
        outcome.turns = turns.facts(self.place);
        let alone = outcome.turns.as_ref().map_or(0.0, |turns| turns.alone_seconds);
        let share = alone / outcome.seconds.max(f64::MIN_POSITIVE);
        if share > TOLD {
            let percent = 100.0 * share.min(1.0);
            outcome.notes.push(format!(
                "ran alone for the last {percent:.0} % of its time: the others were done"
            ));
        }
        let missed = turns.missed(self.place);
        if missed > TOLD {
            outcome.notes.push(format!(
                "did not stand still in {:.0} % of the turns of others: its threads hung in the \
                 kernel, or got no CPU to stop on",
                100.0 * missed
            ));
        }
    }

    /// This target takes no more turns. Called at once, so that no other target waits for it.
    pub(super) fn leave(&self) {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.leave(self.place),
            TakenTurns::Processes { turns, .. } => turns.leave(self.place),
        }
    }

    /// True while others are waited for: then this one has nothing to say.
    pub(super) fn is_waiting(&self) -> bool {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.waits(self.place),
            TakenTurns::Processes { turns, .. } => turns.waits(self.place),
        }
    }

    /// Looks whether the driver can take its turns.
    ///
    /// # Errors
    /// It cannot, or the turns cannot be seen any more.
    pub(super) fn check(&self) -> Result<()> {
        if let TakenTurns::Clients { page, heartbeat, .. } = &self.turns {
            let mut signs = heartbeat.get();
            let is_stuck = page.is_stuck(self.place, &mut signs)?;
            heartbeat.set(signs);
            if is_stuck {
                let seconds = STALL_TIMEOUT.as_secs();
                bail!("the driver was stuck for {seconds} s in its turn (stopped by a signal?)");
            }
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
