//! Chooses the next block of a plan and its phases.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use crate::domain::benchmark::Phase;
use crate::lab::decider::{Decider, Decision, UndecidedStep};
use crate::lab::execution::Execution;
use crate::lab::host_monitor::HostMonitor;
use crate::lab::progress::Progress;
use crate::lab::selection::Selection;
use crate::plan::{Blocks, cost};
use crate::units;

/// Steps that a note names; the rest is counted.
const NAMED: usize = 6;

/// Decides which block is next, and when to stop.
pub(super) struct BlockScheduler {
    phases: Vec<Phase>,
    /// True if all data of the workload fit into the caches of the DBMS.
    cached: bool,
    /// The undecided steps, by the last decision.
    open: Option<Vec<UndecidedStep>>,
    targets: f64,
    /// Seconds that blocks of this sitting took, and what they were estimated at.
    pace: (f64, f64),
}

impl BlockScheduler {
    /// A plan whose targets all go through `phases`.
    pub(super) fn new(execution: &Execution<'_>, phases: &[Phase], cached: bool) -> BlockScheduler {
        let targets = execution.options.plan.targets.len() as f64;
        BlockScheduler { phases: phases.to_vec(), cached, open: None, targets, pace: (0.0, 0.0) }
    }

    /// The phases of a block; `None` when the plan is done: every step is settled, or the budget
    /// would not last.
    pub(super) fn next(
        &self,
        execution: &Execution<'_>,
        block: u32,
        monitor: &HostMonitor,
        progress: &mut Progress<'_>,
    ) -> Option<Selection> {
        let Blocks::Auto(auto) = execution.options.plan.blocks else {
            return Some(Selection::all(&self.phases));
        };
        let selection = match &self.open {
            Some(open) if block > auto.min => {
                let open: BTreeSet<String> = open.iter().map(|open| open.step.clone()).collect();
                Selection::of_open(&self.phases, &open, self.cached)
            }
            _ => Selection::all(&self.phases),
        };
        if !(0..self.phases.len()).any(|phase| selection.holds(phase)) {
            return None;
        }
        let wanted = self.seconds(execution, &selection);
        // One block is measured in any case: without it there was no point in loading.
        if let Some(budget) = auto.budget_seconds.filter(|_| block > 1)
            && monitor.spent_seconds() + wanted > budget
        {
            progress.note(&format!(
                "stopping for the budget: {:.0} of {budget:.0} s are spent and block {block} would \
                 take about {wanted:.0} s",
                monitor.spent_seconds()
            ));
            return None;
        }
        Some(selection)
    }

    /// Seconds that a block with these phases takes: the estimate, corrected by how the blocks
    /// before it went.
    pub(super) fn seconds(&self, execution: &Execution<'_>, selection: &Selection) -> f64 {
        let kept = selection.kept(&self.phases);
        let estimate = cost::estimate(&execution.options.plan, &kept).run_seconds * self.targets;
        match self.pace {
            (took, estimated) if estimated > 0.0 => estimate * took / estimated,
            _ => estimate,
        }
    }

    /// Records the seconds that a block of these phases took.
    pub(super) fn took(&mut self, execution: &Execution<'_>, selection: &Selection, seconds: f64) {
        let kept = selection.kept(&self.phases);
        let estimate = cost::estimate(&execution.options.plan, &kept).run_seconds * self.targets;
        self.pace = (self.pace.0 + seconds, self.pace.1 + estimate);
    }

    /// After a block that counts, or when a plan is resumed: asks which steps need more blocks,
    /// reports it, and writes it into `gate.json`.
    ///
    /// # Errors
    /// The decider cannot tell; `gate.json` cannot be written.
    pub(super) fn decide(
        &mut self,
        execution: &Execution<'_>,
        block: u32,
        decider: &mut dyn Decider,
        (monitor, progress): (&mut HostMonitor, &mut Progress<'_>),
    ) -> Result<()> {
        let (open, steps, stop) = match decider.after(block)? {
            Decision::All => return Ok(()),
            Decision::Only { open, steps } => (open, steps, None),
            Decision::Stop(reason) => (Vec::new(), 0, Some(reason)),
        };
        let most = execution.options.plan.blocks.most();
        let record = open
            .iter()
            .map(|step| (step.step.clone(), Some(step.more(block)).filter(|_| block < most)));
        monitor.note_open(execution, record.collect())?;
        let left = self.left(execution, block, &open);
        let text = match stop {
            Some(reason) => format!("after block {block}: {reason}"),
            None => self.open_text(execution, block, (&open, steps), (left, monitor)),
        };
        progress.note(&text);
        progress.left(left);
        self.open = Some(open);
        Ok(())
    }

    /// Seconds that the open steps will probably take: fewer and fewer of them.
    fn left(&self, execution: &Execution<'_>, block: u32, open: &[UndecidedStep]) -> f64 {
        let last = open.iter().map(|step| step.pairs_needed).max().unwrap_or(block);
        let mut seconds = 0.0;
        for coming in block + 1..=last.max(block + 1).min(execution.options.plan.blocks.most()) {
            let still: BTreeSet<String> = open
                .iter()
                .filter(|step| step.pairs_needed.max(block + 1) >= coming)
                .map(|step| step.step.clone())
                .collect();
            let selection = Selection::of_open(&self.phases, &still, self.cached);
            if !still.is_empty() {
                seconds += self.seconds(execution, &selection);
            }
        }
        seconds
    }

    fn open_text(
        &self,
        execution: &Execution<'_>,
        block: u32,
        (open, steps): (&[UndecidedStep], usize),
        (left, monitor): (f64, &HostMonitor),
    ) -> String {
        let mut named: Vec<String> = open
            .iter()
            .take(NAMED)
            .map(|step| format!("{} (about {} more blocks)", step.step, step.more(block)))
            .collect();
        if open.len() > NAMED {
            named.push(format!("{} others", open.len() - NAMED));
        }
        let time =
            |seconds: f64| units::duration(Duration::from_secs_f64(seconds.max(0.0).round()));
        let budget = budget_seconds(execution).map(|budget| budget - monitor.spent_seconds());
        let end = match budget {
            Some(budget) if budget < left => {
                format!("about {} left, but only {} in the budget", time(left), time(budget))
            }
            _ => format!("about {} left", time(left)),
        };
        let count = open.len();
        format!("after block {block}: {count} of {steps} steps open: {}; {end}", named.join(", "))
    }
}

fn budget_seconds(execution: &Execution<'_>) -> Option<f64> {
    match execution.options.plan.blocks {
        Blocks::Auto(auto) => auto.budget_seconds,
        Blocks::Fixed(_) => None,
    }
}
