//! What `--server-host` adds to a host that measures blocks: the clients of its servers are on this
//! host, or on hosts that this one reaches.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};

use crate::domain::client_hosts::HostsOfClients;
use crate::lab::driver_hosts::DriverHosts;
use crate::lab::execution::ExecutionOptions;
use crate::lab::far::FarHost;
use crate::lab::progress::Progress;
use crate::lab::relay::ClientSide;
use crate::plan::{Plan, step_files};

const HINT: &str = "hint: --server-address ADDRESS names an address of the server host that \
                    clients reach";

/// Who carries the clients of a server host.
pub(super) struct Clients {
    /// The hosts, which start drivers.
    pub(super) hosts: Arc<DriverHosts>,
    /// What the server host is told of them.
    pub(super) side: ClientSide,
}

/// The hosts of a plan whose servers are on another host than rqps, and not their clients.
pub(super) fn asked(plan: &Plan) -> Option<&HostsOfClients> {
    plan.workload.client_hosts.as_ref().filter(|hosts| hosts.server_host.is_some())
}

impl Clients {
    /// Brings rqps to the client hosts, and has each connect to the server host once. `None` if the
    /// plan has its clients where its servers are.
    ///
    /// # Errors
    /// A client host cannot be used, or does not reach the server host.
    pub(super) fn open(
        server: &FarHost,
        options: &ExecutionOptions,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Clients>> {
        let ExecutionOptions { plan, out, program, cache, ssh_config, .. } = options;
        let Some(asked) = asked(plan) else { return Ok(None) };
        let hosts = match asked.hosts.is_empty() {
            true => DriverHosts::Here { program: program.clone(), cache: cache.clone() },
            false => DriverHosts::open(
                (&asked.hosts, ssh_config.as_deref()),
                (out, program, &step_files(plan)),
                progress,
            )?,
        };
        let address = choose_address(asked, server)?;
        progress.doing(&server.link.host, "try the network", None);
        try_out(server, address, &hosts)?;
        let side = ClientSide { address, hosts: hosts.carriers() };
        Ok(Some(Clients { hosts: Arc::new(hosts), side }))
    }
}

/// The address that the user gave, or that by which ssh reaches the host.
fn choose_address(asked: &HostsOfClients, server: &FarHost) -> Result<IpAddr> {
    if let Some(text) = &asked.server_address {
        let address = text.parse::<IpAddr>();
        return address.map_err(|_| anyhow!("use --server-address {text}: no IP address\n{HINT}"));
    }
    let said = server.link.run("echo \"$SSH_CONNECTION\"")?;
    let address = said.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    address.with_context(|| {
        format!(
            "choose an address for servers: {} does not report by which one ssh reaches it\n{HINT}",
            server.link.host
        )
    })
}

/// Listens at the address on the server host while client hosts connect to it.
fn try_out(server: &FarHost, address: IpAddr, clients: &DriverHosts) -> Result<()> {
    let name = &server.link.host;
    let at = SocketAddr::new(address, 0);
    let mut command =
        server.link.talk(&format!("exec {} client-host --listen {at}", server.program));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("start ssh")?;
    let input = child.stdin.take();
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said).context("read from ssh")?;
    }
    let reached = match said.trim().parse::<SocketAddr>() {
        Ok(at) => clients.look_at(at),
        Err(_) => {
            let mut why = String::new();
            if let Some(errors) = child.stderr.take() {
                BufReader::new(errors).read_to_string(&mut why).context("read from ssh")?;
            }
            let why = why.trim().trim_start_matches("rqps: ").to_owned();
            Err(anyhow!("have servers listen at {address} on {name}: {why}\n{HINT}"))
        }
    };
    // It listens until then.
    drop(input);
    child.wait().context("wait for ssh")?;
    reached
}
