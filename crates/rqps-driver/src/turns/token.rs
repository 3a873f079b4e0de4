//! The token of a step in turns: a page of memory, shared by the drivers and the lab, that says
//! whose turn it is. Drivers pass the token to each other. The lab only opens the two barriers (all
//! are connected; all counters are read) and removes drivers that have died.
//!
//! The order of turns is fixed in advance and known to all, so the state is two numbers in one
//! word: the phase, and the number of the turn.
//!
//! ```text
//! Gather ──all connected──► WarmUp ──own time reached──► Sample ──all counters read──► Window ──► Over
//! ```
//!
//! Several processes may see at the same moment that a phase is over. Whoever replaces the state
//! first moves on; what belongs to the new phase is written before that, once, and never again
//! (`write_once`), and each phase has own times of its own. So a process that comes too late
//! changes nothing. `token/tests/interleavings.rs` tries all interleavings.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use rqps_host::clock;
use rqps_host::shared_memory::SharedPage;

/// Most targets that can take turns: each is one bit of a word.
pub const TARGETS_MAX: usize = 64;

/// Events of the slowest target per slice, so that the event in flight at its end and cold caches
/// at its start weigh little…
const EVENTS_PER_SLICE: u64 = 20;
/// …unless the window would then have fewer than this number of slices per target.
const SLICES_LEAST: u64 = 10;

/// Longest sleep before a waiting client looks again.
const LOOK: Duration = Duration::from_millis(200);

/// A target's part in the turns; in the request to its driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// The shared page (see [`SharedPage::path`]).
    pub page: PathBuf,
    /// Number of this target, from 0.
    pub place: u32,
    /// The rules of the turns.
    pub rules: TurnRules,
    /// Root process of the server if it is stopped during the turns of others.
    pub freezes: Option<u32>,
}

/// The rules that all targets of a step share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRules {
    /// Targets (from 0) in the order of their turns, which repeats. Each target has the same number
    /// of turns per round, and one in each part of a round with as many turns as there are targets.
    pub order: Vec<u32>,
    /// Turns per round; the window ends between two rounds.
    pub round: u32,
    /// Shortest turn, nanoseconds. The client then finishes the event in flight.
    pub turn_ns: u64,
    /// Own time per target before the window, nanoseconds, on average over the targets.
    pub warmup_ns: u64,
    /// Own time per target in the window, nanoseconds, on average over the targets.
    pub window_ns: u64,
}

impl TurnRules {
    /// Number of targets in the order.
    pub fn targets(&self) -> usize {
        self.order.iter().max().map_or(0, |most| *most as usize + 1)
    }
}

/// The phase of a step in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnPhase {
    /// Targets connect and prepare; no target has the token.
    Gather,
    /// Turns that do not count.
    WarmUp,
    /// The lab reads counters; no target has the token.
    Sample,
    /// Turns that count.
    Window,
    /// No more turns.
    Over,
}

const PHASES: [TurnPhase; 5] =
    [TurnPhase::Gather, TurnPhase::WarmUp, TurnPhase::Sample, TurnPhase::Window, TurnPhase::Over];

/// The phase, and the turn counted from 0 through all phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnState {
    /// The phase.
    pub phase: TurnPhase,
    /// The current turn, or the next one.
    pub turn: u32,
}

impl TurnState {
    /// The state before the first turn.
    pub const FIRST: TurnState = TurnState { phase: TurnPhase::Gather, turn: 0 };

    /// The state as one number.
    pub fn pack(self) -> u64 {
        (self.phase as u64) << 32 | u64::from(self.turn)
    }

    /// The state that was packed.
    pub fn unpack(bits: u64) -> TurnState {
        let phase = PHASES.get((bits >> 32) as usize).copied().unwrap_or(TurnPhase::Over);
        TurnState { phase, turn: bits as u32 }
    }

    fn has_turns(self) -> bool {
        matches!(self.phase, TurnPhase::WarmUp | TurnPhase::Window)
    }
}

// Indexes of the page's numbers.
const STATE: usize = 0;
const ALIVE: usize = 1;
const GATHERED: usize = 2;
const SAMPLED: usize = 3;
/// Length of a turn in the window, nanoseconds; 0 before.
const SLICE: usize = 4;
/// Start of the window on the host's monotonic clock; 0 before.
const BEGUN: usize = 5;
/// First turn of the window, plus one; 0 before.
const FIRST: usize = 6;
/// Own time in the warm-up, one number per target.
const WARMUP_OWN: usize = 32;
/// Length of an event, one number per target.
const EVENT: usize = WARMUP_OWN + TARGETS_MAX;
/// Own time in the window, one number per target.
const WINDOW_OWN: usize = EVENT + TARGETS_MAX;

/// Numbers that several processes share, and the clock that they agree on.
pub trait SharedNumbers {
    /// The number at `index`.
    fn load(&self, index: usize) -> u64;
    /// Writes the number at `index`.
    fn store(&self, index: usize, value: u64);
    /// Adds to the number at `index`.
    fn add(&self, index: usize, value: u64);
    /// Sets bits of the number at `index`.
    fn set_bits(&self, index: usize, bits: u64);
    /// Clears bits of the number at `index`.
    fn clear_bits(&self, index: usize, bits: u64);
    /// Writes `to` at `index` if `from` is there; false if it is not.
    fn replace(&self, index: usize, from: u64, to: u64) -> bool;
    /// Wakes the clients of `target`.
    fn wake(&self, target: usize);
    /// Nanoseconds of the monotonic clock.
    fn now(&self) -> u64;

    /// Writes a number that is still 0.
    fn write_once(&self, index: usize, value: u64) {
        self.replace(index, 0, value);
    }
}

impl SharedNumbers for SharedPage {
    fn load(&self, index: usize) -> u64 {
        self.number(index).load(SeqCst)
    }

    fn store(&self, index: usize, value: u64) {
        self.number(index).store(value, SeqCst);
    }

    fn add(&self, index: usize, value: u64) {
        self.number(index).fetch_add(value, SeqCst);
    }

    fn set_bits(&self, index: usize, bits: u64) {
        self.number(index).fetch_or(bits, SeqCst);
    }

    fn clear_bits(&self, index: usize, bits: u64) {
        self.number(index).fetch_and(!bits, SeqCst);
    }

    fn replace(&self, index: usize, from: u64, to: u64) -> bool {
        self.number(index).compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }

    fn wake(&self, target: usize) {
        self.word(BELL + target).fetch_add(1, SeqCst);
        SharedPage::wake(self, BELL + target);
    }

    fn now(&self) -> u64 {
        clock::monotonic_ns()
    }
}

// Words of the page.
/// Changes when there is news for a target; one word per target.
const BELL: usize = 0;
/// Counts up while a driver lives; one word per target.
const TICKS: usize = BELL + TARGETS_MAX;
/// Changes when the first client of a target calls the others; one word per target.
const CALL: usize = TICKS + TARGETS_MAX;

/// The token as seen by the lab or one driver.
#[derive(Debug)]
pub struct TurnToken<P = SharedPage> {
    page: P,
    rules: TurnRules,
    targets: usize,
}

impl TurnToken {
    /// Makes the page for `targets` targets, all alive and none ready.
    ///
    /// # Errors
    ///
    /// The shared page cannot be created, there are too many targets, or the rules are invalid.
    /// Complete messages.
    pub fn create(targets: usize, rules: TurnRules) -> Result<TurnToken, String> {
        if targets > TARGETS_MAX {
            return Err(format!(
                "failed to take turns: {targets} targets, but at most {TARGETS_MAX} can take \
                 turns; use --interleave step"
            ));
        }
        let page = SharedPage::create()
            .map_err(|error| format!("failed to make a shared page for drivers: {error}"))?;
        let token = TurnToken::new(page, rules)?;
        if token.targets != targets {
            return Err(format!("failed to take turns: the order does not have {targets} targets"));
        }
        token.begin();
        Ok(token)
    }

    /// Opens the page that the lab made.
    ///
    /// # Errors
    ///
    /// The lab is gone, or the rules are invalid. Complete messages.
    pub fn open(path: &Path, rules: &TurnRules) -> Result<TurnToken, String> {
        let page = SharedPage::open(path).map_err(|error| {
            format!("failed to open the page of turns {}: {error}", path.display())
        })?;
        TurnToken::new(page, rules.clone())
    }

    /// The path of the shared page (see [`SharedPage::path`]).
    pub fn path(&self) -> &Path {
        self.page.path()
    }

    /// Calls the other clients of `place`.
    pub fn call(&self, place: usize) {
        self.page.word(CALL + place).fetch_add(1, SeqCst);
        self.page.wake(CALL + place);
    }

    /// Number of calls so far.
    pub fn calls(&self, place: usize) -> u32 {
        self.page.word(CALL + place).load(SeqCst)
    }

    /// Waits until there are more calls than `calls`, or for a while.
    pub fn wait_call(&self, place: usize, calls: u32) {
        self.page.wait(CALL + place, calls, LOOK);
    }

    /// A sign of life of the driver of `place`.
    pub fn tick(&self, place: usize) {
        self.page.word(TICKS + place).fetch_add(1, SeqCst);
    }

    /// A number that changes while the driver of `place` lives.
    pub fn ticks(&self, place: usize) -> u32 {
        self.page.word(TICKS + place).load(SeqCst)
    }

    /// Waits for news for `place` in another state than `seen`: its turn, or a phase without turns.
    /// `None` if there is none for a while.
    pub fn wait(&self, place: usize, seen: TurnState) -> Option<TurnState> {
        let bell = self.page.word(BELL + place).load(SeqCst);
        if let Some(state) = self.news(place, seen) {
            return Some(state);
        }
        self.page.wait(BELL + place, bell, LOOK);
        self.news(place, seen)
    }
}

impl<P: SharedNumbers> TurnToken<P> {
    fn new(page: P, rules: TurnRules) -> Result<TurnToken<P>, String> {
        let targets = rules.targets();
        let whole = rules.round > 0 && rules.order.len().is_multiple_of(rules.round as usize);
        if targets == 0 || targets > TARGETS_MAX || !whole {
            let why = "failed to take turns: the order does not consist of whole rounds";
            return Err(why.to_owned());
        }
        Ok(TurnToken { page, rules, targets })
    }

    /// All targets are alive.
    fn begin(&self) {
        let all = if self.targets == TARGETS_MAX { u64::MAX } else { (1 << self.targets) - 1 };
        self.page.store(ALIVE, all);
    }

    /// The rules of the turns.
    pub fn rules(&self) -> &TurnRules {
        &self.rules
    }

    /// Number of targets, including the dead.
    pub fn targets(&self) -> usize {
        self.targets
    }

    /// The current state.
    pub fn state(&self) -> TurnState {
        TurnState::unpack(self.page.load(STATE))
    }

    /// The target with the token; `None` if no target has it.
    pub fn holder(&self) -> Option<usize> {
        let state = self.state();
        state.has_turns().then(|| self.target_of(state.turn))
    }

    fn target_of(&self, turn: u32) -> usize {
        self.rules.order[turn as usize % self.rules.order.len()] as usize
    }

    /// Length of a turn, nanoseconds. It may be longer in the window than before.
    pub fn slice_ns(&self) -> u64 {
        match self.page.load(SLICE) {
            0 => self.rules.turn_ns,
            slice => slice,
        }
    }

    /// Start of the window on the host's monotonic clock, nanoseconds; 0 before.
    pub fn window_began_ns(&self) -> u64 {
        self.page.load(BEGUN)
    }

    /// The first turn of the window; 0 before the window.
    pub fn first(&self) -> u32 {
        self.page.load(FIRST).saturating_sub(1) as u32
    }

    /// Says that `place` is ready for the warm-up, or that the lab has read its counters. The last
    /// one opens the barrier.
    pub fn arrive_at_barrier(&self, place: usize, phase: TurnPhase) {
        let barrier = if phase == TurnPhase::Gather { GATHERED } else { SAMPLED };
        self.page.set_bits(barrier, 1 << place);
        self.advance();
    }

    /// Takes `place` out: it has died or finished. Moves the token on if `place` holds it.
    pub fn remove_target(&self, place: usize) {
        self.page.clear_bits(ALIVE, 1 << place);
        self.advance();
    }

    /// True if the others are waited for and `place` has nothing to do meanwhile.
    pub fn is_others(&self, place: usize) -> bool {
        let state = self.state();
        let has_come = |barrier: usize| self.page.load(barrier) & (1 << place) != 0;
        match state.phase {
            TurnPhase::Gather => has_come(GATHERED),
            TurnPhase::Sample => has_come(SAMPLED),
            TurnPhase::WarmUp | TurnPhase::Window => self.target_of(state.turn) != place,
            TurnPhase::Over => false,
        }
    }

    fn news(&self, place: usize, seen: TurnState) -> Option<TurnState> {
        let state = self.state();
        let mine = !state.has_turns() || self.target_of(state.turn) == place;
        (state != seen && mine).then_some(state)
    }

    /// Passes the token on after a turn of `place` of `took_ns` nanoseconds, with events of
    /// `event_ns`. False if the turn was taken away.
    pub fn pass(&self, place: usize, state: TurnState, took_ns: u64, event_ns: u64) -> bool {
        let mine = state.has_turns() && self.target_of(state.turn) == place;
        if !mine || self.state() != state {
            return false;
        }
        self.page.add(own_time_of(state.phase) + place, took_ns);
        self.page.store(EVENT + place, event_ns);
        let passed = self.change(state, self.after(state));
        if passed {
            self.advance();
        }
        passed
    }

    fn change(&self, from: TurnState, to: TurnState) -> bool {
        if !self.page.replace(STATE, from.pack(), to.pack()) {
            return false;
        }
        let all = 0..self.targets;
        let one = self.target_of(to.turn);
        for place in if to.has_turns() { one..one + 1 } else { all } {
            self.page.wake(place);
        }
        true
    }

    /// Moves on from a state that nobody else leaves: an open barrier, the turn of a dead target.
    fn advance(&self) {
        loop {
            let state = self.state();
            let alive = self.page.load(ALIVE);
            let has_come = |barrier: usize| self.page.load(barrier) & alive == alive;
            let next = match state.phase {
                TurnPhase::Gather if has_come(GATHERED) => {
                    TurnState { phase: TurnPhase::WarmUp, ..state }
                }
                TurnPhase::Sample if has_come(SAMPLED) => {
                    self.begin_window(state, alive);
                    TurnState { phase: TurnPhase::Window, ..state }
                }
                TurnPhase::WarmUp | TurnPhase::Window
                    if alive & (1 << self.target_of(state.turn)) == 0 =>
                {
                    self.after(state)
                }
                _ => return,
            };
            if alive == 0 {
                return;
            }
            self.change(state, next);
        }
    }

    /// Writes what belongs to the window, before the state says that there is one.
    fn begin_window(&self, sample: TurnState, alive: u64) {
        let living = (0..self.targets).filter(|place| alive & (1 << place) != 0);
        let slowest = living.map(|place| self.page.load(EVENT + place)).max().unwrap_or(0);
        self.page.write_once(SLICE, slice(&self.rules, slowest));
        self.page.write_once(FIRST, u64::from(sample.turn) + 1);
        self.page.write_once(BEGUN, self.page.now());
    }

    /// The state after the turn of `state`.
    fn after(&self, state: TurnState) -> TurnState {
        let next = TurnState { turn: state.turn.wrapping_add(1), ..state };
        let window = state.phase == TurnPhase::Window;
        if !self.may_end(next.turn, window) {
            return next;
        }
        let wanted = if window { self.rules.window_ns } else { self.rules.warmup_ns };
        let alive = self.page.load(ALIVE);
        let living = (0..self.targets).filter(|place| alive & (1 << place) != 0);
        let own: u64 = living.map(|place| self.page.load(own_time_of(state.phase) + place)).sum();
        if own < wanted.saturating_mul(u64::from(alive.count_ones())) {
            return next;
        }
        if window {
            return TurnState { phase: TurnPhase::Over, ..next };
        }
        // The window begins with a round.
        let turn = next.turn.next_multiple_of(self.rules.round);
        TurnState { phase: TurnPhase::Sample, turn }
    }

    /// True if a phase may end before `turn`: after whole rounds; if no round fits into it, when
    /// all targets have had the same number of turns.
    fn may_end(&self, turn: u32, window: bool) -> bool {
        let long = window && turn.wrapping_sub(self.first()) > self.rules.round;
        let part = if long { self.rules.round } else { self.targets as u32 };
        turn.is_multiple_of(part)
    }
}

/// Where the own times of a phase are.
fn own_time_of(phase: TurnPhase) -> usize {
    if phase == TurnPhase::Window { WINDOW_OWN } else { WARMUP_OWN }
}

/// The length of a turn, if the slowest target needs `event_ns` for an event. If events are longer
/// than the requested turn, and too long for many of them in one, each client runs one event per
/// turn.
fn slice(rules: &TurnRules, event_ns: u64) -> u64 {
    let whole = event_ns.saturating_mul(EVENTS_PER_SLICE);
    if whole > rules.window_ns / SLICES_LEAST { rules.turn_ns } else { whole.max(rules.turn_ns) }
}

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

#[cfg(test)]
mod tests;
