//! The lab carries out a plan: obtains builds, loads and snapshots each target, runs the blocks,
//! and writes run folders. It judges nothing and prints nothing; who watches gets [`Event`]s.

mod block;
mod canaries;
mod client_hosts;
mod count;
mod driver_process;
mod driver_proxy;
mod driver_team;
mod execution;
mod executor;
mod guest;
mod observe;
mod prepare;
mod process_turns;
mod progress;
mod run_plan;
mod scheduler;
mod ssh;
mod step_runner;
mod turns;

pub use canaries::check_node;
pub use driver_proxy::ClientLine;
pub use execution::{
    Accepted, ExecutionOptions, ExecutionSummary, HeldHost, HostLock, check_together,
};
pub use executor::{
    BlockState, PlanStatus, RemoteHosts, STOPPED, SlurmPartition, SshHosts, Transport, clear_block,
    preview, status, stop_with_input,
};
pub use prepare::open_cache;
pub use progress::{Event, error_text};
pub use run_plan::{run_block, run_plan, run_plan_on};
pub use scheduler::{Decider, Decision, UndecidedStep};

/// Entries for the fuzz targets (`fuzz/`): readers of what Slurm prints, of lines of the driver
/// proxy and of what a server host asks for, which are private otherwise. Nothing else calls them.
pub mod fuzzing {
    use std::path::{Path, PathBuf};

    use crate::lab::driver_proxy::{CarrierHost, ClientWord, Permit, ServerWord};
    use crate::lab::executor::queued_task;

    /// A line of the queue of Slurm: seconds that were left of its limit.
    pub fn queue_line(line: &str) -> Option<u64> {
        let task = queued_task(line)?;
        let _ = (task.array(), task.reason_words(), task.has_ended());
        task.seconds_left()
    }

    /// A line of one end of the proxy to the other: true if it is one.
    pub fn driver_proxy_line(line: &str) -> bool {
        serde_json::from_str::<ServerWord>(line).is_ok()
            || serde_json::from_str::<ClientWord>(line).is_ok()
    }

    /// True if a server host at 10.0.0.1 may have a driver carry out this request, where the plan has
    /// this file, and data sets lie in that folder.
    pub fn may_start(request: &str, file: &Path, datasets: &Path) -> bool {
        let permit = Permit::new([10, 0, 0, 1].into(), [PathBuf::from(file)].into_iter(), false);
        let host = CarrierHost { name: "h".to_owned(), datasets: datasets.to_owned() };
        permit.check(request, &host).is_ok()
    }
}
