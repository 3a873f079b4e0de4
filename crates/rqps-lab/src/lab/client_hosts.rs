//! Hosts that carry the clients of every step, while servers are on this one. This rqps starts
//! their drivers by ssh, or asks the rqps that has sent it a block.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};

use crate::lab::client_nodes::{self, ClientNodes};
use crate::lab::driver_hosts::DriverHosts;
use crate::lab::driver_process::DriverProcess;
use crate::lab::driver_proxy::{CarrierHost, ClientLine};
use crate::lab::driver_team::{AwayDriver, DriverTeam};
use crate::lab::progress::Progress;
use crate::lab::ssh::SshLink;
use crate::plan::StepFile;
use rqps_dbms::{ControlPlane, ListenAddress};
use rqps_driver::request::{AwayClients, DriverRequest, RequestBody, StepRequest};
use rqps_driver::turns::token::TurnRules;
use rqps_host::secret;
use rqps_model::client_hosts::HostsOfClients;

/// The client hosts of a plan, each with this rqps.
pub(super) struct ClientHosts {
    asked: HostsOfClients,
    starter: Starter,
    hosts: Vec<CarrierHost>,
    /// The address of this host at which servers listen for them.
    address: IpAddr,
    /// The password of logins by TCP: new in each run of rqps, and never written to disk.
    password: String,
}

/// The rqps that starts drivers there.
enum Starter {
    /// This rqps.
    Own(DriverHosts),
    /// The one at the other end.
    Line(Arc<ClientLine>),
}

/// The way to the client hosts: by ssh, or through another rqps.
pub(super) struct WayToClients<'a> {
    /// A configuration file of ssh instead of the user's.
    pub(super) ssh_config: Option<&'a Path>,
    /// The line to the rqps that starts drivers instead of this one.
    pub(super) line: Option<&'a Arc<ClientLine>>,
    /// Folder for data that take long to make, on nodes of Slurm.
    pub(super) cache: &'a Path,
    /// Looks a name up in the environment, where Slurm tells a job its nodes.
    pub(super) variable: fn(&str) -> Option<String>,
}

impl ClientHosts {
    /// Connects to all client hosts, copies rqps there, and checks that they reach this host and
    /// have the `files` that drivers read; another rqps has done so if it starts the drivers.
    /// `None` if clients run on this host.
    ///
    /// # Errors
    /// One cannot be reached, cannot run this rqps, does not reach this host, or lacks a file. The
    /// plan has its servers on another host.
    pub(super) fn open(
        (asked, way): (Option<&HostsOfClients>, WayToClients<'_>),
        (out, program, files): (&Path, &Path, &[StepFile]),
        progress: &mut Progress<'_>,
    ) -> Result<Option<ClientHosts>> {
        let Some(asked) = asked else { return Ok(None) };
        let password = secret::password().context("make a password")?;
        if let Some(line) = way.line {
            let side = line.side()?;
            TcpListener::bind((side.address, 0)).with_context(|| {
                format!("have servers listen at {}: it is no address of this host", side.address)
            })?;
            return Ok(Some(ClientHosts {
                asked: asked.clone(),
                starter: Starter::Line(Arc::clone(line)),
                hosts: side.hosts,
                address: side.address,
                password,
            }));
        }
        if let Some(server) = &asked.server_host {
            bail!("run servers on {server}: this rqps runs them on its own host");
        }
        let hosts = match asked.nodes {
            Some(count) => {
                progress.doing("", "reach the nodes of the clients", None);
                let nodes = ClientNodes::of_job((count, way.variable), (program, way.cache))?;
                DriverHosts::of_job(nodes, files)?
            }
            None => {
                DriverHosts::open((&asked.hosts, way.ssh_config), (out, program, files), progress)?
            }
        };
        let address = choose_address(asked, &hosts, way.variable)?;
        check_reach(address, &hosts)?;
        Ok(Some(ClientHosts {
            asked: asked.clone(),
            hosts: hosts.carriers(),
            starter: Starter::Own(hosts),
            address,
            password,
        }))
    }

    /// Starts the drivers of a step: each host gets its share of the `shared` clients, as far as
    /// they go. `None`: the first host carries out the step alone.
    ///
    /// # Errors
    /// A host cannot be reached, or other hosts cannot reach the target.
    pub(super) fn start(
        &self,
        (request, shared): (&DriverRequest, Option<u32>),
        control: &dyn ControlPlane,
        logs: &Path,
    ) -> Result<DriverTeam> {
        let RequestBody::Step(step) = &request.task else {
            bail!("start clients: the request is not a step")
        };
        let (endpoint, login) = control.far_endpoint().context(
            "start clients on other hosts: the target listens at no address that they reach",
        )?;
        let mut drivers = Vec::new();
        let mut first = 0;
        let shares =
            shared.map_or_else(|| vec![step.clients], |clients| self.asked.shares(clients));
        let of = shares.iter().sum();
        let with_clients = self.hosts.iter().zip(shares).filter(|(_, clients)| *clients > 0);
        for (place, (host, clients)) in with_clients.enumerate() {
            let own_step = StepRequest {
                clients,
                server_pid: None,
                cache: Some(host.datasets.clone()),
                ..step.as_ref().clone()
            };
            let own = DriverRequest {
                endpoint: endpoint.clone(),
                login: login.clone(),
                task: RequestBody::Step(Box::new(own_step)),
                away: Some(AwayClients { first, of }),
                pause: true,
                ..request.clone()
            };
            let log = logs.join(format!("driver-{}.log", place + 1));
            let process = self
                .driver((place, &host.name), &own, &log)
                .with_context(|| format!("start a driver on the client host {}", host.name))?;
            drivers.push(AwayDriver::new(process, &host.name, clients));
            first += clients;
        }
        Ok(DriverTeam::away(drivers))
    }

    /// Starts a driver that keeps turns, on the only client host.
    ///
    /// # Errors
    /// The host cannot be reached, or there are several.
    pub(super) fn keep_turns(&self, rules: &TurnRules, log: &Path) -> Result<DriverProcess> {
        let [host] = self.hosts.as_slice() else {
            bail!("take turns on {} client hosts: only one host can keep them", self.hosts.len())
        };
        self.driver((0, &host.name), &DriverRequest::keep_turns(rules.clone()), log)
    }

    fn driver(
        &self,
        (place, host): (usize, &str),
        request: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        match &self.starter {
            Starter::Own(hosts) => {
                DriverProcess::spawn_on((hosts.driver(place)?, host), request, log)
            }
            Starter::Line(line) => DriverProcess::ask_for(line, (place, host), request),
        }
    }

    /// The address for a new server to listen at, with a port that is free now.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn listen(&self) -> Result<ListenAddress> {
        let port = listener_at(self.address)?.1.port();
        Ok(ListenAddress { ip: self.address, port, password: self.password.clone() })
    }
}

/// Chooses the address of this host at which servers listen, and checks that it is one.
fn choose_address(
    asked: &HostsOfClients,
    hosts: &DriverHosts,
    variable: fn(&str) -> Option<String>,
) -> Result<IpAddr> {
    let (address, seen_by) = match hosts.by_ssh().first() {
        Some(first) => {
            let address = choose(asked, &first.link, ServersOn::ThisHost)?;
            (address, first.link.host.as_str())
        }
        None => match given(asked, ServersOn::ThisHost)? {
            Some(address) => (address, "Slurm"),
            None => (client_nodes::own_address(variable)?, "Slurm"),
        },
    };
    TcpListener::bind((address, 0)).map(|_| address).map_err(|error| {
        let hint = ServersOn::ThisHost.hint();
        match &asked.server_address {
            Some(_) => anyhow!(
                "use --server-address {address} on this host: it cannot listen there: \
                 {error}\n{hint}"
            ),
            None => anyhow!(
                "choose an address for servers: {seen_by} sees this host as {address}, where this \
                 host cannot listen: {error}\n{hint}"
            ),
        }
    })
}

/// Checks that each host can connect to this one.
fn check_reach(address: IpAddr, hosts: &DriverHosts) -> Result<()> {
    // It listens while they try.
    let (_listener, at) = listener_at(address)?;
    hosts.check_reach(at)
}

/// A free port of an address, and who listens there.
fn listener_at(address: IpAddr) -> Result<(TcpListener, SocketAddr)> {
    let what = || format!("find a free port of {address}");
    let listener = TcpListener::bind((address, 0)).with_context(what)?;
    let at = listener.local_addr().with_context(what)?;
    Ok((listener, at))
}

/// The host of the servers, by its end of a connection of ssh.
#[derive(Clone, Copy)]
pub(super) enum ServersOn {
    /// This host, which connects to a client host.
    ThisHost,
    /// The host that ssh reaches.
    ReachedHost,
}

impl ServersOn {
    /// The advice for an address that cannot be used.
    pub(super) fn hint(self) -> &'static str {
        match self {
            ServersOn::ThisHost => {
                "hint: --server-address ADDRESS names an address of this host that client hosts \
                 reach"
            }
            ServersOn::ReachedHost => {
                "hint: --server-address ADDRESS names an address of the server host that clients \
                 reach"
            }
        }
    }

    /// The address of the servers' host in SSH_CONNECTION: address and port of the end that
    /// connects, then of the other end.
    fn address_in(self, connection: &str) -> Option<IpAddr> {
        let place = match self {
            ServersOn::ThisHost => 0,
            ServersOn::ReachedHost => 2,
        };
        connection.split_whitespace().nth(place)?.parse().ok()
    }
}

/// The address that the user gave, if any.
///
/// # Errors
/// It is no IP address.
pub(super) fn given(asked: &HostsOfClients, servers_on: ServersOn) -> Result<Option<IpAddr>> {
    let Some(text) = &asked.server_address else { return Ok(None) };
    let hint = servers_on.hint();
    let address = text.parse::<IpAddr>();
    address.map(Some).map_err(|_| anyhow!("use --server-address {text}: no IP address\n{hint}"))
}

/// The address that the user gave, or that of the servers' host on the connection of ssh.
///
/// # Errors
/// The user gave no IP address, or the other host does not answer or does not know the connection.
pub(super) fn choose(
    asked: &HostsOfClients,
    link: &SshLink,
    servers_on: ServersOn,
) -> Result<IpAddr> {
    let hint = servers_on.hint();
    if let Some(address) = given(asked, servers_on)? {
        return Ok(address);
    }
    let connection = link.run("echo \"$SSH_CONNECTION\"")?;
    servers_on.address_in(&connection).with_context(|| {
        format!(
            "choose an address for servers: {} does not report the addresses of its ssh \
             connection\n{hint}",
            link.host
        )
    })
}

#[cfg(test)]
mod tests {
    use super::ServersOn::{ReachedHost, ThisHost};

    #[test]
    fn servers_are_at_one_end_of_the_connection() {
        let check = |connection: &str, expected: [Option<&str>; 2]| {
            let found = [ThisHost, ReachedHost].map(|host| host.address_in(connection));
            assert_eq!(found, expected.map(|it| it.map(|it| it.parse().unwrap())), "{connection}");
        };
        check("10.0.0.1 4000 10.0.0.2 22\n", [Some("10.0.0.1"), Some("10.0.0.2")]);
        check("fd00::1 4000 fd00::2 22\n", [Some("fd00::1"), Some("fd00::2")]);
        check("10.0.0.1\n", [Some("10.0.0.1"), None]);
        check("UNKNOWN 65535 UNKNOWN 65535\n", [None, None]);
        check("\n", [None, None]);
    }
}
