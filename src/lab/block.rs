//! One block: every target measured once, on fresh servers over restored snapshots.

use anyhow::Result;

use crate::domain::run::{RunKey, Status};
use crate::lab::active_run::{self, ActiveRun};
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::lab::selection::Selection;
use crate::lab::target_state::TargetState;
use crate::lab::turns;
use crate::plan::Interleave;

/// Which block, in which order, with which stages.
pub(super) struct At<'a> {
    pub(super) block: u32,
    pub(super) attempt: u32,
    /// Positions of the targets in their order.
    pub(super) order: &'a [usize],
    pub(super) selection: &'a Selection,
}

/// Runs a block.
///
/// # Errors
/// The result folder cannot be written. What goes wrong with one target is written into its run,
/// and the others go on.
pub(super) fn run(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    at: &At<'_>,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let mut members: Vec<(u32, &mut TargetState)> = Vec::new();
    for (index, state) in states.iter_mut().enumerate() {
        let place = at.order.iter().position(|target| *target == index).unwrap_or(index);
        if !state.broken {
            members.push((place as u32 + 1, state));
        }
    }
    members.sort_by_key(|(place, _)| *place);
    let at_once = match execution.options.plan.interleave {
        Interleave::Turns | Interleave::Step => members.len(),
        Interleave::Run => 1,
    };
    while !members.is_empty() && !execution.stopped() {
        let rest = members.split_off(at_once.min(members.len()));
        let group = std::mem::replace(&mut members, rest);
        together(execution, group, at, progress)?;
    }
    Ok(())
}

/// Runs the targets of a group side by side: each stage visits all of them in order.
fn together(
    execution: &Execution<'_>,
    group: Vec<(u32, &mut TargetState)>,
    at: &At<'_>,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let mut runs: Vec<ActiveRun<'_>> = Vec::new();
    for (order, state) in group {
        // One that waits for its turn must not run while another starts or is measured.
        if let Some(before) = runs.last_mut()
            && let Err(error) = before.control.pause()
        {
            before.fail(execution, &error.into(), progress);
        }
        let (block, attempt) = (at.block, at.attempt);
        let key = RunKey { block, attempt, order, label: state.target.label.clone() };
        if let Some(run) = active_run::start(execution, state, key, progress)? {
            runs.push(run);
        }
    }
    let stages = runs.iter().map(|run| run.state.stages.len()).max().unwrap_or(0);
    let alone = runs.len() == 1;
    for stage in (0..stages).filter(|stage| at.selection.holds(*stage)) {
        if turns::are_taken(execution, &runs, stage) && !execution.stopped() {
            turns::stage(execution, &mut runs, stage, progress);
            continue;
        }
        for run in &mut runs {
            if run.record.status != Status::Running || execution.stopped() {
                continue;
            }
            if let Err(error) = run.turn(execution, stage, alone, progress) {
                run.fail(execution, &error, progress);
            }
        }
    }
    for run in runs {
        run.finish(execution, progress)?;
    }
    Ok(())
}
