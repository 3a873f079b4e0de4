//! Executors measure blocks: each takes a block specification and returns a report.

mod cells;
mod slurm;
mod slurm_jobs;
mod slurm_queue;
mod ssh;

pub use cells::clear_block;
pub(super) use cells::{BlockFolder, check_can_keep};
pub(super) use slurm_queue::parsed as queued_task;

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, thread};

use anyhow::{Context, Result};
use cells::Cells;
use slurm::SlurmExecutor;
use ssh::SshExecutor;

use crate::lab::block;
use crate::lab::canaries::CanaryReader;
use crate::lab::execution::{Execution, ExecutionOptions};
use crate::lab::prepare::{self, TargetState};
use crate::lab::progress::Progress;
use crate::plan::{BlockSpec, Plan, cost, file};
use rqps_host::disk;
use rqps_model::host::Session;
use rqps_model::run::{BLOCK_FORMAT, BlockReport};
use rqps_results::ResultSet;

/// Measures blocks, here or elsewhere. The coordinator keeps `gate.json` and decides which block
/// counts; an executor sees to it that the run folders of a block are in the result folder when its
/// report comes.
pub(crate) trait Executor {
    /// Takes blocks on. A block that was taken on before, by an earlier rqps too, stays one block.
    ///
    /// # Errors
    /// This executor cannot carry them out.
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()>;

    /// Waits for the end of a block; `None` if no block is under way. When the user stops, it
    /// returns soon, with the report of an interrupted block or without.
    ///
    /// # Errors
    /// No target can be loaded, or a folder cannot be written. A fault of one target is no error:
    /// it is in the record of its run and in the report.
    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>>;

    /// True if other hosts measure: they load for each block, and may still be at one that an
    /// earlier rqps handed out.
    fn is_elsewhere(&self) -> bool {
        true
    }

    /// Removes what is no result: the plan is done.
    ///
    /// # Errors
    /// A folder cannot be removed.
    fn clear(&mut self) -> Result<()>;
}

/// The end of a block, or of several for the same reason.
pub(crate) enum BlockEnd {
    /// It was measured; its runs are in the result folder.
    Measured(Box<BlockReport>),
    /// No report came: a host or a job failed. A resumed plan measures these blocks.
    Lost {
        /// The ids of the blocks.
        ids: Vec<String>,
        /// Why, for the user.
        fault: String,
    },
}

/// Other hosts, and what rqps does there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHosts {
    /// The way to send blocks there.
    pub way: Transport,
    /// Folder on each host for data and snapshots; `None` for /var/tmp.
    pub work: Option<PathBuf>,
    /// Cache of builds on each host; `None` for the default of the user there.
    pub cache: Option<PathBuf>,
}

/// The way to send blocks to other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Slurm: one job for each block, on nodes that share a file system with this host.
    Slurm(SlurmPartition),
    /// The system's ssh: each of these hosts measures one block at a time.
    Ssh(SshHosts),
}

/// Nodes of a Slurm cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmPartition {
    /// Name of the partition.
    pub partition: String,
    /// Features that a node must have, as `sbatch --constraint` takes them: the class of hosts.
    pub constraint: Option<String>,
    /// Features that nodes of clients must have.
    pub client_constraint: Option<String>,
    /// Nodes that each block gets for its clients, beside that of its servers.
    pub client_nodes: Option<u32>,
    /// More words for `sbatch`: an account, a time limit.
    pub options: Vec<String>,
}

impl SlurmPartition {
    /// All features that nodes must have, for messages.
    fn features(&self) -> Option<String> {
        let all: Vec<&str> = [&self.constraint, &self.client_constraint]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect();
        (!all.is_empty()).then(|| all.join("` or `"))
    }
}

/// Hosts that ssh reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshHosts {
    /// As ssh takes them: `user@host` or a name of its configuration.
    pub hosts: Vec<String>,
    /// A configuration file instead of the user's.
    pub config: Option<PathBuf>,
}

impl RemoteHosts {
    /// The same hosts, with the nodes that a plan has for its clients.
    pub(in crate::lab) fn for_plan(&self, plan: &Plan) -> RemoteHosts {
        let mut place = self.clone();
        if let Transport::Slurm(slurm) = &mut place.way {
            slurm.client_nodes = plan.workload.client_hosts.as_ref().and_then(|it| it.nodes);
        }
        place
    }

    /// Hosts that measure this number of blocks at the same time. How many nodes a queue has free
    /// is not known beforehand; the first blocks will tell.
    pub(in crate::lab) fn hosts_at_once(&self, blocks: usize) -> usize {
        match &self.way {
            Transport::Slurm(_) => blocks,
            Transport::Ssh(ssh) => ssh.hosts.len().min(blocks),
        }
    }

    /// The folder for data on each host.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.work.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"))
    }
}

/// Looks whether the hosts are there, before anything is made. Returns the memory of the host, if
/// ssh reaches only one.
///
/// # Errors
/// No host of that class, or none that answers.
pub(in crate::lab) fn check(
    place: &RemoteHosts,
    options: &ExecutionOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<u64>> {
    match &place.way {
        Transport::Slurm(slurm) => {
            let script = slurm::preview((place, slurm), (&options.out, &options.program), 1)?;
            slurm_queue::try_out(&script, slurm.features().as_deref(), &slurm.partition)?;
            Ok(None)
        }
        Transport::Ssh(hosts) => ssh::check((hosts, options), progress),
    }
}

/// The executor of these hosts.
///
/// # Errors
/// The cells cannot be made, or the hosts do not answer.
pub(in crate::lab) fn open<'e>(
    execution: &'e Execution<'_>,
    place: &'e RemoteHosts,
    progress: &mut Progress<'_>,
) -> Result<Box<dyn Executor + 'e>> {
    let options = execution.options;
    let cells = Cells::open(&execution.results, &options.program, &options.mark_key)?;
    match &place.way {
        Transport::Slurm(slurm) => {
            Ok(Box::new(SlurmExecutor::open((place, slurm), cells, &options.stop)?))
        }
        Transport::Ssh(hosts) => {
            Ok(Box::new(SshExecutor::open((place, hosts), cells, options, progress)?))
        }
    }
}

/// The job script of a plan, for review; `None` where there is none.
///
/// # Errors
/// The program cannot be read.
pub fn preview(
    place: &RemoteHosts,
    (results, program): (&Path, &Path),
    plan: &Plan,
) -> Result<Option<String>> {
    let (place, blocks) = (&place.for_plan(plan), plan.blocks.most());
    match &place.way {
        Transport::Slurm(slurm) => {
            slurm::preview((place, slurm), (results, program), blocks).map(Some)
        }
        Transport::Ssh(_) => Ok(None),
    }
}

/// The progress of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStatus {
    /// Blocks of the plan, by number, as far as they were begun.
    pub blocks: BTreeMap<u32, BlockState>,
    /// Blocks of the plan in all.
    pub planned: u32,
    /// Nodes that get no more blocks, with their reasons.
    pub unfit: BTreeMap<String, String>,
}

/// The known state of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Its runs are in the result folder. Name of its host, if it is known.
    Measured(Option<String>),
    /// Measured again: the host was disturbed.
    Discarded,
    /// It was measured, and no rqps has taken its runs yet.
    Returned,
    /// A host has begun with it, and it has not come to its end.
    Begun,
    /// No host has begun with it.
    Waiting,
}

/// Reads the progress of the plan in this result folder.
///
/// # Errors
/// It is no result folder.
pub fn status(results: &Path) -> Result<PlanStatus> {
    let set = ResultSet::open(results)?;
    let plan: Plan = file::parse(&set.plan()?).context("read its plan")?;
    let mut blocks = BTreeMap::new();
    for begun in set.gate()?.map(|gate| gate.blocks).unwrap_or_default() {
        let state = match &begun.session {
            Some(_) if begun.discarded => BlockState::Discarded,
            Some(session) => BlockState::Measured(session.node.clone()),
            None => {
                let name = format!("{:04}-{}", begun.block, begun.attempt);
                of_cell(&cells::path_of(results)?.join(name))
            }
        };
        blocks.insert(begun.block, state);
    }
    let unfit = slurm_jobs::all(&cells::path_of(results)?)?;
    Ok(PlanStatus { blocks, planned: plan.blocks.most(), unfit })
}

fn of_cell(cell: &Path) -> BlockState {
    let entries = fs::read_dir(cell).into_iter().flatten().flatten();
    let starts: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    match starts.iter().any(|start| start.join("block.json").exists()) {
        _ if starts.is_empty() => BlockState::Waiting,
        true => BlockState::Returned,
        false => BlockState::Begun,
    }
}

/// Error of a block that was stopped. Reads after "failed to".
pub const STOPPED: &str = "measure the block to its end: stopped by a signal";

/// Sets `stop` when standard input ends: the connection was cut, or the rqps at its other end is
/// gone. Nothing is read from it.
///
/// # Errors
/// No thread can be started.
pub fn stop_with_input(stop: &Arc<AtomicBool>) -> Result<()> {
    let stop = Arc::clone(stop);
    let watch = move || {
        let mut ignored = [0; 256];
        // An error is an end, too.
        while stdin().lock().read(&mut ignored).is_ok_and(|count| count > 0) {}
        stop.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().name("life line".to_owned()).spawn(watch).context("start a thread")?;
    Ok(())
}

// Measures blocks on this host, one at a time, in this process.

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
        let plan = self.execution.plan;
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
        let canaries = cost::canaries(self.execution.plan).filter(|_| reference.is_some());
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
