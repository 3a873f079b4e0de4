//! The page of turns, as the lab reaches it: in memory of this host, or on the host of the clients
//! through a driver there that keeps it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lab::driver_process::DriverProcess;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::DriverCommand;
use rqps_driver::turns::token::{Heartbeat, TurnPhase, TurnRules, TurnToken};

/// Time limit for another host to make the page.
const ANSWER: Duration = Duration::from_secs(30);

/// The page of one step.
pub(super) enum TurnPage {
    /// On this host.
    Here(TurnToken),
    /// On the host of the clients.
    Away(KeptPage),
}

/// A page on another host. Dropping it ends the driver that keeps it.
pub(super) struct KeptPage {
    /// Its path there.
    path: PathBuf,
    rules: TurnRules,
    keeper: Mutex<Keeper>,
}

/// The driver that keeps a page, and what it said last.
struct Keeper {
    process: DriverProcess,
    /// A bit for each target that waits for others.
    waiting: u64,
    /// The target whose driver stands still in its turn.
    stuck: Option<u32>,
    /// Why the page is lost.
    fault: Option<String>,
}

impl TurnPage {
    /// Makes the page on this host.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn here(rules: TurnRules) -> Result<TurnPage> {
        let token = TurnToken::create(rules.targets(), rules).map_err(anyhow::Error::msg)?;
        Ok(TurnPage::Here(token))
    }

    /// Waits for the page that a driver on another host makes.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn away(mut process: DriverProcess, rules: TurnRules) -> Result<TurnPage> {
        let path = match process.next(ANSWER)? {
            Some(DriverEvent::TurnPage(path)) => path,
            Some(DriverEvent::Failed { fault }) => bail!("{fault}"),
            Some(other) => bail!("expected a page of turns from the driver, got {other:?}"),
            None => bail!("no message from the driver that keeps turns for {} s", ANSWER.as_secs()),
        };
        let keeper = Keeper { process, waiting: 0, stuck: None, fault: None };
        Ok(TurnPage::Away(KeptPage { path, rules, keeper: Mutex::new(keeper) }))
    }

    /// Its path on the host of the drivers.
    pub(super) fn path(&self) -> &Path {
        match self {
            TurnPage::Here(token) => token.path(),
            TurnPage::Away(page) => &page.path,
        }
    }

    pub(super) fn rules(&self) -> &TurnRules {
        match self {
            TurnPage::Here(token) => token.rules(),
            TurnPage::Away(page) => &page.rules,
        }
    }

    /// Says that the counters of a target have been read.
    pub(super) fn sampled(&self, place: usize) {
        match self {
            TurnPage::Here(token) => token.arrive_at_barrier(place, TurnPhase::Sample),
            TurnPage::Away(page) => page.tell(DriverCommand::Sampled(place as u32)),
        }
    }

    /// Takes a target out.
    pub(super) fn leave(&self, place: usize) {
        match self {
            TurnPage::Here(token) => token.remove_target(place),
            TurnPage::Away(page) => page.tell(DriverCommand::Leave(place as u32)),
        }
    }

    /// True while a target waits for others.
    pub(super) fn waits(&self, place: usize) -> bool {
        match self {
            TurnPage::Here(token) => token.is_others(place),
            TurnPage::Away(page) => page.look().waiting & (1 << place) != 0,
        }
    }

    /// True if the driver of a target has the token and stands still; `signs` has its signs of
    /// life on this host.
    ///
    /// # Errors
    /// The page is lost.
    pub(super) fn is_stuck(&self, place: usize, signs: &mut Heartbeat) -> Result<bool> {
        let page = match self {
            TurnPage::Here(token) => return Ok(signs.is_gone(token)),
            TurnPage::Away(page) => page,
        };
        let keeper = page.look();
        match &keeper.fault {
            Some(fault) => bail!("keep turns on the client host: {fault}"),
            None => Ok(keeper.stuck == Some(place as u32)),
        }
    }
}

impl KeptPage {
    fn lock(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the driver that keeps the page. If it is gone, whoever looks next hears why.
    fn tell(&self, word: DriverCommand) {
        let mut keeper = self.lock();
        if let Err(error) = keeper.process.tell(word) {
            keeper.lose(format!("{error:#}"));
        }
    }

    /// Hears what the driver has said.
    fn look(&self) -> MutexGuard<'_, Keeper> {
        let mut keeper = self.lock();
        while keeper.fault.is_none() {
            match keeper.process.next(Duration::ZERO) {
                Ok(None) => break,
                Ok(Some(DriverEvent::TurnState { waiting, stuck })) => {
                    (keeper.waiting, keeper.stuck) = (waiting, stuck);
                }
                Ok(Some(DriverEvent::Failed { fault })) => keeper.lose(fault),
                Ok(Some(other)) => keeper.lose(format!("expected the state, got {other:?}")),
                Err(error) => keeper.lose(format!("{error:#}")),
            }
        }
        keeper
    }
}

impl Keeper {
    fn lose(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}
