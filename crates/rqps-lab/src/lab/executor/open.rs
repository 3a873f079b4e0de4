//! From where blocks go to what carries them there.

use std::path::Path;

use anyhow::Result;

use super::cells::Cells;
use super::elsewhere::{RemoteHosts, Transport};
use super::seam::Executor;
use super::slurm::{self, SlurmExecutor};
use super::slurm_queue;
use super::ssh::{self, SshExecutor};
use crate::lab::execution::{Execution, ExecutionOptions};
use crate::lab::progress::Progress;
use crate::plan::Plan;

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
