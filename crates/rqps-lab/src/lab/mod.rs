//! The lab carries out a plan: obtains builds, loads and snapshots each target, runs the blocks,
//! and writes run folders. It judges nothing and prints nothing; who watches gets [`Event`]s.

mod active_run;
mod block;
mod canaries;
mod canary_reader;
mod carry_elsewhere;
mod carry_out;
mod client_hosts;
mod client_nodes;
mod count;
mod driver_child;
mod driver_hosts;
mod driver_process;
mod driver_team;
mod execution;
mod executor;
mod far;
pub mod fault;
pub mod fuzzing;
mod guest;
mod host_monitor;
mod memory;
mod node_check;
mod observe;
mod prepare;
mod progress;
mod relay;
mod resolve;
mod resume;
mod scheduler;
mod selection;
mod side_by_side;
mod step_runner;
mod take_in;
mod target_state;
mod turn_page;
mod turn_taking;
mod turns;
mod work_folders;

pub use carry_elsewhere::carry_out_elsewhere;
pub use carry_out::{carry_out, carry_out_block};
pub use execution::{Accepted, ExecutionOptions, ExecutionSummary};
pub use executor::{
    BlockState, PlanStatus, RemoteHosts, STOPPED, SlurmPartition, SshHosts, Transport, clear_block,
    preview, status, stop_with_input,
};
pub use node_check::check_node;
pub use progress::Event;
pub use relay::ClientLine;
pub use resolve::open_cache;
pub use scheduler::{Decider, Decision, UndecidedStep};
pub use work_folders::{HeldHost, HostLock};
