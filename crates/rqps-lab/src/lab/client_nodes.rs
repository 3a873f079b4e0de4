//! Nodes of Slurm that carry the clients of a block: the second part of its heterogeneous job, the
//! first part of which is the node of the servers.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

/// The nodes of the second part, as Slurm writes lists of nodes.
const NODES_VARIABLE: &str = "SLURM_JOB_NODELIST_HET_GROUP_1";
/// The name of the node on which this process runs.
const OWN_NODE: &str = "SLURMD_NODENAME";

/// Looks a name up in the environment.
type Variable = fn(&str) -> Option<String>;

/// The nodes of the clients.
pub(super) struct ClientNodes {
    names: Vec<String>,
    /// This rqps, at the same path on all nodes.
    program: PathBuf,
    /// The folder for data that take long to make, at the same path on all nodes.
    pub(super) cache: PathBuf,
}

impl ClientNodes {
    /// The nodes that Slurm has given this job.
    ///
    /// # Errors
    /// This is no such job, or it has another number of nodes.
    pub(super) fn of_job(
        (count, variable): (u32, Variable),
        (program, cache): (&Path, &Path),
    ) -> Result<ClientNodes> {
        let Some(list) = variable(NODES_VARIABLE) else {
            bail!(
                "run clients on {count} nodes of Slurm: this is no job with nodes for \
                 clients\nhint: use --on slurm:PARTITION"
            )
        };
        let mut command = child::command("scontrol", ChildTask::Submit);
        command.args(["show", "hostnames", &list]);
        let names: Vec<String> = asked(command)?.split_whitespace().map(str::to_owned).collect();
        if names.len() != count as usize {
            bail!("run clients on {count} nodes of Slurm: this job has {list} for them");
        }
        Ok(ClientNodes { names, program: program.to_owned(), cache: cache.to_owned() })
    }

    /// Names of the nodes.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// A driver on the node at that place, not started. It ends when its standard input does.
    ///
    /// # Errors
    /// There are fewer nodes.
    pub(super) fn driver(&self, place: usize) -> Result<Command> {
        let node =
            self.names.get(place).with_context(|| format!("find the client node {place}"))?;
        let mut command = on(node);
        command.arg(&self.program).arg("driver");
        Ok(command)
    }

    /// Checks that each node can connect to an address: the name of the first that cannot, and why.
    pub(super) fn check_reach(&self, at: &str) -> Result<(), (String, anyhow::Error)> {
        self.names.iter().try_for_each(|node| {
            let mut command = on(node);
            command.arg(&self.program).args(["client-host", at]);
            asked(command).map(drop).map_err(|error| (node.clone(), error))
        })
    }

    /// The output of a shell script on the node at that place.
    ///
    /// # Errors
    /// It fails, or does not end.
    pub(super) fn run(&self, place: usize, script: &str) -> Result<String> {
        let node =
            self.names.get(place).with_context(|| format!("find the client node {place}"))?;
        let mut command = on(node);
        command.args(["sh", "-c", script]);
        asked(command)
    }
}

/// Runs a program on a node of the second part, beside others, on all of its CPUs.
fn on(node: &str) -> Command {
    let mut command = child::command("srun", ChildTask::Submit);
    command.args(["--het-group=1", "--nodes=1", "--ntasks=1", "--overlap", "--cpu-bind=none"]);
    command.args(["--unbuffered", "--quiet", "--nodelist", node, "--"]);
    command
}

fn asked(command: Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command_output::run(command).map_err(|why| anyhow!("start {program}: {why}"))?;
    if said.success() { Ok(said.output) } else { bail!("{}", said.complaint()) }
}

/// The address by which Slurm reaches the node on which this process runs.
///
/// # Errors
/// This is no job, or the address cannot be found.
pub(super) fn own_address(variable: Variable) -> Result<IpAddr> {
    let node = variable(OWN_NODE)
        .with_context(|| format!("choose an address for servers: {OWN_NODE} is not set"))?;
    let mut command = child::command("scontrol", ChildTask::Submit);
    command.args(["--oneliner", "show", "node", &node]);
    let said = asked(command).context("choose an address for servers")?;
    let name = said.split_whitespace().find_map(|word| word.strip_prefix("NodeAddr="));
    let name = name.unwrap_or(&node);
    let found = (name, 0).to_socket_addrs();
    let found = found.with_context(|| format!("find the address of {name}"))?.next();
    found.map(|at| at.ip()).with_context(|| format!("find the address of {name}: it has none"))
}
