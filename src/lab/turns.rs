//! A step that all targets of a block go through at once, in turns of milliseconds: one thread and
//! one driver process for each target, and a token that the drivers pass on among themselves.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::domain::benchmark::{Group, Pace, Phase, Step, TURN_MS, Waiting, Workload};
use crate::domain::dialect::Dialect;
use crate::domain::run::{HostUsage, Status, Usage};
use crate::driver::ring::{Ring, TurnPhase, TurnRequest, TurnRules};
use crate::lab::Execution;
use crate::lab::block::ActiveRun;
use crate::lab::measure::{self, Measured};
use crate::lab::progress::Progress;
use crate::plan::{Interleave, cost, order};

/// A driver that has the token gives a sign of life four times a second. After so long without one
/// it stands still, whatever its server does.
const FROZEN: Duration = Duration::from_secs(5);
/// Rounds that are laid down beforehand; then they come again. No more turns than this, but one
/// round at least.
const TURNS_LAID_DOWN: usize = 1024;

/// Why figures of the whole host are missing.
const OF_ALL: &str = "targets took turns, and this counter covers all of them together";

/// How the step of one target takes part in turns.
pub(super) struct Taking<'a> {
    ring: &'a Ring,
    place: usize,
    standstill: Option<u32>,
    /// Signs of life of the driver so far, and when the last one was seen.
    pulse: Cell<(u32, Instant)>,
}

impl<'a> Taking<'a> {
    fn new(ring: &'a Ring, place: usize, standstill: Option<u32>) -> Taking<'a> {
        Taking { ring, place, standstill, pulse: Cell::new((0, Instant::now())) }
    }

    /// What the driver is asked for.
    pub(super) fn request(&self) -> TurnRequest {
        TurnRequest {
            page: self.ring.path().to_owned(),
            place: self.place as u32,
            rules: self.ring.rules().clone(),
            standstill: self.standstill,
        }
    }

    /// As many targets as may be waited for.
    pub(super) fn targets(&self) -> u32 {
        self.ring.targets() as u32
    }

    /// The counters before the window have been read.
    pub(super) fn sampled(&self) {
        self.ring.arrive(self.place, TurnPhase::Sample);
    }

    /// This target takes no more turns. Said as soon as it is known, so that nobody waits for it.
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
    /// However it ends, nobody is to wait for it.
    fn drop(&mut self) {
        self.leave();
    }
}

/// The step of one target.
fn step_of(run: &ActiveRun<'_>, stage: usize) -> Option<Step> {
    match run.subject.stages.get(stage)? {
        Phase::Measure(step) => Some(step.as_ref().clone()),
        Phase::Settle => None,
    }
}

/// True if the targets are to take turns in this stage: where it is the same step for all of them,
/// but for the words of their dialects.
pub(super) fn are_taken(bench: &Execution<'_>, runs: &[ActiveRun<'_>], stage: usize) -> bool {
    let plan = &bench.assignment.plan;
    let turns = plan.interleave == Interleave::Turns && plan.workload.pace == Pace::Closed;
    let mut running = runs.iter().filter(|run| run.record.status == Status::Running);
    let Some(first) = running.next().and_then(|run| step_of(run, stage)) else { return false };
    let others: Vec<_> = running.collect();
    let is_real = |run: &ActiveRun<'_>| run.subject.target.dbms.dialect() != Dialect::Fake;
    let alike = |run: &&ActiveRun<'_>| {
        let step = step_of(run, stage);
        is_real(run) && step.is_some_and(|step| step.takes_turns() && step.name == first.name)
    };
    turns && first.takes_turns() && !others.is_empty() && others.iter().all(alike)
}

/// Takes all targets through a step, in turns.
pub(super) fn stage(
    bench: &Execution<'_>,
    runs: &mut [ActiveRun<'_>],
    stage: usize,
    progress: &mut Progress<'_>,
) {
    let number = stage as u32 + 1;
    let mut team: Vec<(&mut ActiveRun<'_>, Step)> = Vec::new();
    for run in runs.iter_mut().filter(|run| run.record.status == Status::Running) {
        let Some(step) = step_of(run, stage) else { continue };
        let resumed = run.control.resume().map_err(anyhow::Error::from);
        match resumed.and_then(|()| run.may_measure(&step, number)) {
            Ok(true) => team.push((run, step)),
            Ok(false) => {}
            Err(error) => run.fail(bench, &error, progress),
        }
    }
    let Some((first, step)) = team.first() else { return };
    let labels: Vec<&str> = team.iter().map(|(run, _)| run.record.key.label.as_str()).collect();
    progress.doing(&labels.join(", "), &format!("{} in turns", step.name), None);
    let seed = measure::seed_of(bench.assignment.plan.seed, first.record.key.block, number);
    let seconds = cost::stage_seconds(&Phase::Measure(Box::new(step.clone())), 0.0);
    let advance = seconds * team.len() as f64;
    let results = match at_once(bench, &mut team, seed) {
        Ok(results) => results,
        Err(why) => team.iter().map(|_| Err(anyhow!(why.clone()))).collect(),
    };
    for ((run, step), result) in team.into_iter().zip(results) {
        let concluded = run.conclude(bench, (&step, number), result, progress);
        // Also where a driver died and left its server standing: this is known as paused now.
        let paused = concluded.and_then(|()| Ok(run.control.pause()?));
        if let Err(error) = paused {
            run.fail(bench, &error, progress);
        }
    }
    progress.advance(advance);
}

fn at_once(
    bench: &Execution<'_>,
    team: &mut [(&mut ActiveRun<'_>, Step)],
    seed: u64,
) -> Result<Vec<Result<Measured>>, String> {
    let Some((_, step)) = team.first() else { return Ok(Vec::new()) };
    let workload = &bench.assignment.plan.workload;
    let ring = Ring::create(team.len(), rules(team.len(), step, workload, seed))?;
    // All alike: a server that somebody else runs is not stopped, and then no other is.
    let external = team.iter().any(|(run, _)| run.subject.is_external());
    let stopped = is_stopped(step, workload) && !external;
    let seats = team.iter_mut().enumerate().map(|(place, (run, step))| {
        let own = run.control.server().is_some();
        let root = run.control.server_pid().filter(|_| stopped && own);
        let taking = Taking::new(&ring, place, root);
        (run.seat(bench, Some(taking)), &*step)
    });
    let seats: Vec<_> = seats.collect();
    Ok(thread::scope(|scope| {
        let all: Vec<_> = seats
            .into_iter()
            .map(|(mut seat, step)| scope.spawn(move || seat.measure(step, seed)))
            .collect();
        let ended = all.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("the thread of this target panicked")))
        });
        ended.collect()
    }))
}

/// Servers stand still in the turns of others where a step writes, so that what they do in the
/// background falls into their own turns.
fn is_stopped(step: &Step, workload: &Workload) -> bool {
    match workload.waiting {
        Some(waiting) => waiting == Waiting::Stopped,
        None => step.group == Group::Write,
    }
}

/// Every target follows every other equally often within a round.
fn rules(targets: usize, step: &Step, workload: &Workload, seed: u64) -> TurnRules {
    let rows = if targets.is_multiple_of(2) { targets } else { 2 * targets };
    let round = rows * targets;
    let rounds = (TURNS_LAID_DOWN / round).max(1);
    let orders = order::orders(targets, (rounds * rows) as u32, seed);
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    TurnRules {
        order: orders.into_iter().flatten().map(|place| place as u32).collect(),
        round: round as u32,
        turn_ns: ns(workload.turn_ms.unwrap_or(TURN_MS) / 1e3),
        warmup_ns: ns(step.warmup_seconds),
        window_ns: ns(step.seconds),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::sysbench::presets::QUICK;

    #[test]
    fn rounds_are_balanced_and_the_seed_decides() {
        let workload = QUICK.workload();
        let stages = crate::benchmarks::stages(Dialect::Sqlite, Default::default(), &workload);
        let step = stages.iter().find_map(|stage| match stage {
            Phase::Measure(step) => Some(step.as_ref().clone()),
            Phase::Settle => None,
        });
        let step = step.expect("a step");
        for (targets, round) in [(2, 4), (3, 18), (4, 16), (40, 1600)] {
            let made = rules(targets, &step, &workload, 7);
            assert_eq!(made.round, round);
            assert!(made.order.len().is_multiple_of(round as usize));
            for part in made.order.chunks(targets) {
                let mut places = part.to_vec();
                places.sort_unstable();
                assert_eq!(places, (0..targets as u32).collect::<Vec<_>>());
            }
            assert_ne!(made.order, rules(targets, &step, &workload, 8).order);
        }
        let two = rules(2, &step, &workload, 7);
        for quadruple in two.order.chunks(4) {
            assert!([[0, 1, 1, 0], [1, 0, 0, 1]].contains(&[
                quadruple[0],
                quadruple[1],
                quadruple[2],
                quadruple[3]
            ]));
        }
        assert_eq!(two.turn_ns, 20_000_000);
    }
}
