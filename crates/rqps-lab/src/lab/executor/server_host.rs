//! The clients of a host that measures blocks with `--server-host`: they are on this host, or on
//! hosts that this one reaches.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};

use crate::benchmarks::lua;
use crate::lab::client_hosts::{self, ServersOn};
use crate::lab::driver_hosts::DriverHosts;
use crate::lab::driver_proxy::{ClientSide, Permit};
use crate::lab::execution::ExecutionOptions;
use crate::lab::progress::Progress;
use crate::lab::ssh::PreparedHost;
use crate::plan::{Plan, step_files};
use rqps_model::client_hosts::HostsOfClients;

/// Bytes that are read of what a host says when its network is tried.
const SAID_MOST: u64 = 64 << 10;

/// The hosts that carry the clients of a server host.
pub(super) struct Clients {
    /// The hosts, which start drivers.
    pub(super) hosts: Arc<DriverHosts>,
    /// Their hosts and the address of the servers, for the rqps on the server host.
    pub(super) side: ClientSide,
    /// What the rqps there may have done here.
    pub(super) permit: Arc<Permit>,
}

/// The client hosts of a plan whose servers are on another host than rqps; `None` if the plan has
/// its clients on the host of its servers.
pub(super) fn hosts_of_clients(plan: &Plan) -> Option<&HostsOfClients> {
    plan.workload.client_hosts.as_ref().filter(|hosts| hosts.server_host.is_some())
}

impl Clients {
    /// Brings rqps to the client hosts, and has each connect to the server host once. `None` if the
    /// plan has its clients where its servers are.
    ///
    /// # Errors
    /// A client host cannot be used, or does not reach the server host.
    pub(super) fn open(
        server: &PreparedHost,
        options: &ExecutionOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Clients>> {
        let ExecutionOptions { plan, out, program, cache, ssh_config, .. } = options;
        let Some(asked) = hosts_of_clients(plan) else { return Ok(None) };
        let hosts = if asked.hosts.is_empty() {
            DriverHosts::Here { program: program.clone(), cache: cache.clone() }
        } else {
            DriverHosts::open(
                (&asked.hosts, ssh_config.as_deref()),
                (out, program, &step_files(plan)),
                progress,
            )?
        };
        let address = client_hosts::choose(asked, &server.link, ServersOn::ReachedHost)?;
        progress.doing(&server.link.host, "try the network", None);
        check_reach(server, address, &hosts)?;
        let side = ClientSide { address, hosts: hosts.carriers() };
        let files = step_files(plan).into_iter().map(|file| file.path);
        let shell = lua::steps::shape(&plan.workload).is_some_and(|shape| shape.shell);
        let permit = Arc::new(Permit::new(address, files, shell));
        Ok(Some(Clients { hosts: Arc::new(hosts), side, permit }))
    }
}

/// Listens at the address on the server host while client hosts connect to it.
fn check_reach(server: &PreparedHost, address: IpAddr, clients: &DriverHosts) -> Result<()> {
    let name = &server.link.host;
    let at = SocketAddr::new(address, 0);
    let mut command =
        server.link.talk(&format!("exec {} client-host --listen {at}", server.program));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("start ssh")?;
    let input = child.stdin.take();
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output.take(SAID_MOST)).read_line(&mut said).context("read from ssh")?;
    }
    let reached = match said.trim().parse::<SocketAddr>() {
        Ok(at) => clients.check_reach(at),
        Err(_) => {
            let mut why = String::new();
            if let Some(errors) = child.stderr.take() {
                errors.take(SAID_MOST).read_to_string(&mut why).context("read from ssh")?;
            }
            let why = why.trim().trim_start_matches("rqps: ").to_owned();
            let hint = ServersOn::ReachedHost.hint();
            Err(anyhow!("have servers listen at {address} on {name}: {why}\n{hint}"))
        }
    };
    // It listens until then.
    drop(input);
    child.wait().context("wait for ssh")?;
    reached
}
