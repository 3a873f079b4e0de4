//! Other hosts that ssh reaches, with this rqps on them.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::lab::progress::Progress;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, CommandOutput, Gathered, end_group, gather, joined};
use rqps_host::{beneath, host, user};
use rqps_model::safe_path;
use rqps_model::units::short_hash;
use rqps_stats::parallel;

/// A path as a word of a shell.
pub(in crate::lab) fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as a word of a shell.
pub(in crate::lab) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The file name of a copy of the program with this SHA-256.
pub(in crate::lab) fn program_name(digest: &str) -> String {
    format!("rqps-{}", digest.get(..12).unwrap_or(digest))
}

/// SHA-256 of a large file, by the system's program for it.
///
/// # Errors
/// It is missing or cannot read the file.
pub(in crate::lab) fn digest_of(file: &Path) -> Result<String> {
    let mut command = child::command("sha256sum", ChildTask::Work);
    command.arg(file);
    let said = command_output::run(command).context("start sha256sum")?;
    match said.output.split_whitespace().next() {
        // A name with a backslash in it would begin the line with one.
        Some(digest) if said.success() => Ok(digest.trim_start_matches('\\').to_owned()),
        _ => bail!("read {}: {}", file.display(), said.complaint()),
    }
}

// A host that the system's ssh reaches, over one connection that its commands share.

/// Seconds after the last command until the shared connection ends by itself.
const PERSIST_SECONDS: u32 = 20;
/// Number of unanswered [`ALIVE_SECONDS`] after which a host is gone.
const ALIVE_COUNT: u32 = 3;
const ALIVE_SECONDS: u32 = 10;
/// Seconds to connect.
const CONNECT_SECONDS: u32 = 20;
/// Time limit for a command that is no block: it may copy rqps over a slow line.
const ANSWER: Duration = Duration::from_secs(1800);
/// The same once the user stops rqps: enough to remove a folder there.
const STOPPING: Duration = Duration::from_secs(5);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of what a host says while ssh connects.
const SAID_MOST: u64 = 1 << 20;
/// No log of a block is longer, in bytes.
const LOG_MOST: u64 = 256 << 20;
/// Exit code of ssh if the connection fails.
pub(super) const CONNECTION_FAILED: i32 = 255;

/// A host and its connection.
pub(super) struct SshLink {
    /// As the user named it.
    pub(super) host: String,
    config: Option<PathBuf>,
    /// Folder of the socket of the shared connection: a short path.
    sockets: PathBuf,
}

impl SshLink {
    /// Connects to a host; all commands share the connection.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(super) fn open(host: &str, config: Option<&Path>, sockets: &Path) -> Result<SshLink> {
        check_name(host)?;
        let link = SshLink {
            host: host.to_owned(),
            config: config.map(Path::to_owned),
            sockets: sockets.to_owned(),
        };
        // The connection stays behind and keeps its standard error: a pipe would never end.
        let said = sockets.join("said");
        let errors =
            safe_path::create_file(&said).with_context(|| format!("make {}", said.display()))?;
        let mut command = link.ssh("yes");
        command.arg("-o").arg(format!("ControlPersist={PERSIST_SECONDS}"));
        command.arg("--").arg(host).arg("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut child = command.spawn().context("start ssh")?;
        bound_files(&child)?;
        let floods = || fs::metadata(&said).is_ok_and(|said| said.len() >= SAID_MOST);
        let ended = link.ended(&mut child, &floods);
        let text = beneath::beginning(&said, SAID_MOST).unwrap_or_default();
        fs::remove_file(&said).ok();
        if ended?.success() { Ok(link) } else { Err(link.unreachable(text.trim())) }
    }

    /// ssh to the host, without what it is to do there. It never asks a question. `master` is
    /// whether it makes the shared connection.
    fn ssh(&self, master: &str) -> Command {
        let mut command = child::command("ssh", ChildTask::Reach);
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let options = [
            "BatchMode=yes".to_owned(),
            // The host gets the commands of rqps and nothing else of the user's: no agent, no
            // display, no port, and nothing runs here because of it. A proxy jump stays.
            "ForwardAgent=no".to_owned(),
            "ForwardX11=no".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "PermitLocalCommand=no".to_owned(),
            "Tunnel=no".to_owned(),
            "EscapeChar=none".to_owned(),
            "RequestTTY=no".to_owned(),
            format!("ControlMaster={master}"),
            // By the user's word: several words may mean one machine.
            format!("ControlPath={}/{}", self.sockets.display(), short_hash(self.host.as_bytes())),
            format!("ConnectTimeout={CONNECT_SECONDS}"),
            format!("ServerAliveInterval={ALIVE_SECONDS}"),
            format!("ServerAliveCountMax={ALIVE_COUNT}"),
        ];
        for option in options {
            command.arg("-o").arg(option);
        }
        command
    }

    /// A command of the shell there, not started.
    fn command(&self, script: &str) -> Command {
        let mut command = self.ssh("no");
        // The user's shell may be any; this one is everywhere.
        command.arg("--").arg(&self.host).arg(format!("exec sh -c {}", shell_word(script)));
        command
    }

    /// Runs a short script there; returns what it printed.
    ///
    /// # Errors
    /// The host does not answer, or the script fails.
    pub(super) fn run(&self, script: &str) -> Result<String> {
        self.answer(self.command(script), Stdio::null(), None)
    }

    /// The same with the content of a file on its standard input.
    ///
    /// # Errors
    /// As [`SshLink::run`].
    pub(super) fn send(&self, script: &str, content: &[u8]) -> Result<String> {
        self.answer(self.command(script), Stdio::piped(), Some(content))
    }

    /// The same with a large file.
    ///
    /// # Errors
    /// As [`SshLink::run`].
    fn send_file(&self, script: &str, file: &Path) -> Result<String> {
        let input = File::open(file).with_context(|| format!("read {}", file.display()))?;
        self.answer(self.command(script), Stdio::from(input), None)
    }

    /// What a command says, of which the beginning is kept. It does not last for ever.
    fn answer(&self, mut command: Command, input: Stdio, content: Option<&[u8]>) -> Result<String> {
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start ssh")?;
        let (output, errors) = (gather(child.stdout.take()), gather(child.stderr.take()));
        if let (Some(mut input), Some(content)) = (child.stdin.take(), content) {
            // One that does not read says why, below; one that hangs is ended.
            let content = content.to_vec();
            thread::spawn(move || input.write_all(&content).ok());
        }
        let floods = || [&output, &errors].into_iter().flatten().any(Gathered::is_full);
        let status = self.ended(&mut child, &floods)?;
        self.said(CommandOutput { status, output: joined(output), errors: joined(errors) })
    }

    /// Waits for the end of a command that floods nobody and does not last for ever.
    ///
    /// # Errors
    /// It does, and is ended.
    pub(super) fn ended(&self, child: &mut Child, floods: &dyn Fn() -> bool) -> Result<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait().context("wait for ssh")? {
                return Ok(status);
            }
            let patience = if rqps_wire::is_stopped() { STOPPING } else { ANSWER };
            let why = if floods() {
                "it says more than anybody reads".to_owned()
            } else if begun.elapsed() > patience {
                format!("no end after {} s", patience.as_secs())
            } else {
                thread::sleep(LOOK);
                continue;
            };
            end_group(child);
            bail!("on {}: {why}", self.host);
        }
    }

    /// Starts a long command there; what it prints goes to `log`. It sees the end of its standard
    /// input when this process ends, or the connection.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub(super) fn start(&self, script: &str, log: File) -> Result<Child> {
        let errors = log.try_clone().context("open the log")?;
        let mut command = self.command(script);
        command.stdin(Stdio::piped()).stdout(log).stderr(errors);
        let child = command.spawn().context("start ssh")?;
        bound_files(&child)?;
        Ok(child)
    }

    /// A command there whose standard input and output are those of the returned one, not started.
    pub(super) fn talk(&self, script: &str) -> Command {
        self.command(script)
    }

    /// Makes the shared connection again if it is gone.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(super) fn restore(&self) -> Result<()> {
        let mut command = self.ssh("no");
        command.args(["-O", "check"]).arg("--").arg(&self.host);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().context("start ssh")?.success() {
            Ok(())
        } else {
            SshLink::open(&self.host, self.config.as_deref(), &self.sockets).map(drop)
        }
    }

    /// Unpacks a folder there to a folder here, which must not be there yet.
    ///
    /// # Errors
    /// The host does not answer, sends something else than folders and files, or a file cannot be
    /// written.
    pub(super) fn fetch(&self, folder: &str, to: &Path) -> Result<()> {
        let mut command = self.command(&format!("cd {} && tar -cf - .", shell_word(folder)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start ssh")?;
        let errors = gather(child.stderr.take());
        let unpacked = match child.stdout.take() {
            Some(stream) => listened(&mut child, || unpack(stream, to, OF_BLOCK)),
            None => Err(anyhow!("no output")),
        };
        if unpacked.is_err() {
            // It may have more to say than anybody wants to hear.
            end_group(&mut child);
        }
        let what = || format!("unpack what {} sent to {}", self.host, to.display());
        unpacked.with_context(what)?;
        let status = self.ended(&mut child, &|| errors.as_ref().is_some_and(Gathered::is_full))?;
        self.said(CommandOutput { status, output: String::new(), errors: joined(errors) }).map(drop)
    }

    /// Ends the shared connection. Without an answer it ends by itself.
    pub(super) fn close(&self) {
        let mut command = self.ssh("no");
        command.args(["-O", "exit"]).arg("--").arg(&self.host);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok();
    }

    fn said(&self, said: CommandOutput) -> Result<String> {
        let CommandOutput { status, output, errors } = said;
        if status.success() {
            return Ok(output);
        }
        let said = match errors.trim() {
            "" => format!("it said nothing ({status})"),
            said => said.to_owned(),
        };
        match status.code() {
            Some(CONNECTION_FAILED) => Err(self.unreachable(&said)),
            _ => bail!("on {}: {}", self.host, on_one_line(&said)),
        }
    }

    /// The error for a host that cannot be reached, with a hint.
    fn unreachable(&self, said: &str) -> anyhow::Error {
        let host = &self.host;
        let hint = if said.contains("Host key verification failed") {
            format!("connect once by hand (`ssh {host}`) and check the key of the host")
        } else if said.contains("Permission denied") {
            format!("let `ssh {host}` log in without a prompt, with a key or ssh-agent")
        } else {
            format!("try `ssh {host} true`")
        };
        anyhow!("reach {host}: {}\nhint: {hint}", on_one_line(said))
    }
}

/// Has the log of a command end it that floods it.
///
/// # Errors
/// The process is gone.
pub(super) fn bound_files(child: &Child) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: Some(LOG_MOST), maximum: Some(LOG_MOST) };
    match prlimit(pid, Resource::Fsize, limit) {
        // It has ended, and its log does not grow any more.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).context("bound the log of ssh"),
    }
}

/// Works on what a command says. One that goes on for ever is ended, as is one that does when the
/// user stops rqps.
pub(super) fn listened<T: Send>(child: &mut Child, work: impl FnOnce() -> T + Send) -> T {
    let begun = Instant::now();
    let look = || {
        if rqps_wire::is_stopped() || begun.elapsed() > ANSWER {
            end_group(child);
        }
        Ok::<(), Infallible>(())
    };
    parallel::watched(work, look).unwrap_or_else(|never| match never {})
}

/// Refuses a host that ssh would take for an option, or that has no plain name.
///
/// # Errors
/// It is one of them.
pub(super) fn check_name(host: &str) -> Result<()> {
    let odd = |part: &str| part.is_empty() || part.starts_with('-');
    let is_foreign =
        |c: char| c.is_control() || c.is_whitespace() || "'\"`$\\;&|<>(){}*?!".contains(c);
    if host.split('@').any(odd) || host.contains(is_foreign) {
        bail!("reach `{}`: it is no name of a host", host.escape_debug());
    }
    Ok(())
}

fn on_one_line(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

// A host that is ready to run this rqps.

/// A host that has this rqps.
pub(super) struct PreparedHost {
    pub(super) link: SshLink,
    /// Folder there for rqps and what it needs, from the root.
    pub(super) folder: String,
    /// The program there, as a word of a shell.
    pub(super) program: String,
}

impl PreparedHost {
    /// Reaches a host and brings it the program, by its name, unless it has it.
    ///
    /// # Errors
    /// The host cannot be reached, or rqps does not run there.
    pub(super) fn open(
        (host, config, sockets): (&str, Option<&Path>, &Path),
        (program, name): (&Path, &str),
        progress: &mut Progress<'_>,
    ) -> Result<PreparedHost> {
        progress.doing(host, "connect", None);
        let link = SshLink::open(host, config, sockets)?;
        let prepared = check_machine(&link).and_then(|()| {
            let folder = home(&link)?;
            let there = bring_program(&link, &folder, (program, name), progress)?;
            Ok((folder, there))
        });
        match prepared {
            Ok((folder, program)) => Ok(PreparedHost { link, folder, program }),
            Err(error) => {
                // Close it now: nobody else can, and its socket would keep the folder.
                link.close();
                Err(error)
            }
        }
    }
}

/// Looks whether a host can run this program.
///
/// # Errors
/// It is of another architecture.
pub(super) fn check_machine(link: &SshLink) -> Result<()> {
    let (machine, here) = (link.run("uname -m")?, host::machine());
    if machine.trim() == here {
        Ok(())
    } else {
        bail!("measure on {}: it is {}, and this rqps is for {here}", link.host, machine.trim())
    }
}

/// The folder for rqps on a host: in the cache of the user there.
fn home(link: &SshLink) -> Result<String> {
    let script = "folder=${XDG_CACHE_HOME:-$HOME/.cache}/rqps/hosts; umask 077; \
                  mkdir -p \"$folder\" && cd \"$folder\" && pwd";
    Ok(link.run(script)?.trim().to_owned())
}

/// Copies rqps, unless the host has the same one. Returns it as a word of a shell.
fn bring_program(
    link: &SshLink,
    folder: &str,
    (program, name): (&Path, &str),
    progress: &mut Progress<'_>,
) -> Result<String> {
    let path = shell_word(&format!("{folder}/{name}"));
    let there = link.run(&format!("if [ -x {path} ]; then echo yes; fi"))?;
    if there.trim().is_empty() {
        progress.doing(&link.host, "copy rqps", None);
        let partial = shell_word(&format!("{folder}/.{name}.{}", std::process::id()));
        let script = format!("cat > {partial} && chmod 755 {partial} && mv {partial} {path}");
        link.send_file(&script, program)?;
    }
    let said = link
        .run(&format!("{path} --version"))
        .with_context(|| format!("run rqps on {}", link.host))?;
    let own = env!("CARGO_PKG_VERSION");
    if said.split_whitespace().nth(1) != Some(own) {
        bail!(
            "use {folder}/{name} on {}: it is {}, and this is rqps {own}\nhint: remove that file",
            link.host,
            said.trim()
        );
    }
    Ok(path)
}

// The folder for the sockets of ssh. It goes with the process that made it, however that ends.

/// The folder above it, with a short path.
const PARENT: &str = "/tmp";
/// Waits until this process is gone, and then until the last connection has left the folder; a
/// connection that nobody uses ends by itself. One that was killed has left its socket.
const KEEPER: &str = "read -r nothing; tries=0; \
                      while [ -d \"$0\" ] && [ $tries -lt 60 ]; do \
                      for socket in \"$0\"/*; do \
                      grep -qF \"$socket\" /proc/net/unix || rm -f \"$socket\"; done; \
                      rmdir \"$0\" 2> /dev/null || sleep 5; tries=$((tries + 1)); done";

/// A folder that is there as long as this, or a connection in it, lives.
pub(super) struct SocketFolder {
    path: PathBuf,
    keeper: Child,
}

impl SocketFolder {
    /// Makes a private folder, with a name that nobody can take before. Its path is short, because
    /// the name of a socket ends at 107 bytes; anybody who may enter it could use the connections.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(super) fn make() -> Result<SocketFolder> {
        let path = Path::new(PARENT).join(format!("rqps-ssh-{}", user::name()?));
        safe_path::new_folder(&path, 0o700).with_context(|| format!("make {}", path.display()))?;
        let mut command = child::command("sh", ChildTask::Work);
        command.args(["-c", KEEPER]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = command.spawn().context("start sh")?;
        Ok(SocketFolder { path, keeper })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        match fs::remove_dir(&self.path) {
            Ok(()) => {
                self.keeper.kill().ok();
                self.keeper.wait().ok();
            }
            // A connection has not ended yet: the keeper waits for it.
            Err(_) => drop(self.keeper.stdin.take()),
        }
    }
}

// Takes in what another host wrote. It is hostile until shown otherwise: only folders and plain
// files below one folder, no links, a bounded number of bytes, files and levels.

/// The most that a block may send.
pub(super) const OF_BLOCK: Bounds = Bounds { bytes: 16 << 30, entries: 200_000, depth: 12 };

/// The longest path in a tar, in bytes.
const PATH_MOST: u64 = 4096;
/// The longest list of extended headers, which rqps passes over.
const HEADERS_MOST: u64 = 64 << 10;
const CHUNK: usize = 64 << 10;

/// What may be taken in yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    bytes: u64,
    entries: u64,
    depth: u32,
}

impl Bounds {
    fn count_entry(&mut self) -> Result<()> {
        match self.entries.checked_sub(1) {
            Some(left) => self.entries = left,
            None => bail!("it has too many files"),
        }
        Ok(())
    }

    /// Copies a file, as far as its bytes may be taken in.
    fn pour(&mut self, from: &mut dyn Read, to: &mut File) -> Result<()> {
        let mut piece = vec![0; CHUNK];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            match self.bytes.checked_sub(count as u64) {
                Some(left) => self.bytes = left,
                None => bail!("it is too large"),
            }
            to.write_all(&piece[..count])?;
        }
    }
}

/// Makes a folder of this user alone, which must not be there.
fn make(folder: &Path) -> Result<()> {
    safe_path::new_folder(folder, 0o700).with_context(|| format!("make {}", folder.display()))
}

/// Copies the folder `from`, which others may change meanwhile, to `to`, which must not be there.
///
/// # Errors
/// It has something else than folders and plain files, or exceeds the bounds.
pub(super) fn copy(from: &Path, to: &Path, mut bounds: Bounds) -> Result<()> {
    let opened = open_folder(CWD, from).with_context(|| format!("open {}", from.display()))?;
    make(to)?;
    let levels = bounds.depth;
    copy_folder(opened, (Path::new(""), to), &mut bounds, levels)
        .with_context(|| format!("take in {}", from.display()))
}

fn open_folder(at: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

fn copy_folder(
    from: OwnedFd,
    (below, to): (&Path, &Path),
    bounds: &mut Bounds,
    levels: u32,
) -> Result<()> {
    let Some(levels) = levels.checked_sub(1) else { bail!("{}: too deep", below.display()) };
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(&from)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            bounds.count_entry()?;
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        let plain = plain(&name).with_context(|| format!("in `{}`", below.display()))?;
        let below = below.join(plain);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&from, plain, flags, Mode::empty());
        let opened = opened.map_err(|error| anyhow!("{}: {error}", below.display()))?;
        let kind = FileType::from_raw_mode(fstat(&opened)?.st_mode);
        let target = to.join(plain);
        match kind {
            FileType::Directory => {
                make(&target)?;
                copy_folder(opened, (&below, &target), bounds, levels)?;
            }
            FileType::RegularFile => {
                let mut made = safe_path::new_file(&target)?;
                bounds
                    .pour(&mut File::from(opened), &mut made)
                    .with_context(|| format!("{}", below.display()))?;
            }
            _ => bail!("{}: it is no plain file", below.display()),
        }
    }
    Ok(())
}

/// A name of a file that can be shown and typed.
fn plain(name: &CStr) -> Result<&str> {
    match name.to_str() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text),
        _ => bail!("{name:?} is no plain name"),
    }
}

/// Unpacks a tar into the folder `to`, which must not be there.
///
/// # Errors
/// As [`copy`], and for paths that lead elsewhere.
pub(super) fn unpack(stream: impl Read, to: &Path, mut bounds: Bounds) -> Result<()> {
    make(to)?;
    let mut archive = tar::Archive::new(stream);
    // The path of the next entry, if it is too long for its own header.
    let mut long: Option<Vec<u8>> = None;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        bounds.count_entry()?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let mut name = Vec::new();
            entry.by_ref().take(PATH_MOST + 1).read_to_end(&mut name)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            if name.len() as u64 >= PATH_MOST {
                bail!("a path in it is too long");
            }
            long = Some(name);
            continue;
        }
        if kind.is_pax_local_extensions() || kind.is_pax_global_extensions() {
            if entry.size() > HEADERS_MOST {
                bail!("a header in it is too long");
            }
            continue;
        }
        let name = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&name).escape_debug().to_string();
        let path = relative(&name, bounds.depth).with_context(|| format!("`{shown}`"))?;
        let target = to.join(&path);
        if kind.is_dir() {
            // The folder itself is the first entry.
            make_all(to, &path)?;
        } else if kind.is_file() {
            make_all(to, path.parent().unwrap_or(Path::new("")))?;
            let mut made = safe_path::new_file(&target).with_context(|| format!("`{shown}`"))?;
            bounds.pour(&mut entry, &mut made).with_context(|| format!("`{shown}`"))?;
        } else {
            bail!("`{shown}` is neither a folder nor a plain file");
        }
    }
    Ok(())
}

/// Makes folders below `to`, in which there are no links.
fn make_all(to: &Path, path: &Path) -> Result<()> {
    let made = safe_path::make_folder(&to.join(path)).map(drop);
    made.with_context(|| format!("make {}", path.display()))
}

/// The path of an entry, if it leads to nowhere but below the folder.
fn relative(name: &[u8], depth: u32) -> Result<PathBuf> {
    let text = std::str::from_utf8(name).context("it is no text")?;
    if text.chars().any(char::is_control) {
        bail!("it has control characters");
    }
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => bail!("it leads out of the folder"),
        }
    }
    if path.components().count() > depth as usize {
        bail!("it is too deep");
    }
    Ok(path)
}

/// The text of a file of a folder that was taken in, if it is not longer than `most` bytes.
///
/// # Errors
/// It is longer, or cannot be read.
pub(super) fn text(file: &Path, most: u64) -> Result<String> {
    let what = || format!("read {}", file.display());
    let length = fs::symlink_metadata(file).with_context(what)?.len();
    if length > most {
        bail!("{}: it has {length} bytes", what());
    }
    fs::read_to_string(file).with_context(what)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_a_word_as_it_was(text in "[\\PC\\t\\n'\"\\\\$`!#;&|*? -]{0,40}") {
            // As ssh has it: the shell of the user, and `sh` in it.
            let inner = format!("printf %s {}", shell_word(&text));
            let script = format!("exec sh -c {}", shell_word(&inner));
            let said = Command::new("sh").args(["-c", &script]).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&said.stdout), text);
        }
    }
}

#[cfg(test)]
mod sockets_tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_folder_goes_with_its_process_or_with_the_last_connection() {
        let folder = SocketFolder::make().expect("a folder");
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        let other = SocketFolder::make().expect("a folder");
        assert_ne!(path, other.path(), "nobody foresees it");
        drop(folder);
        assert!(!path.exists());
        // As with a process that is killed: only its end of the pipe closes.
        let mut folder = SocketFolder::make().expect("a folder");
        // As a connection that is killed leaves it.
        drop(UnixListener::bind(folder.path.join("socket")).expect("a socket"));
        drop(folder.keeper.stdin.take());
        folder.keeper.wait().expect("its end");
        assert!(!folder.path().exists());
    }
}

#[cfg(test)]
mod take_in_tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const FEW: Bounds = Bounds { bytes: 1000, entries: 10, depth: 3 };

    /// A tar with one entry of that kind; a name is written into its header as it is.
    fn tar(name: &str, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        let field = &mut header.as_gnu_mut().unwrap().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4777);
        header.set_size(content.len() as u64);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        let mut made = tar::Builder::new(Vec::new());
        made.append(&header, content).unwrap();
        made.into_inner().unwrap()
    }

    #[test]
    fn a_tar_that_leads_elsewhere_is_refused() {
        use tar::EntryType;
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, kind: EntryType, content: &[u8], part: &str| {
            let to = folder.path().join("to");
            let error = unpack(&*tar(name, kind, content), &to, FEW).unwrap_err();
            assert!(format!("{error:#}").contains(part), "{name}: {error:#}");
            assert!(!folder.path().join("evil").exists(), "{name}");
            fs::remove_dir_all(&to).unwrap();
        };
        check("../evil", EntryType::Regular, b"x", "leads out");
        check("a/../../evil", EntryType::Regular, b"x", "leads out");
        check("/tmp/rqps-evil", EntryType::Regular, b"x", "leads out");
        check("link", EntryType::Symlink, b"", "neither a folder nor");
        check("link", EntryType::Link, b"", "neither a folder nor");
        check("null", EntryType::Char, b"", "neither a folder nor");
        check("pipe", EntryType::Fifo, b"", "neither a folder nor");
        check("a/b/c/d", EntryType::Regular, b"x", "too deep");
        check("large", EntryType::Regular, &[0; 1001], "too large");
        check("a\u{1b}[2J", EntryType::Regular, b"x", "control characters");
        check("long", EntryType::GNULongName, &[b'a'; 5000], "too long");
    }

    #[test]
    fn what_is_plain_is_unpacked_without_its_rights() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        unpack(&*tar("./a/b", tar::EntryType::Regular, b"x"), &to, FEW).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b")).unwrap(), "x");
        assert_eq!(fs::metadata(to.join("a/b")).unwrap().permissions().mode() & 0o7111, 0);
        let mut made = tar::Builder::new(Vec::new());
        let long = "n".repeat(150);
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        made.append_data(&mut header, &long, &b"y"[..]).unwrap();
        let other = folder.path().join("other");
        unpack(&*made.into_inner().unwrap(), &other, FEW).unwrap();
        assert_eq!(fs::read_to_string(other.join(long)).unwrap(), "y");
    }

    #[test]
    fn a_folder_is_copied_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("run/steps")).unwrap();
        fs::write(from.join("run/steps/1"), "x").unwrap();
        copy(&from, &to, FEW).unwrap();
        assert_eq!(fs::read_to_string(to.join("run/steps/1")).unwrap(), "x");
        assert!(copy(&from, &to, FEW).is_err(), "it is there");
        symlink("/etc", from.join("run/etc")).unwrap();
        let error = copy(&from, &folder.path().join("other"), FEW).unwrap_err();
        assert!(format!("{error:#}").contains("run/etc"), "{error:#}");
        symlink(&from, folder.path().join("link")).unwrap();
        assert!(copy(&folder.path().join("link"), &folder.path().join("third"), FEW).is_err());
        fs::remove_file(from.join("run/etc")).unwrap();
        let small = Bounds { entries: 2, ..FEW };
        assert!(copy(&from, &folder.path().join("fourth"), small).is_err());
    }
}
