//! A block that a job of Slurm measures, as the queue shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};

use crate::lab::executor::cells::{Cell, Cells};
use crate::lab::executor::slurm_queue::{self, Batch, NoAnswer, QueuedTask};
use crate::lab::executor::{RemoteHosts, STOPPED, SlurmPartition};
use rqps_host::beneath;
use rqps_host::lock::OwnFolder;
use rqps_model::safe_path;
use rqps_model::units::short_hash;
use rqps_results::{entries, replace_whole};

/// Slurm sends its signal up to so many seconds before the end of a job's time limit: a minute that
/// the job script asks for, and another by which Slurm may be early.
const NEAR_LIMIT: u64 = 120;
/// Starts of a block on hosts that failed; then it is given up. A held job is released as often.
pub(super) const TRIES: u32 = 3;

/// A block that a job measures, by the name of its cell.
pub(super) struct UnderWay {
    pub(super) cell: Cell,
    /// Name of the job, and task.
    pub(super) batch: (String, usize),
    pub(super) task: Option<QueuedTask>,
    pub(super) tries: u32,
    /// Nodes that failed it.
    pub(super) avoided: Vec<String>,
    /// True once a node has started the block.
    has_run: bool,
    /// Since when no job of it is left.
    pub(super) gone: Option<Instant>,
    pub(super) releases: u32,
}

impl UnderWay {
    /// A block that a task measures, if there is one already.
    pub(super) fn new(cell: Cell, batch: (String, usize), task: Option<QueuedTask>) -> UnderWay {
        UnderWay {
            cell,
            batch,
            task,
            tries: 1,
            avoided: Vec::new(),
            has_run: false,
            gone: None,
            releases: 0,
        }
    }

    /// Forgets its task: a new job is about to measure the block.
    pub(super) fn forget_task(&mut self) {
        (self.task, self.gone, self.has_run) = (None, None, false);
    }

    /// Updates the block from the queue. Returns a note for the user, if there is news.
    pub(super) fn look(&mut self, task: Option<&QueuedTask>) -> Option<String> {
        let Some(task) = task.filter(|task| !task.has_ended()) else {
            self.task = task.cloned().or(self.task.take());
            self.gone.get_or_insert_with(Instant::now);
            return None;
        };
        let before = self.task.replace(task.clone());
        let number = self.cell.spec.block;
        self.gone = None;
        if task.state != "PENDING" {
            self.has_run = true;
            return None;
        }
        if task.reason_words().contains("requeued held") && self.releases < TRIES {
            self.releases += 1;
            return Some(match slurm_queue::release(task) {
                Ok(()) => format!("block {number}: Slurm could not start it; rqps released it"),
                Err(error) => {
                    format!("block {number}: Slurm holds it ({}): {error:#}", task.reason)
                }
            });
        }
        match before.filter(|before| before.state != "PENDING") {
            Some(QueuedTask { job, node, .. }) => Some(format!(
                "block {number}: its node {node} failed, or somebody requeued its job {job}; Slurm \
                 starts the block again"
            )),
            None => held_up(task),
        }
    }

    /// True if a report may be there: a job that waits for its first start has written none.
    pub(super) fn may_have_ended(&self) -> bool {
        let waits = self.task.as_ref().is_some_and(|task| task.state == "PENDING");
        !waits || self.has_run || self.gone.is_some()
    }

    /// Its task, if it waits in the queue.
    pub(super) fn waiting_task(self) -> Option<QueuedTask> {
        self.task.filter(|task| task.state == "PENDING" && self.gone.is_none())
    }

    /// True if somebody has cancelled its job.
    pub(super) fn is_cancelled(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.state == "CANCELLED")
    }

    /// True if its job was cancelled before a node started the block: no report can come.
    pub(super) fn is_cancelled_before_start(&self) -> bool {
        let had_node = self.task.as_ref().is_some_and(|task| !task.node.is_empty());
        self.is_cancelled() && !self.has_run && !had_node
    }

    /// Why the job left no report, and whether it is worth starting the block again.
    pub(super) fn end(&mut self, said: Option<String>) -> (String, bool) {
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let Some(task) = self.task.clone() else {
            return (format!("its job is gone from the queue{said}"), true);
        };
        let (why, again) = why_ended(&task, &said);
        let is_of_node = ["NODE_FAIL", "BOOT_FAIL", "PREEMPTED"].contains(&task.state.as_str());
        if again && !is_of_node && !task.node.is_empty() && !self.avoided.contains(&task.node) {
            self.avoided.push(task.node);
        }
        (why, again)
    }
}

/// Why a job cannot start until a user or an administrator acts; `None` if it waits for its turn.
fn held_up(task: &QueuedTask) -> Option<String> {
    let QueuedTask { job, reason, .. } = task;
    let said = task.reason_words();
    let is_any = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if said.contains("held") {
        return Some(format!("job {job} is held ({reason})\nhint: `scontrol release {job}`"));
    }
    if is_any(&["notavail", "down, drained", "partitiondown", "partitioninactive"]) {
        return Some(format!(
            "no node can take job {} now ({reason}); rqps waits\nhint: `sinfo --list-reasons` says \
             why nodes are down or drained",
            task.array()
        ));
    }
    if is_any(&["partitiontimelimit", "partitionnodelimit"]) {
        return Some(format!(
            "the partition never starts job {} ({reason})\nhint: stop rqps and resume with other \
             options, such as --sbatch=--time=60",
            task.array()
        ));
    }
    None
}

/// As [`UnderWay::end`], by the state of the job. `said` is the end of its log, as a clause.
fn why_ended(task: &QueuedTask, said: &str) -> (String, bool) {
    let QueuedTask { job, limit, .. } = task;
    let node = if task.node.is_empty() { "no node" } else { &task.node };
    let hint = "hint: resume with a higher one, such as --sbatch=--time=120";
    match task.state.as_str() {
        "TIMEOUT" => {
            (format!("job {job} on {node} reached its time limit ({limit})\n{hint}"), false)
        }
        // The block has stopped its servers in good order and ended.
        "FAILED" if said.contains(STOPPED) => match task.seconds_left() {
            Some(0..=NEAR_LIMIT) => {
                let when = "shortly before its time limit";
                (format!("Slurm stopped job {job} on {node} {when} ({limit})\n{hint}"), false)
            }
            _ => {
                let why = "though its time limit was not near";
                (format!("a signal stopped job {job} on {node}, {why} ({limit})"), true)
            }
        },
        state => (format!("job {job} ended with {state} on {node}{said}"), true),
    }
}

/// Names blocks by number: "block 3", "blocks 1 to 4, 7".
pub(super) fn named(blocks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let sorted: BTreeSet<u32> = blocks.iter().copied().collect();
    for block in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == block => *last = block,
            _ => ranges.push((block, block)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    });
    let noun = if blocks.len() == 1 { "block" } else { "blocks" };
    format!("{noun} {}", ranges.collect::<Vec<_>>().join(", "))
}

// The jobs of a result folder: which blocks each has, their scripts, and what the queue says of
// them.
//
// Names of jobs and their lists of blocks are on disk before Slurm gets them. So a killed rqps
// finds its jobs again, and one that got no answer learns whether Slurm has taken the job.

/// Time for cancelled jobs to end.
const CANCELLING: Duration = Duration::from_secs(45);
/// Between two questions whether they have.
const LOOK: Duration = Duration::from_millis(250);

/// All jobs of a result folder.
pub(super) struct Batches<'e> {
    place: &'e RemoteHosts,
    slurm: &'e SlurmPartition,
    /// The folder of all cells.
    folder: PathBuf,
    /// The copy of rqps that measures.
    program: PathBuf,
    /// Names of all jobs of this result folder begin with it.
    prefix: String,
    /// Names of jobs, and their cells in order.
    cells: BTreeMap<String, Vec<String>>,
    /// Names of jobs whose submission the controller has not confirmed.
    pub(super) unconfirmed: BTreeSet<String>,
    pub(super) array_most: usize,
}

impl<'e> Batches<'e> {
    /// Those that an earlier rqps has submitted.
    ///
    /// # Errors
    /// The folder cannot be read, or the controller does not answer.
    pub(super) fn open(
        (place, slurm): (&'e RemoteHosts, &'e SlurmPartition),
        of: &Cells,
    ) -> Result<Batches<'e>> {
        let folder = of.folder().to_owned();
        slurm_queue::check(&folder, slurm)?;
        let mut cells = BTreeMap::new();
        for file in entries(&folder)? {
            let Some(name) = file.strip_suffix(".cells") else { continue };
            let path = folder.join(&file);
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("read {}", path.display()))?;
            cells.insert(name.to_owned(), text.lines().map(str::to_owned).collect());
        }
        Ok(Batches {
            place,
            slurm,
            prefix: prefix(&folder),
            program: of.program.clone(),
            folder,
            cells,
            unconfirmed: BTreeSet::new(),
            // Slurm takes no array of jobs of several parts.
            array_most: match slurm.client_nodes {
                Some(_) => 1,
                None => slurm_queue::array_most()?,
            },
        })
    }

    /// True if a job has this cell.
    pub(super) fn has(&self, cell: &str) -> bool {
        self.cells.values().flatten().any(|name| name == cell)
    }

    /// Submits these cells as one job, without the nodes to be avoided; returns its name. If the
    /// controller does not answer, the job stays [unconfirmed](Batches::is_unconfirmed).
    ///
    /// # Errors
    /// A file cannot be written, or Slurm refuses the job.
    pub(super) fn submit(&mut self, names: Vec<String>, avoided: &[String]) -> Result<String> {
        let name = format!("{}-{:04}", self.prefix, self.cells.len() + 1);
        let script = self.script(&name, &names, avoided);
        replace_whole(&self.folder.join(format!("{name}.cells")), names.join("\n") + "\n")?;
        replace_whole(&self.folder.join(format!("{name}.sh")), script)?;
        self.cells.insert(name.clone(), names);
        match self.send(&name) {
            Err(error) if error.is::<NoAnswer>() => drop(self.unconfirmed.insert(name.clone())),
            sent => sent?,
        }
        Ok(name)
    }

    fn send(&self, name: &str) -> Result<()> {
        let features = self.slurm.features();
        let script = self.folder.join(format!("{name}.sh"));
        let job = slurm_queue::submit(&script, features.as_deref(), &self.slurm.partition)?;
        replace_whole(&self.folder.join(format!("{name}.job")), format!("{job}\n"))?;
        Ok(())
    }

    /// Submits the jobs that the controller has not confirmed, unless they are among these tasks.
    /// Returns the names of refused ones, with the reasons.
    pub(super) fn send_again(
        &mut self,
        tasks: &BTreeMap<String, QueuedTask>,
    ) -> Vec<(String, anyhow::Error)> {
        let mut refused = Vec::new();
        for name in std::mem::take(&mut self.unconfirmed) {
            if tasks.values().any(|task| task.name == name) {
                continue;
            }
            match self.send(&name) {
                Ok(()) => {}
                Err(error) if error.is::<NoAnswer>() => drop(self.unconfirmed.insert(name)),
                Err(error) => refused.push((name, error)),
            }
        }
        refused
    }

    /// The tasks that Slurm knows, by cell; of several the last that was submitted.
    ///
    /// # Errors
    /// The controller does not answer.
    pub(super) fn tasks(&self) -> Result<BTreeMap<String, QueuedTask>> {
        let mut tasks = slurm_queue::tasks(&self.names())?;
        tasks.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_cell: BTreeMap<String, QueuedTask> = BTreeMap::new();
        for task in tasks {
            let cells = self.cells.get(&task.name);
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

    fn names(&self) -> Vec<String> {
        self.cells.keys().cloned().collect()
    }

    /// True unless Slurm says that no node is left without those.
    pub(super) fn has_nodes(&self, avoided: &[String]) -> bool {
        slurm_queue::has_nodes(&self.script(&self.prefix, &["0001-1".to_owned()], avoided))
    }

    fn script(&self, name: &str, cells: &[String], avoided: &[String]) -> String {
        let (folder, program) = (&self.folder, &self.program);
        let batch = Batch { name, cells, folder, program, avoided };
        slurm_queue::text(&batch, self.place, self.slurm)
    }

    /// Cancels all jobs, and waits until none is left.
    ///
    /// # Errors
    /// The controller does not answer; the text says how to cancel them.
    pub(super) fn cancel(&self) -> Result<()> {
        let names = self.names();
        if names.is_empty() {
            return Ok(());
        }
        self.cancelled(&names).map_err(|error| {
            anyhow::anyhow!(
                "cancel the jobs: {error:#}; the jobs keep running\nhint: when the controller \
                 answers again, cancel them with `scancel --name={}`, or collect their results \
                 with `rqps run --resume`",
                names.join(",")
            )
        })
    }

    fn cancelled(&self, names: &[String]) -> Result<()> {
        slurm_queue::cancel(names)?;
        let until = Instant::now() + CANCELLING;
        while Instant::now() < until {
            if slurm_queue::tasks(names)?.iter().all(QueuedTask::has_ended) {
                break;
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// The beginning of the names of all jobs of a folder of cells: the same for the same folder.
pub(super) fn prefix(folder: &Path) -> String {
    format!("rqps-{}", short_hash(folder.as_os_str().as_encoded_bytes()))
}

// Nodes that get no more blocks of a plan, each with its reason: a file in the folder of the
// cells. The node writes it when it finds itself unfit, or the coordinator when blocks fail there.

/// Bytes of a reason.
const WHY_MOST: u64 = 4096;
/// The folder of all reasons, in that of the cells.
pub(super) const FOLDER: &str = "unfit";

/// Unfit nodes as far as they are known.
pub(super) struct UnfitNodes {
    folder: PathBuf,
    reasons: BTreeMap<String, String>,
}

impl UnfitNodes {
    /// Begins without any: those of an earlier sitting may be mended.
    ///
    /// # Errors
    /// Earlier ones cannot be forgotten.
    pub(super) fn open(cells: &OwnFolder) -> Result<UnfitNodes> {
        let folder = cells.path().join(FOLDER);
        cells.remove_below(&folder)?;
        Ok(UnfitNodes { folder, reasons: BTreeMap::new() })
    }

    /// The nodes that have become unfit since the last call.
    ///
    /// # Errors
    /// A reason cannot be read.
    pub(super) fn new_ones(&mut self) -> Result<Vec<String>> {
        let all = reasons(&self.folder)?;
        let is_new = |node: &&String| !self.reasons.contains_key(*node);
        let found = all.keys().filter(is_new).cloned().collect();
        self.reasons.extend(all);
        Ok(found)
    }

    /// Declares a node unfit; [`UnfitNodes::new_ones`] returns it next.
    ///
    /// # Errors
    /// The reason cannot be written.
    pub(super) fn declare(&self, node: &str, why: &str) -> Result<()> {
        let what = || format!("write down that the node {node} is unfit");
        if !is_node(node) {
            bail!("{}: it has no plain name", what());
        }
        safe_path::make_folder(&self.folder).with_context(what)?;
        replace_whole(&self.folder.join(node), format!("{why}\n")).with_context(what)
    }

    pub(super) fn reason(&self, node: &str) -> Option<&str> {
        self.reasons.get(node).map(String::as_str)
    }

    /// All of them.
    pub(super) fn names(&self) -> Vec<String> {
        self.reasons.keys().cloned().collect()
    }
}

/// True for a name that a node can have: others would be options, or lists of nodes.
pub(super) fn is_node(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_part)
}

/// The unfit nodes of a folder of cells, with their reasons.
///
/// # Errors
/// A reason cannot be read.
pub(super) fn all(cells: &Path) -> Result<BTreeMap<String, String>> {
    reasons(&cells.join(FOLDER))
}

fn reasons(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for node in entries(folder)?.into_iter().filter(|node| is_node(node)) {
        // Nodes write it.
        let why = beneath::beginning(&folder.join(&node), WHY_MOST).unwrap_or_default();
        // A node may still be writing it.
        if !why.trim().is_empty() {
            found.insert(node, why.trim().to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str, reason: &str, left: &str) -> QueuedTask {
        QueuedTask {
            job: "17_3".to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
            node: "n1".to_owned(),
            limit: "2:00".to_owned(),
            left: left.to_owned(),
            ..QueuedTask::default()
        }
    }

    #[test]
    fn a_time_limit_is_told_and_no_reason_to_start_again() {
        let stopped = format!(": failed to {STOPPED}");
        let stopped = stopped.as_str();
        for (state, left, said, part, again) in [
            ("TIMEOUT", "0:00", "", "job 17_3 on n1 reached its time limit (2:00)\nhint: ", false),
            ("FAILED", "1:10", stopped, "on n1 shortly before its time limit (2:00)\nhint", false),
            ("FAILED", "1:00:00", stopped, "a signal stopped job 17_3 on n1, though", true),
            ("FAILED", "UNLIMITED", stopped, "a signal stopped job 17_3 on n1, though", true),
            ("FAILED", "1:10", ": no space", "job 17_3 ended with FAILED on n1: no space", true),
            ("NODE_FAIL", "1:10", "", "job 17_3 ended with NODE_FAIL on n1", true),
        ] {
            let (why, retried) = why_ended(&task(state, "None", left), said);
            assert!(why.contains(part) && retried == again, "{state}: {why}");
        }
    }

    #[test]
    fn what_keeps_a_job_waiting_is_told_if_somebody_must_act() {
        for (reason, part) in [
            ("JobHeldUser", "hint: `scontrol release 17_3`"),
            ("launch_failed_requeued_held", "hint: `scontrol release 17_3`"),
            ("ReqNodeNotAvail, UnavailableNodes:n1", "no node can take job 17 now (ReqNodeNot"),
            ("Nodes required for job are DOWN, DRAINED or reserved", "no node can take job 17 now"),
            ("PartitionTimeLimit", "the partition never starts job 17 (PartitionTimeLimit)"),
        ] {
            let said = held_up(&task("PENDING", reason, "2:00")).unwrap();
            assert!(said.contains(part), "{reason}: {said}");
        }
        for reason in ["None", "Resources", "Priority", "BeginTime"] {
            assert_eq!(held_up(&task("PENDING", reason, "2:00")), None);
        }
    }

    #[test]
    fn neighbours_are_told_as_a_range() {
        assert_eq!(named(&[3]), "block 3");
        assert_eq!(named(&[7, 2, 1, 4, 3]), "blocks 1 to 4, 7");
    }
}

#[cfg(test)]
mod unfit_nodes_tests {
    use super::*;
    use rqps_host::lock::MarkKey;

    #[test]
    fn each_node_is_told_once_and_forgotten_by_the_next_sitting() {
        let folder = tempfile::tempdir().unwrap();
        let key = MarkKey::open(None).unwrap();
        let cells = key.claim(&folder.path().join(".cells")).unwrap();
        let mut nodes = UnfitNodes::open(&cells).unwrap();
        assert_eq!(nodes.new_ones().unwrap(), [""; 0]);
        nodes.declare("n2", "its disk is full").unwrap();
        nodes.declare("n1", "sick").unwrap();
        assert_eq!(nodes.new_ones().unwrap(), ["n1", "n2"]);
        assert_eq!(nodes.new_ones().unwrap(), [""; 0]);
        assert_eq!(nodes.reason("n2"), Some("its disk is full"));
        assert_eq!(UnfitNodes::open(&cells).unwrap().new_ones().unwrap(), [""; 0]);
    }
}
