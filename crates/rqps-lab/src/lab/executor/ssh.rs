//! Measures blocks on hosts that ssh reaches, one block at a time on each.
//!
//! The connection is the life line: `rqps block` there ends, with its servers, when its standard
//! input does. So nothing runs on when this rqps is killed or the connection is cut. With
//! `--server-host` the block asks over the same connection for drivers, which run elsewhere.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::benchmarks::lua;
use crate::lab::client_hosts::{self, DriverHosts, ServersOn};
use crate::lab::driver_proxy::{ClientSide, DriverProxy, Permit};
use crate::lab::execution::ExecutionOptions;
use crate::lab::executor::cells::{self, Cell, Cells};
use crate::lab::executor::{BlockEnd, Executor, RemoteHosts, SshHosts};
use crate::lab::progress::Progress;
use crate::lab::ssh::{
    self, CONNECTION_FAILED, PreparedHost, SocketFolder, SshLink, quoted, shell_word,
};
use crate::plan::{BlockSpec, Plan, step_files};
use rqps_host::command_output::{gather, joined};
use rqps_host::{beneath, host};
use rqps_model::host::HostsOfClients;
use rqps_model::safe_path;

/// Starts of a block on hosts that failed; then it is given up.
const TRIES: u32 = 3;
/// Failures in a row after which a host gets no more blocks.
const HOST_TRIES: u32 = 2;
/// Between two looks at the hosts.
const LOOK: Duration = Duration::from_millis(100);
/// Time for a block to stop its servers when the user stops.
const STOPPING: Duration = Duration::from_secs(60);

/// The executor of hosts that ssh reaches.
pub(crate) struct SshExecutor<'e> {
    place: &'e RemoteHosts,
    cells: Cells,
    options: &'e ExecutionOptions,
    hosts: Vec<SshHost>,
    /// The hosts that carry clients; `None` for the hosts of the servers.
    clients: Option<Clients>,
    waiting: VecDeque<Waiting>,
    ready: VecDeque<BlockEnd>,
    sockets: SocketFolder,
    starts: u32,
}

/// A block that no host is at.
struct Waiting {
    cell: Cell,
    tries: u32,
    /// Places of the hosts that failed it.
    failed_on: Vec<usize>,
}

/// A host and the block that it measures.
struct SshHost {
    prepared: PreparedHost,
    busy: Option<Busy>,
    failures: u32,
}

struct Busy {
    block: Waiting,
    child: Child,
    /// Drivers for it.
    proxy: Option<DriverProxy>,
    /// The folder of the block there.
    folder: String,
    log: PathBuf,
    start: String,
}

impl<'e> SshExecutor<'e> {
    /// Reaches all hosts and brings rqps to those that do not have it.
    ///
    /// # Errors
    /// A host cannot be reached, or rqps does not run there.
    pub(crate) fn open(
        (place, ssh): (&'e RemoteHosts, &'e SshHosts),
        cells: Cells,
        options: &'e ExecutionOptions,
        progress: &mut Progress<'_>,
    ) -> Result<SshExecutor<'e>> {
        let sockets = SocketFolder::make()?;
        let mut executor = SshExecutor {
            place,
            cells,
            options,
            hosts: Vec::new(),
            clients: None,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            sockets,
            starts: 0,
        };
        for host in &ssh.hosts {
            let there = (host.as_str(), ssh.config.as_deref(), executor.sockets.path());
            let program = (executor.cells.program.as_path(), executor.cells.program_name());
            let prepared = PreparedHost::open(there, (program.0, &program.1), progress)?;
            executor.hosts.push(SshHost { prepared, busy: None, failures: 0 });
        }
        if let Some(server) = executor.hosts.first() {
            executor.clients = Clients::open(&server.prepared, options, progress)?;
        }
        Ok(executor)
    }

    fn class(&self) -> String {
        let hosts: Vec<&str> =
            self.hosts.iter().map(|host| host.prepared.link.host.as_str()).collect();
        format!("ssh:{}", hosts.join(","))
    }

    /// Gives blocks to hosts that have none.
    fn hand_out(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        for place in 0..self.hosts.len() {
            let host = &self.hosts[place];
            if host.busy.is_some() || host.failures >= HOST_TRIES {
                continue;
            }
            let fits = |block: &Waiting| !block.failed_on.contains(&place);
            let others = self.hosts.iter().filter(|host| host.failures < HOST_TRIES).count() > 1;
            let found = self.waiting.iter().position(|block| !others || fits(block));
            let Some(block) = found.and_then(|found| self.waiting.remove(found)) else { continue };
            self.starts += 1;
            let start = format!("{}.{}", std::process::id(), self.starts);
            let host = &self.hosts[place];
            let folder = format!("{}/{}", host.prepared.folder, block.cell.id);
            let log = self.cells.folder_of(&block.cell).join("log");
            let about = (&block.cell, folder.as_str(), start.as_str(), &log);
            match start_block(host, (self.place, self.clients.as_ref()), about) {
                Ok((child, proxy)) => {
                    let busy = Busy { block, child, proxy, folder, log, start };
                    self.hosts[place].busy = Some(busy);
                }
                Err(error) => self.failed(place, block, format!("{error:#}"), progress),
            }
        }
        Ok(())
    }

    /// A host failed a block: another host gets it, if there is one.
    fn failed(
        &mut self,
        place: usize,
        mut block: Waiting,
        why: String,
        progress: &mut Progress<'_>,
    ) {
        let host = &mut self.hosts[place];
        host.failures += 1;
        let number = block.cell.spec.block;
        let fault = format!("block {number}: on {}: {why}", host.prepared.link.host);
        if host.failures == HOST_TRIES {
            progress.note(&format!("{} gets no more blocks", host.prepared.link.host));
        }
        block.tries += 1;
        block.failed_on.push(place);
        let is_any_left = self.hosts.iter().any(|host| host.failures < HOST_TRIES);
        if block.tries > TRIES || !is_any_left {
            let ids = vec![block.cell.spec.id.clone()];
            self.ready.push_back(BlockEnd::Lost { ids, fault });
            return;
        }
        progress.note(&fault);
        self.waiting.push_front(block);
    }

    /// Takes in what has ended.
    fn gather(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        for place in 0..self.hosts.len() {
            let host = &mut self.hosts[place];
            let Some(busy) = &mut host.busy else { continue };
            busy.proxy.iter_mut().for_each(DriverProxy::give_sign);
            let Some(status) = busy.child.try_wait().context("look at ssh")? else { continue };
            let Some(busy) = host.busy.take() else { continue };
            let fetched = match status.code() {
                Some(CONNECTION_FAILED) => Err(anyhow::anyhow!("the connection was cut")),
                _ => self.fetch(place, &busy),
            };
            let taken = fetched.and_then(|()| self.cells.take(&busy.block.cell, &busy.log));
            match taken {
                Ok(Some(report)) => {
                    self.hosts[place].failures = 0;
                    self.ready.push_back(BlockEnd::Measured(Box::new(report)));
                }
                Ok(None) => {
                    let why = match cells::last_words(&busy.log) {
                        Some(said) if cells::complains(&busy.log) => said,
                        Some(said) => format!("rqps ended with {status}; its last line: {said}"),
                        None => format!("rqps ended with {status}"),
                    };
                    self.clear_up(place, &busy, progress);
                    self.failed(place, busy.block, why, progress);
                }
                Err(error) => {
                    self.clear_up(place, &busy, progress);
                    self.failed(place, busy.block, format!("{error:#}"), progress);
                }
            }
        }
        Ok(())
    }

    /// Brings what a block wrote, and removes it there.
    fn fetch(&self, place: usize, busy: &Busy) -> Result<()> {
        let host = &self.hosts[place];
        let there = format!("{}/{}", busy.folder, busy.start);
        let cell = self.cells.folder_of(&busy.block.cell);
        let partial = cell.with_extension("partial");
        let has_report = host
            .prepared
            .link
            .run(&format!("if [ -e {0}/block.json ]; then echo yes; fi", shell_word(&there)))?;
        if !has_report.trim().is_empty() {
            self.cells.own.remove_below(&partial)?;
            host.prepared.link.fetch(&there, &partial)?;
            safe_path::rename(&partial, &cell.join(&busy.start)).context("name what came back")?;
        }
        host.prepared.link.run(&format!("rm -rf {}", shell_word(&busy.folder)))?;
        Ok(())
    }

    /// Has a host remove what a block left there that brought no report, once it has ended: the
    /// next one needs the host.
    fn clear_up(&self, place: usize, busy: &Busy, progress: &mut Progress<'_>) {
        let host = &self.hosts[place].prepared;
        progress.doing(&host.link.host, "wait for the end of the block", None);
        let out = shell_word(&format!("{}/{}", busy.folder, busy.start));
        let work = quoted(&self.place.work_folder());
        let script = format!("exec {} clear-block {out} --work {work}", host.program);
        let cleared = host.link.restore().and_then(|()| host.link.run(&script));
        if let Err(error) = cleared {
            let name = &host.link.host;
            progress.note(&format!("what a block left on {name} may still be there: {error:#}"));
        }
    }

    /// Closes the life lines, and waits until the blocks have stopped their servers.
    fn end_all(&mut self) -> Result<()> {
        for busy in self.hosts.iter_mut().filter_map(|host| host.busy.as_mut()) {
            drop(busy.child.stdin.take());
            busy.proxy.iter().for_each(DriverProxy::hang_up);
        }
        let until = Instant::now() + STOPPING;
        for host in &mut self.hosts {
            let Some(mut busy) = host.busy.take() else { continue };
            while Instant::now() < until && busy.child.try_wait()?.is_none() {
                thread::sleep(LOOK);
            }
            // Without its connection the block there ends by itself.
            busy.child.kill().ok();
            busy.child.wait().context("wait for ssh")?;
            host.prepared.link.run(&format!("rm -rf {}", shell_word(&busy.folder))).ok();
        }
        Ok(())
    }
}

impl Drop for SshExecutor<'_> {
    fn drop(&mut self) {
        // On an error of the coordinator blocks may still be under way.
        self.end_all().ok();
        for host in &self.hosts {
            host.prepared.link.close();
        }
    }
}

impl Executor for SshExecutor<'_> {
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()> {
        let class = self.class();
        for spec in specs {
            let known = self.cells.id_of(&cells::name(&spec)).is_some();
            let cell = self.cells.write(spec, &class)?;
            let log = self.cells.folder_of(&cell).join("log");
            match known.then(|| self.cells.take(&cell, &log)).transpose()?.flatten() {
                Some(report) => self.ready.push_back(BlockEnd::Measured(Box::new(report))),
                None => self.waiting.push_back(Waiting { cell, tries: 1, failed_on: Vec::new() }),
            }
        }
        Ok(())
    }

    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>> {
        loop {
            if let Some(end) = self.ready.pop_front() {
                return Ok(Some(end));
            }
            if self.options.stop.load(Ordering::Relaxed) {
                progress.doing("", "stop the blocks", None);
                self.end_all()?;
                return Ok(None);
            }
            self.hand_out(progress)?;
            let running = self.hosts.iter().filter(|host| host.busy.is_some()).count();
            if running == 0 && self.ready.is_empty() {
                // Hosts that failed take none.
                let Some(block) = self.waiting.pop_front() else { return Ok(None) };
                let fault = format!("block {}: no host is left", block.cell.spec.block);
                return Ok(Some(BlockEnd::Lost { ids: vec![block.cell.spec.id], fault }));
            }
            progress.doing(
                "",
                &format!("blocks running: {running}, waiting: {}", self.waiting.len()),
                None,
            );
            self.gather(progress)?;
            thread::sleep(LOOK);
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.cells.clear()
    }
}

/// Looks whether each host answers and can run this program, and whether its clients reach it.
/// Returns the memory of the host, if it is the only one.
///
/// # Errors
/// It does not, or it is of another architecture.
pub(super) fn check(
    (ssh, options): (&SshHosts, &ExecutionOptions),
    progress: &mut Progress<'_>,
) -> Result<Option<u64>> {
    let sockets = SocketFolder::make()?;
    let mut memories = Vec::new();
    for host in &ssh.hosts {
        if hosts_of_clients(&options.plan).is_some() {
            let there = (host.as_str(), ssh.config.as_deref(), sockets.path());
            let name = ssh::program_name(&ssh::digest_of(&options.program)?);
            let prepared = PreparedHost::open(there, (&options.program, &name), progress)
                .with_context(|| format!("use the server host {host}"))?;
            let checked =
                Clients::open(&prepared, options, progress).and_then(|_| memory_of(&prepared.link));
            prepared.link.close();
            memories.push(checked?);
            continue;
        }
        let link = SshLink::open(host, ssh.config.as_deref(), sockets.path())?;
        let checked = ssh::check_machine(&link).and_then(|()| memory_of(&link));
        link.close();
        memories.push(checked?);
    }
    Ok(memories.first().copied().filter(|_| memories.len() == 1))
}

fn memory_of(link: &SshLink) -> Result<u64> {
    let said = link.run("cat /proc/meminfo")?;
    host::memory_in(&said).with_context(|| format!("read the memory of {}", link.host))
}

/// Starts a block on a host, and who starts drivers for it.
///
/// # Errors
/// The host does not answer, or has no space.
fn start_block(
    host: &SshHost,
    (place, clients): (&RemoteHosts, Option<&Clients>),
    (cell, folder, start, log): (&Cell, &str, &str, &PathBuf),
) -> Result<(Child, Option<DriverProxy>)> {
    let spec = shell_word(&format!("{folder}/spec.json"));
    let quoted_folder = shell_word(folder);
    let script = format!("rm -rf {quoted_folder} && mkdir -p {quoted_folder} && cat > {spec}");
    host.prepared.link.send(&script, cell.spec.print()?.as_bytes())?;
    // Several write to its end.
    let words = safe_path::create_file(log).and_then(|_| beneath::to_append(log));
    let words = words.with_context(|| format!("make {}", log.display()))?;
    let program = &host.prepared.program;
    let out = shell_word(&format!("{folder}/{start}"));
    let cache = place.cache.as_deref().map(|cache| format!(" --cache {}", quoted(cache)));
    let life_line = if clients.is_some() { "--client-line" } else { "--life-line" };
    // Within a shell, because ssh reports a killed block like a cut connection.
    let script = format!(
        "{program} block {spec} --out {out} {life_line} --node {} --work {}{}; exit $?",
        shell_word(&host.prepared.link.host),
        quoted(&place.work_folder()),
        cache.unwrap_or_default()
    );
    let Some(clients) = clients else {
        return Ok((host.prepared.link.start(&script, words)?, None));
    };
    let mut command = host.prepared.link.talk(&script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(words);
    let mut child = command.spawn().context("start ssh")?;
    ssh::bound_files(&child)?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let line = input.zip(output).context("ssh has no input or output")?;
    let proxy = DriverProxy::begin((&clients.hosts, &clients.side, &clients.permit), line, log)?;
    Ok((child, Some(proxy)))
}

// The clients of a host that measures blocks with `--server-host`: they are on this host, or on
// hosts that this one reaches.

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
fn hosts_of_clients(plan: &Plan) -> Option<&HostsOfClients> {
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
        let ExecutionOptions { plan, program, cache, ssh_config, .. } = options;
        let Some(asked) = hosts_of_clients(plan) else { return Ok(None) };
        let hosts = if asked.hosts.is_empty() {
            DriverHosts::Here { program: program.clone(), cache: cache.clone() }
        } else {
            DriverHosts::open(
                (&asked.hosts, ssh_config.as_deref()),
                (program, &step_files(plan)),
                progress,
            )?
        };
        let address = client_hosts::choose(asked, &server.link, ServersOn::ReachedHost)?;
        progress.doing(&server.link.host, "try the network", None);
        check_reach(server, address, &hosts)?;
        let side = ClientSide { address, hosts: hosts.carriers() };
        let files = step_files(plan).into_iter().map(|file| file.path);
        let shell = lua::settings::shape(&plan.workload).is_some_and(|shape| shape.shell);
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
    let (input, errors) = (child.stdin.take(), gather(child.stderr.take()));
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let read = || BufReader::new(output.take(SAID_MOST)).read_line(&mut said);
        ssh::listened(&mut child, read).context("read from ssh")?;
    }
    let reached = match said.trim().parse::<SocketAddr>() {
        Ok(at) => clients.check_reach(at),
        Err(_) => {
            let why = joined(errors).trim().trim_start_matches("rqps: ").to_owned();
            let hint = ServersOn::ReachedHost.hint();
            Err(anyhow!("have servers listen at {address} on {name}: {why}\n{hint}"))
        }
    };
    // It listens until then.
    drop(input);
    server.link.ended(&mut child, &|| false)?;
    reached
}
