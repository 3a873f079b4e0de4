//! The end of the driver proxy on the host of rqps: starts drivers as the rqps on the host of the servers
//! asks for them, and ends them with the connection.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::permit::{DRIVERS, Permit};
use super::{ClientSide, ClientWord, ServerWord};
use crate::lab::driver_child::{BoundedLines, DriverChild, DriverLog};
use crate::lab::driver_hosts::DriverHosts;

/// Between two looks whether a driver that says nothing more has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Between two signs of life to a block.
const SIGN: Duration = Duration::from_secs(10);

/// Bytes that are kept of what a block prints beside its words.
const REST_MOST: usize = 64 << 20;

/// The drivers of a block on another host. Dropping it closes the life line of the block, and waits
/// until its output has ended, and with it all drivers.
pub(in crate::lab) struct DriverProxy {
    line: Arc<BlockLine>,
    thread: Option<JoinHandle<()>>,
    last_sign: Instant,
}

/// The line to the block.
struct BlockLine {
    hosts: Arc<DriverHosts>,
    /// As the block knows them, in the same order.
    side: ClientSide,
    /// What it may ask for.
    permit: Arc<Permit>,
    /// To the block; `None` once its life line is closed.
    input: Mutex<Option<ChildStdin>>,
    /// The first part of the paths of logs, which get the stderr of drivers.
    logs: String,
}

/// A driver for the block. Dropping it ends the process.
struct Running {
    child: Arc<Mutex<Child>>,
    input: ChildStdin,
}

impl DriverProxy {
    /// Begins to serve a block, by its standard input and output. What it prints beside its words
    /// goes to `log`; logs of drivers are beside that file.
    ///
    /// # Errors
    /// The log cannot be written, or no thread can be started.
    pub(in crate::lab) fn begin(
        (hosts, side, permit): (&Arc<DriverHosts>, &ClientSide, &Arc<Permit>),
        (input, output): (ChildStdin, ChildStdout),
        log: &Path,
    ) -> Result<DriverProxy> {
        let rest = File::options().append(true).open(log);
        let rest = rest.with_context(|| format!("open {}", log.display()))?;
        let line = Arc::new(BlockLine {
            hosts: Arc::clone(hosts),
            side: side.clone(),
            permit: Arc::clone(permit),
            input: Mutex::new(Some(input)),
            logs: log.display().to_string(),
        });
        line.say(&ClientWord::Side(side.clone()));
        let served = Arc::clone(&line);
        let thread = thread::Builder::new()
            .name("driver proxy".to_owned())
            .spawn(move || served.serve(output, rest))
            .context("start a thread")?;
        Ok(DriverProxy { line, thread: Some(thread), last_sign: Instant::now() })
    }

    /// Tells the block from time to time that the connection stands.
    pub(in crate::lab) fn give_sign(&mut self) {
        if self.last_sign.elapsed() > SIGN {
            self.line.say(&ClientWord::Alive);
            self.last_sign = Instant::now();
        }
    }

    /// Closes the life line of the block, which then stops.
    pub(in crate::lab) fn hang_up(&self) {
        *self.line.input.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for DriverProxy {
    fn drop(&mut self) {
        self.hang_up();
        if let Some(thread) = self.thread.take() {
            // It has nothing to report; what it started has ended with it.
            thread.join().ok();
        }
        for place in 0..self.line.side.hosts.len() {
            let log = self.line.log_of(place);
            if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
                fs::remove_file(&log).ok();
            }
        }
    }
}

impl BlockLine {
    /// Carries out what the block asks for until its output ends: then it has ended, or its
    /// connection, and so do its drivers.
    fn serve(self: &Arc<Self>, output: ChildStdout, mut rest: File) {
        let mut drivers: BTreeMap<u32, Running> = BTreeMap::new();
        let mut left = REST_MOST;
        for line in BoundedLines::of(output).map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(ServerWord::Start { driver, host, request }) => {
                    let started = if drivers.len() < DRIVERS {
                        self.start(driver, host, &request)
                    } else {
                        Err(anyhow!("start one more driver than {DRIVERS} at once"))
                    };
                    match started {
                        Ok(running) => drop(drivers.insert(driver, running)),
                        Err(error) => {
                            self.say(&ClientWord::Ended { driver, why: format!("{error:#}") });
                        }
                    }
                }
                Ok(ServerWord::Tell { driver, line }) => {
                    if let Some(running) = drivers.get_mut(&driver) {
                        // One that is gone is reported when its output ends.
                        running.input.write_all(format!("{line}\n").as_bytes()).ok();
                    }
                }
                Ok(ServerWord::End { driver }) => drop(drivers.remove(&driver)),
                // What a shell there prints when it starts.
                Err(_) if line.len() < left => {
                    left -= line.len();
                    drop(writeln!(rest, "{line}"));
                }
                Err(_) => {}
            }
        }
    }

    fn start(self: &Arc<Self>, driver: u32, host: usize, request: &str) -> Result<Running> {
        let name = self.side.hosts.get(host).map(|host| host.name.clone()).unwrap_or_default();
        let what = || format!("start a driver on the client host {name}");
        let carrier = self.side.hosts.get(host).with_context(what)?;
        self.permit.check(request, carrier).with_context(what)?;
        let command = self.hosts.driver(host).with_context(what)?;
        let started =
            DriverChild::start(command, request, &self.log_of(host)).with_context(what)?;
        let DriverChild { child, input, output, log } = started;
        let child = Arc::new(Mutex::new(child));
        let (line, process) = (Arc::clone(self), Arc::clone(&child));
        let pass_on = move || {
            for said in BoundedLines::of(output).map_while(Result::ok) {
                line.say(&ClientWord::Said { driver, line: said });
            }
            let why = end_of(&process, (&log, &name));
            line.say(&ClientWord::Ended { driver, why });
        };
        thread::Builder::new()
            .name("driver".to_owned())
            .spawn(pass_on)
            .context("start a thread")?;
        Ok(Running { child, input })
    }

    fn log_of(&self, host: usize) -> PathBuf {
        PathBuf::from(format!("{}.driver-{}", self.logs, host + 1))
    }

    /// Says a word to the block. If the block is gone, its executor sees that.
    fn say(&self, word: &ClientWord) {
        let Ok(line) = serde_json::to_string(word) else { return };
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(input) = input.as_mut() {
            input.write_all(format!("{line}\n").as_bytes()).ok();
        }
    }
}

/// Waits for the end of a driver whose output has ended; returns how it was.
fn end_of(process: &Mutex<Child>, (log, host): (&DriverLog, &str)) -> String {
    loop {
        // Not with the lock: who ends the driver needs it.
        let ended = process.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        match ended {
            Ok(None) => thread::sleep(LOOK),
            Ok(Some(status)) => return log.early_end(Some(host), status).to_string(),
            Err(error) => return format!("wait for the driver on the client host {host}: {error}"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Both fail only for a process that is gone already.
        child.kill().ok();
        child.wait().ok();
        rqps_host::confinement::end_left(child.id());
    }
}
