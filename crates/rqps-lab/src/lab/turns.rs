//! A step that all targets of a block go through at once, in turns of milliseconds: one thread and
//! one driver process for each target. The drivers pass a token on among themselves, or the lab
//! stops all processes but those of one target.

use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::lab::active_run::ActiveRun;
use crate::lab::execution::Execution;
use crate::lab::fault;
use crate::lab::process_turns::ProcessTurns;
use crate::lab::progress::Progress;
use crate::lab::step_runner::{self, Measured, StepRunner};
use crate::lab::turn_page::TurnPage;
use crate::lab::turn_participant::TurnParticipant;
use crate::plan::{cost, order};
use rqps_driver::turns::token::TurnRules;
use rqps_model::benchmark::{BackgroundState, Group, Phase, Step, StepTurns, Workload};
use rqps_model::endpoint::Endpoint;
use rqps_model::run::Status;

/// Rounds that are laid down beforehand; then they come again. No more turns than this, but one
/// round at least.
const TURNS_LAID_DOWN: usize = 1024;

/// The step of one target.
fn step_of(run: &ActiveRun<'_>, phase: usize) -> Option<Step> {
    match run.state.phases.get(phase)? {
        Phase::Measure(step) => Some(step.as_ref().clone()),
        Phase::Settle | Phase::Restore => None,
    }
}

/// True if the targets are to take turns in this phase: where it is the same step for all of them,
/// but for the words of their dialects.
pub(super) fn are_taken(execution: &Execution<'_>, runs: &[ActiveRun<'_>], phase: usize) -> bool {
    let running = runs.iter().filter(|run| run.record.status == Status::Running);
    let steps: Vec<Option<Step>> =
        running.map(|run| step_of(run, phase).filter(|_| keeps_time(run))).collect();
    let [Some(first), _, ..] = steps.as_slice() else { return false };
    let alike = |step: &Option<Step>| {
        step.as_ref().is_some_and(|step| step.turns == first.turns && step.name == first.name)
    };
    execution.options.plan.turns_of(first) != StepTurns::None && steps.iter().all(alike)
}

/// False for the fake DBMS on its own clock, which waits for nobody.
fn keeps_time(run: &ActiveRun<'_>) -> bool {
    !matches!(run.control.endpoint().0, Endpoint::Fake { real_time: false, .. })
}

/// Takes all targets through a step, in turns.
pub(super) fn phase(
    execution: &Execution<'_>,
    runs: &mut [ActiveRun<'_>],
    phase: usize,
    progress: &mut Progress<'_>,
) {
    let number = phase as u32 + 1;
    let mut team: Vec<(&mut ActiveRun<'_>, Step)> = Vec::new();
    for run in runs.iter_mut().filter(|run| run.record.status == Status::Running) {
        let Some(step) = step_of(run, phase) else { continue };
        let resumed = run.control.resume().map_err(anyhow::Error::from);
        match resumed.and_then(|()| run.may_measure(&step, number)) {
            Ok(true) => team.push((run, step)),
            Ok(false) => {}
            Err(error) => run.fail(execution, &error, progress),
        }
    }
    let Some((first, step)) = team.first() else { return };
    let labels: Vec<&str> = team.iter().map(|(run, _)| run.record.key.label.as_str()).collect();
    progress.doing(&labels.join(", "), &format!("{} in turns", step.name), None);
    let seed = step_runner::seed_of(execution.options.plan.seed, first.record.key.block, number);
    let of_one = Phase::Measure(Box::new(step.clone()));
    let plan = &execution.options.plan;
    let task = cost::phase_task(plan, &first.state.target, (phase, &of_one)).times(team.len());
    progress.begin(task);
    let results = match at_once(execution, &mut team, seed) {
        Ok(results) => results,
        Err(error) => {
            let why = fault::text(&error);
            team.iter().map(|_| Err(anyhow!(why.clone()))).collect()
        }
    };
    for ((run, step), result) in team.into_iter().zip(results) {
        let concluded = run.conclude(execution, (&step, number), result, progress);
        // Also where a driver died and left its server standing: this is known as paused now.
        let paused = concluded.and_then(|()| Ok(run.control.pause()?));
        if let Err(error) = paused {
            run.fail(execution, &error, progress);
        }
    }
    progress.end(task);
}

fn at_once(
    execution: &Execution<'_>,
    team: &mut [(&mut ActiveRun<'_>, Step)],
    seed: u64,
) -> Result<Vec<Result<Measured>>> {
    let Some((run, step)) = team.first() else { return Ok(Vec::new()) };
    let workload = &execution.options.plan.workload;
    let rules = rules(team.len(), step, workload, seed);
    if execution.options.plan.turns_of(step) == StepTurns::Processes {
        return by_processes(execution, team, &ProcessTurns::new(rules)?, seed);
    }
    let page = match &execution.clients {
        None => TurnPage::here(rules)?,
        Some(clients) => {
            let log = run.folder.folder().join("logs/turns.log");
            let keeper = clients.keep_turns(&rules, &log);
            keeper
                .and_then(|keeper| TurnPage::away(keeper, rules))
                .context("keep turns on the client host")?
        }
    };
    // All alike: drivers stop no server that somebody else runs, and none of another host.
    let external = team.iter().any(|(run, _)| run.state.is_external());
    let stopped = is_stopped(step, workload) && !external && execution.clients.is_none();
    let runners = team.iter_mut().enumerate().map(|(place, (run, step))| {
        let own = run.control.server().is_some();
        let root = run.control.server_pid().filter(|_| stopped && own);
        let participant = TurnParticipant::of_clients(&page, place, root);
        (run.runner(execution, Some(participant)), &*step)
    });
    Ok(measure_all(runners.collect(), None, seed))
}

/// All processes of a target stand still in the turns of others.
fn by_processes(
    execution: &Execution<'_>,
    team: &mut [(&mut ActiveRun<'_>, Step)],
    turns: &ProcessTurns,
    seed: u64,
) -> Result<Vec<Result<Measured>>> {
    let runners = team.iter_mut().enumerate().map(|(place, (run, step))| {
        let server = run.control.server_pid();
        let participant = TurnParticipant::of_processes(turns, place, server);
        (run.runner(execution, Some(participant)), &*step)
    });
    Ok(measure_all(runners.collect(), Some(turns), seed))
}

/// Measures each target in a thread of its own, and leads the turns of their processes.
fn measure_all(
    runners: Vec<(StepRunner<'_>, &Step)>,
    led: Option<&ProcessTurns>,
    seed: u64,
) -> Vec<Result<Measured>> {
    thread::scope(|scope| {
        if let Some(turns) = led {
            scope.spawn(|| turns.lead());
        }
        let all: Vec<_> = runners
            .into_iter()
            .map(|(mut runner, step)| scope.spawn(move || runner.measure(step, seed)))
            .collect();
        let ended = all.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("the thread of this target panicked")))
        });
        ended.collect()
    })
}

/// Servers stand still in the turns of others where a step writes, so that what they do in the
/// background falls into their own turns.
fn is_stopped(step: &Step, workload: &Workload) -> bool {
    match workload.waiting {
        Some(waiting) => waiting == BackgroundState::Stopped,
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
        turn_ns: ns(workload.turn_ms.unwrap_or(step.group.turn_ms()) / 1e3),
        warmup_ns: ns(step.warmup_seconds),
        window_ns: ns(step.seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_bench::sysbench::presets::QUICK;
    use rqps_model::dialect::Dialect;

    #[test]
    fn rounds_are_balanced_and_the_seed_decides() {
        let workload = QUICK.workload();
        let phases = crate::benchmarks::phases(Dialect::Sqlite, Default::default(), &workload);
        let step = phases.iter().find_map(|phase| match phase {
            Phase::Measure(step) => Some(step.as_ref().clone()),
            Phase::Settle | Phase::Restore => None,
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
            assert!(
                [[0, 1, 1, 0], [1, 0, 0, 1]]
                    .contains(&[quadruple[0], quadruple[1], quadruple[2], quadruple[3]])
            );
        }
        assert_eq!(two.turn_ns, 10_000_000, "a step that reads");
        let writes = Step { group: Group::Write, ..step.clone() };
        assert_eq!(rules(2, &writes, &workload, 7).turn_ns, 20_000_000);
        let wanted = Workload { turn_ms: Some(5.0), ..workload };
        assert_eq!(rules(2, &writes, &wanted, 7).turn_ns, 5_000_000);
    }
}
