//! The hosts that `--on` names.

use std::path::PathBuf;

use crate::plan::Plan;

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
    pub(super) fn features(&self) -> Option<String> {
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
