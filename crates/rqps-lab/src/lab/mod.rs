//! The lab carries out a plan: obtains builds, loads and snapshots each target, runs the blocks,
//! and writes run folders. It judges nothing and prints nothing; who watches gets [`Event`]s.

mod active_run;
mod block;
mod canaries;
mod canary_reader;
mod client_hosts;
mod client_nodes;
mod count;
mod driver_child;
mod driver_hosts;
mod driver_process;
mod driver_proxy;
mod driver_team;
mod execution;
mod executor;
pub mod fault;
pub mod fuzzing;
mod guest;
mod host_monitor;
mod memory;
mod node_check;
mod observe;
mod prepare;
mod process_turns;
mod progress;
mod resolve;
mod resume;
mod run_plan;
mod run_plan_on;
mod scheduler;
mod selection;
mod side_by_side;
mod sitting;
mod ssh;
mod step_runner;
mod take_in;
mod target_state;
mod turn_page;
mod turn_participant;
mod turns;
mod work_folders;

pub use driver_proxy::ClientLine;
pub use execution::{Accepted, ExecutionOptions, ExecutionSummary};
pub use executor::{
    BlockState, PlanStatus, RemoteHosts, STOPPED, SlurmPartition, SshHosts, Transport, clear_block,
    preview, status, stop_with_input,
};
pub use memory::check_together;
pub use node_check::check_node;
pub use progress::Event;
pub use resolve::open_cache;
pub use run_plan::{run_block, run_plan};
pub use run_plan_on::run_plan_on;
pub use scheduler::{Decider, Decision, UndecidedStep};
pub use work_folders::{HeldHost, HostLock};
