//! Executors measure blocks: each takes a block specification and returns a report.

mod cells;
mod job_script;
mod leftovers;
mod local;
mod server_host;
mod slurm;
mod slurm_batches;
mod slurm_block;
mod slurm_queue;
mod ssh;
mod unfit_nodes;

pub use leftovers::clear_block;
pub(super) use leftovers::{BlockFolder, check_can_keep};
pub(super) use local::LocalExecutor;
pub(super) use slurm_queue::parsed as queued_task;

use std::collections::BTreeMap;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use anyhow::{Context, Result};
use cells::Cells;
use slurm::SlurmExecutor;
use ssh::SshExecutor;

use crate::lab::execution::{Execution, ExecutionOptions};
use crate::lab::progress::Progress;
use crate::plan::{BlockSpec, Plan, file};
use rqps_model::block::BlockReport;
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
    let unfit = unfit_nodes::all(&cells::path_of(results)?)?;
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
