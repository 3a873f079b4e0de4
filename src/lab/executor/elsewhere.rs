//! The hosts that `--on` names.

use std::path::PathBuf;

/// Other hosts, and what rqps does there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The way to send blocks there.
    pub way: Way,
    /// Folder on each host for data and snapshots; `None` for /var/tmp.
    pub work: Option<PathBuf>,
    /// Cache of builds on each host; `None` for the default of the user there.
    pub cache: Option<PathBuf>,
}

/// The way to send blocks to other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
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
    /// More words for `sbatch`: an account, a time limit.
    pub options: Vec<String>,
}

/// Hosts that ssh reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshHosts {
    /// As ssh takes them: `user@host` or a name of its configuration.
    pub hosts: Vec<String>,
    /// A configuration file instead of the user's.
    pub config: Option<PathBuf>,
}

impl Elsewhere {
    /// The folder for data on each host.
    pub(super) fn work_folder(&self) -> PathBuf {
        self.work.clone().unwrap_or_else(|| PathBuf::from("/var/tmp"))
    }
}
