//! Measures blocks on hosts that ssh reaches, one block at a time on each.
//!
//! The connection is the life line: `rqps block` there ends, with its servers, when its standard
//! input does. So nothing runs on when this rqps is killed or the connection is cut.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::cells::{self, Cell, Cells};
use super::elsewhere::{Elsewhere, SshHosts};
use super::job_script::{quoted, shell_word};
use super::seam::{BlockEnd, Executor};
use super::ssh_link::{CONNECTION_FAILED, SshLink};
use crate::lab::progress::Progress;
use crate::lab::work_folders::short_name;
use crate::os::host;
use crate::plan::BlockSpec;

/// Starts of a block on hosts that failed; then it is given up.
const TRIES: u32 = 3;
/// Failures in a row after which a host gets no more blocks.
const HOST_TRIES: u32 = 2;
/// Where sockets of connections are: a short path.
const SOCKETS: &str = "/tmp";
/// Between two looks at the hosts.
const LOOK: Duration = Duration::from_millis(100);
/// What a block has to stop its servers when the user stops.
const STOPPING: Duration = Duration::from_secs(60);

/// The executor of hosts that ssh reaches.
pub(crate) struct SshExecutor<'e> {
    place: &'e Elsewhere,
    cells: Cells,
    stop: &'e AtomicBool,
    hosts: Vec<SshHost>,
    waiting: VecDeque<Waiting>,
    ready: VecDeque<BlockEnd>,
    sockets: PathBuf,
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
    link: SshLink,
    /// Folder there for rqps and blocks, from the root.
    folder: String,
    busy: Option<Busy>,
    failures: u32,
}

struct Busy {
    block: Waiting,
    child: Child,
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
        (place, ssh): (&'e Elsewhere, &'e SshHosts),
        cells: Cells,
        stop: &'e AtomicBool,
        progress: &mut Progress<'_>,
    ) -> Result<SshExecutor<'e>> {
        let sockets = sockets(&cells)?;
        let mut hosts = Vec::new();
        for host in &ssh.hosts {
            progress.doing(host, "connect", None);
            let link = SshLink::open(host, ssh.config.as_deref(), &sockets)?;
            let folder = home(&link)?;
            bring_program(&link, &folder, &cells, progress)?;
            hosts.push(SshHost { link, folder, busy: None, failures: 0 });
        }
        let (waiting, ready) = (VecDeque::new(), VecDeque::new());
        Ok(SshExecutor { place, cells, stop, hosts, waiting, ready, sockets, starts: 0 })
    }

    fn class(&self) -> String {
        let hosts: Vec<&str> = self.hosts.iter().map(|host| host.link.host.as_str()).collect();
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
            let folder = format!("{}/{}", host.folder, block.cell.id);
            let log = self.cells.folder_of(&block.cell).join("log");
            let about = (&block.cell, folder.as_str(), start.as_str(), &log);
            match start_block(host, (self.place, &self.cells), about) {
                Ok(child) => {
                    let busy = Busy { block, child, folder, log, start };
                    self.hosts[place].busy = Some(busy);
                }
                Err(error) => self.failed(place, block, format!("{error:#}"), progress),
            }
        }
        Ok(())
    }

    /// A host failed a block: another one gets it, or nobody.
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
        let fault = format!("block {number}: on {}: {why}", host.link.host);
        if host.failures == HOST_TRIES {
            progress.note(&format!("{} gets no more blocks", host.link.host));
        }
        block.tries += 1;
        block.failed_on.push(place);
        let is_any_left = self.hosts.iter().any(|host| host.failures < HOST_TRIES);
        if block.tries > TRIES || !is_any_left {
            let id = block.cell.spec.id.clone();
            self.ready.push_back(BlockEnd::Lost { id, fault });
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
                    let said = cells::last_words(&busy.log);
                    let why = said.unwrap_or_else(|| format!("rqps ended with {status}"));
                    self.failed(place, busy.block, why, progress);
                }
                Err(error) => {
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
            .link
            .run(&format!("if [ -e {0}/block.json ]; then echo yes; fi", shell_word(&there)))?;
        if !has_report.trim().is_empty() {
            if partial.exists() {
                crate::os::disk::remove_tree(&partial)?;
            }
            fs::create_dir_all(&partial).with_context(|| format!("make {}", partial.display()))?;
            host.link.fetch(&there, &partial)?;
            fs::rename(&partial, cell.join(&busy.start)).context("name what came back")?;
        }
        host.link.run(&format!("rm -rf {}", shell_word(&busy.folder)))?;
        Ok(())
    }

    /// Closes the life lines, and waits until the blocks have stopped their servers.
    fn end_all(&mut self) -> Result<()> {
        for busy in self.hosts.iter_mut().filter_map(|host| host.busy.as_mut()) {
            drop(busy.child.stdin.take());
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
            host.link.run(&format!("rm -rf {}", shell_word(&busy.folder))).ok();
        }
        Ok(())
    }
}

impl Drop for SshExecutor<'_> {
    fn drop(&mut self) {
        // On an error of the coordinator blocks may still be under way.
        self.end_all().ok();
        for host in &self.hosts {
            host.link.close();
        }
        fs::remove_dir(&self.sockets).ok();
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
            if self.stop.load(Ordering::Relaxed) {
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
                return Ok(Some(BlockEnd::Lost { id: block.cell.spec.id, fault }));
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

/// Looks whether a host answers and can run this program.
///
/// # Errors
/// It does not, or it is of another architecture.
pub(super) fn check(ssh: &SshHosts) -> Result<()> {
    let sockets = Path::new(SOCKETS).join(format!("rqps-ssh-{}", std::process::id()));
    make_private(&sockets)?;
    let checked = ssh.hosts.iter().try_for_each(|host| {
        let link = SshLink::open(host, ssh.config.as_deref(), &sockets)?;
        let machine = link.run("uname -m");
        link.close();
        let (machine, here) = (machine?, host::machine());
        match machine.trim() == here {
            true => Ok(()),
            false => {
                bail!("measure on {host}: it is {}, and this rqps is for {here}", machine.trim())
            }
        }
    });
    fs::remove_dir(&sockets).ok();
    checked
}

/// A folder that nobody else may enter: who can, can use the connection.
fn make_private(folder: &Path) -> Result<()> {
    let what = || format!("make {}", folder.display());
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let there = fs::symlink_metadata(folder).with_context(what)?;
            let own = there.uid() == rustix::process::geteuid().as_raw();
            if !there.is_dir() || !own || there.mode() & 0o077 != 0 {
                bail!("{}: another user has made it\nhint: remove it", what());
            }
            Ok(())
        }
        made => made.with_context(what),
    }
}

/// A folder for sockets: its path is short, because the name of a socket ends at 107 bytes.
fn sockets(cells: &Cells) -> Result<PathBuf> {
    let name = short_name(cells.folder().as_os_str().as_encoded_bytes());
    let folder = Path::new(SOCKETS).join(format!("rqps-ssh-{name}"));
    make_private(&folder)?;
    Ok(folder)
}

/// The folder for rqps on a host: in the cache of the user there.
fn home(link: &SshLink) -> Result<String> {
    let script = "folder=${XDG_CACHE_HOME:-$HOME/.cache}/rqps/hosts; umask 077; \
                  mkdir -p \"$folder\" && cd \"$folder\" && pwd";
    Ok(link.run(script)?.trim().to_owned())
}

/// Copies rqps, unless the host has the same one.
fn bring_program(
    link: &SshLink,
    folder: &str,
    cells: &Cells,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let name = cells.program_name();
    let path = shell_word(&format!("{folder}/{name}"));
    let there = link.run(&format!("if [ -x {path} ]; then echo yes; fi"))?;
    if there.trim().is_empty() {
        progress.doing(&link.host, "copy rqps", None);
        let partial = shell_word(&format!("{folder}/.{name}.{}", std::process::id()));
        let script = format!("cat > {partial} && chmod 755 {partial} && mv {partial} {path}");
        link.send_file(&script, &cells.program)?;
    }
    link.run(&format!("{path} --version"))
        .with_context(|| format!("run rqps on {}", link.host))
        .map(drop)
}

/// Starts a block on a host.
///
/// # Errors
/// The host does not answer, or has no space.
fn start_block(
    host: &SshHost,
    (place, cells): (&Elsewhere, &Cells),
    (cell, folder, start, log): (&Cell, &str, &str, &PathBuf),
) -> Result<Child> {
    let spec = shell_word(&format!("{folder}/spec.json"));
    let quoted_folder = shell_word(folder);
    let script = format!("rm -rf {quoted_folder} && mkdir -p {quoted_folder} && cat > {spec}");
    host.link.send(&script, cell.spec.print()?.as_bytes())?;
    let log = File::create(log).with_context(|| format!("make {}", log.display()))?;
    let program = shell_word(&format!("{}/{}", host.folder, cells.program_name()));
    let out = shell_word(&format!("{folder}/{start}"));
    let cache = place.cache.as_deref().map(|cache| format!(" --cache {}", quoted(cache)));
    let script = format!(
        "exec {program} block {spec} --out {out} --life-line --node {} --work {}{}",
        shell_word(&host.link.host),
        quoted(&place.work_folder()),
        cache.unwrap_or_default()
    );
    host.link.start(&script, log)
}
