//! One block: every target measured once, on fresh servers over restored snapshots.

use anyhow::Result;

use crate::lab::active_run::{self, ActiveRun, Started};
use crate::lab::execution::{self, Execution};
use crate::lab::progress::{Progress, side_by_side};
use crate::lab::targets::TargetState;
use crate::lab::turns;
use crate::plan::{BlockSpec, Interleave, cost};
use rqps_model::block::BlockRun;
use rqps_model::run::{RunKey, Status};

/// A target, and its place in the order of the block, from 1.
type Member<'a> = (u32, &'a mut TargetState);

/// Runs a block; returns the runs that have a folder.
///
/// # Errors
/// The result folder cannot be written. A failure of one target is written into its run, and the
/// others go on.
pub(super) fn run(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let mut members: Vec<Member<'_>> = Vec::new();
    for (slot, state) in spec.targets.iter().zip(states) {
        if !state.broken {
            members.push((slot.position, state));
        }
    }
    members.sort_by_key(|(position, _)| *position);
    let mut runs: Vec<BlockRun> = Vec::new();
    if execution.options.valgrind.is_some() {
        let cache = execution.plan.workload.cache_bytes;
        let fit = execution::servers_that_fit(cache, execution.memory_bytes);
        // Counts do not depend on the load of the host, so targets may run at the same time.
        let alone = |member, progress: &mut Progress<'_>| {
            if execution.stopped() {
                Ok(Vec::new())
            } else {
                together(execution, vec![member], spec, progress)
            }
        };
        for ended in side_by_side(members, fit, progress, alone) {
            runs.extend(ended?);
        }
        return Ok(runs);
    }
    let at_once = match execution.plan.interleave {
        Interleave::Turns | Interleave::Step => members.len(),
        Interleave::Run => 1,
    };
    while !members.is_empty() && !execution.stopped() {
        let rest = members.split_off(at_once.min(members.len()));
        let group = std::mem::replace(&mut members, rest);
        runs.extend(together(execution, group, spec, progress)?);
    }
    Ok(runs)
}

/// Runs the targets of a group together: each phase visits all of them in order.
fn together(
    execution: &Execution<'_>,
    group: Vec<Member<'_>>,
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let mut ended: Vec<BlockRun> = Vec::new();
    let mut runs = start(execution, group, spec, &mut ended, progress)?;
    let phases = runs.iter().map(|run| run.state.phases.len()).max().unwrap_or(0);
    let alone = runs.len() == 1;
    for phase in (0..phases).filter(|phase| spec.holds(*phase)) {
        if turns::are_taken(execution, &runs, phase) && !execution.stopped() {
            turns::phase(execution, &mut runs, phase, progress);
            continue;
        }
        for run in &mut runs {
            if run.record.status != Status::Running || execution.stopped() {
                continue;
            }
            if let Err(error) = run.turn(phase, alone, progress) {
                run.fail(&error, progress);
            }
        }
    }
    let plan = execution.plan;
    let finish = |run: ActiveRun<'_>, progress: &mut Progress<'_>| {
        let task = cost::stop(plan, &run.state.target);
        progress.begin(task);
        let ended = run.finish(progress);
        progress.end(task);
        ended
    };
    if plan.takes_turns() {
        for run in side_by_side(runs, usize::MAX, progress, finish) {
            ended.push(run?);
        }
    } else {
        for run in runs {
            ended.push(finish(run, progress)?);
        }
    }
    ended.sort_by_key(|run| run.key.order);
    Ok(ended)
}

/// Starts the servers of a group; adds those that do not start to `ended`. Targets that take turns
/// start at the same time, so that all have run equally long when the first step begins.
fn start<'a>(
    execution: &'a Execution<'a>,
    group: Vec<Member<'a>>,
    spec: &BlockSpec,
    ended: &mut Vec<BlockRun>,
    progress: &mut Progress<'_>,
) -> Result<Vec<ActiveRun<'a>>> {
    let BlockSpec { block, attempt, .. } = *spec;
    let one = |(order, state): Member<'a>, progress: &mut Progress<'_>| {
        let key = RunKey { block, attempt, order, label: state.target.label.clone() };
        let task = cost::start(execution.plan, &state.target);
        progress.begin(task);
        let started = active_run::start(execution, state, key, progress);
        progress.end(task);
        started
    };
    let mut runs: Vec<ActiveRun<'a>> = Vec::new();
    let mut add = |started, runs: &mut Vec<ActiveRun<'a>>| match started {
        Started::Runs(run) => runs.push(*run),
        Started::Failed(run) => ended.push(run),
    };
    if execution.plan.takes_turns() && group.len() > 1 {
        for started in side_by_side(group, usize::MAX, progress, one) {
            add(started?, &mut runs);
        }
        runs.iter_mut().for_each(|run| run.wait(progress));
        return Ok(runs);
    }
    for member in group {
        // A server that waits for its turn must not run while another starts or is measured.
        if let Some(before) = runs.last_mut() {
            before.wait(progress);
        }
        add(one(member, progress)?, &mut runs);
    }
    Ok(runs)
}
