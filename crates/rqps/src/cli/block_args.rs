//! The command lines of `rqps block` and of what clears up after it.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(super) struct BlockArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Folder for the runs and the report
    #[arg(long)]
    pub out: PathBuf,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: Option<PathBuf>,
    /// Name of this host in a pool: then the folder of --work is shared with other blocks
    #[arg(long, requires = "work")]
    pub node: Option<String>,
    /// Stop when standard input ends, because the process that started this one is gone
    #[arg(long)]
    pub life_line: bool,
    /// The same, and ask that process for drivers on standard output
    #[arg(long, conflicts_with = "life_line")]
    pub client_line: bool,
    /// Cache of builds and data sets
    #[arg(long, env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
    /// Measure it without an executor if all that it would use has this hash
    #[arg(long, value_name = "HASH")]
    pub allow: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CheckNodeArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Name of this host in the pool
    #[arg(long)]
    pub node: String,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
    /// Folder that all hosts of the pool share
    #[arg(long)]
    pub pool: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ClearBlockArgs {
    /// The block's folder for runs and report
    pub out: PathBuf,
    /// The block's folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
}
