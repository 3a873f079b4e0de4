//! Executors measure blocks: each takes a block specification and returns a report.

mod cells;
mod elsewhere;
mod job_script;
mod leftovers;
mod life_line;
mod local;
mod open;
mod seam;
mod server_host;
mod slurm;
mod slurm_batches;
mod slurm_block;
mod slurm_queue;
mod ssh;
mod status;
mod unfit_nodes;

pub use elsewhere::{RemoteHosts, SlurmPartition, SshHosts, Transport};
pub use leftovers::clear_block;
pub(super) use leftovers::{BlockFolder, check_can_keep};
pub use life_line::{STOPPED, stop_with_input};
pub(super) use local::LocalExecutor;
pub use open::preview;
pub(super) use open::{check, open};
pub(super) use seam::{BlockEnd, Executor};
pub(super) use slurm_queue::parsed as queued_task;
pub use status::{BlockState, PlanStatus, status};
