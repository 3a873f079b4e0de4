//! Chooses the next block of a plan and its phases.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use crate::lab::execution::Execution;
use crate::lab::host_monitor::HostMonitor;
use crate::lab::progress::Progress;
use crate::lab::resume::History;
use crate::lab::selection::Selection;
use crate::plan::cost::{self, PlannedTask};
use crate::plan::{Blocks, Plan};
use rqps_model::benchmark::Phase;
use rqps_model::block::BlockReport;
use rqps_model::units;

/// Steps that a note names; the rest is counted.
const NAMED: usize = 6;

/// Decides which block is next, and when to stop.
pub(super) struct BlockScheduler {
    phases: Vec<Phase>,
    /// True if all data of the workload fit into the caches of the DBMS.
    cached: bool,
    /// The undecided steps, by the last decision.
    open: Option<Vec<UndecidedStep>>,
    /// True if another host loads and measures each block.
    is_elsewhere: bool,
    /// The targets of the last block; empty before the first.
    labels: BTreeSet<String>,
}

impl BlockScheduler {
    /// A plan whose targets all go through `phases`.
    pub(super) fn new((phases, cached): (&[Phase], bool), is_elsewhere: bool) -> BlockScheduler {
        let labels = BTreeSet::new();
        BlockScheduler { phases: phases.to_vec(), cached, is_elsewhere, open: None, labels }
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
        let plan = &execution.options.plan;
        let tasks = [self.load(plan, block), self.block(plan, &selection)].concat();
        let wanted = progress.expected(&tasks);
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

    /// The load that a later block begins with, if it is the first of that load.
    fn load(&self, plan: &Plan, block: u32) -> Vec<PlannedTask> {
        let loads = !self.is_elsewhere && block > 1 && plan.is_first_of_load(block);
        if loads { cost::one_load(plan) } else { Vec::new() }
    }

    /// What a block of these phases consists of.
    pub(super) fn block(&self, plan: &Plan, selection: &Selection) -> Vec<PlannedTask> {
        let goes_on = |label: &String| self.labels.is_empty() || self.labels.contains(label);
        let targets = plan.targets.iter().filter(|target| goes_on(&target.label));
        let targets: Vec<_> = targets.collect();
        let block = cost::block(plan, &targets, &selection.kept(&self.phases));
        if self.is_elsewhere { vec![cost::block_elsewhere(plan, &block, 1)] } else { block }
    }

    /// Tells the time of what comes after this block: the fewest blocks of the plan, and those that
    /// may follow them, with their loads and the waits for sittings.
    pub(super) fn plan(
        &self,
        (execution, block): (&Execution<'_>, u32),
        history: &History,
        (monitor, progress): (&HostMonitor, &mut Progress<'_>),
    ) {
        let plan = &execution.options.plan;
        let whole = self.block(plan, &Selection::all(&self.phases));
        let mut loaded: BTreeSet<u32> = (1..=block).map(|block| plan.load_of(block)).collect();
        let mut sitting = plan.sitting_of(block);
        let mut blocks = |from: u32, to: u32| -> Vec<Vec<PlannedTask>> {
            let coming = (from..=to).filter(|it| !history.is_done(*it));
            let of_block = |block: u32| {
                let mut tasks = Vec::new();
                if std::mem::replace(&mut sitting, plan.sitting_of(block)) != sitting {
                    tasks.push(cost::wait(plan));
                }
                if !self.is_elsewhere && loaded.insert(plan.load_of(block)) {
                    tasks.extend(cost::one_load(plan));
                }
                tasks.extend(whole.clone());
                tasks
            };
            coming.map(of_block).collect()
        };
        let least = plan.blocks.fewest().max(block);
        let coming = blocks(block + 1, least);
        let more = blocks(least + 1, plan.blocks.most());
        self.tell(execution, (coming, more), (monitor, progress));
    }

    /// Plans these blocks, and those that may follow, as far as the budget lasts.
    fn tell(
        &self,
        execution: &Execution<'_>,
        (coming, more): (Vec<Vec<PlannedTask>>, Vec<Vec<PlannedTask>>),
        (monitor, progress): (&HostMonitor, &mut Progress<'_>),
    ) {
        let budget = budget_seconds(execution).unwrap_or(f64::INFINITY);
        let mut room = budget - monitor.spent_seconds();
        let mut fits = |block: &Vec<PlannedTask>| {
            room -= progress.expected(block);
            room >= 0.0
        };
        let coming: Vec<_> = coming.into_iter().take_while(&mut fits).collect();
        let more: Vec<_> = more.into_iter().take_while(fits).collect();
        let mut tasks = coming.concat();
        if !self.is_elsewhere {
            tasks.push(cost::clear(&execution.options.plan));
        }
        progress.plan(&tasks, more.concat());
    }

    /// A block ended: the targets that it could not measure do not come back.
    pub(super) fn measured(&mut self, report: &BlockReport) {
        self.labels = report.runs.iter().map(|run| run.key.label.clone()).collect();
    }

    /// After a block that counts, or when a plan is resumed: asks which steps need more blocks,
    /// reports it, and writes it into `gate.json`. False if it is too early to tell.
    ///
    /// # Errors
    /// The decider cannot tell; `gate.json` cannot be written.
    pub(super) fn decide(
        &mut self,
        execution: &Execution<'_>,
        block: u32,
        decider: &mut dyn Decider,
        (monitor, progress): (&mut HostMonitor, &mut Progress<'_>),
    ) -> Result<bool> {
        let (open, steps, stop) = match decider.after(block)? {
            Decision::All => return Ok(false),
            Decision::Only { open, steps } => (open, steps, None),
            Decision::Stop(reason) => (Vec::new(), 0, Some(reason)),
        };
        let most = execution.options.plan.blocks.most();
        let record = open
            .iter()
            .map(|step| (step.step.clone(), Some(step.more(block)).filter(|_| block < most)));
        monitor.note_open(execution, record.collect())?;
        let last = open.iter().map(|step| step.pairs_needed).max().unwrap_or(block);
        let coming = self.left(execution, (block, last), &open);
        let left = progress.expected(&coming.concat());
        let text = match stop {
            Some(reason) => format!("after block {block}: {reason}"),
            None => self.open_text(execution, block, (&open, steps), (left, monitor)),
        };
        progress.note(&text);
        // A step that scatters more than it did needs more than it seems to.
        let noisier: Vec<_> =
            open.iter().map(|step| UndecidedStep { pairs_needed: most, ..step.clone() }).collect();
        let more = self.left(execution, (last, most), &noisier);
        self.tell(execution, (coming, more), (monitor, progress));
        self.open = Some(open);
        Ok(true)
    }

    /// The blocks after one and up to another that the open steps will probably need: fewer and
    /// fewer steps.
    fn left(
        &self,
        execution: &Execution<'_>,
        (block, last): (u32, u32),
        open: &[UndecidedStep],
    ) -> Vec<Vec<PlannedTask>> {
        let of_block = |coming: u32| {
            let still = open.iter().filter(|step| step.pairs_needed >= coming);
            let still: BTreeSet<String> = still.map(|step| step.step.clone()).collect();
            let selection = Selection::of_open(&self.phases, &still, self.cached);
            let plan = &execution.options.plan;
            [self.load(plan, coming), self.block(plan, &selection)].concat()
        };
        (block + 1..=last).map(of_block).collect()
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

/// Decides which steps of a plan need more blocks.
pub trait Decider {
    /// The decision after a block that counts, or after the last of them when a plan is resumed (0
    /// for none).
    ///
    /// # Errors
    /// The results so far cannot be judged.
    fn after(&mut self, block: u32) -> Result<Decision>;
}

/// The measurements of the next block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Every step.
    All,
    /// The steps that are not decided yet, and the steps that they build on.
    Only {
        /// The undecided steps.
        open: Vec<UndecidedStep>,
        /// All steps that were looked at.
        steps: usize,
    },
    /// Nothing, for this reason.
    Stop(String),
}

/// A step that needs more blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedStep {
    /// Name of the step.
    pub step: String,
    /// Pairs after which it is probably decided.
    pub pairs_needed: u32,
}

impl UndecidedStep {
    /// Blocks that it probably still needs after `block`.
    pub(super) fn more(&self, block: u32) -> u32 {
        self.pairs_needed.saturating_sub(block).max(1)
    }
}
