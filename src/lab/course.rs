//! The course of a plan: which block comes next, with which stages, and when there is enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::analyze::compare::{Comparison, StepComparison};
use crate::analyze::verdict::{OpenStep, open_steps};
use crate::analyze::{self, VerdictOptions};
use crate::domain::benchmark::Phase;
use crate::domain::metric::Metric;
use crate::domain::verdict::Rules;
use crate::lab::Execution;
use crate::lab::gatekeeper::HostMonitor;
use crate::lab::progress::Progress;
use crate::lab::selection::Selection;
use crate::plan::{Auto, Blocks, cost};
use crate::{results, units};

/// Steps that a note names; the rest is counted.
const NAMED: usize = 6;

/// What is to be done next, and why no more.
pub(super) struct BlockScheduler {
    stages: Vec<Phase>,
    /// True if all data of the workload fit into the caches of the DBMS.
    cached: bool,
    /// The steps that are open, once they were looked at.
    open: Option<Vec<OpenStep>>,
    targets: f64,
    /// Seconds that blocks of this sitting took, and what they were estimated at.
    pace: (f64, f64),
}

impl BlockScheduler {
    /// A plan whose targets all go through `stages`.
    pub(super) fn new(bench: &Execution<'_>, stages: &[Phase], cached: bool) -> BlockScheduler {
        let targets = bench.assignment.plan.targets.len() as f64;
        BlockScheduler { stages: stages.to_vec(), cached, open: None, targets, pace: (0.0, 0.0) }
    }

    /// The stages of a block; `None` when the plan is done: every step is settled, or the budget
    /// would not last.
    pub(super) fn next(
        &self,
        bench: &Execution<'_>,
        block: u32,
        keeper: &HostMonitor,
        progress: &mut Progress<'_>,
    ) -> Option<Selection> {
        let Blocks::Auto(auto) = bench.assignment.plan.blocks else {
            return Some(Selection::all(&self.stages));
        };
        let selection = match &self.open {
            Some(open) if block > auto.min => {
                let open: BTreeSet<String> = open.iter().map(|open| open.step.clone()).collect();
                Selection::of_open(&self.stages, &open, self.cached)
            }
            _ => Selection::all(&self.stages),
        };
        if !(0..self.stages.len()).any(|stage| selection.holds(stage)) {
            return None;
        }
        let wanted = self.seconds(bench, &selection);
        // One block is measured in any case: without it there was no point in loading.
        if let Some(budget) = auto.budget_seconds.filter(|_| block > 1)
            && keeper.spent_seconds() + wanted > budget
        {
            progress.note(&format!(
                "the budget ends here: {:.0} of {budget:.0} s are spent, and block {block} would \
                 take about {wanted:.0} s",
                keeper.spent_seconds()
            ));
            return None;
        }
        Some(selection)
    }

    /// Seconds that a block with these stages takes: the estimate, corrected by how the blocks
    /// before it went.
    pub(super) fn seconds(&self, bench: &Execution<'_>, selection: &Selection) -> f64 {
        let kept = selection.kept(&self.stages);
        let estimate = cost::estimate(&bench.assignment.plan, &kept).run_seconds * self.targets;
        match self.pace {
            (took, estimated) if estimated > 0.0 => estimate * took / estimated,
            _ => estimate,
        }
    }

    /// A block of these stages took so many seconds.
    pub(super) fn took(&mut self, bench: &Execution<'_>, selection: &Selection, seconds: f64) {
        let kept = selection.kept(&self.stages);
        let estimate = cost::estimate(&bench.assignment.plan, &kept).run_seconds * self.targets;
        self.pace = (self.pace.0 + seconds, self.pace.1 + estimate);
    }

    /// After a block that counts, or when a plan is resumed: which steps are open. Says so, and has
    /// it written into `gate.json`.
    ///
    /// # Errors
    /// The results cannot be read or compared.
    pub(super) fn look(
        &mut self,
        bench: &Execution<'_>,
        block: u32,
        keeper: &mut HostMonitor,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let Blocks::Auto(auto) = bench.assignment.plan.blocks else { return Ok(()) };
        let Some(schedule) = bench.assignment.plan.blocks.schedule() else { return Ok(()) };
        if block < auto.min {
            return Ok(());
        }
        let folder = bench.results.folder().to_owned();
        let dataset = results::read(&[folder]).context("look at the results so far")?;
        let gate = bench.assignment.plan.gate.as_ref();
        let rules = gate.map_or_else(Rules::default, |gate| gate.over(Rules::default()));
        let options = VerdictOptions { rules, ..VerdictOptions::default() };
        let comparison =
            analyze::compare(&dataset, &options).context("look at the results so far")?;
        let open = open_steps(&comparison, &schedule);
        let needs = |step: &OpenStep| Some(step.pairs_needed.saturating_sub(block).max(1));
        let record: BTreeMap<String, Option<u32>> = open
            .iter()
            .map(|step| (step.step.clone(), needs(step).filter(|_| block < auto.max)))
            .collect();
        keeper.note_open(bench, record)?;
        let text = match open.is_empty() {
            true => end_text(block, auto, &comparison),
            false => self.open_text(bench, (block, auto), &open, &comparison, keeper),
        };
        progress.note(&text);
        progress.left(self.left(bench, block, auto, &open));
        self.open = Some(open);
        Ok(())
    }

    /// Seconds that the open steps will probably take: fewer and fewer of them.
    fn left(&self, bench: &Execution<'_>, block: u32, auto: Auto, open: &[OpenStep]) -> f64 {
        let last = open.iter().map(|step| step.pairs_needed).max().unwrap_or(block);
        let mut seconds = 0.0;
        for coming in block + 1..=last.max(block + 1).min(auto.max) {
            let still: BTreeSet<String> = open
                .iter()
                .filter(|step| step.pairs_needed.max(block + 1) >= coming)
                .map(|step| step.step.clone())
                .collect();
            let selection = Selection::of_open(&self.stages, &still, self.cached);
            if !still.is_empty() {
                seconds += self.seconds(bench, &selection);
            }
        }
        seconds
    }

    fn open_text(
        &self,
        bench: &Execution<'_>,
        (block, auto): (u32, Auto),
        open: &[OpenStep],
        comparison: &Comparison,
        keeper: &HostMonitor,
    ) -> String {
        let mut named: Vec<String> = open
            .iter()
            .take(NAMED)
            .map(|step| {
                let more = step.pairs_needed.saturating_sub(block).max(1);
                format!("{} (about {more} more)", step.step)
            })
            .collect();
        if open.len() > NAMED {
            named.push(format!("{} others", open.len() - NAMED));
        }
        let time =
            |seconds: f64| units::duration(Duration::from_secs_f64(seconds.max(0.0).round()));
        let left = self.left(bench, block, auto, open);
        let budget = auto.budget_seconds.map(|budget| budget - keeper.spent_seconds());
        let end = match budget {
            Some(budget) if budget < left => {
                format!("about {} more, of which the budget has {}", time(left), time(budget))
            }
            _ => format!("about {} more", time(left)),
        };
        let (count, steps) = (open.len(), comparison.steps.len());
        format!("after block {block}: {count} of {steps} steps open: {}; {end}", named.join(", "))
    }
}

/// What is said when nothing is open any more: settled, or out of looks.
fn end_text(block: u32, auto: Auto, comparison: &Comparison) -> String {
    let settled = |step: &&StepComparison| {
        step.targets.iter().skip(1).all(|target| {
            let told = target.relative(Metric::Rate).and_then(|told| told.judgement.as_ref());
            told.and_then(|told| told.test.as_ref()).is_some_and(|test| test.settled)
        })
    };
    let steps = comparison.steps.len();
    let count = comparison.steps.iter().filter(settled).count();
    if count == steps {
        return format!("after block {block}: all {steps} steps are settled");
    }
    format!(
        "after block {block}: {count} of {steps} steps are settled, and the plan allows no more \
         than {} blocks (--max-blocks)",
        auto.max
    )
}
