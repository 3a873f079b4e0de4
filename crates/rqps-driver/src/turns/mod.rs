//! The clients of one target while several targets take turns. The first client waits for the token
//! and calls the others; all work until the turn is over; the last one to finish passes the token
//! on. Waiting clients sleep.

pub mod token;

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::token::{Heartbeat, TurnPhase, TurnRequest, TurnRules, TurnState, TurnToken};
use crate::Stop;
use crate::clock::{Clock, SECOND};
use crate::control_channel::{ControlChannel, DriverEvent, StepInterval};
use crate::request::DriverCommand;
use crate::worker_pool::{Finished, Spent, TurnNews, WorkerPool};
use rqps_host::clock;
use rqps_host::process::ProcessFreezer;
use rqps_host::tree::{self, Cpu};
use rqps_model::run::{CarryOver, Outcome, Turn, TurnFacts};
use rqps_stats::summary::{mean, stddev};

/// Turns between two reads of the process tree of a stopped server.
const LOOK_EVERY: u32 = 32;
/// Event lengths at the end of the warm-up that enter their median.
const LENGTHS: usize = 99;
/// Most shares of a window.
const SHARES_MOST: u32 = 100;

/// A client that takes turns.
pub trait TurnMember {
    /// Its counts of a window.
    type Counts;

    /// Carries out at least one event, and more until `until`; finishes the one in flight. Returns
    /// the end of the last one (nanoseconds) and the number of completed events. The error is a
    /// complete message.
    fn turn(&mut self, until: u64) -> Result<(u64, u64), String>;

    /// Counts events from `start` on.
    fn open_window(&mut self, start: u64);

    /// Ends the counting and returns the counts.
    fn close_window(&mut self) -> Self::Counts;
}

/// Shared by the clients of one target.
pub struct TurnGroup {
    token: TurnToken,
    place: usize,
    clients: u32,
    clock: Clock,
    /// Nanoseconds from the clients' clock to the host's monotonic clock.
    clock_ahead_ns: u64,
    /// The state of the turn, set by the first client for the others.
    state: AtomicU64,
    /// Start of the current turn.
    begun_ns: AtomicU64,
    ended_ns: AtomicU64,
    events: AtomicU64,
    left: AtomicU32,
    log: Mutex<Log>,
    freezer: Mutex<Option<ProcessFreezer>>,
}

/// A record of the turns.
#[derive(Default)]
struct Log {
    /// Nanoseconds per event in each turn of the warm-up.
    lengths: Vec<u64>,
    /// Turns of the window, with starts on the host's clock.
    rows: Vec<(u32, u64, u64, u64)>,
    own_ns: u64,
    intervals: u64,
}

impl TurnGroup {
    /// Joins the token. Errors are complete messages, here and below.
    pub fn join(request: &TurnRequest, clients: u32, clock: Clock) -> Result<TurnGroup, String> {
        let token = TurnToken::open(&request.page, &request.rules)?;
        let clock_ahead_ns = clock::monotonic_ns().saturating_sub(clock.now());
        Ok(TurnGroup {
            token,
            place: request.place as usize,
            clients,
            clock,
            clock_ahead_ns,
            state: AtomicU64::new(TurnState::FIRST.pack()),
            begun_ns: AtomicU64::new(0),
            ended_ns: AtomicU64::new(0),
            events: AtomicU64::new(0),
            left: AtomicU32::new(clients),
            log: Mutex::default(),
            freezer: Mutex::new(request.freezes.map(ProcessFreezer::of)),
        })
    }

    /// Coordinates the turns: starts the clients, and tells the lab the start of the window and its
    /// intervals, which `interval` makes and which measure own time.
    pub fn lead<T: Send + 'static, W: Write>(
        &self,
        pool: &mut WorkerPool<T>,
        interval: &mut dyn FnMut(u64) -> StepInterval,
        control: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.token.arrive_at_barrier(self.place, TurnPhase::Gather);
        let mut cpu = Cpu::default();
        let mut heed = |news: Option<TurnNews>,
                        control: &mut ControlChannel<W>|
         -> Result<(), Stop> {
            self.token.tick(self.place);
            match news {
                Some(TurnNews::Sample) => {
                    cpu = tree::own_cpu();
                    control.send(&DriverEvent::WindowStart { at_ns: clock::monotonic_ns() })?;
                }
                Some(TurnNews::Cut(own)) => control.send(&DriverEvent::Interval(interval(own)))?,
                None => {}
            }
            Ok(())
        };
        let done = pool.take_turns(&mut heed, control)?;
        let cpu = tree::own_cpu().since(cpu);
        let end = self.log().own_ns;
        control.send(&DriverEvent::Interval(interval(end)))?;
        let done = done.into_iter().map(Some).collect();
        Ok(Finished { done, cpu, end, limited: false })
    }

    /// Adds the facts of the turns to `outcome` and sends each turn.
    pub fn report<W: Write>(
        &self,
        outcome: &mut Outcome,
        control: &mut ControlChannel<W>,
    ) -> Result<(), Stop> {
        let (facts, rows) = self.facts();
        outcome.seconds = self.log().own_ns as f64 / SECOND;
        outcome.turns = Some(facts);
        Ok(control.send(&DriverEvent::Turns(rows))?)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Client `index` takes turns until all are over. `tell` sends messages to the coordinator.
    pub fn play<P: TurnMember>(
        &self,
        index: u32,
        client: &mut P,
        tell: &dyn Fn(TurnNews),
    ) -> Result<(P::Counts, Spent), String> {
        let mut seen = TurnState::FIRST;
        let mut cpu_before = None;
        loop {
            seen = if index == 0 { self.go_first(seen) } else { self.follow(seen) };
            match seen.phase {
                TurnPhase::Gather => {}
                TurnPhase::Sample if index == 0 => tell(TurnNews::Sample),
                TurnPhase::Sample => {}
                TurnPhase::Over => break,
                TurnPhase::WarmUp => self.turn(client, seen, tell)?,
                TurnPhase::Window => {
                    if cpu_before.is_none() {
                        cpu_before = Some(tree::thread_cpu_ns());
                        client.open_window(self.clock.now());
                    }
                    self.turn(client, seen, tell)?;
                }
            }
        }
        let cpu_ns = tree::thread_cpu_ns() - cpu_before.unwrap_or_else(tree::thread_cpu_ns);
        // Its share of a CPU refers to the target's own time.
        let spent = Spent { cpu_ns, from: 0, to: self.log().own_ns };
        Ok((client.close_window(), spent))
    }

    /// The first client waits for the token, resumes the server, and calls the others.
    fn go_first(&self, seen: TurnState) -> TurnState {
        let state = loop {
            if let Some(state) = self.token.wait(self.place, seen) {
                break state;
            }
        };
        if let Some(freezer) = self.freezer().as_mut() {
            if state.turn.is_multiple_of(LOOK_EVERY) {
                freezer.refresh();
            }
            freezer.thaw();
        }
        self.begun_ns.store(self.clock.now(), SeqCst);
        if self.clients > 1 {
            self.state.store(state.pack(), SeqCst);
            self.token.call(self.place);
        }
        state
    }

    fn freezer(&self) -> MutexGuard<'_, Option<ProcessFreezer>> {
        self.freezer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, seen: TurnState) -> TurnState {
        loop {
            let calls = self.token.calls(self.place);
            let state = TurnState::unpack(self.state.load(SeqCst));
            if state != seen {
                return state;
            }
            self.token.wait_call(self.place, calls);
        }
    }

    fn turn<P: TurnMember>(
        &self,
        client: &mut P,
        state: TurnState,
        tell: &dyn Fn(TurnNews),
    ) -> Result<(), String> {
        let until = self.begun_ns.load(SeqCst).saturating_add(self.token.slice_ns());
        let (ended, events) = client.turn(until)?;
        self.ended_ns.fetch_max(ended, SeqCst);
        self.events.fetch_add(events, SeqCst);
        if self.left.fetch_sub(1, SeqCst) == 1 {
            self.pass(state, tell);
        }
        Ok(())
    }

    /// The last client to finish passes the token on. No other client of the team is at work.
    fn pass(&self, state: TurnState, tell: &dyn Fn(TurnNews)) {
        let begun = self.begun_ns.load(SeqCst);
        let took = self.ended_ns.swap(0, SeqCst).saturating_sub(begun);
        let events = self.events.swap(0, SeqCst);
        self.left.store(self.clients, SeqCst);
        let mut log = self.log();
        let mut cut = None;
        if state.phase == TurnPhase::Window {
            log.rows.push((state.turn, begun + self.clock_ahead_ns, took, events));
            log.own_ns += took;
            cut = log.cut(self.token.rules().window_ns);
        } else {
            log.lengths.push(took * u64::from(self.clients) / events.max(1));
        }
        let event = log.event_ns();
        drop(log);
        if let Some(freezer) = &*self.freezer() {
            freezer.freeze();
        }
        // If the turn was taken away, the lab will end this process.
        self.token.pass(self.place, state, took, event);
        if let Some(own) = cut {
            tell(TurnNews::Cut(own));
        }
    }

    /// Facts about all turns. The rate divides by the seconds of all turns.
    fn facts(&self) -> (TurnFacts, Vec<Turn>) {
        let log = self.log();
        let rules = self.token.rules();
        let began = self.token.window_began_ns();
        let first = self.token.first();
        let rounds = self.token.state().turn.saturating_sub(first).div_ceil(rules.round);
        let rounds_per_share = rounds.div_ceil(SHARES_MOST).max(1);
        let mut shares = vec![(0.0, 0); rounds.div_ceil(rounds_per_share) as usize];
        let ms = |ns: u64| ns as f64 / 1e6;
        let rows = log.rows.iter().map(|(turn, start, took, events)| {
            let share = (turn - first) / rules.round / rounds_per_share;
            if let Some((seconds, done)) = shares.get_mut(share as usize) {
                *seconds += *took as f64 / SECOND;
                *done += events;
            }
            let start_ms = ms(start.saturating_sub(began));
            Turn { turn: turn - first, start_ms, ms: ms(*took), events: *events }
        });
        let rows: Vec<Turn> = rows.collect();
        let facts = TurnFacts {
            targets: rules.targets() as u32,
            slice_ms: ms(self.token.slice_ns()),
            stopped: self.freezer().is_some(),
            turns: rows.len() as u32,
            longest_ms: rows.iter().map(|row| row.ms).fold(0.0, f64::max),
            wall_seconds: rows.last().map_or(0.0, |row| (row.start_ms + row.ms) / 1e3),
            alone_seconds: 0.0,
            shares,
            carry_over: carry_over(&rows),
        };
        (facts, rows)
    }
}

impl Log {
    /// Ends an interval with the turn in which a second of own time ends, unless little of the
    /// window remains. Returns the own time then.
    fn cut(&mut self, window_ns: u64) -> Option<u64> {
        let second = SECOND as u64;
        let ended = self.own_ns / second;
        if ended == self.intervals || self.own_ns + second / 2 > window_ns {
            return None;
        }
        self.intervals = ended;
        Some(self.own_ns)
    }

    /// The median length of an event in the last turns of the warm-up, nanoseconds.
    fn event_ns(&self) -> u64 {
        let mut last: Vec<u64> = self.lengths.iter().rev().take(LENGTHS).copied().collect();
        last.sort_unstable();
        last.get(last.len() / 2).copied().unwrap_or(0)
    }
}

/// Fewer pairs tell nothing.
const PAIRS_MIN: usize = 10;

/// The turns of one target, in their order.
pub(super) fn carry_over(turns: &[Turn]) -> Option<CarryOver> {
    let ln_rate = |turn: &Turn| (turn.events as f64 / turn.ms).ln();
    let follows = |turn: &Turn, other: &Turn| other.turn == turn.turn + 1;
    let pairs = turns.windows(3).filter_map(|three| match three {
        [before, first, second] if !follows(before, first) && follows(first, second) => {
            Some(ln_rate(first) - ln_rate(second)).filter(|difference| difference.is_finite())
        }
        _ => None,
    });
    let pairs: Vec<f64> = pairs.collect();
    if pairs.len() < PAIRS_MIN {
        return None;
    }
    let error_ln = stddev(&pairs)? / (pairs.len() as f64).sqrt();
    Some(CarryOver { pairs: pairs.len() as u32, mean_ln: mean(&pairs), error_ln })
}

// Keeps the page of turns on the host of the clients if the lab is on another one. The lab's words
// come as lines; its questions are answered once a second, unasked.
//
// The page goes with this process and with the drivers that have opened it, so nothing stays
// behind however they end.

/// Between two reports of the state.
const REPORT: Duration = Duration::from_secs(1);

/// Keeps a page until the lab goes.
pub fn keep<W: Write>(rules: &TurnRules, control: &mut ControlChannel<W>) -> Result<(), Stop> {
    let token = TurnToken::create(rules.targets(), rules.clone())?;
    control.send(&DriverEvent::TurnPage(token.path().to_owned()))?;
    let mut signs: Vec<Heartbeat> = (0..token.targets()).map(Heartbeat::of).collect();
    let mut next = Instant::now() + REPORT;
    loop {
        let left = next.saturating_duration_since(Instant::now());
        if let Some(line) = control.line(left)? {
            obey(&token, &line)?;
        }
        if Instant::now() >= next {
            control.send(&state(&token, &mut signs))?;
            next = Instant::now() + REPORT;
        }
    }
}

/// Carries out a word of the lab.
fn obey(token: &TurnToken, line: &str) -> Result<(), String> {
    let place = |place: u32| {
        let known = usize::try_from(place).ok().filter(|place| *place < token.targets());
        known.ok_or_else(|| format!("failed to obey `{line}`: there is no such target"))
    };
    match line.parse::<DriverCommand>()? {
        DriverCommand::Sampled(target) => {
            token.arrive_at_barrier(place(target)?, TurnPhase::Sample)
        }
        DriverCommand::Leave(target) => token.remove_target(place(target)?),
        DriverCommand::GoOn
        | DriverCommand::Clock
        | DriverCommand::StartAt(_)
        | DriverCommand::Met(_) => {
            return Err(format!("failed to obey `{line}`: this driver only keeps turns"));
        }
    }
    Ok(())
}

fn state(token: &TurnToken, signs: &mut [Heartbeat]) -> DriverEvent {
    let waiting = (0..token.targets()).filter(|place| token.is_others(*place));
    let waiting = waiting.fold(0, |places, place| places | 1 << place);
    let stuck = signs.iter_mut().map(|signs| signs.is_gone(token)).collect::<Vec<bool>>();
    let stuck = stuck.iter().position(|stuck| *stuck).map(|place| place as u32);
    DriverEvent::TurnState { waiting, stuck }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Turns of the target whose places in an order of A and B are those of `A`.
    fn turns(order: &str, events: impl Fn(bool) -> u64) -> Vec<Turn> {
        let order = order.as_bytes();
        let own = (0..order.len()).filter(|place| order[*place] == b'A');
        let turn = |place: usize| {
            let after_other = place > 0 && order[place - 1] != b'A';
            Turn { turn: place as u32, start_ms: 0.0, ms: 20.0, events: events(after_other) }
        };
        own.map(turn).collect()
    }

    #[test]
    fn only_the_first_of_two_turns_follows_another_target() {
        let found = carry_over(&turns(&"ABBA".repeat(50), |after| if after { 98 } else { 100 }));
        let found = found.expect("49 pairs");
        assert_eq!(found.pairs, 49);
        assert!((found.mean_ln - 0.98_f64.ln()).abs() < 1e-12, "{found:?}");
        assert!(found.error_ln < 1e-12, "{found:?}");
    }

    #[test]
    fn turns_without_pairs_or_events_tell_nothing() {
        assert_eq!(carry_over(&turns(&"AB".repeat(50), |_| 100)), None);
        assert_eq!(carry_over(&turns(&"ABBA".repeat(50), |_| 0)), None);
        assert_eq!(carry_over(&[]), None);
    }

    fn rules() -> TurnRules {
        TurnRules {
            order: vec![0, 1, 1, 0],
            round: 4,
            turn_ns: 1_000,
            warmup_ns: 4_000,
            window_ns: 40_000,
        }
    }

    #[test]
    fn the_words_of_the_lab_open_the_gate_and_remove_targets() {
        let token = TurnToken::create(2, rules()).unwrap();
        (0..2).for_each(|place| token.arrive_at_barrier(place, TurnPhase::Gather));
        while let Some(holder) = token.holder() {
            assert!(token.pass(holder, token.state(), 10_000, 100));
        }
        assert_eq!(token.state().phase, TurnPhase::Sample);
        obey(&token, "sampled 1").unwrap();
        let state_now = |token: &TurnToken| state(token, &mut [Heartbeat::of(0), Heartbeat::of(1)]);
        assert_eq!(state_now(&token), DriverEvent::TurnState { waiting: 0b10, stuck: None });
        obey(&token, "leave 0").unwrap();
        assert_eq!((token.state().phase, token.holder()), (TurnPhase::Window, Some(1)));
        for (line, part) in [
            ("leave 2", "no such target"),
            ("sampled 4294967295", "no such target"),
            ("clock", "only keeps turns"),
            ("", "only keeps turns"),
            ("stop", "only rqps starts drivers"),
        ] {
            let fault = obey(&token, line).unwrap_err();
            assert!(fault.contains(part), "{line}: {fault}");
        }
    }

    #[test]
    fn the_page_is_named_first_and_kept_until_the_lab_goes() {
        let kept = |input: &'static str| {
            let mut said = Vec::new();
            let end = {
                let mut control =
                    ControlChannel::watching(&mut said, Cursor::new(input.as_bytes()));
                keep(&rules(), &mut control)
            };
            let said = String::from_utf8(said).unwrap();
            let first: DriverEvent = serde_json::from_str(said.lines().next().unwrap()).unwrap();
            assert!(matches!(first, DriverEvent::TurnPage(_)), "{first:?}");
            end
        };
        assert!(matches!(kept("leave 1\nsampled 0\n"), Err(Stop::Gone)));
        assert!(matches!(kept("leave 9\n"), Err(Stop::Fault(fault)) if fault.contains("leave 9")));
    }
}
