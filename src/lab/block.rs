//! One block: every target measured once, on fresh servers over restored snapshots.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, available_parallelism};
use std::vec;

use anyhow::Result;

use crate::domain::block::BlockRun;
use crate::domain::run::{RunKey, Status};
use crate::lab::active_run::{self, ActiveRun, Started};
use crate::lab::event::Event;
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::lab::target_state::TargetState;
use crate::lab::turns;
use crate::plan::{BlockSpec, Interleave};

/// A target, and its place in the order of the block, from 1.
type Member<'a> = (u32, &'a mut TargetState);

/// Runs a block; returns the runs that have a folder.
///
/// # Errors
/// The result folder cannot be written. What goes wrong with one target is written into its run,
/// and the others go on.
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
    if execution.options.valgrind.is_some() {
        return side_by_side(execution, members, spec, progress);
    }
    let mut runs = Vec::new();
    let at_once = match execution.options.plan.interleave {
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

/// Runs each target by itself, as many at a time as there are CPUs: nothing that is counted depends
/// on what else the host does.
fn side_by_side(
    execution: &Execution<'_>,
    members: Vec<Member<'_>>,
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let workers = available_parallelism().map_or(1, NonZero::get).min(members.len());
    let waiting = Mutex::new(members.into_iter());
    let (events, received) = mpsc::channel();
    thread::scope(|scope| {
        let start = |worker| {
            let events = events.clone();
            let waiting = &waiting;
            scope.spawn(move || one_by_one(execution, waiting, spec, (worker, events)))
        };
        let handles: Vec<_> = (0..workers).map(start).collect();
        drop(events);
        let mut done = vec![0.0; workers];
        for (worker, event) in received {
            match event {
                Event::Advance { done_seconds, .. } => {
                    progress.advance(done_seconds - done[worker]);
                    done[worker] = done_seconds;
                }
                other => progress.event(other),
            }
        }
        let mut runs: Vec<BlockRun> = Vec::new();
        for handle in handles {
            let ended = handle.join().unwrap_or_else(|panic| resume_unwind(panic));
            runs.extend(ended?);
        }
        runs.sort_by_key(|run| run.key.order);
        Ok(runs)
    })
}

/// What a worker does: runs the targets that wait, one at a time, and passes on what happens.
fn one_by_one(
    execution: &Execution<'_>,
    waiting: &Mutex<vec::IntoIter<Member<'_>>>,
    spec: &BlockSpec,
    (worker, events): (usize, mpsc::Sender<(usize, Event)>),
) -> Result<Vec<BlockRun>> {
    let mut pass = |event| {
        // Nobody listens only when the block is over.
        let _ = events.send((worker, event));
    };
    let mut progress = Progress::of_part(&mut pass);
    let mut runs = Vec::new();
    while !execution.stopped() {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(member) = next else { break };
        runs.extend(together(execution, vec![member], spec, &mut progress)?);
    }
    Ok(runs)
}

/// Runs the targets of a group side by side: each phase visits all of them in order.
fn together(
    execution: &Execution<'_>,
    group: Vec<Member<'_>>,
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let mut runs: Vec<ActiveRun<'_>> = Vec::new();
    let mut ended: Vec<BlockRun> = Vec::new();
    for (order, state) in group {
        // One that waits for its turn must not run while another starts or is measured.
        if let Some(before) = runs.last_mut()
            && let Err(error) = before.control.pause()
        {
            before.fail(execution, &error.into(), progress);
        }
        let BlockSpec { block, attempt, .. } = *spec;
        let key = RunKey { block, attempt, order, label: state.target.label.clone() };
        match active_run::start(execution, state, key, progress)? {
            Started::Runs(run) => runs.push(*run),
            Started::Failed(run) => ended.push(run),
        }
    }
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
            if let Err(error) = run.turn(execution, phase, alone, progress) {
                run.fail(execution, &error, progress);
            }
        }
    }
    for run in runs {
        ended.push(run.finish(execution, progress)?);
    }
    ended.sort_by_key(|run| run.key.order);
    Ok(ended)
}
