//! The loop of one client: next event after the reply (closed), or on a schedule (open).
//!
//! Per event it reads the clock once, allocates nothing, takes no lock and writes only memory of
//! its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::datagen::rng::Rng;
use crate::domain::benchmark::Pace;
use crate::domain::build::Dialect;
use crate::driver::clock::Clock;
use crate::driver::program::{Program, Stumble, Tally};
use crate::driver::recorder::Recorder;
use crate::driver::session::Session;
use crate::wire::WireError;

/// Nanoseconds of a second.
pub(crate) const SECOND: f64 = 1e9;

/// One client with all that it needs.
pub(crate) struct Client {
    session: Session,
    program: Program,
    clock: Clock,
    dialect: Dialect,
    schedule: Option<Schedule>,
    recorder: Arc<Recorder>,
    /// The event that ended after the limit of the last call.
    pending: Option<Event>,
    /// When the last event ended: under a closed pace the next one begins then.
    last_end: u64,
    window: Option<Window>,
    counts: Counts,
}

/// The measured window on the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its first nanosecond.
    pub(crate) start: u64,
    /// Events that end later do not count.
    pub(crate) end: u64,
    /// True if every client begins an event at the start and finishes the one that is in flight at
    /// the end: for events so long that cutting them would count wrong.
    pub(crate) whole_events: bool,
}

/// What one client did in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) tally: Tally,
    pub(crate) errors: BTreeMap<String, u64>,
    /// The time that the events are to be divided by, nanoseconds.
    pub(crate) window_ns: u64,
    /// True if no event ended in the window and the one in flight was counted over its own time.
    pub(crate) stretched: bool,
    /// Under an open pace: events whose intended start lies in the window.
    pub(crate) due: u64,
    /// Under an open pace: the furthest behind the schedule, nanoseconds.
    pub(crate) behind_ns: u64,
}

/// One event that was carried out.
struct Event {
    intended: u64,
    start: u64,
    end: u64,
    tally: Tally,
    /// False if the window ended while it was still being retried.
    complete: bool,
}

/// A seeded Poisson schedule.
struct Schedule {
    rng: Rng,
    mean_gap_ns: f64,
    /// In floating point so that gaps of any size add up without a bias.
    next: f64,
}

impl Schedule {
    fn restart(&mut self, now: u64) {
        self.next = now as f64;
        self.advance();
    }

    fn advance(&mut self) {
        self.next += self.rng.exponential() * self.mean_gap_ns;
    }
}

impl Client {
    /// A client whose session is set up and whose program is prepared.
    pub(crate) fn new(
        session: Session,
        program: Program,
        clock: Clock,
        dialect: Dialect,
        recorder: Arc<Recorder>,
    ) -> Client {
        Client {
            session,
            program,
            clock,
            dialect,
            schedule: None,
            recorder,
            pending: None,
            last_end: 0,
            window: None,
            counts: Counts::default(),
        }
    }

    /// Sets the pace: client `index` of `clients` takes its share of an open rate.
    pub(crate) fn set_pace(&mut self, pace: Pace, seed: u64, index: u32, clients: u32) {
        if let Pace::Open { events_per_second } = pace {
            let mean_gap_ns = SECOND * f64::from(clients.max(1)) / events_per_second;
            let rng = Rng::stream(seed, "pace", u64::from(index));
            self.schedule = Some(Schedule { rng, mean_gap_ns, next: 0.0 });
        }
    }

    /// The client's clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Runs uncounted events until `end`. The error is a whole fault, as in all calls here.
    pub(crate) fn warm_up(&mut self, end: u64) -> Result<(), String> {
        self.last_end = self.clock.now();
        if let Some(schedule) = &mut self.schedule {
            schedule.restart(self.last_end);
        }
        self.run_until(end, end)
    }

    /// Opens the window. An event in flight from the warm-up counts if it ends within; not so under
    /// an open pace, where the schedule starts anew and the queue is not inherited, and not if
    /// only whole events count.
    pub(crate) fn open_window(&mut self, window: Window) {
        if self.schedule.is_some() || window.whole_events {
            self.pending = None;
            self.last_end = self.clock.wait_until(window.start).max(self.last_end);
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.restart(window.start);
        }
        self.window = Some(window);
    }

    /// Runs until no further event can end by `limit`, which is the end of the window or before.
    pub(crate) fn run_to(&mut self, limit: u64) -> Result<(), String> {
        let stop = self.window.map_or(limit, |window| window.end);
        self.run_until(limit, stop)
    }

    /// Closes the window and tells what was counted.
    pub(crate) fn close_window(&mut self) -> Counts {
        let Some(window) = self.window.take() else { return Counts::default() };
        let mut length = window.end - window.start;
        if let Some(event) = self.pending.take().filter(|event| event.complete) {
            if window.whole_events {
                length = event.end - window.start;
                self.record(&event);
            } else if self.counts.events == 0 && self.schedule.is_none() {
                length = event.end - event.start;
                self.counts.stretched = true;
                self.record(&event);
            }
        }
        self.counts.window_ns = length;
        self.count_backlog(window.end);
        std::mem::take(&mut self.counts)
    }

    /// Events that were due but had no turn: they are the distance between due and done.
    fn count_backlog(&mut self, end: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        let backlog = end.saturating_sub(schedule.next as u64);
        self.counts.behind_ns = self.counts.behind_ns.max(backlog);
        while schedule.next < end as f64 {
            self.counts.due += 1;
            schedule.advance();
        }
    }

    /// Carries out events; those that end by `limit` are recorded, the one that ends later is kept
    /// for the next call. After `stop` a failing event is not retried.
    fn run_until(&mut self, limit: u64, stop: u64) -> Result<(), String> {
        if let Some(event) = self.pending.take() {
            if event.end > limit {
                self.pending = Some(event);
                return Ok(());
            }
            self.record(&event);
        }
        loop {
            if let Some(schedule) = &self.schedule
                && schedule.next > limit as f64
            {
                return Ok(());
            }
            let event = self.event(stop)?;
            if event.end > limit {
                self.pending = Some(event);
                return Ok(());
            }
            self.record(&event);
        }
    }

    #[inline]
    fn event(&mut self, stop: u64) -> Result<Event, String> {
        let mut start = self.last_end;
        let mut intended = start;
        if let Some(schedule) = &mut self.schedule {
            intended = schedule.next as u64;
            schedule.advance();
            if intended > start {
                start = self.clock.wait_until(intended);
            }
            if self.window.is_some() {
                self.counts.due += 1;
                self.counts.behind_ns = self.counts.behind_ns.max(start - intended);
            }
        }
        let mut tally = Tally::default();
        let mut complete = true;
        while let Err(stumble) = self.program.attempt(&mut self.session, &mut tally) {
            if !self.may_retry(stumble, stop)? {
                complete = false;
                break;
            }
        }
        let end = self.clock.now();
        self.last_end = end;
        Ok(Event { intended, start, end, tally, complete })
    }

    #[inline]
    fn record(&mut self, event: &Event) {
        if self.window.is_none() || !event.complete {
            return;
        }
        self.counts.events += 1;
        self.counts.tally.add(&event.tally);
        self.recorder.event(
            event.end - event.intended,
            event.end - event.start,
            self.counts.tally.statements,
        );
    }

    /// Counts the error and takes the transaction back. False if the time is over.
    #[cold]
    fn may_retry(&mut self, stumble: Stumble, stop: u64) -> Result<bool, String> {
        let Stumble { kind, error } = stumble;
        let code = match &error {
            WireError::Server { code, .. } if is_ignorable(self.dialect, code) => code.clone(),
            _ => return Err(format!("failed to execute {kind}: {error}")),
        };
        let now = self.clock.now();
        if self.window.is_some_and(|window| now <= window.end || window.whole_events) {
            *self.counts.errors.entry(code).or_insert(0) += 1;
            self.recorder.error();
        }
        if self.program.is_transaction() {
            self.roll_back()?;
        }
        Ok(now < stop)
    }

    /// Neither counted nor required to find a transaction: a deadlock has ended it already on
    /// MySQL, and SQLite ends it for some errors.
    fn roll_back(&mut self) -> Result<(), String> {
        match self.session.simple("ROLLBACK") {
            Ok(_) | Err(WireError::Server { .. }) => Ok(()),
            Err(error) => Err(format!("failed to roll back: {error}")),
        }
    }
}

/// Errors after which the event begins again, as sysbench has them: deadlock, lock wait timeout and
/// record changed on MySQL; deadlock, serialization failure and unique violation on Postgres.
///
/// Beyond sysbench's list, MySQL's duplicate key (1062) is treated as its Postgres twin 23505: the
/// delete and insert of write-only meet it after `delete` runs have thinned the table out, and it
/// stays visible under its code. For SQLite it is every form of BUSY and LOCKED.
fn is_ignorable(dialect: Dialect, code: &str) -> bool {
    match dialect {
        Dialect::Mysql => matches!(code, "1213" | "1020" | "1205" | "1062"),
        Dialect::Postgres => matches!(code, "40P01" | "23505" | "40001"),
        // Extended result codes carry the primary code in their lowest byte.
        Dialect::Sqlite => code.parse().is_ok_and(|code: i32| matches!(code & 0xff, 5 | 6)),
        Dialect::Fake => code == "40001",
    }
}
