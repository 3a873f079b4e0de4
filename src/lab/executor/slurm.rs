//! Measures blocks as jobs of Slurm: one task of a job array for each block.
//!
//! The report in the shared folder decides the state of a block; the queue only shows whether one
//! may still come. So an rqps that was killed finds its jobs again, and no block is submitted while
//! a job of it is under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cells::{self, Cells};
use super::elsewhere::{Elsewhere, SlurmPartition};
use super::job_script::{self, Batch};
use super::seam::{BlockEnd, Executor};
use super::slurm_block::{TRIES, UnderWay};
use super::slurm_queue::{self, QueuedTask};
use super::unfit_nodes::UnfitNodes;
use crate::domain::block::BlockReport;
use crate::lab::far;
use crate::lab::progress::Progress;
use crate::plan::BlockSpec;
use crate::results::replace_whole;

/// If this number of blocks fail before any is measured, the rest would fail, too.
const HOPELESS: u32 = 3;
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
/// Time for cancelled jobs to end.
const CANCELLING: Duration = Duration::from_secs(45);

/// The executor of a Slurm cluster.
pub(crate) struct SlurmExecutor<'e> {
    place: &'e Elsewhere,
    slurm: &'e SlurmPartition,
    cells: Cells,
    stop: &'e AtomicBool,
    /// Names of all jobs of this result folder begin with it.
    prefix: String,
    /// Names of the jobs of this result folder, and their cells in order.
    batches: BTreeMap<String, Vec<String>>,
    under_way: BTreeMap<String, UnderWay>,
    ready: VecDeque<BlockEnd>,
    array_most: usize,
    unfit: UnfitNodes,
    /// Blocks that each node has failed in a row.
    failures: BTreeMap<String, u32>,
    measured: u32,
    lost: u32,
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
        (place, slurm): (&'e Elsewhere, &'e SlurmPartition),
        cells: Cells,
        stop: &'e AtomicBool,
    ) -> Result<SlurmExecutor<'e>> {
        let prefix = prefix(cells.folder());
        let mut batches = BTreeMap::new();
        for entry in fs::read_dir(cells.folder()).context("read the cells")?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = file.strip_suffix(".cells") else { continue };
            let text = fs::read_to_string(entry.path()).with_context(|| format!("read {file}"))?;
            batches.insert(name.to_owned(), text.lines().map(str::to_owned).collect());
        }
        Ok(SlurmExecutor {
            place,
            slurm,
            unfit: UnfitNodes::open(cells.folder())?,
            failures: BTreeMap::new(),
            cells,
            stop,
            prefix,
            batches,
            under_way: BTreeMap::new(),
            ready: VecDeque::new(),
            array_most: slurm_queue::array_most()?,
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
        // Slurm takes no array of jobs of several parts.
        let most = if self.slurm.client_nodes.is_some() { 1 } else { self.array_most };
        while !blocks.is_empty() {
            let many = most.min(blocks.len());
            let part: Vec<UnderWay> = blocks.drain(..many).collect();
            let names: Vec<String> = part.iter().map(|block| block.cell.name.clone()).collect();
            let mut avoided = self.unfit.names();
            let of_block = part.first().map(|block| block.avoided.clone()).unwrap_or_default();
            avoided.extend(of_block.into_iter().filter(|node| self.unfit.reason(node).is_none()));
            let name = self.submit_batch(names, &avoided)?;
            for (index, mut block) in (1..).zip(part) {
                block.batch = (name.clone(), index);
                (block.task, block.gone) = (None, None);
                self.under_way.insert(block.cell.name.clone(), block);
            }
        }
        Ok(())
    }

    /// The list of cells is on disk before the job, so that a job in the queue can be identified.
    fn submit_batch(&mut self, names: Vec<String>, avoided: &[String]) -> Result<String> {
        let name = format!("{}-{:04}", self.prefix, self.batches.len() + 1);
        let folder = self.cells.folder();
        let batch =
            Batch { name: &name, cells: &names, folder, program: &self.cells.program, avoided };
        let script = folder.join(format!("{name}.sh"));
        replace_whole(&folder.join(format!("{name}.cells")), names.join("\n") + "\n")?;
        replace_whole(&script, job_script::text(&batch, self.place, self.slurm))?;
        let features = self.slurm.features();
        self.batches.insert(name.clone(), names);
        let job = slurm_queue::submit(&script, features.as_deref(), &self.slurm.partition)?;
        replace_whole(&folder.join(format!("{name}.job")), format!("{job}\n"))?;
        self.asked = None;
        Ok(name)
    }

    /// The tasks that Slurm knows, by cell; of several the last that was submitted.
    fn tasks(&self) -> Result<BTreeMap<String, QueuedTask>> {
        let names: Vec<String> = self.batches.keys().cloned().collect();
        let mut tasks: Vec<QueuedTask> = slurm_queue::tasks(&names)?;
        tasks.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_cell: BTreeMap<String, QueuedTask> = BTreeMap::new();
        for task in tasks {
            let cells = self.batches.get(&task.name);
            let Some(cell) = cells.and_then(|cells| cells.get(task.index.wrapping_sub(1))) else {
                continue;
            };
            let known = by_cell.get(cell);
            if known.is_none_or(|known| known.has_ended() || !task.has_ended()) {
                by_cell.insert(cell.clone(), task);
            }
        }
        Ok(by_cell)
    }

    /// Asks the controller how the jobs are, if it is time.
    fn ask(&mut self, progress: &mut Progress<'_>) {
        let pause = if self.began.elapsed() < SOON { ASK_SOON } else { ASK_LATER };
        if self.asked.is_some_and(|asked| asked.elapsed() < pause) {
            return;
        }
        self.asked = Some(Instant::now());
        let tasks = match self.tasks() {
            Ok(tasks) => tasks,
            Err(error) => {
                // The controller is restarted sometimes; jobs go on without it.
                self.note(format!("waiting for Slurm's controller: {error:#}"), progress);
                return;
            }
        };
        let mut notes = Vec::new();
        for block in self.under_way.values_mut() {
            let task = tasks.get(&block.cell.name);
            notes.extend(block.look(task));
        }
        for note in notes {
            self.note(note, progress);
        }
        self.show(progress);
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
        for name in names {
            let Some(block) = self.under_way.get(&name) else { continue };
            let log = self.log(&block.batch);
            if let Some(report) = self.cells.take(&block.cell, &log)? {
                // The job of a second start would measure it once more.
                if let Some(task) = block.task.as_ref().filter(|task| task.state == "PENDING") {
                    slurm_queue::cancel_task(task)?;
                }
                self.took(&name, report);
                continue;
            }
            // A block that says why it failed has written no report.
            let is_over = |gone: Instant| gone.elapsed() >= VISIBLE || cells::complains(&log);
            if block.gone.is_some_and(is_over) {
                self.without_report(&name, progress)?;
            }
        }
        Ok(())
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
        if !self.has_nodes(&avoided) {
            self.cancel()?;
            let reason =
                |node: &String| format!("{node}: {}", self.unfit.reason(node).unwrap_or_default());
            let reasons: Vec<String> = avoided.iter().map(reason).collect();
            bail!("measure on the nodes of Slurm: no fit node is left; {}", reasons.join("; "));
        }
        let waiting = self.under_way.values().filter_map(|block| block.task.as_ref());
        let waiting = waiting.filter(|task| task.state == "PENDING");
        let jobs: BTreeSet<String> = waiting.map(|task| task.array().to_owned()).collect();
        let excluded = job_script::excluded(&avoided, self.slurm);
        for job in jobs {
            if let Err(error) = slurm_queue::exclude(&job, &excluded) {
                self.note(format!("job {job} may still get these nodes: {error:#}"), progress);
            }
        }
        Ok(())
    }

    /// True unless Slurm says that no node is left without those.
    fn has_nodes(&self, avoided: &[String]) -> bool {
        let cells = ["0001-1".to_owned()];
        let folder = self.cells.folder();
        let program = &self.cells.program;
        let batch = Batch { name: &self.prefix, cells: &cells, folder, program, avoided };
        slurm_queue::has_nodes(&job_script::text(&batch, self.place, self.slurm))
    }

    fn took(&mut self, name: &str, report: BlockReport) {
        if let Some(node) = &report.session.node {
            self.failures.remove(node);
        }
        self.under_way.remove(name);
        self.measured += 1;
        self.ready.push_back(BlockEnd::Measured(Box::new(report)));
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
            let id = block.cell.spec.id.clone();
            let Err(error) = self.launch(vec![block]) else { return Ok(()) };
            return self.give_up(id, format!("block {number}: {why}; again: {error:#}"));
        }
        self.give_up(block.cell.spec.id, format!("block {number}: {why}"))
    }

    fn give_up(&mut self, id: String, fault: String) -> Result<()> {
        self.lost += 1;
        if self.lost >= HOPELESS && self.measured == 0 {
            self.cancel()?;
            bail!(
                "measure on the nodes of Slurm: {} blocks failed and none was measured: {fault}",
                self.lost
            );
        }
        self.ready.push_back(BlockEnd::Lost { id, fault });
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Cancels all jobs, and waits until none is left.
    fn cancel(&mut self) -> Result<()> {
        let names: Vec<String> = self.batches.keys().cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        slurm_queue::cancel(&names)?;
        let until = Instant::now() + CANCELLING;
        while Instant::now() < until {
            if slurm_queue::tasks(&names)?.iter().all(QueuedTask::has_ended) {
                break;
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Executor for SlurmExecutor<'_> {
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()> {
        let live = match self.batches.is_empty() {
            true => BTreeMap::new(),
            false => self.tasks().context("look for jobs of this result folder")?,
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
            if known.is_some()
                && let Some(report) = self.cells.take(&cell, &self.log(&batch))?
            {
                self.took(&name, report);
                continue;
            }
            let block = UnderWay::new(cell, batch);
            match task {
                Some(_) => drop(self.under_way.insert(name, block)),
                None => fresh.push(block),
            }
        }
        self.launch(fresh)
    }

    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>> {
        loop {
            if let Some(end) = self.ready.pop_front() {
                return Ok(Some(end));
            }
            if self.under_way.is_empty() {
                return Ok(None);
            }
            if self.is_stopped() {
                progress.doing("", "cancel the jobs", None);
                self.cancel()?;
                self.under_way.clear();
                return Ok(None);
            }
            self.ask(progress);
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

/// The same for the same folder of cells.
fn prefix(folder: &Path) -> String {
    format!("rqps-{}", crate::units::short_hash(folder.as_os_str().as_encoded_bytes()))
}

/// The job script of a plan with this number of blocks, as it would be submitted.
///
/// # Errors
/// There is no current folder.
pub(super) fn preview(
    (place, slurm): (&Elsewhere, &SlurmPartition),
    (results, program): (&Path, &Path),
    blocks: u32,
) -> Result<String> {
    let folder = cells::path_of(results)?;
    let program = folder.join(far::program_name(&far::digest_of(program)?));
    let names: Vec<String> = (1..=blocks).map(|block| format!("{block:04}-1")).collect();
    let name = format!("{}-0001", prefix(&folder));
    let batch =
        Batch { name: &name, cells: &names, folder: &folder, program: &program, avoided: &[] };
    Ok(job_script::text(&batch, place, slurm))
}
