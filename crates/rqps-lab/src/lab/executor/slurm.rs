//! Measures blocks as jobs of Slurm: one task of a job array for each block.
//!
//! The report in the shared folder decides the state of a block; the queue only shows whether one
//! may still come. So an rqps that was killed finds its jobs again, and no block is submitted while
//! a job of it is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cells::{self, Cell, Cells};
use super::slurm_jobs::{self, Batches, TRIES, UnderWay, UnfitNodes};
use super::slurm_queue::{self, Batch, QueuedTask};
use super::{BlockEnd, Executor, RemoteHosts, SlurmPartition};
use crate::lab::progress::Progress;
use crate::lab::ssh;
use crate::plan::BlockSpec;
use rqps_model::run::BlockReport;

/// If this number of blocks fail before any is measured, the rest would fail, too.
const HOPELESS: usize = 3;
/// A node that fails this number of blocks in a row gets no more.
const FAILURES: u32 = 2;
/// A report may become visible so long after its job has ended: what a network file system caches.
const VISIBLE: Duration = Duration::from_secs(10);
/// Between two looks into the shared folder, at least, and for each block that may have ended: a
/// hundred hosts must not burden the file server.
const LOOK: Duration = Duration::from_millis(250);
const LOOK_OF_BLOCK: Duration = Duration::from_millis(20);
/// Between two questions to the controller: a short while at first, so that small plans are quick,
/// and then what sites ask of programs that poll.
const ASK_SOON: Duration = Duration::from_secs(2);
const ASK_LATER: Duration = Duration::from_secs(15);
const SOON: Duration = Duration::from_secs(120);

/// The executor of a Slurm cluster.
pub(crate) struct SlurmExecutor<'e> {
    slurm: &'e SlurmPartition,
    cells: Cells,
    stop: &'e AtomicBool,
    batches: Batches<'e>,
    under_way: BTreeMap<String, UnderWay>,
    ready: VecDeque<BlockEnd>,
    /// Waiting tasks whose blocks already have a report.
    redundant: Vec<QueuedTask>,
    unfit: UnfitNodes,
    /// Blocks that each node has failed in a row.
    failures: BTreeMap<String, u32>,
    measured: u32,
    lost: usize,
    began: Instant,
    asked: Option<Instant>,
    looked: Option<Instant>,
    /// Notes that were made: each is made once.
    noted: Vec<String>,
}

impl<'e> SlurmExecutor<'e> {
    /// Takes up what an earlier rqps has submitted for this result folder.
    ///
    /// # Errors
    /// The folder cannot be read, or the controller does not answer.
    pub(crate) fn open(
        (place, slurm): (&'e RemoteHosts, &'e SlurmPartition),
        cells: Cells,
        stop: &'e AtomicBool,
    ) -> Result<SlurmExecutor<'e>> {
        Ok(SlurmExecutor {
            slurm,
            unfit: UnfitNodes::open(&cells.own)?,
            failures: BTreeMap::new(),
            batches: Batches::open((place, slurm), &cells)?,
            cells,
            stop,
            under_way: BTreeMap::new(),
            ready: VecDeque::new(),
            redundant: Vec::new(),
            measured: 0,
            lost: 0,
            began: Instant::now(),
            asked: None,
            looked: None,
            noted: Vec::new(),
        })
    }

    /// The hosts that cells are for.
    fn class(&self) -> String {
        let features = self.slurm.constraint.as_deref().unwrap_or_default();
        let class = format!("slurm:{}:{features}", self.slurm.partition);
        match self.slurm.client_nodes {
            None => class,
            Some(nodes) => {
                let features = self.slurm.client_constraint.as_deref().unwrap_or_default();
                format!("{class}:{nodes}:{features}")
            }
        }
    }

    fn log(&self, (batch, index): &(String, usize)) -> PathBuf {
        self.cells.folder().join(format!("{batch}-{index}.log"))
    }

    /// Submits these blocks as arrays of one job each.
    fn launch(&mut self, blocks: Vec<UnderWay>) -> Result<()> {
        let mut blocks = VecDeque::from(blocks);
        while !blocks.is_empty() {
            let many = self.batches.array_most.min(blocks.len());
            let part: Vec<UnderWay> = blocks.drain(..many).collect();
            let names: Vec<String> = part.iter().map(|block| block.cell.name.clone()).collect();
            let mut avoided = self.unfit.names();
            let of_block = part.first().map(|block| block.avoided.clone()).unwrap_or_default();
            avoided.extend(of_block.into_iter().filter(|node| self.unfit.reason(node).is_none()));
            let name = self.batches.submit(names, &avoided)?;
            self.asked = None;
            for (index, mut block) in (1..).zip(part) {
                block.batch = (name.clone(), index);
                block.forget_task();
                self.under_way.insert(block.cell.name.clone(), block);
            }
        }
        Ok(())
    }

    /// Asks the controller how the jobs are, if it is time.
    fn ask(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let pause = if self.began.elapsed() < SOON { ASK_SOON } else { ASK_LATER };
        if self.asked.is_some_and(|asked| asked.elapsed() < pause) {
            return Ok(());
        }
        let answer = self.batches.tasks();
        self.asked = Some(Instant::now());
        let tasks = match answer {
            Ok(tasks) => tasks,
            Err(error) => {
                // The controller is restarted sometimes; jobs go on without it.
                self.note(format!("waiting for Slurm's controller: {error:#}"), progress);
                return Ok(());
            }
        };
        let mut notes = Vec::new();
        for block in self.under_way.values_mut() {
            if !self.batches.unconfirmed.contains(&block.batch.0) {
                notes.extend(block.look(tasks.get(&block.cell.name)));
            }
        }
        for note in notes {
            self.note(note, progress);
        }
        for (batch, error) in self.batches.send_again(&tasks) {
            let refused = self.under_way.values().filter(|block| block.batch.0 == batch);
            let cells: Vec<Cell> = refused.map(|block| block.cell.clone()).collect();
            cells.iter().for_each(|cell| drop(self.under_way.remove(&cell.name)));
            self.give_up(cells, &format!("{error:#}"))?;
        }
        self.show(progress);
        Ok(())
    }

    fn note(&mut self, text: String, progress: &mut Progress<'_>) {
        if !self.noted.contains(&text) {
            progress.note(&text);
            self.noted.push(text);
        }
    }

    fn show(&self, progress: &mut Progress<'_>) {
        let is = |block: &&UnderWay, state: &str| {
            block.task.as_ref().is_some_and(|task| task.state == state)
        };
        let running = self.under_way.values().filter(|block| is(block, "RUNNING")).count();
        let waiting = self.under_way.values().find(|block| is(block, "PENDING"));
        let why = waiting.and_then(|block| block.task.as_ref()).map(|task| task.reason.as_str());
        let left = self.under_way.len();
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("blocks running: {running}, waiting: {}{why}", left - running);
        progress.doing("", &text, None);
    }

    /// Takes in what has ended.
    fn gather(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let ended = self.under_way.iter().filter(|(_, block)| block.may_have_ended());
        let names: Vec<String> = ended.map(|(name, _)| name.clone()).collect();
        let pause = LOOK.max(LOOK_OF_BLOCK * names.len() as u32);
        if self.looked.is_some_and(|looked| looked.elapsed() < pause) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        self.leave_unfit_nodes(progress)?;
        let mut cancelled = Vec::new();
        for name in names {
            let Some(block) = self.under_way.get(&name) else { continue };
            let log = self.log(&block.batch);
            if let Some(report) = self.cells.take(&block.cell, &log)? {
                if let Some(block) = self.under_way.remove(&name) {
                    self.took(block, report);
                }
                continue;
            }
            // A network file system shows reports late. A block that says why it failed has none.
            let may_come = |gone: Instant| gone.elapsed() < VISIBLE && !cells::complains(&log);
            match block.gone {
                Some(_) if block.is_cancelled_before_start() => cancelled.push(name),
                Some(gone) if may_come(gone) => {}
                Some(_) if block.is_cancelled() => cancelled.push(name),
                Some(_) => self.without_report(&name, progress)?,
                None => {}
            }
        }
        self.leave_cancelled(&cancelled);
        Ok(())
    }

    /// Somebody has cancelled the jobs of these cells.
    fn leave_cancelled(&mut self, names: &[String]) {
        let mut by_job: BTreeMap<String, Vec<Cell>> = BTreeMap::new();
        for block in names.iter().filter_map(|name| self.under_way.remove(name)) {
            let job = block.task.as_ref().map(|task| match names.len() {
                1 => task.job.clone(),
                _ => task.array().to_owned(),
            });
            by_job.entry(job.unwrap_or_default()).or_default().push(block.cell);
        }
        for (job, cells) in by_job {
            let why = format!(
                "cancelled in Slurm (job {job})\nhint: `rqps run --resume` measures what is left"
            );
            self.lose(cells, &why);
        }
    }

    /// Keeps blocks that wait away from nodes that have become unfit.
    fn leave_unfit_nodes(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let found = self.unfit.new_ones()?;
        if found.is_empty() {
            return Ok(());
        }
        for node in &found {
            let why = self.unfit.reason(node).unwrap_or_default();
            self.note(format!("node {node} gets no more blocks: {why}"), progress);
        }
        let avoided = self.unfit.names();
        if !self.batches.has_nodes(&avoided) {
            self.batches.cancel()?;
            let reason =
                |node: &String| format!("{node}: {}", self.unfit.reason(node).unwrap_or_default());
            let reasons: Vec<String> = avoided.iter().map(reason).collect();
            bail!(
                "measure on the nodes of Slurm: no fit node is left; {}\nhint: `sinfo` shows \
                 whether others are drained or down; `rqps run --resume` tries all nodes again",
                reasons.join("; ")
            );
        }
        let waiting = self.under_way.values().filter_map(|block| block.task.as_ref());
        let waiting = waiting.filter(|task| task.state == "PENDING");
        let jobs: BTreeSet<String> = waiting.map(|task| task.array().to_owned()).collect();
        let excluded = slurm_queue::excluded(&avoided, self.slurm);
        for job in jobs {
            if let Err(error) = slurm_queue::exclude(&job, &excluded) {
                self.note(format!("job {job} may still get these nodes: {error:#}"), progress);
            }
        }
        Ok(())
    }

    /// The block has sent its report.
    fn took(&mut self, block: UnderWay, report: BlockReport) {
        if let Some(node) = &report.session.node {
            self.failures.remove(node);
        }
        self.measured += 1;
        self.ready.push_back(BlockEnd::Measured(Box::new(report)));
        self.redundant.extend(block.waiting_task());
    }

    /// Cancels waiting tasks whose blocks already have a report: Slurm requeued a block that had
    /// ended.
    fn cancel_redundant(&mut self, progress: &mut Progress<'_>) {
        for task in std::mem::take(&mut self.redundant) {
            if let Err(error) = slurm_queue::cancel_task(&task) {
                let job = &task.job;
                self.note(
                    format!("cancel job {job}, whose block is measured: {error:#}"),
                    progress,
                );
            }
        }
    }

    /// No job of the block is left, and no report came.
    fn without_report(&mut self, name: &str, progress: &mut Progress<'_>) -> Result<()> {
        let Some(mut block) = self.under_way.remove(name) else { return Ok(()) };
        let log = self.log(&block.batch);
        let number = block.cell.spec.block;
        let node = block.task.as_ref().map(|task| task.node.clone()).unwrap_or_default();
        let (why, again) = block.end(cells::last_words(&log));
        // A node that finds itself unfit says nothing about the block.
        let is_unfit = self.unfit.reason(&node).is_some();
        if again && block.avoided.contains(&node) && !is_unfit {
            let failures = self.failures.entry(node.clone()).or_insert(0);
            *failures += 1;
            if *failures == FAILURES {
                let times = format!("{FAILURES} blocks in a row failed there; the last: {why}");
                self.unfit.declare(&node, &times)?;
            }
        }
        if again && block.tries < TRIES && !self.is_stopped() {
            self.note(format!("block {number}: {why}; rqps submits it again"), progress);
            block.tries += u32::from(!is_unfit);
            let cell = block.cell.clone();
            let Err(error) = self.launch(vec![block]) else { return Ok(()) };
            return self.give_up(vec![cell], &format!("{why}; again: {error:#}"));
        }
        self.give_up(vec![block.cell], &why)
    }

    /// Gives up the blocks of these cells, and the plan if it is hopeless.
    fn give_up(&mut self, cells: Vec<Cell>, why: &str) -> Result<()> {
        self.lost += cells.len();
        let fault = self.lose(cells, why);
        if self.lost >= HOPELESS && self.measured == 0 {
            self.batches.cancel()?;
            bail!(
                "measure on the nodes of Slurm: {} blocks failed and none was measured: {fault}",
                self.lost
            );
        }
        Ok(())
    }

    /// Reports the blocks of these cells as lost; returns what it says of them.
    fn lose(&mut self, cells: Vec<Cell>, why: &str) -> String {
        let specs = cells.into_iter().map(|cell| cell.spec);
        let (blocks, ids): (Vec<u32>, Vec<String>) =
            specs.map(|spec| (spec.block, spec.id)).unzip();
        let fault = format!("{}: {why}", slurm_jobs::named(&blocks));
        self.ready.push_back(BlockEnd::Lost { ids, fault: fault.clone() });
        fault
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Executor for SlurmExecutor<'_> {
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()> {
        // An earlier rqps may have submitted some of them.
        let is_known = |spec: &BlockSpec| self.batches.has(&cells::name(spec));
        let live = if specs.iter().any(is_known) {
            self.batches.tasks().context("look for jobs of this result folder")?
        } else {
            BTreeMap::new()
        };
        let class = self.class();
        let mut fresh = Vec::new();
        for spec in specs {
            let name = cells::name(&spec);
            let known = self.cells.id_of(&name);
            let task = live.get(&name).filter(|task| !task.has_ended());
            if let (Some(task), Some(known)) = (task, &known)
                && *known != cells::id(&spec, &class)
            {
                bail!(
                    "submit block {}: job {} measures it with another rqps, other builds or on \
                     other hosts\nhint: wait for it or cancel it: scancel {}",
                    spec.block,
                    task.job,
                    task.job
                );
            }
            let cell = self.cells.write(spec, &class)?;
            let batch = task.map(|task| (task.name.clone(), task.index)).unwrap_or_default();
            let report = match known {
                Some(_) => self.cells.take(&cell, &self.log(&batch))?,
                None => None,
            };
            let block = UnderWay::new(cell, batch, task.cloned());
            match report {
                None if task.is_none() => fresh.push(block),
                None => drop(self.under_way.insert(name, block)),
                Some(report) => self.took(block, report),
            }
        }
        self.launch(fresh)
    }

    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>> {
        loop {
            self.cancel_redundant(progress);
            if let Some(end) = self.ready.pop_front() {
                return Ok(Some(end));
            }
            if self.under_way.is_empty() {
                return Ok(None);
            }
            if self.is_stopped() {
                progress.doing("", "cancel the jobs", None);
                self.batches.cancel()?;
                self.under_way.clear();
                return Ok(None);
            }
            self.ask(progress)?;
            self.gather(progress)?;
            if self.ready.is_empty() {
                thread::sleep(LOOK);
            }
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.cells.clear()
    }
}

/// The job script of a plan with this number of blocks, as it would be submitted.
///
/// # Errors
/// There is no current folder.
pub(super) fn preview(
    (place, slurm): (&RemoteHosts, &SlurmPartition),
    (results, program): (&Path, &Path),
    blocks: u32,
) -> Result<String> {
    let folder = cells::path_of(results)?;
    slurm_queue::check(&folder, slurm)?;
    let program = folder.join(ssh::program_name(&ssh::digest_of(program)?));
    let names: Vec<String> = (1..=blocks).map(|block| format!("{block:04}-1")).collect();
    let name = format!("{}-0001", slurm_jobs::prefix(&folder));
    let batch =
        Batch { name: &name, cells: &names, folder: &folder, program: &program, avoided: &[] };
    Ok(slurm_queue::text(&batch, place, slurm))
}
