//! Other hosts that measure: the options of `--on`, and the state of blocks there.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cli::args::Folders;
use crate::cli::exit;
use crate::cli::folders::{self, program};
use crate::cli::parts::{HOSTS, WorkloadArgs};
use rqps_lab::lab::{self, BlockState, RemoteHosts, SlurmPartition, SshHosts, Transport};
use rqps_lab::plan::Plan;
use rqps_model::host::HostsOfClients;

/// Maximum number of blocks that a line names; it counts the rest.
const NAMED: usize = 12;

/// Hosts other than this one.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HOSTS)]
pub(super) struct HostArgs {
    /// Measure blocks on other hosts: slurm:PARTITION, or ssh:USER@HOST,USER@HOST2. --work and
    /// --cache are then folders on each of them [default of --work there: /var/tmp]
    #[arg(long, value_name = "HOSTS")]
    pub on: Option<String>,
    /// Class of hosts: features that nodes of Slurm must have, such as 'nvme&bare'
    #[arg(long, value_name = "FEATURES", requires = "on")]
    pub constraint: Option<String>,
    /// The same for the nodes of --client-nodes [default: any node of the partition]
    #[arg(long, value_name = "FEATURES", requires = "on")]
    pub client_constraint: Option<String>,
    /// Option to pass to sbatch, such as --sbatch=--time=120; repeatable
    #[arg(long = "sbatch", value_name = "OPTION", requires = "on", allow_hyphen_values = true)]
    pub sbatch: Vec<String>,
    /// Configuration file for ssh instead of your own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

/// The hosts that measure, and the way to reach them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hosts<'a> {
    /// The other hosts that measure blocks; `None` for this host.
    pub on: Option<&'a RemoteHosts>,
    /// Configuration file for ssh instead of the user's.
    pub ssh_config: Option<&'a Path>,
}

impl HostArgs {
    /// The same hosts with the given place for blocks.
    pub(super) fn hosts<'a>(&'a self, on: Option<&'a RemoteHosts>) -> Hosts<'a> {
        Hosts { on, ssh_config: self.ssh_config.as_deref() }
    }

    /// The other hosts that measure blocks; `None` for this host.
    ///
    /// # Errors
    ///
    /// The options contradict each other.
    pub(super) fn place(&self, folders: &Folders) -> Result<Option<RemoteHosts>> {
        let Some(word) = &self.on else { return Ok(None) };
        let way = match word.split_once(':') {
            Some(("slurm", partition)) if !partition.is_empty() => {
                if self.ssh_config.is_some() {
                    bail!("use --on {word}: --ssh-config is for ssh:HOST");
                }
                Transport::Slurm(SlurmPartition {
                    partition: partition.to_owned(),
                    constraint: self.constraint.clone(),
                    client_constraint: self.client_constraint.clone(),
                    client_nodes: None,
                    options: self.sbatch.clone(),
                })
            }
            Some(("ssh", hosts)) if !hosts.is_empty() => {
                if self.constraint.is_some()
                    || self.client_constraint.is_some()
                    || !self.sbatch.is_empty()
                {
                    bail!(
                        "use --on {word}: --constraint, --client-constraint and --sbatch are for \
                         slurm:PARTITION"
                    );
                }
                let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
                if let Some(bad) =
                    hosts.iter().find(|host| host.is_empty() || host.starts_with('-'))
                {
                    bail!("use --on {word}: `{bad}` is not a host");
                }
                Transport::Ssh(SshHosts { hosts, config: self.ssh_config.clone() })
            }
            _ => bail!(
                "use --on {word}: unknown form\nhint: slurm:PARTITION, or \
                 ssh:USER@HOST,USER@HOST2"
            ),
        };
        elsewhere(way, folders, &format!("--on {word}")).map(Some)
    }
}

/// Hosts with the folders that the user named for them by `option`.
fn elsewhere(way: Transport, folders: &Folders, option: &str) -> Result<RemoteHosts> {
    let (work, cache) = (folders.work.clone(), folders.cache.cache.clone());
    for folder in work.iter().chain(&cache) {
        if folder.is_relative() {
            bail!(
                "use {option}: {} is a relative path, and other hosts have no such folder\nhint: \
                 give absolute paths for --work and --cache",
                folder.display()
            );
        }
    }
    Ok(RemoteHosts { way, work, cache })
}

/// The hosts of clients and servers; `None` where both are here.
///
/// # Errors
/// An address without another host.
pub(super) fn of_roles(shape: &WorkloadArgs) -> Result<Option<HostsOfClients>> {
    let WorkloadArgs { client_hosts, client_nodes, server_address, server_host, .. } = shape;
    let (hosts, server_address) = (client_hosts.clone(), server_address.clone());
    let nodes = *client_nodes;
    match (hosts.is_empty() && nodes.is_none() && server_host.is_none(), &server_address) {
        (true, None) => Ok(None),
        (true, Some(address)) => bail!(
            "use --server-address {address}: clients and servers run on this host\nhint: \
             --client-host USER@HOST runs clients elsewhere, --server-host USER@HOST the servers"
        ),
        (false, _) => {
            let server_host = server_host.clone();
            Ok(Some(HostsOfClients { hosts, nodes, server_address, server_host }))
        }
    }
}

/// The host of the servers, as one that measures blocks; `None` if the plan names none.
///
/// # Errors
/// Blocks go to other hosts, too.
pub(super) fn of_servers(
    plan: &Plan,
    folders: &Folders,
    hosts: Hosts<'_>,
) -> Result<Option<RemoteHosts>> {
    let roles = plan.workload.client_hosts.as_ref();
    let Some(server) = roles.and_then(|roles| roles.server_host.clone()) else { return Ok(None) };
    let option = format!("--server-host {server}");
    if hosts.on.is_some() {
        bail!(
            "use {option} with --on: --on measures whole blocks on other hosts, clients \
             included\nhint: leave out --on, or the server host"
        );
    }
    let config = hosts.ssh_config.map(Path::to_owned);
    elsewhere(Transport::Ssh(SshHosts { hosts: vec![server], config }), folders, &option).map(Some)
}

/// Refuses nodes for clients without Slurm, and features of nodes that are not there.
///
/// # Errors
/// The options contradict each other.
pub(super) fn check_nodes(plan: &Plan, hosts: Hosts<'_>) -> Result<()> {
    let roles = plan.workload.client_hosts.as_ref();
    let nodes = roles.and_then(|roles| roles.nodes);
    let features = hosts.on.and_then(|on| match &on.way {
        Transport::Slurm(slurm) => slurm.client_constraint.as_ref(),
        Transport::Ssh(_) => None,
    });
    match (nodes, features) {
        (Some(_), _) if hosts.on.is_none() => refuse_server(plan, "rqps without --on"),
        (None, Some(features)) => bail!(
            "use --client-constraint {features}: no nodes are for clients\nhint: --client-nodes N"
        ),
        _ => Ok(()),
    }
}

/// Refuses a server host where a command measures here.
///
/// # Errors
/// The plan names one.
pub(super) fn refuse_server(plan: &Plan, command: &str) -> Result<()> {
    let roles = plan.workload.client_hosts.as_ref();
    if roles.is_some_and(|roles| roles.nodes.is_some()) {
        bail!(
            "run clients on nodes of Slurm: `{command}` measures on this host\nhint: leave out \
             --client-nodes, or use `rqps compare` with --on slurm:PARTITION"
        );
    }
    match roles.and_then(|roles| roles.server_host.as_ref()) {
        None => Ok(()),
        Some(server) => bail!(
            "run servers on {server}: `{command}` measures on this host\nhint: leave out \
             --server-host, or use `rqps compare`"
        ),
    }
}

/// Refuses an unused ssh configuration.
///
/// # Errors
///
/// Neither clients nor blocks use ssh.
pub(super) fn check_ssh_config(plan: &Plan, hosts: Hosts<'_>) -> Result<()> {
    if hosts.ssh_config.is_some() && hosts.on.is_none() && plan.workload.client_hosts.is_none() {
        bail!(
            "use --ssh-config: no option uses ssh\nhint: --client-host USER@HOST \
             for the clients, --server-host USER@HOST for the servers, or --on ssh:USER@HOST for \
             whole blocks"
        );
    }
    Ok(())
}

/// Lines of `rqps plan` about submitting the blocks; empty for this host.
///
/// # Errors
///
/// As [`HostArgs::place`].
pub(super) fn preview(plan: &Plan, hosts: &HostArgs, said: &Folders) -> Result<Vec<String>> {
    let Some(place) = hosts.place(said)? else { return Ok(Vec::new()) };
    let out = said.out.clone().unwrap_or_else(|| Path::new("rqps-results").join("NAME"));
    let script = lab::preview(&place, (&out, &program()?), plan)?;
    let Some(script) = script else { return Ok(Vec::new()) };
    let has_nodes = plan.workload.client_hosts.as_ref().is_some_and(|it| it.nodes.is_some());
    let head = if has_nodes {
        "one job of two parts for each block; `sbatch` gets this script for the first:"
    } else {
        "one job array, one block in each task; `sbatch` gets this script:"
    };
    let head = head.to_owned();
    Ok([head].into_iter().chain(script.lines().map(|line| format!("  {line}"))).collect())
}

/// `rqps run --status DIR`: prints the state of a result folder's blocks.
///
/// # Errors
///
/// It is not a result folder.
pub(super) fn status(results: &Path) -> Result<u8> {
    let status = lab::status(results).with_context(|| format!("look at {}", results.display()))?;
    type Named = (&'static str, fn(&BlockState) -> bool);
    let lines: [Named; 5] = [
        ("measured", |state| matches!(state, BlockState::Measured(_))),
        ("measured, results not yet fetched", |state| *state == BlockState::Returned),
        ("begun", |state| *state == BlockState::Begun),
        ("waiting", |state| *state == BlockState::Waiting),
        ("discarded, to be repeated", |state| *state == BlockState::Discarded),
    ];
    out!("{}: {} of {} blocks submitted", results.display(), status.blocks.len(), status.planned);
    for (name, holds) in lines {
        let blocks: Vec<String> = status
            .blocks
            .iter()
            .filter(|(_, state)| holds(state))
            .map(|(number, state)| match state {
                BlockState::Measured(Some(node)) => format!("{number} on {node}"),
                _ => number.to_string(),
            })
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let more = match blocks.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let named = blocks.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        out!("{:>6} {name}: {named}{more}", blocks.len());
    }
    for (node, why) in &status.unfit {
        out!("       {node} gets no more blocks: {}", why.replace('\n', "; "));
    }
    if folders::is_in_use(results) {
        out!("       an rqps is waiting for their results");
    }
    Ok(exit::FINE)
}
