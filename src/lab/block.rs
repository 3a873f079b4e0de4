//! One block: every target measured once, on fresh servers over restored snapshots.

use anyhow::Result;

use crate::domain::block::BlockRun;
use crate::domain::run::{RunKey, Status};
use crate::lab::active_run::{self, ActiveRun, Started};
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::lab::target_state::TargetState;
use crate::lab::turns;
use crate::plan::{BlockSpec, Interleave};

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
    let mut members: Vec<(u32, &mut TargetState)> = Vec::new();
    for (slot, state) in spec.targets.iter().zip(states) {
        if !state.broken {
            members.push((slot.position, state));
        }
    }
    members.sort_by_key(|(position, _)| *position);
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

/// Runs the targets of a group side by side: each phase visits all of them in order.
fn together(
    execution: &Execution<'_>,
    group: Vec<(u32, &mut TargetState)>,
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
