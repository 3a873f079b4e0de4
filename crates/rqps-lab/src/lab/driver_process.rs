//! The other process: spawns `rqps driver`, hands it its request, and passes its messages on. Where
//! another rqps starts drivers, the process is at the end of a line to that one.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value as Json;

use crate::lab::driver_proxy::{ClientLine, ProxiedDriver};
use crate::lab::ssh::CONNECTION_FAILED;
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverCommand, DriverRequest};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, Masked};
use rqps_host::valgrind::Callgrind;
use rqps_host::{beneath, confinement};
use rqps_model::escape;

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

/// The time in which a driver that waits must read a word.
const ATTENTION: Duration = Duration::from_secs(30);

/// A driver at work. Dropping it ends the process.
pub(super) struct DriverProcess {
    carrier: Carrier,
    /// The client host that it is on; `None` for this one.
    host: Option<String>,
    /// Its lines.
    messages: Receiver<Result<String>>,
    /// What no message may hold.
    secrets: Vec<String>,
}

/// The connection to a driver.
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
        let secrets = request.secrets();
        Ok(DriverProcess { carrier: Carrier::Line(driver), host, messages, secrets })
    }

    /// Starts a driver by a command, on this host or one that leads to a client host. It ends when its
    /// standard input does: with ssh, the connection, or this process.
    ///
    /// # Errors
    /// The process cannot be started.
    pub(super) fn started(
        command: Command,
        host: Option<&str>,
        request: &DriverRequest,
        log: &Path,
    ) -> Result<DriverProcess> {
        let line = serde_json::to_string(request)?;
        let secrets = request.secrets();
        let started = DriverChild::start(command, (&line, &secrets), log)?;
        let DriverChild { child, input, output, log } = started;
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
        Ok(DriverProcess { carrier, host: host.map(str::to_owned), messages, secrets })
    }

    /// Its process id, if it is a process of this host.
    pub(super) fn pid(&self) -> Option<u32> {
        match &self.carrier {
            Carrier::Child { child, .. } => Some(child.id()),
            Carrier::Line(_) => None,
        }
    }

    /// Tells a driver that waits a word.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn tell(&mut self, word: DriverCommand) -> Result<()> {
        let told = match &mut self.carrier {
            Carrier::Child { input: None, .. } => Ok(()),
            Carrier::Child { input: Some(input), .. } => {
                command_output::say(input, &word.to_string(), ATTENTION)
                    .map_err(anyhow::Error::from)
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
                event_of(&line, &self.secrets).map(Some).map_err(|error| {
                    let (said, why) = (escape::masked(&line, &self.secrets), escape::fault(error));
                    anyhow!("understand `{said}`: {why}")
                })
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

/// The message of a line, without secrets.
fn event_of(line: &str, secrets: &[String]) -> serde_json::Result<DriverEvent> {
    // One with a quote or a backslash is not in the line as it is.
    if !secrets.iter().any(|secret| line.contains(secret) || line.contains('\\')) {
        return serde_json::from_str(line);
    }
    let mut message = serde_json::from_str(line)?;
    mask(&mut message, secrets, false);
    // A word of the messages themselves may be a password, too.
    serde_json::from_value(message).or_else(|_| serde_json::from_str(line))
}

/// Masks all texts of a message, and the codes of errors, which a program chooses.
fn mask(message: &mut Json, secrets: &[String], is_of_errors: bool) {
    match message {
        Json::String(text) => {
            if let Cow::Owned(masked) = escape::masked(text, secrets) {
                *text = masked;
            }
        }
        Json::Array(all) => all.iter_mut().for_each(|one| mask(one, secrets, false)),
        Json::Object(fields) => {
            let of = |name: &str| {
                if is_of_errors { escape::masked(name, secrets).into() } else { name.to_owned() }
            };
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    mask(&mut value, secrets, name == "errors");
                    (of(&name), value)
                })
                .collect();
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
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

// A driver as a process of this host: the driver itself, or the ssh that leads to it.

/// Bytes at the end of a log in which an error looks for words.
const WORDS_MOST: u64 = 1 << 20;
/// Lines of a panic that an error shows.
const PANIC_LINES: usize = 5;

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
    /// Tells when all is written.
    written: Receiver<()>,
}

/// The time that the last words of a dead driver may take.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

impl DriverChild {
    /// Starts it with its request, a line of JSON. What it writes to stderr goes to the file `log`,
    /// without these secrets.
    ///
    /// # Errors
    /// The process cannot be started or does not take its request.
    pub(super) fn start(
        mut command: Command,
        (request, secrets): (&str, &[String]),
        log: &Path,
    ) -> Result<DriverChild> {
        let file = beneath::to_append(log).with_context(|| format!("open {}", log.display()))?;
        let start = file.metadata().map_or(0, |file| file.len());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("the driver has no standard input")?;
        let output = child.stdout.take().context("the driver has no standard output")?;
        let errors = child.stderr.take().context("the driver has no standard error")?;
        let errors = Masked::over(errors, secrets.to_owned());
        let written = command_output::keep_log(errors, file);
        match input.write_all(format!("{request}\n").as_bytes()) {
            // It has ended already; its messages say why.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.context("send the driver its request")?,
        }
        let log = DriverLog { path: log.to_owned(), start, written };
        Ok(DriverChild { child, input, output, log })
    }
}

impl DriverLog {
    /// Writes down what the driver left running, and was ended.
    fn tell_left(&self, left: &[String]) {
        let Ok(mut log) = beneath::to_append(&self.path) else { return };
        for process in left {
            // A log that cannot be written ends no run.
            let _ = writeln!(log, "rqps: ended what the driver left running: {process}");
        }
    }

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

    /// The last panic in the log as a clause, otherwise the last line; empty for an empty log.
    fn last_words(&self) -> String {
        self.written.recv_timeout(LOG_PATIENCE).ok();
        // If the log cannot be read, the error stays as it is.
        let length = fs::metadata(&self.path).map_or(0, |log| log.len());
        let own = length.saturating_sub(self.start).min(WORDS_MOST);
        let bytes = beneath::end(&self.path, 0, own).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_word = |line: &&str| !line.starts_with("note: ") && *line != "stack backtrace:";
        let words: Vec<&str> = match lines.iter().rposition(|line| line.contains(" panicked at ")) {
            Some(at) => lines[at..].iter().copied().take_while(is_word).take(PANIC_LINES).collect(),
            None => lines.last().copied().into_iter().collect(),
        };
        if words.is_empty() { String::new() } else { format!(": {}", words.join(" ")) }
    }
}

/// The longest line, in bytes. The largest message has the seconds of a long step.
const MOST: u64 = 64 << 20;

/// The lines of what a process says.
pub(super) struct BoundedLines<R> {
    from: BufReader<R>,
    most: u64,
}

impl<R: Read> BoundedLines<R> {
    pub(super) fn of(from: R) -> BoundedLines<R> {
        BoundedLines { from: BufReader::new(from), most: MOST }
    }
}

impl<R: Read> Iterator for BoundedLines<R> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let mut line = Vec::new();
        match self.from.by_ref().take(self.most).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 >= self.most {
            return Some(Err(io::Error::other(format!(
                "a line is longer than {} bytes",
                self.most
            ))));
        }
        Some(String::from_utf8(line).map_err(io::Error::other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_holds_no_secret() {
        let secrets = ["pa\"ss".to_owned(), "rows".to_owned(), "failed".to_owned()];
        let check = |line: &str, shown: &str| {
            let event = event_of(line, &secrets).unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), shown);
        };
        check(
            r#"{"failed":{"fault":"login pa\"ss failed"}}"#,
            r#"{"failed":{"fault":"login *** ***"}}"#,
        );
        // Names of fields stay.
        check(r#"{"loading":{"rows":1,"of":2}}"#, r#"{"loading":{"rows":1,"of":2}}"#);
        let mut outcome = serde_json::json!({"errors":{"rows":1},"facts":{"rows":"failed"}});
        mask(&mut outcome, &secrets, false);
        assert_eq!(outcome.to_string(), r#"{"errors":{"***":1},"facts":{"rows":"***"}}"#);
    }

    fn words(log: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("earlier driver\n{log}")).unwrap();
        let start = "earlier driver\n".len() as u64;
        DriverLog { path: file.path().to_owned(), start, written: std::sync::mpsc::channel().1 }
            .last_words()
    }

    #[test]
    fn a_driver_that_panicked_tells_where_and_why_and_another_its_last_line() {
        let panic = "one\n\nthread 'client 2' (77) panicked at crates/rqps-driver/src/step.rs:9:5:\n\
                     index out of bounds\nof the list\nnote: run with `RUST_BACKTRACE=1`\n";
        let said = ": thread 'client 2' (77) panicked at crates/rqps-driver/src/step.rs:9:5: index out of \
                    bounds of the list";
        assert_eq!(words(panic), said);
        let traced = panic.replace("note: run", "stack backtrace:\n   0: begin\nnote: run");
        assert_eq!(words(&traced), said);
        assert_eq!(words("one\ntwo\n\n"), ": two");
        assert_eq!(words(""), "");
    }
}

#[cfg(test)]
mod bounded_lines_tests {
    use super::*;

    #[test]
    fn a_line_that_never_ends_is_an_error() {
        let lines =
            |text: &'static str| BoundedLines { from: BufReader::new(text.as_bytes()), most: 8 };
        let all: Vec<String> = lines("one\ntwo").map(Result::unwrap).collect();
        assert_eq!(all, ["one", "two"]);
        let mut endless = BoundedLines { from: BufReader::new(io::repeat(b'x')), most: 8 };
        assert!(endless.next().unwrap().is_err());
    }
}
