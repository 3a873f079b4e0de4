//! The other process: spawns `rqps driver`, hands it its request, and passes its messages on. Where
//! another rqps starts drivers, the process is at the end of a line to that one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lab::driver_child::{BoundedLines, DriverChild, DriverLog};
use crate::lab::driver_proxy::{ClientLine, ProxiedDriver};
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverCommand, DriverRequest};
use rqps_host::child::{self, ChildTask};
use rqps_host::confinement;
use rqps_host::valgrind::Callgrind;

/// The start of the process, by its DBMS.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// A program that starts it.
    pub(super) launcher: Option<PathBuf>,
    /// The control group that it enters.
    pub(super) memory_group: Option<PathBuf>,
    /// Callgrind around it, if the DBMS is a library in it whose instructions are counted.
    pub(super) callgrind: Option<Callgrind>,
    /// Its whole environment, if it executes scripts of the user's; `None` for that of any child.
    pub(super) environment: Option<Vec<(&'static str, String)>>,
}

/// The time in which a driver may end its statements on a server of others.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A driver at work. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct DriverProcess {
    carrier: Carrier,
    /// The client host that it is on; `None` for this one.
    host: Option<String>,
    /// Its lines.
    messages: Receiver<Result<String>>,
}

/// The connection to a driver.
#[derive(Debug)]
enum Carrier {
    /// A process here.
    Child {
        child: Child,
        /// Its end is the sign to stop.
        input: Option<ChildStdin>,
        log: DriverLog,
        /// True if the driver, when it stops, ends statements on a server of others.
        cancels: bool,
    },
    /// The rqps that starts drivers for this one.
    Line(ProxiedDriver),
}

impl DriverProcess {
    /// Starts a driver on its request, through the launcher if there is one. Its stderr goes to
    /// `log`.
    ///
    /// # Errors
    /// The process cannot be started or does not take its request.
    pub(super) fn spawn(
        program: &Path,
        Start { launcher, memory_group, callgrind, environment }: Start,
        request: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        let mut command = match (&callgrind, &launcher) {
            (Some(callgrind), _) => {
                let (valgrind, args) = callgrind.wrap(program, Vec::new());
                let mut command = child::command(valgrind, ChildTask::Library);
                command.args(args);
                // Valgrind's own files must stay those of the process, so it cannot change its
                // user later.
                if let Some(user) = callgrind.user() {
                    child::become_user(&mut command, user);
                }
                command
            }
            (None, Some(launcher)) => {
                let mut command = child::command(launcher, ChildTask::Library);
                command.arg(program);
                command
            }
            (None, None) => child::command(program, ChildTask::Library),
        };
        if let Some(environment) = environment {
            command.env_clear().envs(environment);
        }
        command.arg("driver");
        if let Some(group) = memory_group {
            command.arg("--memory-group").arg(group);
        }
        let what = format!("start {} driver", program.display());
        DriverProcess::started(command, None, request, log).context(what)
    }

    /// Starts a driver on a client host by a command that leads there. It ends when its standard
    /// input does: with ssh, the connection, or this process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn spawn_on(
        (command, host): (Command, &str),
        request: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        DriverProcess::started(command, Some(host.to_owned()), request, log)
    }

    /// Has the rqps at the other end of a line start a driver on one of its hosts.
    ///
    /// # Errors
    /// The line is cut.
    pub(super) fn ask_for(
        line: &Arc<ClientLine>,
        (place, host): (usize, &str),
        request: &DriverRequest,
    ) -> Result<DriverProcess> {
        let (driver, messages) = line.start(place, serde_json::to_string(request)?)?;
        let host = Some(host.to_owned());
        Ok(DriverProcess { carrier: Carrier::Line(driver), host, messages })
    }

    fn started(
        command: Command,
        host: Option<String>,
        request: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        let line = serde_json::to_string(request)?;
        let DriverChild { child, input, output, log } = DriverChild::start(command, &line, log)?;
        // A driver on another host that floods this one waits.
        let (sender, messages) = sync_channel(1 << 12);
        std::thread::spawn(move || {
            for line in BoundedLines::of(output) {
                if sender.send(line.map_err(anyhow::Error::from)).is_err() {
                    break;
                }
            }
        });
        let (input, cancels) = (Some(input), request.cancels());
        let carrier = Carrier::Child { child, input, log, cancels };
        Ok(DriverProcess { carrier, host, messages })
    }

    /// Its process id, if it is a process of this host.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.carrier {
            Carrier::Child { child, .. } => Some(child.id()),
            Carrier::Line(_) => None,
        }
    }

    /// Lets a driver go on that has said that it is prepared.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.tell(DriverCommand::GoOn)
    }

    /// Tells a driver that waits a word.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn tell(&mut self, word: DriverCommand) -> Result<()> {
        let told = match &mut self.carrier {
            Carrier::Child { input: None, .. } => Ok(()),
            Carrier::Child { input: Some(input), .. } => {
                input.write_all(format!("{word}\n").as_bytes()).map_err(anyhow::Error::from)
            }
            Carrier::Line(driver) => driver.tell(word.to_string()),
        };
        told.with_context(|| match &self.host {
            Some(host) => format!("let the driver on the client host {host} continue"),
            None => "let the driver continue".to_owned(),
        })
    }

    /// The next message; `None` when `wait` passed without one.
    ///
    /// # Errors
    /// The driver ended before it was done, or said something that is no message.
    pub(super) fn next(&mut self, wait: Duration) -> Result<Option<DriverEvent>> {
        match (self.messages.recv_timeout(wait), &mut self.carrier) {
            (Ok(line), _) => {
                let line = line?;
                serde_json::from_str(&line)
                    .map(Some)
                    .with_context(|| format!("understand `{line}`"))
            }
            (Err(RecvTimeoutError::Timeout), _) => Ok(None),
            (Err(RecvTimeoutError::Disconnected), Carrier::Child { child, log, .. }) => {
                let status = child.wait().context("wait for the driver")?;
                Err(log.early_end(self.host.as_deref(), status))
            }
            (Err(RecvTimeoutError::Disconnected), Carrier::Line(_)) => {
                bail!("the connection to the rqps that starts drivers was cut")
            }
        }
    }
}

impl Drop for DriverProcess {
    fn drop(&mut self) {
        if let Carrier::Child { child, input, cancels, log } = &mut self.carrier {
            drop(input.take());
            let end = Instant::now() + CANCEL_PATIENCE;
            while *cancels && matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(10));
            }
            // Both fail only for a process that is gone already.
            child.kill().ok();
            child.wait().ok();
            log.tell_left(&confinement::end_left(child.id()));
        }
    }
}
