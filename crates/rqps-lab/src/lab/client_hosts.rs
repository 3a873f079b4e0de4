//! Hosts that carry the clients of every step, while servers are on this one. This rqps starts
//! their drivers by ssh, or asks the rqps that has sent it a block.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::lab::driver_process::DriverProcess;
use crate::lab::driver_proxy::{CarrierHost, ClientLine};
use crate::lab::driver_team::{AwayDriver, DriverTeam};
use crate::lab::progress::Progress;
use crate::lab::ssh::{self, PreparedHost, SocketFolder, SshLink, shell_word};
use crate::plan::StepFile;
use rqps_dbms::{ControlPlane, ListenAddress};
use rqps_driver::request::{AwayClients, DriverRequest, RequestBody, StepRequest};
use rqps_driver::turns::token::TurnRules;
use rqps_host::child::{self, ChildTask};
use rqps_host::{command_output, host, user};
use rqps_model::host::HostsOfClients;

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
        (program, files): (&Path, &[StepFile]),
        progress: &mut Progress<'_>,
    ) -> Result<Option<ClientHosts>> {
        let Some(asked) = asked else { return Ok(None) };
        let password = user::password().context("make a password")?;
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
            None => DriverHosts::open((&asked.hosts, way.ssh_config), (program, files), progress)?,
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
                DriverProcess::started(hosts.driver(place)?, Some(host), request, log)
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
            None => (own_address(variable)?, "Slurm"),
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

// Hosts that carry clients, each with this rqps: those that ssh reaches, or this one.

/// Folder for data that take long to make, in the folder of rqps on a host.
const DATASETS: &str = "datasets";
/// Time limit for the answer of a host on the same network.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hosts on which drivers run.
pub(super) enum DriverHosts {
    /// This host, by this program, with this cache.
    Here { program: PathBuf, cache: PathBuf },
    /// Hosts that ssh reaches, and the folder for its sockets.
    Ssh { hosts: Vec<PreparedHost>, _sockets: SocketFolder },
    /// Nodes of the job of this block.
    Slurm(ClientNodes),
}

impl DriverHosts {
    /// Connects to hosts, copies rqps there, and checks that they have the `files` that drivers
    /// read.
    ///
    /// # Errors
    /// One cannot be reached, cannot run this rqps, or lacks a file.
    pub(super) fn open(
        (names, ssh_config): (&[String], Option<&Path>),
        (program, files): (&Path, &[StepFile]),
        progress: &mut Progress<'_>,
    ) -> Result<DriverHosts> {
        let sockets = SocketFolder::make()?;
        let folder = sockets.path().to_owned();
        // Whatever fails from here on, what is open is closed.
        let mut opened = DriverHosts::Ssh { hosts: Vec::new(), _sockets: sockets };
        let name = ssh::program_name(&ssh::digest_of(program)?);
        for host in names {
            let there = (host.as_str(), ssh_config, folder.as_path());
            let prepared = PreparedHost::open(there, (program, name.as_str()), progress)
                .with_context(|| format!("use the client host {host}"))?;
            if let DriverHosts::Ssh { hosts, .. } = &mut opened {
                hosts.push(prepared);
            }
        }
        for host in opened.by_ssh() {
            let run = |script: &str| host.link.run(script);
            files.iter().try_for_each(|file| check_file((&host.link.host, &run), file))?;
        }
        Ok(opened)
    }

    /// The nodes that Slurm has given this job for its clients; checks that they have the `files`
    /// that drivers read.
    ///
    /// # Errors
    /// This is no such job, or a node lacks a file.
    fn of_job(nodes: ClientNodes, files: &[StepFile]) -> Result<DriverHosts> {
        for (place, name) in nodes.names().iter().enumerate() {
            let run = |script: &str| nodes.run(place, script);
            files.iter().try_for_each(|file| check_file((name, &run), file))?;
        }
        Ok(DriverHosts::Slurm(nodes))
    }

    /// The hosts that ssh reaches; empty for others.
    fn by_ssh(&self) -> &[PreparedHost] {
        match self {
            DriverHosts::Here { .. } | DriverHosts::Slurm(_) => &[],
            DriverHosts::Ssh { hosts, .. } => hosts,
        }
    }

    /// Name and folder for data sets of each host.
    pub(super) fn carriers(&self) -> Vec<CarrierHost> {
        match self {
            DriverHosts::Here { cache, .. } => {
                vec![CarrierHost { name: host::name(), datasets: cache.join(DATASETS) }]
            }
            DriverHosts::Ssh { hosts, .. } => {
                let carrier = |host: &PreparedHost| CarrierHost {
                    name: host.link.host.clone(),
                    datasets: Path::new(&host.folder).join(DATASETS),
                };
                hosts.iter().map(carrier).collect()
            }
            DriverHosts::Slurm(nodes) => {
                let datasets = nodes.cache.join(DATASETS);
                let carrier =
                    |name: &String| CarrierHost { name: name.clone(), datasets: datasets.clone() };
                nodes.names().iter().map(carrier).collect()
            }
        }
    }

    /// Checks that each host can connect to an address at which servers will listen.
    ///
    /// # Errors
    /// One does not reach it.
    pub(super) fn check_reach(&self, at: SocketAddr) -> Result<()> {
        let reached = |name: &str, reached: Result<()>| {
            let reached =
                reached.with_context(|| format!("reach {} from the client host {name}", at.ip()));
            reached.map_err(|error| {
                anyhow!(
                    "{error:#}\nhint: open the firewall between both, or give another address with \
                     --server-address"
                )
            })
        };
        match self {
            DriverHosts::Here { .. } => {
                let answer = TcpStream::connect_timeout(&at, PATIENCE).map(drop);
                reached(&host::name(), answer.context("connect"))
            }
            DriverHosts::Ssh { hosts, .. } => hosts.iter().try_for_each(|host| {
                let script = format!("exec {} client-host {at}", host.program);
                reached(&host.link.host, host.link.run(&script).map(drop))
            }),
            DriverHosts::Slurm(nodes) => match nodes.check_reach(&at.to_string()) {
                Ok(()) => Ok(()),
                Err((name, error)) => reached(&name, Err(error)),
            },
        }
    }

    /// The command of a driver on the host at that place, not started. The driver ends when its
    /// standard input does.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(super) fn driver(&self, place: usize) -> Result<Command> {
        match self {
            DriverHosts::Here { program, .. } => {
                let mut command = child::command(program, ChildTask::Library);
                // What a request calls a path begins in the root folder: driver_proxy.rs.
                command.arg("driver").current_dir("/");
                Ok(command)
            }
            DriverHosts::Ssh { hosts, .. } => {
                let Some(host) = hosts.get(place) else { bail!("find the host {place}") };
                host.link.restore()?;
                // Within a shell, because ssh reports a killed driver like a cut connection.
                Ok(host.link.talk(&format!("cd / && {} driver; exit $?", host.program)))
            }
            DriverHosts::Slurm(nodes) => nodes.driver(place),
        }
    }
}

/// Runs a shell script on a host and returns its output.
type OnHost<'a> = &'a dyn Fn(&str) -> Result<String>;

/// Checks that a host has a file at the same path, with the same content if its hash is known.
fn check_file((name, run): (&str, OnHost<'_>), file: &StepFile) -> Result<()> {
    let path = file.path.display();
    let word = shell_word(&file.path.to_string_lossy());
    let script = match &file.sha256 {
        Some(_) => format!("if [ -r {word} ]; then sha256sum < {word}; fi"),
        None => format!("if [ -r {word} ]; then echo yes; fi"),
    };
    let said = run(&script).with_context(|| format!("look for {path} on {name}"))?;
    let sum = said.split_whitespace().next();
    match (sum, &file.sha256) {
        (None, _) => bail!(
            "read {path} on the client host {name}: it cannot be read there\nhint: copy it to the \
             same path on {name}"
        ),
        (Some(sum), Some(known)) if sum != known => bail!(
            "read {path} on the client host {name}: it differs from the file on this host\nhint: \
             copy it from here to the same path on {name}"
        ),
        _ => Ok(()),
    }
}

impl Drop for DriverHosts {
    fn drop(&mut self) {
        self.by_ssh().iter().for_each(|host| host.link.close());
    }
}

// Nodes of Slurm that carry the clients of a block: the second part of its heterogeneous job, the
// first part of which is the node of the servers.

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
    fn of_job(
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
fn own_address(variable: Variable) -> Result<IpAddr> {
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
