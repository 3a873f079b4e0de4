//! Hosts that carry clients, each with this rqps: those that ssh reaches, or this one.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::lab::client_nodes::ClientNodes;
use crate::lab::driver_proxy::CarrierHost;
use crate::lab::progress::Progress;
use crate::lab::ssh::{self, PreparedHost, SocketFolder, shell_word};
use crate::plan::StepFile;
use rqps_host::child::{self, ChildTask};
use rqps_host::host;

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
    /// read. One rqps at a time does so for the result folder `out`.
    ///
    /// # Errors
    /// One cannot be reached, cannot run this rqps, or lacks a file.
    pub(super) fn open(
        (names, ssh_config): (&[String], Option<&Path>),
        (out, program, files): (&Path, &Path, &[StepFile]),
        progress: &mut Progress<'_>,
    ) -> Result<DriverHosts> {
        let out = std::path::absolute(out).context("find the result folder")?;
        let of = [out.as_os_str().as_encoded_bytes(), b" clients"].concat();
        let sockets = SocketFolder::make(&of)?;
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
    pub(super) fn of_job(nodes: ClientNodes, files: &[StepFile]) -> Result<DriverHosts> {
        for (place, name) in nodes.names().iter().enumerate() {
            let run = |script: &str| nodes.run(place, script);
            files.iter().try_for_each(|file| check_file((name, &run), file))?;
        }
        Ok(DriverHosts::Slurm(nodes))
    }

    /// The hosts that ssh reaches; empty for others.
    pub(super) fn by_ssh(&self) -> &[PreparedHost] {
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
                // What a request calls a path begins in the root folder: driver_proxy/permit.rs.
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
