//! Chooses the next block of a plan and its phases.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lab::canaries::HostMonitor;
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use crate::plan::cost::{self, PlannedTask};
use crate::plan::{Blocks, TargetSlot};
use rqps_model::benchmark::{Phase, Step};
use rqps_model::build::{BuildSource, Manifest};
use rqps_model::run::{BlockReport, RunRecord, Status};
use rqps_model::units;
use rqps_results::{ResultSet, read_run};

/// Steps that a note names; the rest is counted.
const NAMED: usize = 6;

/// Decides which block is next, and when to stop.
pub(super) struct BlockScheduler<'e> {
    execution: &'e Execution<'e>,
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

impl<'e> BlockScheduler<'e> {
    /// A plan whose targets all go through `phases`.
    pub(super) fn new(
        execution: &'e Execution<'e>,
        (phases, cached): (&[Phase], bool),
        is_elsewhere: bool,
    ) -> BlockScheduler<'e> {
        let phases = phases.to_vec();
        let labels = BTreeSet::new();
        BlockScheduler { execution, phases, cached, is_elsewhere, open: None, labels }
    }

    /// The phases of a block; `None` when the plan is done: every step is settled, or the budget
    /// would not last.
    pub(super) fn next(
        &self,
        block: u32,
        monitor: &HostMonitor<'_>,
        progress: &mut Progress<'_>,
    ) -> Option<Selection> {
        let Blocks::Auto(auto) = self.execution.plan.blocks else {
            return Some(Selection::default());
        };
        let selection = match &self.open {
            Some(open) if block > auto.min => {
                let open: BTreeSet<String> = open.iter().map(|open| open.step.clone()).collect();
                Selection::of_open(&self.phases, &open, self.cached)
            }
            _ => Selection::default(),
        };
        if !(0..self.phases.len()).any(|phase| selection.holds(phase)) {
            return None;
        }
        let tasks = [self.load(block), self.block(&selection)].concat();
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
    fn load(&self, block: u32) -> Vec<PlannedTask> {
        let plan = self.execution.plan;
        let loads = !self.is_elsewhere && block > 1 && plan.is_first_of_load(block);
        if loads { cost::one_load(plan) } else { Vec::new() }
    }

    /// What a block of these phases consists of.
    pub(super) fn block(&self, selection: &Selection) -> Vec<PlannedTask> {
        let plan = self.execution.plan;
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
        block: u32,
        history: &History,
        (monitor, progress): (&HostMonitor<'_>, &mut Progress<'_>),
    ) {
        let plan = self.execution.plan;
        let whole = self.block(&Selection::default());
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
        self.tell((coming, more), (monitor, progress));
    }

    /// Seconds that the plan may take, if it has a budget.
    fn budget_seconds(&self) -> Option<f64> {
        match self.execution.plan.blocks {
            Blocks::Auto(auto) => auto.budget_seconds,
            Blocks::Fixed(_) => None,
        }
    }

    /// Plans these blocks, and those that may follow, as far as the budget lasts.
    fn tell(
        &self,
        (coming, more): (Vec<Vec<PlannedTask>>, Vec<Vec<PlannedTask>>),
        (monitor, progress): (&HostMonitor<'_>, &mut Progress<'_>),
    ) {
        let budget = self.budget_seconds().unwrap_or(f64::INFINITY);
        let mut room = budget - monitor.spent_seconds();
        let mut fits = |block: &Vec<PlannedTask>| {
            room -= progress.expected(block);
            room >= 0.0
        };
        let coming: Vec<_> = coming.into_iter().take_while(&mut fits).collect();
        let more: Vec<_> = more.into_iter().take_while(fits).collect();
        let mut tasks = coming.concat();
        if !self.is_elsewhere {
            tasks.push(cost::clear(self.execution.plan));
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
        block: u32,
        decider: &mut dyn Decider,
        (monitor, progress): (&mut HostMonitor<'_>, &mut Progress<'_>),
    ) -> Result<bool> {
        let (open, steps, stop) = match decider.after(block)? {
            Decision::All => return Ok(false),
            Decision::Only { open, steps } => (open, steps, None),
            Decision::Stop(reason) => (Vec::new(), 0, Some(reason)),
        };
        let most = self.execution.plan.blocks.most();
        let record = open
            .iter()
            .map(|step| (step.step.clone(), Some(step.more(block)).filter(|_| block < most)));
        monitor.note_open(record.collect())?;
        let last = open.iter().map(|step| step.pairs_needed).max().unwrap_or(block);
        let coming = self.left((block, last), &open);
        let left = progress.expected(&coming.concat());
        let text = match stop {
            Some(reason) => format!("after block {block}: {reason}"),
            None => self.open_text(block, (&open, steps), (left, monitor)),
        };
        progress.note(&text);
        // A step that scatters more than it did needs more than it seems to.
        let noisier: Vec<_> =
            open.iter().map(|step| UndecidedStep { pairs_needed: most, ..step.clone() }).collect();
        let more = self.left((last, most), &noisier);
        self.tell((coming, more), (monitor, progress));
        self.open = Some(open);
        Ok(true)
    }

    /// The blocks after one and up to another that the open steps will probably need: fewer and
    /// fewer steps.
    fn left(&self, (block, last): (u32, u32), open: &[UndecidedStep]) -> Vec<Vec<PlannedTask>> {
        let of_block = |coming: u32| {
            let still = open.iter().filter(|step| step.pairs_needed >= coming);
            let still: BTreeSet<String> = still.map(|step| step.step.clone()).collect();
            let selection = Selection::of_open(&self.phases, &still, self.cached);
            [self.load(coming), self.block(&selection)].concat()
        };
        (block + 1..=last).map(of_block).collect()
    }

    fn open_text(
        &self,
        block: u32,
        (open, steps): (&[UndecidedStep], usize),
        (left, monitor): (f64, &HostMonitor<'_>),
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
        let budget = self.budget_seconds().map(|budget| budget - monitor.spent_seconds());
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

// Selects the phases of a block when only some steps are still undecided.

/// The phases of one block: those that are left out, with their numbers from 0 and reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    left_out: BTreeMap<usize, &'static str>,
}

/// The reason for leaving a step out.
const NOTHING_FOLLOWS: &str = "decided, and no undecided step follows it";
const CHANGES_NOTHING: &str = "decided; it changes no data, and all data are cached";

impl Selection {
    /// The steps that the open steps need.
    ///
    /// The steps before a step make the state of the DBMS for it: writes change the data, reads the
    /// caches. So an open step keeps all writes and all warm-up steps before it. A decided step
    /// that only reads is left out only if everything is `cached` anyway, so that later steps find
    /// the same state. Nothing is needed after the last open step. All targets of a block leave out
    /// the same steps, so its pairs stay pairs.
    fn of_open(phases: &[Phase], open: &BTreeSet<String>, cached: bool) -> Selection {
        let is_open =
            |phase: &Phase| matches!(phase, Phase::Measure(step) if open.contains(&step.name));
        let last = phases.iter().rposition(is_open);
        let why = |(index, phase): (usize, &Phase)| match phase {
            _ if last.is_none_or(|last| index > last) => Some((index, NOTHING_FOLLOWS)),
            Phase::Measure(step) if cached && only_reads(step) && !is_open(phase) => {
                Some((index, CHANGES_NOTHING))
            }
            _ => None,
        };
        Selection { left_out: phases.iter().enumerate().filter_map(why).collect() }
    }

    /// True if the phase is carried out.
    pub(super) fn holds(&self, phase: usize) -> bool {
        !self.left_out.contains_key(&phase)
    }

    /// Steps that are left out, and why.
    pub(super) fn skipped(&self, phases: &[Phase]) -> BTreeMap<String, String> {
        let pairs = self.left_out.iter().filter_map(|(index, why)| match phases.get(*index)? {
            Phase::Measure(step) => Some((step.name.clone(), (*why).to_owned())),
            Phase::Settle | Phase::Restore => None,
        });
        pairs.collect()
    }

    /// The steps left out: number of the phase, from 1, and reason.
    pub(super) fn left_out(&self) -> BTreeMap<u32, String> {
        self.left_out.iter().map(|(index, why)| (*index as u32 + 1, (*why).to_owned())).collect()
    }

    /// The phases that are carried out, with their numbers from 0.
    pub(super) fn kept<'p>(&self, phases: &'p [Phase]) -> Vec<(usize, &'p Phase)> {
        phases.iter().enumerate().filter(|(index, _)| self.holds(*index)).collect()
    }
}

/// True for a measured step whose statements never write. Other benchmarks are sequences in which
/// each step builds on the one before.
fn only_reads(step: &Step) -> bool {
    step.reported && step.only_reads
}

// Results that a resumed plan already has.

/// The started blocks.
#[derive(Default)]
pub(super) struct History {
    done: BTreeSet<u32>,
    attempts: BTreeMap<u32, u32>,
    started: BTreeMap<u32, String>,
    /// Notes about the found results.
    pub(super) notes: Vec<String>,
}

impl History {
    /// True if every target of the block was measured to its end, and the block was not discarded.
    pub(super) fn is_done(&self, block: u32) -> bool {
        self.done.contains(&block)
    }

    /// The attempt at a block that is to come next.
    pub(super) fn next_attempt(&self, block: u32) -> u32 {
        self.attempts.get(&block).copied().unwrap_or(0) + 1
    }

    /// When the first run of a block was started: RFC 3339, UTC.
    pub(super) fn started(&self, block: u32) -> Option<&str> {
        self.started.get(&block).map(String::as_str)
    }

    /// The last block that is done; 0 for none.
    pub(super) fn last_done(&self) -> u32 {
        self.done.last().copied().unwrap_or(0)
    }
}

/// Looks at the runs that are there. A block in which every target was measured to its end is done;
/// one that was interrupted or discarded, or in which a run or a step failed, is done again as the
/// next attempt: a user who resumes after a failure has mended its cause. The steps that
/// it did finish stay and count. A step that fails again and again is no reason, or a long plan
/// would be measured anew for it.
///
/// # Errors
/// The result folder cannot be read.
pub(super) fn history(results: &ResultSet, targets: usize) -> Result<History> {
    let mut blocks: BTreeMap<u32, Vec<RunRecord>> = BTreeMap::new();
    for record in results.runs()? {
        blocks.entry(record.key.block).or_default().push(record);
    }
    let mut history = History::default();
    let fates = Fates::read(results, blocks.values().flatten())?;
    for (block, mut runs) in blocks {
        let last = runs.iter().map(|run| run.key.attempt).max().unwrap_or(1);
        history.attempts.insert(block, last);
        let started = runs.iter().map(|run| run.started.clone()).min();
        history.started.extend(started.map(|started| (block, started)));
        runs.retain(|run| run.key.attempt == last);
        let why = runs
            .iter()
            .find_map(|run| fates.reason_to_repeat(run))
            .or_else(|| (runs.len() < targets).then(|| "interrupted".to_owned()));
        history.notes.push(match why {
            Some(why) => format!("repeating block {block}: {why}"),
            None => {
                history.done.insert(block);
                format!("block {block} is already measured; keeping its results")
            }
        });
    }
    Ok(history)
}

/// Refuses to go on with another build under the label of one that was measured: a reference that
/// has moved, or files that were replaced. A build from sources is known by its commit or their
/// hash, because it is not made anew to the last byte; a server of somebody else's stays.
pub(super) fn check_builds(results: &ResultSet, slots: &[TargetSlot]) -> Result<()> {
    for record in results.runs()? {
        let Some(slot) = slots.iter().find(|slot| slot.label == record.key.label) else {
            continue;
        };
        let (before, now) = (&record.manifest, &slot.build);
        let is_same = match record.target.source {
            BuildSource::Dsn(_) | BuildSource::Client(_) => true,
            BuildSource::Source { .. } => before.origin == now.origin,
            _ => before.origin == now.origin && before.sha256 == now.sha256,
        };
        if !is_same {
            let known = |manifest: &Manifest| {
                let sha256 = manifest.sha256.iter().map(|sha256| format!(" ({sha256:.12})"));
                format!("{}{}", manifest.origin, sha256.collect::<String>())
            };
            bail!(
                "resume {}: {} is another build now: its runs are of {}, and this one is of {}\nhint: \
                 put the old one back, or measure into a new folder",
                results.folder().display(),
                record.key.label,
                known(before),
                known(now)
            );
        }
    }
    Ok(())
}

/// Number of failures and completions of each step of a target, in all blocks and attempts.
#[derive(Default)]
struct Fates {
    failed: BTreeMap<(String, String), u32>,
    complete: BTreeSet<(String, String)>,
    /// Failed steps of each run.
    of_runs: BTreeMap<String, Vec<String>>,
}

impl Fates {
    fn read<'a>(
        results: &ResultSet,
        records: impl Iterator<Item = &'a RunRecord>,
    ) -> Result<Fates> {
        let mut fates = Fates::default();
        for record in records {
            let run = read_run(results.run(&record.key)?.folder(), "")?;
            for step in run.steps {
                let place = (record.key.label.clone(), step.name.clone());
                match step.status {
                    Status::Failed(_) => {
                        *fates.failed.entry(place).or_default() += 1;
                        let of_run = fates.of_runs.entry(record.key.folder()).or_default();
                        of_run.push(step.name.clone());
                    }
                    Status::Complete => drop(fates.complete.insert(place)),
                    _ => {}
                }
            }
        }
        Ok(fates)
    }

    /// The reason for repeating a run; `None` if it stands.
    fn reason_to_repeat(&self, run: &RunRecord) -> Option<String> {
        let label = &run.key.label;
        match &run.status {
            Status::Discarded(_) => Some("discarded".to_owned()),
            Status::Failed(_) => Some(format!("{label} failed")),
            Status::Complete => {
                let failed = self.of_runs.get(&run.key.folder())?;
                let step = failed.iter().find(|step| !self.always_fails(label, step))?;
                Some(format!("{step} of {label} failed"))
            }
            _ => Some("interrupted".to_owned()),
        }
    }

    fn always_fails(&self, label: &str, step: &str) -> bool {
        let place = (label.to_owned(), step.to_owned());
        !self.complete.contains(&place) && self.failed.get(&place).is_some_and(|&times| times > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::{self, StepSet};
    use rqps_bench::sysbench as preset;
    use rqps_model::dialect::Dialect;

    fn phases() -> Vec<Phase> {
        benchmarks::phases(
            Dialect::Fake,
            StepSet::Abbreviated,
            &preset::workload("quick").unwrap().0,
        )
    }

    fn kept(open: &[&str], cached: bool) -> Vec<String> {
        let open = open.iter().map(|name| (*name).to_owned()).collect();
        let selection = Selection::of_open(&phases(), &open, cached);
        let name = |phase: &Phase| match phase {
            Phase::Measure(step) => step.name.clone(),
            Phase::Settle | Phase::Restore => "(settle)".to_owned(),
        };
        selection.kept(&phases()).into_iter().map(|(_, phase)| name(phase)).collect()
    }

    #[test]
    fn an_early_write_needs_nothing_after_it() {
        let warming = ["point-query.warm", "scan.warmpre", "point-query.pre"];
        let pre = "range-notcovered-si.pre";
        let kept = kept(&["update-index"], true);
        assert_eq!(kept[..3], warming);
        assert_eq!(kept[3..], [pre, "update-inlist", "update-index"]);
    }

    #[test]
    fn an_open_read_keeps_all_writes_and_warming_before_it_and_no_settled_read() {
        let kept = kept(&["points-covered-si"], true);
        for needed in ["update-index", "read-write_range=100", "(settle)", "scan.warm"] {
            assert!(kept.iter().any(|name| name == needed), "{needed} of {kept:?}");
        }
        for needless in ["hot-points", "read-only-count", "delete", "points-notcovered-si"] {
            assert!(!kept.iter().any(|name| name == needless), "{needless} of {kept:?}");
        }
        assert_eq!(kept.last().map(String::as_str), Some("points-covered-si"));
    }

    #[test]
    fn where_not_all_is_cached_a_settled_read_still_warms() {
        let kept = kept(&["points-covered-si"], false);
        assert!(kept.iter().any(|name| name == "hot-points"), "{kept:?}");
        assert!(!kept.iter().any(|name| name == "points-notcovered-si"), "{kept:?}");
    }

    #[test]
    fn what_is_left_out_has_its_reason() {
        let open = BTreeSet::from(["scan".to_owned()]);
        let skipped = Selection::of_open(&phases(), &open, true).skipped(&phases());
        assert_eq!(skipped["insert"], NOTHING_FOLLOWS);
        assert!(!skipped.contains_key("scan") && !skipped.contains_key("update-one"));
        assert!(Selection::default().skipped(&phases()).is_empty());
        let left_out = Selection::of_open(&phases(), &open, true).left_out();
        for (number, phase) in (1..).zip(&phases()) {
            if let Phase::Measure(step) = phase {
                assert_eq!(left_out.get(&number), skipped.get(&step.name), "{}", step.name);
            }
        }
        let none = Selection::of_open(&phases(), &BTreeSet::new(), true);
        assert!(none.kept(&phases()).is_empty());
    }
}
