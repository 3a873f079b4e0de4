//! Measures blocks on this host, one at a time, in this process.

use std::collections::VecDeque;
use std::time::Instant;

use anyhow::Result;

use crate::lab::canary_reader::CanaryReader;
use crate::lab::execution::Execution;
use crate::lab::executor::{BlockEnd, Executor};
use crate::lab::progress::Progress;
use crate::lab::target_state::TargetState;
use crate::lab::{block, prepare};
use crate::plan::{BlockSpec, cost};
use rqps_host::disk;
use rqps_model::block::{BLOCK_FORMAT, BlockReport};
use rqps_model::session::Session;

/// The executor of the host that rqps runs on.
pub(crate) struct LocalExecutor<'e, 'o> {
    execution: &'e Execution<'o>,
    states: Vec<TargetState>,
    canaries: CanaryReader,
    session: Session,
    /// The block that targets were last loaded for; 0 before the first.
    prepared: u32,
    waiting: VecDeque<BlockSpec>,
}

impl<'e, 'o> LocalExecutor<'e, 'o> {
    /// Measures blocks of the plan that is carried out, on these targets. It loads them before the
    /// first block of each load.
    pub(crate) fn new(
        execution: &'e Execution<'o>,
        states: Vec<TargetState>,
        canaries: CanaryReader,
    ) -> LocalExecutor<'e, 'o> {
        LocalExecutor {
            execution,
            states,
            canaries,
            session: execution.session.clone(),
            prepared: 0,
            waiting: VecDeque::new(),
        }
    }

    fn prepare(&mut self, block: u32, progress: &mut Progress<'_>) -> Result<()> {
        let plan = &self.execution.options.plan;
        if self.prepared == 0 {
            let phases = self.states.first().map(|state| state.phases.as_slice());
            let bytes = cost::estimate(plan, phases.unwrap_or_default()).disk_bytes;
            if !self.execution.options.ignores_space {
                self.execution.folders.check_space(bytes)?;
            }
        } else if plan.sitting_of(self.prepared) != plan.sitting_of(block) {
            for state in &mut self.states {
                // What failed in one sitting gets another chance in the next.
                state.broken = false;
                // Its program comes to lie elsewhere in memory, unless somebody else runs it.
                state.build.root.as_deref().map(disk::drop_cached).transpose().ok();
            }
        }
        self.prepared = block;
        prepare::all(self.execution, &mut self.states, block, progress)
    }

    fn measure(&mut self, spec: &BlockSpec, progress: &mut Progress<'_>) -> Result<BlockReport> {
        let mut reference = spec.canaries.clone();
        if let Some(reference) = reference.as_mut().filter(|reference| reference.usual.is_empty()) {
            // Who wrote the block down did not know this host.
            reference.usual = self.canaries.first();
        }
        let reference = reference.as_ref();
        let canaries = cost::canaries(&self.execution.options.plan).filter(|_| reference.is_some());
        canaries.into_iter().for_each(|task| progress.begin(task));
        let before = reference
            .and_then(|reference| self.canaries.before(self.execution, reference, progress));
        canaries.into_iter().for_each(|task| progress.end(task));
        let began = Instant::now();
        let runs = block::run(self.execution, &mut self.states, spec, progress)?;
        let seconds = began.elapsed().as_secs_f64();
        canaries.into_iter().for_each(|task| progress.begin(task));
        let after = reference
            .filter(|_| !self.execution.stopped())
            .and_then(|reference| self.canaries.after(reference, before.as_ref()));
        canaries.into_iter().for_each(|task| progress.end(task));
        let faults = self.states.iter_mut().flat_map(|state| std::mem::take(&mut state.faults));
        Ok(BlockReport {
            format: BLOCK_FORMAT,
            id: spec.id.clone(),
            session: self.session.clone(),
            canaries: [before, after],
            seconds,
            runs,
            faults: faults.collect(),
        })
    }
}

impl Executor for LocalExecutor<'_, '_> {
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()> {
        self.waiting.extend(specs);
        Ok(())
    }

    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>> {
        let Some(spec) = self.waiting.pop_front() else { return Ok(None) };
        self.prepare(spec.block, progress)?;
        let report = self.measure(&spec, progress)?;
        Ok(Some(BlockEnd::Measured(Box::new(report))))
    }

    fn is_elsewhere(&self) -> bool {
        false
    }

    fn clear(&mut self) -> Result<()> {
        self.execution.folders.clear()
    }
}
