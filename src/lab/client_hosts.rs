//! Hosts that carry the clients of every step, while servers are on this one.

use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::dbms::{ControlPlane, ListenAddress};
use crate::domain::client_hosts::HostsOfClients;
use crate::driver::request::{AwayClients, DriverRequest, RequestBody, StepRequest};
use crate::lab::driver_process::DriverProcess;
use crate::lab::driver_team::{AwayDriver, DriverTeam};
use crate::lab::far::{self, FarHost, shell_word};
use crate::lab::progress::Progress;
use crate::os::secret;
use crate::plan::StepFile;

/// The client hosts of a plan, each with this rqps.
pub(super) struct ClientHosts {
    asked: HostsOfClients,
    hosts: Vec<FarHost>,
    /// Where servers listen for them.
    address: IpAddr,
    /// What opens servers by TCP: of this sitting alone, and never written down.
    password: String,
    sockets: PathBuf,
}

impl ClientHosts {
    /// Connects to all client hosts, copies rqps there, and checks that they reach this host and
    /// have the `files` that drivers read. `None` if clients run on this host.
    ///
    /// # Errors
    /// One cannot be reached, cannot run this rqps, does not reach this host, or lacks a file.
    pub(super) fn open(
        (asked, ssh_config): (Option<&HostsOfClients>, Option<&Path>),
        (out, program, files): (&Path, &Path, &[StepFile]),
        progress: &mut Progress<'_>,
    ) -> Result<Option<ClientHosts>> {
        let Some(asked) = asked else { return Ok(None) };
        let out = std::path::absolute(out).context("find the result folder")?;
        let sockets = far::sockets(&[out.as_os_str().as_encoded_bytes(), b" clients"].concat())?;
        let name = far::program_name(&far::digest_of(program)?);
        let mut opened = ClientHosts {
            asked: asked.clone(),
            hosts: Vec::new(),
            address: IpAddr::from([127, 0, 0, 1]),
            password: secret::password().context("make a password")?,
            sockets: sockets.clone(),
        };
        for host in &asked.hosts {
            let there = (host.as_str(), ssh_config, sockets.as_path());
            let program = (program, name.as_str());
            let far = FarHost::open(there, program, progress)
                .with_context(|| format!("use the client host {host}"))?;
            opened.hosts.push(far);
        }
        for host in &opened.hosts {
            files.iter().try_for_each(|file| check_file(host, file))?;
        }
        opened.address = opened.choose_address(asked)?;
        opened.hosts.iter().try_for_each(|host| opened.look_back(host))?;
        Ok(Some(opened))
    }

    /// The address that the user gave, or that by which the first host sees this one.
    fn choose_address(&self, asked: &HostsOfClients) -> Result<IpAddr> {
        const HINT: &str = "hint: --server-address ADDRESS names an address of this host that \
                            client hosts reach";
        if let Some(text) = &asked.server_address {
            let address = text.parse::<IpAddr>().map_err(|_| anyhow!("no IP address"));
            let address = address.and_then(|address| {
                TcpListener::bind((address, 0)).map(|_| address).context("listen there")
            });
            return address
                .with_context(|| format!("use --server-address {text} on this host\n{HINT}"));
        }
        let Some(first) = self.hosts.first() else { bail!("choose an address: no client host") };
        let said = first.link.run("echo \"$SSH_CONNECTION\"")?;
        let address: Option<IpAddr> =
            said.split_whitespace().next().and_then(|word| word.parse().ok());
        match address {
            Some(address) if TcpListener::bind((address, 0)).is_ok() => Ok(address),
            Some(address) => bail!(
                "choose an address for servers: {} sees this host as {address}, which is not an \
                 address of this host\n{HINT}",
                first.link.host
            ),
            None => bail!(
                "choose an address for servers: {} does not report the address from which this \
                 host connects\n{HINT}",
                first.link.host
            ),
        }
    }

    /// Has a host connect to this one.
    fn look_back(&self, host: &FarHost) -> Result<()> {
        let name = &host.link.host;
        let what = || format!("reach {} from the client host {name}", self.address);
        let listener = TcpListener::bind((self.address, 0)).with_context(what)?;
        let at = listener.local_addr().with_context(what)?;
        let script = format!("exec {} client-host {at}", host.program);
        let reached = host.link.run(&script).map(drop).with_context(what);
        reached.map_err(|error| {
            anyhow!(
                "{error:#}\nhint: open the firewall between both, or give another address with \
                 --server-address"
            )
        })
    }

    /// Starts the drivers of a step; each host gets its share of the clients.
    ///
    /// # Errors
    /// A host cannot be reached, or other hosts cannot reach the target.
    pub(super) fn start(
        &self,
        job: &DriverRequest,
        control: &dyn ControlPlane,
        logs: &Path,
    ) -> Result<DriverTeam> {
        let RequestBody::Step(step) = &job.task else {
            bail!("start clients: the request is not a step")
        };
        let (endpoint, login) = control.far_endpoint().context(
            "start clients on other hosts: the target listens at no address that they reach",
        )?;
        let mut drivers = Vec::new();
        let mut first = 0;
        let shares = self.asked.shares(step.clients);
        for (number, (host, clients)) in (1..).zip(self.hosts.iter().zip(shares)) {
            let own = StepRequest {
                clients,
                server_pid: None,
                cache: Some(Path::new(&host.folder).join("datasets")),
                ..step.as_ref().clone()
            };
            let job = DriverRequest {
                endpoint: endpoint.clone(),
                login: login.clone(),
                task: RequestBody::Step(Box::new(own)),
                away: Some(AwayClients { first, of: step.clients }),
                pause: true,
                ..job.clone()
            };
            let log = logs.join(format!("driver-{number}.log"));
            let process = DriverProcess::spawn_on(host, &job, &log)?;
            drivers.push(AwayDriver::new(process, &host.link.host, clients));
            first += clients;
        }
        Ok(DriverTeam::Away(drivers))
    }

    /// Where a server is to listen: at a port that is free now.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn listen(&self) -> Result<ListenAddress> {
        let what = || format!("find a free port of {}", self.address);
        let listener = TcpListener::bind((self.address, 0)).with_context(what)?;
        let port = listener.local_addr().with_context(what)?.port();
        Ok(ListenAddress { ip: self.address, port, password: self.password.clone() })
    }
}

/// Checks that a host has a file at the same path, with the same content if its hash is known.
fn check_file(host: &FarHost, file: &StepFile) -> Result<()> {
    let (name, path) = (&host.link.host, file.path.display());
    let word = shell_word(&file.path.to_string_lossy());
    let script = match &file.sha256 {
        Some(_) => format!("if [ -r {word} ]; then sha256sum < {word}; fi"),
        None => format!("if [ -r {word} ]; then echo yes; fi"),
    };
    let said = host.link.run(&script).with_context(|| format!("look for {path} on {name}"))?;
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

impl Drop for ClientHosts {
    fn drop(&mut self) {
        self.hosts.iter().for_each(|host| host.link.close());
        // What is left of it is a socket of a connection that ends by itself.
        std::fs::remove_dir(&self.sockets).ok();
    }
}
