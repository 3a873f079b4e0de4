//! Other hosts that measure: the options of `--on`, and the state of blocks there.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cli::args::{ClientHostArgs, Folders};
use crate::cli::effect::Effect;
use crate::cli::folders::{self, execution_options, program};
use crate::cli::parts::{HOSTS, WorkloadArgs};
use crate::cli::questions::{self, Origin};
use crate::cli::terminal::Display;
use crate::cli::{exit, own_workload};
use rqps_dbms as dbms;
use rqps_driver as driver;
use rqps_driver::Ending;
use rqps_host::{affinity, beneath, confinement, warden};
use rqps_lab::benchmarks::driver_parts;
use rqps_lab::lab::{
    self, Accepted, BlockState, ClientLine, ExecutionOptions, RemoteHosts, SlurmPartition,
    SshHosts, Transport, error_text,
};
use rqps_lab::plan::{BlockSpec, Plan};
use rqps_model::bounded;
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

// `rqps block`: measures one block of a specification. Executors start it; it is not for users.

/// Reads the block's specification file, measures the block, and writes run folders and
/// `block.json`.
pub(super) fn measure(words: &BlockArgs) -> Result<u8> {
    let path = &words.spec;
    let spec = read(path)?;
    own_workload::check_files(&spec.plan)?;
    let is_alive_by_input = words.life_line || words.client_line;
    // Whoever started the executor was asked.
    let accepted = if is_alive_by_input || words.node.is_some() {
        Accepted::default()
    } else {
        ask(&spec, words)?
    };
    if is_alive_by_input {
        // Another start of the block brings its own.
        std::fs::remove_file(path).with_context(|| format!("remove {}", path.display()))?;
    }
    let mut options = ExecutionOptions {
        cache: folders::cache(words.cache.as_deref()),
        work: words.work.clone(),
        accepted,
        ..execution_options(spec.plan.clone(), words.out.clone())?
    };
    if words.client_line {
        let (input, output) = (Box::new(io::stdin()), Box::new(io::stdout()));
        options.client_line = Some(ClientLine::open(&options.stop, input, output)?);
    }
    if words.life_line {
        lab::stop_with_input(&options.stop)?;
    }
    let mut display = Display::new();
    let node = words.node.as_deref();
    let report = lab::run_block(&options, (&spec, node), &mut |event| display.show(event));
    drop(display);
    if is_alive_by_input && options.stop.load(Ordering::Relaxed) {
        remove_interrupted(&options.out)?;
    }
    if !is_alive_by_input && options.stop.load(Ordering::Relaxed) {
        error!("rqps: failed to {}", lab::STOPPED);
    }
    let report = report.context("measure the block")?;
    for fault in &report.faults {
        error!("rqps: failed: {fault}");
    }
    Ok(match report.faults.is_empty() {
        _ if options.stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        true => exit::FINE,
        false => exit::RUN_FAILED,
    })
}

/// Asks before a block is measured that no executor has started: its file may be a stranger's.
fn ask(spec: &BlockSpec, words: &BlockArgs) -> Result<Accepted> {
    let mut effect = Effect::of(&spec.plan, None, None);
    for slot in &spec.targets {
        let config = &slot.config;
        if !dbms::config::is_shipped(
            slot.build.dbms,
            (&config.name, &config.text),
            &slot.build.version,
        ) {
            let name = format!("{} of {}", config.name, slot.build.dbms);
            effect.add_text("settings", name, &config.text);
        }
    }
    let (file, allow) = (words.spec.as_path(), words.allow.as_deref());
    questions::accept(effect, &Origin { file, allow, bundle: None, brings_configs: false })
}

fn read(path: &Path) -> Result<BlockSpec> {
    let text = bounded::text(path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read {}", path.display()))?;
    BlockSpec::parse(&text).with_context(|| format!("carry out {}", path.display()))
}

/// Checks whether this host can measure a block. If it cannot, prints why: the job that asks tells
/// others.
pub(super) fn check_node(words: &CheckNodeArgs) -> Result<u8> {
    let spec = read(&words.spec)?;
    match lab::check_node(&spec, &words.node, (&words.work, &words.pool)) {
        Ok(()) => Ok(exit::FINE),
        Err(unfit) => {
            out!("{}", error_text(&unfit));
            Ok(exit::RUN_FAILED)
        }
    }
}

/// Removes what nobody is there to fetch, and no other start of the block reads.
fn remove_interrupted(out: &Path) -> Result<()> {
    if out.is_dir() {
        // Whoever had the block started has named it for this start alone.
        beneath::remove_made(out, None).context("remove the interrupted block")?;
    }
    if let Some(around) = out.parent() {
        // Another start of the block may be in it already.
        std::fs::remove_dir(around).ok();
    }
    Ok(())
}

/// Removes what a block left that was started with the folder `out` of a pool, once it has ended.
pub(super) fn clear(words: &ClearBlockArgs) -> Result<u8> {
    lab::clear_block(&words.work, &words.out, &folders::mark_key()?).map(|()| exit::FINE)
}

#[derive(Debug, Args)]
pub(super) struct BlockArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Folder for the runs and the report
    #[arg(long)]
    pub out: PathBuf,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: Option<PathBuf>,
    /// Name of this host in a pool: then the folder of --work is shared with other blocks
    #[arg(long, requires = "work")]
    pub node: Option<String>,
    /// Stop when standard input ends, because the process that started this one is gone
    #[arg(long)]
    pub life_line: bool,
    /// The same, and ask that process for drivers on standard output
    #[arg(long, conflicts_with = "life_line")]
    pub client_line: bool,
    /// Cache of builds and data sets
    #[arg(long, env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
    /// Measure it without an executor if all that it would use has this hash
    #[arg(long, value_name = "HASH")]
    pub allow: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CheckNodeArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Name of this host in the pool
    #[arg(long)]
    pub node: String,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
    /// Folder that all hosts of the pool share
    #[arg(long)]
    pub pool: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ClearBlockArgs {
    /// The block's folder for runs and report
    pub out: PathBuf,
    /// The block's folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
}

// Commands for the processes that the lab starts; not for users.

/// Time limit for the answer of a host on the same network.
const PATIENCE: Duration = Duration::from_secs(10);

/// Carries out one request and ends the process, because client threads may still run.
pub(super) fn driver(memory_group: Option<&Path>) -> ExitCode {
    let (input, output) = match confinement::take_streams() {
        Ok(streams) => streams,
        Err(error) => {
            info!("failed to take over the standard streams: {error}");
            return ExitCode::FAILURE;
        }
    };
    match driver::main(&driver_parts(), BufReader::new(input), output, memory_group) {
        Ending::Done => ExitCode::SUCCESS,
        Ending::Failed | Ending::Abandoned => ExitCode::FAILURE,
    }
}

/// Looks whether this host reaches the one whose servers its clients will load; or lets others
/// look.
pub(super) fn client_host(words: &ClientHostArgs) -> Result<()> {
    let address = words.address;
    if words.listen {
        let what = || format!("listen at {}", address.ip());
        let listener = TcpListener::bind(address).with_context(what)?;
        out!("{}", listener.local_addr().with_context(what)?);
        io::copy(&mut io::stdin(), &mut io::sink()).context("read standard input")?;
        return Ok(());
    }
    let reached = TcpStream::connect_timeout(&address, PATIENCE).map(drop);
    reached.with_context(|| format!("connect to {address}"))
}

pub(super) fn warden() -> ExitCode {
    warden::main()
}

pub(super) fn sqlite_process() -> ExitCode {
    dbms::sqlite_process(io::stdin().lock(), io::stdout())
}

pub(super) fn rocksdb_process() -> ExitCode {
    dbms::rocksdb_process(io::stdin().lock(), io::stdout())
}

pub(super) fn spinner() -> Result<()> {
    affinity::serve(io::stdin(), &mut io::stdout()).context("keep CPUs awake")
}

/// Prints the declarations of a script or a program as JSON; errors go only to stderr.
pub(super) fn look(declared: Result<String, String>) -> ExitCode {
    match declared {
        Ok(declared) => {
            out!("{declared}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            info!("{fault}");
            ExitCode::FAILURE
        }
    }
}
