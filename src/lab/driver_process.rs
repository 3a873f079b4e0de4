//! The other process: spawns `rqps driver`, hands it its job, and passes its messages on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use crate::driver::event::DriverEvent;
use crate::driver::request::{DriverRequest, LabWord};
use crate::json;
use crate::lab::far::{CONNECTION_FAILED, FarHost};
use crate::os::valgrind::Callgrind;

/// How the process is started, by its DBMS.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// A program that starts it.
    pub(super) launcher: Option<PathBuf>,
    /// The control group that it enters.
    pub(super) memory_group: Option<PathBuf>,
    /// What it runs under, if the DBMS is a library in it whose instructions are to be counted.
    pub(super) callgrind: Option<Callgrind>,
}

/// A driver at work. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct DriverProcess {
    /// The driver, or the ssh that leads to it.
    child: Child,
    /// The client host that it is on; `None` for this one.
    host: Option<String>,
    /// Held open: the driver ends when it closes.
    input: ChildStdin,
    messages: Receiver<Result<DriverEvent>>,
    /// What it writes to stderr, and where its own words begin there.
    log: (PathBuf, u64),
}

impl DriverProcess {
    /// Starts a driver on its job, through the launcher if there is one. What it writes to stderr
    /// goes to `log`.
    ///
    /// # Errors
    /// The process cannot be started or does not take its job.
    pub(super) fn spawn(
        program: &Path,
        Start { launcher, memory_group, callgrind }: Start,
        job: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        let mut command = match (&callgrind, &launcher) {
            (Some(callgrind), _) => {
                let (valgrind, args) = callgrind.wrap(program, Vec::new());
                let mut command = Command::new(valgrind);
                command.args(args);
                command
            }
            (None, Some(launcher)) => {
                let mut command = Command::new(launcher);
                command.arg(program);
                command
            }
            (None, None) => Command::new(program),
        };
        command.arg("driver");
        if let Some(group) = memory_group {
            command.arg("--memory-group").arg(group);
        }
        let what = format!("start {} driver", program.display());
        DriverProcess::started(command, None, job, log).context(what)
    }

    /// Starts a driver on a client host. It ends when its standard input does: with ssh, the
    /// connection, or this process.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub(super) fn spawn_on(
        host: &FarHost,
        job: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        let name = &host.link.host;
        let what = || format!("start a driver on the client host {name}");
        host.link.restore().with_context(what)?;
        // Within a shell, because ssh reports a killed driver like a cut connection.
        let command = host.link.talk(&format!("{} driver; exit $?", host.program));
        DriverProcess::started(command, Some(name.clone()), job, log).with_context(what)
    }

    fn started(
        mut command: Command,
        host: Option<String>,
        job: &DriverRequest,
        path: &Path,
    ) -> Result<DriverProcess> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(path)
            .with_context(|| format!("open {}", path.display()))?;
        let log_start = log.metadata().map_or(0, |log| log.len());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C on the terminal is the lab's to handle.
            .process_group(0)
            .spawn()?;
        let mut input = child.stdin.take().context("the driver has no standard input")?;
        let output = child.stdout.take().context("the driver has no standard output")?;
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        match input.write_all(&line) {
            // It has ended already; its messages say why.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.context("send the driver its request")?,
        }
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let message = line.map_err(anyhow::Error::from).and_then(|line| {
                    json::read(&line).with_context(|| format!("understand `{line}`"))
                });
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(DriverProcess { child, host, input, messages, log: (path.to_owned(), log_start) })
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets a driver go on that has said that it is prepared.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.tell(LabWord::GoOn)
    }

    /// Tells a driver that waits a word.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn tell(&mut self, word: LabWord) -> Result<()> {
        let line = format!("{word}\n");
        self.input.write_all(line.as_bytes()).with_context(|| match &self.host {
            Some(host) => format!("let the driver on the client host {host} continue"),
            None => "let the driver continue".to_owned(),
        })
    }

    /// The next message; `None` when `wait` passed without one.
    ///
    /// # Errors
    /// The driver ended before it was done, or said something that is no message.
    pub(super) fn next(&mut self, wait: Duration) -> Result<Option<DriverEvent>> {
        match self.messages.recv_timeout(wait) {
            Ok(message) => message.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("wait for the driver")?;
                let said = self.last_words();
                Err(match &self.host {
                    Some(host) if status.code() == Some(CONNECTION_FAILED) => {
                        anyhow!("the connection to the client host {host} was cut{said}")
                    }
                    Some(host) => anyhow!(
                        "the driver process on the client host {host} ended early ({status}){said}"
                    ),
                    None => anyhow!("the driver process ended early ({status}){said}"),
                })
            }
        }
    }
}

impl DriverProcess {
    /// The last line that it wrote to stderr, as a clause; empty without one.
    fn last_words(&self) -> String {
        let (path, start) = &self.log;
        // If the log cannot be read, the error stays as it is.
        let bytes = fs::read(path).unwrap_or_default();
        let own = bytes.get(*start as usize..).unwrap_or_default();
        let text = String::from_utf8_lossy(own);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(String::new, |line| format!(": {}", line.trim()))
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
