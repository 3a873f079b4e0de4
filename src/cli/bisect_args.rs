//! The command line of `rqps bisect`.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use crate::cli::folder_args::Folders;
use crate::cli::rule_args::RuleOptions;
use crate::cli::workload_args::WorkloadArgs;

#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// Baseline and candidate: two releases of a DBMS, between which `rqps builds` knows others; or
    /// three or more targets in their order
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub targets: Vec<String>,
    /// Step that changed
    #[arg(long, value_name = "NAME", required_unless_present = "resume")]
    pub step: Option<String>,
    /// Metric to search by: instr/o, instr_bg/o, o/s, server_cpu_us/o or client_cpu_us/o [default:
    /// the one that shows the difference best]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Resume the interrupted bisection in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["targets", "step", "metric", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: run the SQL and the scripts that its plan brings, although nobody has named
    /// them on a command line of this host
    #[arg(long, requires = "resume")]
    pub allow_scripts: bool,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: BisectFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BisectFormat {
    Text,
    Markdown,
    Json,
}

/// Hides the options of workloads that a bisection decides itself.
pub(super) fn hide_options_without_effect(arg: Arg) -> Arg {
    let own = [
        "steps",
        "blocks",
        "min_blocks",
        "max_blocks",
        "budget",
        "loads",
        "server_host",
        "client_nodes",
    ];
    let hidden = own.contains(&arg.get_id().as_str());
    arg.hide(hidden)
}
