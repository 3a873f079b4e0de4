//! A host that the system's ssh reaches, over one connection that its commands share.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::shell_word;
use crate::lab::take_in;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{CommandOutput, end_group, gather, joined};
use rqps_model::units::short_hash;
use rqps_stats::parallel;

/// Seconds after the last command until the shared connection ends by itself.
const PERSIST_SECONDS: u32 = 20;
/// Number of unanswered [`ALIVE_SECONDS`] after which a host is gone.
const ALIVE_COUNT: u32 = 3;
const ALIVE_SECONDS: u32 = 10;
/// Seconds to connect.
const CONNECT_SECONDS: u32 = 20;
/// Time limit for a command that is no block: it may copy rqps over a slow line.
const ANSWER: Duration = Duration::from_secs(1800);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// No log of a block is longer, in bytes.
const LOG_MOST: u64 = 256 << 20;
/// Exit code of ssh if the connection fails.
pub(in crate::lab) const CONNECTION_FAILED: i32 = 255;

/// A host and its connection.
pub(in crate::lab) struct SshLink {
    /// As the user named it.
    pub(in crate::lab) host: String,
    config: Option<PathBuf>,
    /// Folder of the socket of the shared connection: a short path.
    sockets: PathBuf,
}

impl SshLink {
    /// Connects to a host; all commands share the connection.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(in crate::lab) fn open(
        host: &str,
        config: Option<&Path>,
        sockets: &Path,
    ) -> Result<SshLink> {
        check_name(host)?;
        let link = SshLink {
            host: host.to_owned(),
            config: config.map(Path::to_owned),
            sockets: sockets.to_owned(),
        };
        // The connection stays behind and keeps its standard error: a pipe would never end.
        let said = sockets.join("said");
        let errors = File::create(&said).with_context(|| format!("make {}", said.display()))?;
        let mut command = link.ssh("yes");
        command.arg("-o").arg(format!("ControlPersist={PERSIST_SECONDS}"));
        command.arg("--").arg(host).arg("true");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let status = command.status().context("start ssh")?;
        let text = fs::read_to_string(&said).unwrap_or_default();
        fs::remove_file(&said).ok();
        if status.success() { Ok(link) } else { Err(link.unreachable(text.trim())) }
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
    pub(in crate::lab) fn run(&self, script: &str) -> Result<String> {
        self.answer(self.command(script), Stdio::null(), None)
    }

    /// The same with the content of a file on its standard input.
    ///
    /// # Errors
    /// As [`SshLink::run`].
    pub(in crate::lab) fn send(&self, script: &str, content: &[u8]) -> Result<String> {
        self.answer(self.command(script), Stdio::piped(), Some(content))
    }

    /// The same with a large file.
    ///
    /// # Errors
    /// As [`SshLink::run`].
    pub(in crate::lab) fn send_file(&self, script: &str, file: &Path) -> Result<String> {
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
        let deadline = Instant::now() + ANSWER;
        let status = loop {
            match child.try_wait().context("wait for ssh")? {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    end_group(&mut child);
                    bail!("on {}: no end after {} s", self.host, ANSWER.as_secs());
                }
                None => thread::sleep(LOOK),
            }
        };
        self.said(CommandOutput { status, output: joined(output), errors: joined(errors) })
    }

    /// Starts a long command there; what it prints goes to `log`. It sees the end of its standard
    /// input when this process ends, or the connection.
    ///
    /// # Errors
    /// ssh cannot be started.
    pub(in crate::lab) fn start(&self, script: &str, log: File) -> Result<Child> {
        let errors = log.try_clone().context("open the log")?;
        let mut command = self.command(script);
        command.stdin(Stdio::piped()).stdout(log).stderr(errors);
        let child = command.spawn().context("start ssh")?;
        bound_files(&child)?;
        Ok(child)
    }

    /// A command there whose standard input and output are those of the returned one, not started.
    pub(in crate::lab) fn talk(&self, script: &str) -> Command {
        self.command(script)
    }

    /// Makes the shared connection again if it is gone.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(in crate::lab) fn restore(&self) -> Result<()> {
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
    pub(in crate::lab) fn fetch(&self, folder: &str, to: &Path, stop: &AtomicBool) -> Result<()> {
        let mut command = self.command(&format!("cd {} && tar -cf - .", shell_word(folder)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("start ssh")?;
        let errors = gather(child.stderr.take());
        let unpacked = match child.stdout.take() {
            Some(stream) => {
                let deadline = Instant::now() + ANSWER;
                // Nobody waits for a host that sends a byte now and then.
                let look = || {
                    if stop.load(Ordering::Relaxed) || Instant::now() > deadline {
                        end_group(&mut child);
                    }
                    Ok::<(), Infallible>(())
                };
                let unpack = || take_in::unpack(stream, to, take_in::OF_BLOCK);
                parallel::watched(unpack, look).unwrap_or_else(|never| match never {})
            }
            None => Err(anyhow!("no output")),
        };
        if unpacked.is_err() {
            // It may have more to say than anybody wants to hear.
            end_group(&mut child);
        }
        let what = || format!("unpack what {} sent to {}", self.host, to.display());
        unpacked.with_context(what)?;
        let status = child.wait().context("wait for ssh")?;
        self.said(CommandOutput { status, output: String::new(), errors: joined(errors) }).map(drop)
    }

    /// Ends the shared connection. Without an answer it ends by itself.
    pub(in crate::lab) fn close(&self) {
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
pub(in crate::lab) fn bound_files(child: &Child) -> Result<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: Some(LOG_MOST), maximum: Some(LOG_MOST) };
    match prlimit(pid, Resource::Fsize, limit) {
        // It has ended, and its log does not grow any more.
        Ok(_) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error).context("bound the log of ssh"),
    }
}

/// Refuses a host that ssh would take for an option, or that has no plain name.
///
/// # Errors
/// It is one of them.
pub(in crate::lab) fn check_name(host: &str) -> Result<()> {
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
