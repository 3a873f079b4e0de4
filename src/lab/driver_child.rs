//! A driver as a process of this host: the driver itself, or the ssh that leads to it.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow};

use crate::lab::far::CONNECTION_FAILED;

/// A process that has got its request.
pub(super) struct DriverChild {
    pub(super) child: Child,
    /// Held open: the driver ends when it closes.
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
    pub(super) log: DriverLog,
}

/// The log with the stderr of a driver.
#[derive(Debug)]
pub(super) struct DriverLog {
    path: PathBuf,
    /// Offset of its first byte; earlier drivers wrote the bytes before.
    start: u64,
}

impl DriverChild {
    /// Starts it with its request, a line of JSON. What it writes to stderr goes to the file `log`.
    ///
    /// # Errors
    /// The process cannot be started or does not take its request.
    pub(super) fn start(mut command: Command, request: &str, log: &Path) -> Result<DriverChild> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| format!("open {}", log.display()))?;
        let start = file.metadata().map_or(0, |file| file.len());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            // Ctrl-C on the terminal is the lab's to handle.
            .process_group(0)
            .spawn()?;
        let mut input = child.stdin.take().context("the driver has no standard input")?;
        let output = child.stdout.take().context("the driver has no standard output")?;
        match input.write_all(format!("{request}\n").as_bytes()) {
            // It has ended already; its messages say why.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.context("send the driver its request")?,
        }
        Ok(DriverChild { child, input, output, log: DriverLog { path: log.to_owned(), start } })
    }
}

impl DriverLog {
    /// The error for a driver that ended before it was done. `host` is the client host that it was
    /// on.
    pub(super) fn early_end(&self, host: Option<&str>, status: ExitStatus) -> anyhow::Error {
        let said = self.last_words();
        match host {
            Some(host) if status.code() == Some(CONNECTION_FAILED) => {
                anyhow!("the connection to the client host {host} was cut{said}")
            }
            Some(host) => {
                anyhow!("the driver process on the client host {host} ended early ({status}){said}")
            }
            None => anyhow!("the driver process ended early ({status}){said}"),
        }
    }

    /// The last line that it wrote, as a clause; empty without one.
    fn last_words(&self) -> String {
        // If the log cannot be read, the error stays as it is.
        let bytes = fs::read(&self.path).unwrap_or_default();
        let own = bytes.get(self.start as usize..).unwrap_or_default();
        let text = String::from_utf8_lossy(own);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or_else(String::new, |line| format!(": {}", line.trim()))
    }
}
