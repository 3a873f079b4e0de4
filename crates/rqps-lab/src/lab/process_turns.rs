//! Turns of whole processes: the lab stops the driver and the server of every target but one, with
//! all their threads, and lets the next one run after some milliseconds. So any work can take
//! turns, also work of a fixed size, in the background, or by a schedule: clocks of the driver leave
//! out the time in which it stood still ([`rqps_host::clock::leave_out_standstill`]).
//!
//! ```text
//! Expected ──its driver runs──► InTurns ──its step is over, or failed──► Left
//! ```
//!
//! Turns begin when no target is expected any more. The last target in turns runs alone to its end.

use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use rqps_driver::turns::token::TurnRules;
use rqps_host::clock;
use rqps_host::process::ProcessFreezer;
use rqps_host::shared_memory::SharedPage;
use rqps_model::run::TurnFacts;

/// Turns between two looks at the processes of a target.
const LOOK_EVERY: u32 = 32;

/// The turns of one step.
pub(super) struct ProcessTurns {
    rules: TurnRules,
    members: Mutex<Vec<Member>>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Expected,
    InTurns,
    Left,
}

struct Member {
    state: MemberState,
    /// Its standstill, for the driver: nanoseconds in the first number.
    page: SharedPage,
    /// The driver first, then the server.
    processes: Vec<ProcessFreezer>,
    /// When it stopped, while it stands still.
    stopped_at: Option<u64>,
    /// Turns so far.
    turns: u32,
    window: Option<MemberWindow>,
    /// Turns of others at whose end the driver had still not stopped.
    missed: u32,
}

/// What happened since the start of the window.
#[derive(Clone, Copy, Debug)]
struct MemberWindow {
    began_at: u64,
    first_turn: u32,
    longest_ns: u64,
    /// Time in which no other target was in turns.
    alone_ns: u64,
}

impl ProcessTurns {
    /// For the targets of `rules`, of which the times of warm-up and window do not count: each step
    /// ends by itself.
    ///
    /// # Errors
    /// The kernel has no memory for a page.
    pub(super) fn new(rules: TurnRules) -> Result<ProcessTurns> {
        let member = |_| -> Result<Member> {
            Ok(Member {
                state: MemberState::Expected,
                page: SharedPage::create().context("make a shared page for a driver")?,
                processes: Vec::new(),
                stopped_at: None,
                turns: 0,
                window: None,
                missed: 0,
            })
        };
        let members = (0..rules.targets()).map(member).collect::<Result<_>>()?;
        Ok(ProcessTurns { rules, members: Mutex::new(members), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        members: MutexGuard<'a, Vec<Member>>,
        limit: Duration,
    ) -> MutexGuard<'a, Vec<Member>> {
        match self.changed.wait_timeout(members, limit) {
            Ok((members, _)) => members,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    pub(super) fn rules(&self) -> &TurnRules {
        &self.rules
    }

    /// The page with the standstill of a target.
    pub(super) fn page(&self, place: usize) -> PathBuf {
        self.lock().get(place).map(|member| member.page.path().to_owned()).unwrap_or_default()
    }

    /// The driver of a target has started, a child of this process.
    pub(super) fn begin(&self, place: usize, driver: u32, server: Option<u32>) {
        if let Some(member) = self.lock().get_mut(place) {
            let roots = std::iter::once(driver).chain(server);
            member.processes = roots.map(ProcessFreezer::of).collect();
            member.state = MemberState::InTurns;
        }
        self.changed.notify_all();
    }

    /// The window of a target began at this moment of the host's monotonic clock.
    pub(super) fn window_began(&self, place: usize, began_at: u64) {
        if let Some(member) = self.lock().get_mut(place) {
            let first_turn = member.turns;
            member.window = Some(MemberWindow { began_at, first_turn, longest_ns: 0, alone_ns: 0 });
        }
    }

    /// A target takes no more turns; its processes run.
    pub(super) fn leave(&self, place: usize) {
        if let Some(member) = self.lock().get_mut(place) {
            member.state = MemberState::Left;
            member.let_run();
        }
        self.changed.notify_all();
    }

    /// True while a target stands still or others are waited for.
    pub(super) fn waits(&self, place: usize) -> bool {
        let members = self.lock();
        members.iter().any(|member| member.state == MemberState::Expected)
            || members.get(place).is_some_and(|member| member.stopped_at.is_some())
    }

    /// The share of the turns of others in which a target did not stand still: its threads hung in
    /// the kernel, or got no CPU to stop on.
    pub(super) fn missed(&self, place: usize) -> f64 {
        let members = self.lock();
        members.get(place).map_or(0.0, |it| f64::from(it.missed) / f64::from(it.turns.max(1)))
    }

    /// The turns of a target in its window so far.
    pub(super) fn facts(&self, place: usize) -> Option<TurnFacts> {
        let members = self.lock();
        let member = members.get(place)?;
        let window = member.window?;
        let ms = |ns: u64| ns as f64 / 1e6;
        Some(TurnFacts {
            targets: members.len() as u32,
            slice_ms: ms(self.rules.turn_ns),
            stopped: true,
            // The one that runs when the window begins is its first.
            turns: member.turns.saturating_sub(window.first_turn) + 1,
            longest_ms: ms(window.longest_ns),
            wall_seconds: clock::monotonic_ns().saturating_sub(window.began_at) as f64 / 1e9,
            alone_seconds: window.alone_ns as f64 / 1e9,
            shares: Vec::new(),
            carry_over: None,
        })
    }

    /// Gives turns until all targets have left.
    pub(super) fn lead(&self) {
        // It works for microseconds at a time, and everything waits for it. Without the right, turns
        // are a little longer.
        let thread = rustix::process::Pid::from_raw(rqps_host::tree::thread_id() as i32);
        let _ = rustix::process::setpriority_process(thread, -20);
        let mut members = self.lock();
        while members.iter().any(|member| member.state == MemberState::Expected) {
            members = self.wait(members, Duration::from_secs(1));
        }
        members.iter_mut().for_each(Member::stop);
        for place in self.rules.order.iter().cycle() {
            let place = *place as usize;
            let in_turns = |members: &Vec<Member>, place: usize| {
                members.get(place).is_some_and(|it| it.state == MemberState::InTurns)
            };
            let others = |members: &Vec<Member>| {
                (0..members.len()).any(|other| other != place && in_turns(members, other))
            };
            if !in_turns(&members, place) {
                if !others(&members) {
                    return;
                }
                continue;
            }
            members[place].let_run();
            let begun = Instant::now();
            let turn = Duration::from_nanos(self.rules.turn_ns);
            while in_turns(&members, place) {
                let left = match others(&members) {
                    true => turn.saturating_sub(begun.elapsed()),
                    false => Duration::from_secs(1),
                };
                if left.is_zero() {
                    break;
                }
                let (alone, before) = (!others(&members), Instant::now());
                members = self.wait(members, left);
                if let Some(window) = members[place].window.as_mut().filter(|_| alone) {
                    window.alone_ns += before.elapsed().as_nanos() as u64;
                }
            }
            let has_others = others(&members);
            let member = &mut members[place];
            member.turns += 1;
            if let Some(window) = member.window.as_mut().filter(|_| has_others) {
                window.longest_ns = window.longest_ns.max(begun.elapsed().as_nanos() as u64);
            }
            member.stop();
        }
    }
}

impl Member {
    /// Stops all its processes. A thread that waits for a CPU stops when it gets one, before it
    /// works on; nobody waits for that.
    fn stop(&mut self) {
        if self.state != MemberState::InTurns {
            return;
        }
        for tree in &mut self.processes {
            // Servers make a process for each client that connects, at the start of a step.
            if self.turns < LOOK_EVERY || self.turns.is_multiple_of(LOOK_EVERY) {
                tree.refresh();
            }
            tree.freeze();
        }
        self.stopped_at = Some(clock::monotonic_ns());
    }

    /// Counts the standstill, and ends it.
    fn let_run(&mut self) {
        if let Some(stopped_at) = self.stopped_at.take() {
            if !self.processes.first().is_none_or(ProcessFreezer::has_root_stopped) {
                self.missed += 1;
            }
            let stood = clock::monotonic_ns().saturating_sub(stopped_at);
            self.page.number(0).fetch_add(stood, SeqCst);
        }
        // The server first: the driver needs it.
        self.processes.iter().rev().for_each(ProcessFreezer::thaw);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn rules() -> TurnRules {
        TurnRules {
            order: vec![0, 1, 1, 0],
            round: 4,
            turn_ns: 2_000_000,
            warmup_ns: 0,
            window_ns: 0,
        }
    }

    /// Shells that never rest. They end, and their turns, also where an assertion fails: else the
    /// thread that leads would wait for ever.
    struct Busy<'a> {
        turns: &'a ProcessTurns,
        shells: [Child; 2],
    }

    impl Busy<'_> {
        fn start(turns: &ProcessTurns) -> Busy<'_> {
            let shell = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
            let shells = [shell().expect("a shell"), shell().expect("a shell")];
            for (place, shell) in shells.iter().enumerate() {
                turns.begin(place, shell.id(), None);
                turns.window_began(place, clock::monotonic_ns());
            }
            Busy { turns, shells }
        }
    }

    impl Drop for Busy<'_> {
        fn drop(&mut self) {
            for (place, shell) in self.shells.iter_mut().enumerate() {
                self.turns.leave(place);
                shell.kill().ok();
                shell.wait().ok();
            }
        }
    }

    #[test]
    fn one_runs_at_a_time_and_the_standstill_of_each_is_the_others_turns() {
        let turns = ProcessTurns::new(rules()).expect("pages");
        let began = Instant::now();
        std::thread::scope(|scope| {
            let _busy = Busy::start(&turns);
            scope.spawn(|| turns.lead());
            while turns.facts(0).is_none_or(|facts| facts.turns < 40) {
                std::thread::sleep(Duration::from_millis(1));
            }
            turns.leave(0);
            // Between two turns both stand still for a moment, so the sum may exceed the time.
            let stood = |place: usize| turns.lock()[place].page.number(0).load(SeqCst);
            let (stood, wall) = ([stood(0), stood(1)], began.elapsed().as_nanos() as u64);
            assert!(stood.iter().all(|ns| (1..wall).contains(ns)), "{stood:?} of {wall}");
            let facts = turns.facts(1).expect("its window");
            assert!(facts.turns >= 19 && facts.stopped && facts.wall_seconds > 0.0, "{facts:?}");
            while turns.facts(1).is_none_or(|facts| facts.alone_seconds == 0.0) {
                std::thread::sleep(Duration::from_millis(1));
                turns.changed.notify_all();
            }
        });
    }

    #[test]
    fn the_end_of_a_process_holds_nobody_up() {
        let turns = ProcessTurns::new(rules()).expect("pages");
        std::thread::scope(|scope| {
            let mut busy = Busy::start(&turns);
            scope.spawn(|| turns.lead());
            busy.shells[0].kill().expect("it runs");
            busy.shells[0].wait().expect("its end");
            let before = turns.facts(1).expect("its window").turns;
            while turns.facts(1).is_none_or(|facts| facts.turns < before + 4) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}
