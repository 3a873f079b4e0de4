//! Clients of servers on another host: the rqps there, which measures, asks the rqps here for
//! drivers, over the connection that it lives by. Their lines go both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lab::client_hosts::DriverHosts;
use crate::lab::driver_process::{BoundedLines, DriverChild, DriverLog};
use rqps_driver::request::{DriverRequest, RequestBody};
use rqps_host::beneath;
use rqps_model::endpoint::{Address, Endpoint, ServerKey, Tls};

/// A word of the rqps that runs servers to the one that starts drivers. It numbers the drivers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::lab) enum ServerWord {
    /// Start a driver on the host at that place of the list, with this line as its request.
    Start { driver: u32, host: usize, request: String },
    /// Pass a line on to a driver.
    Tell { driver: u32, line: String },
    /// End a driver.
    End { driver: u32 },
}

/// A word of the rqps that starts drivers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::lab) enum ClientWord {
    /// The first word.
    Side(ClientSide),
    /// Nothing, but the connection stands.
    Alive,
    /// A line of a driver.
    Said { driver: u32, line: String },
    /// A driver has ended, or could not be started.
    Ended { driver: u32, why: String },
}

/// Facts of the clients for the rqps that runs their servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::lab) struct ClientSide {
    /// The address at which servers listen for them.
    pub(in crate::lab) address: IpAddr,
    /// Hosts that carry them.
    pub(in crate::lab) hosts: Vec<CarrierHost>,
}

/// A host that carries clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::lab) struct CarrierHost {
    /// As the plan names it.
    pub(in crate::lab) name: String,
    /// Folder there for data that take long to make.
    pub(in crate::lab) datasets: PathBuf,
}

// The end of the driver proxy on the host of rqps: starts drivers as the rqps on the host of the servers
// asks for them, and ends them with the connection.

/// Between two looks whether a driver that says nothing more has ended.
const END_LOOK: Duration = Duration::from_millis(10);
/// Between two signs of life to a block.
const SIGN: Duration = Duration::from_secs(10);

/// Bytes that are kept of what a block prints beside its words.
const REST_MOST: usize = 64 << 20;

/// The drivers of a block on another host. Dropping it closes the life line of the block, and waits
/// until its output has ended, and with it all drivers.
pub(super) struct DriverProxy {
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
    pub(super) fn begin(
        (hosts, side, permit): (&Arc<DriverHosts>, &ClientSide, &Arc<Permit>),
        (input, output): (ChildStdin, ChildStdout),
        log: &Path,
    ) -> Result<DriverProxy> {
        let rest = beneath::to_append(log);
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
    pub(super) fn give_sign(&mut self) {
        if self.last_sign.elapsed() > SIGN {
            self.line.say(&ClientWord::Alive);
            self.last_sign = Instant::now();
        }
    }

    /// Closes the life line of the block, which then stops.
    pub(super) fn hang_up(&self) {
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
        let secrets =
            serde_json::from_str::<DriverRequest>(request).map(|request| request.secrets());
        let secrets = secrets.with_context(what)?;
        let started = DriverChild::start(command, (request, &secrets), &self.log_of(host));
        let started = started.with_context(what)?;
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
            Ok(None) => thread::sleep(END_LOOK),
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

// The end of the driver proxy on the host of the servers: asks for drivers and hands out what they say.

/// The other end says who carries clients at once.
const GREETING: Duration = Duration::from_secs(60);
/// The other end is never silent for so long, unless the network loses all that it says.
const SILENCE: Duration = Duration::from_secs(60);
/// Between two looks at how long it was silent.
const LOOK: Duration = Duration::from_secs(1);

/// The line to the rqps that starts drivers: standard input and output of this process.
pub struct ClientLine {
    output: Mutex<Box<dyn Write + Send>>,
    drivers: Arc<Drivers>,
    /// The first message of the other end.
    side: Mutex<Receiver<ClientSide>>,
    last_number: AtomicU32,
}

/// The receivers of each driver's lines, by its number.
type Listeners = BTreeMap<u32, Sender<Result<String>>>;

/// The known state of the other end.
struct Drivers {
    /// `None` once the line is cut.
    listeners: Mutex<Option<Listeners>>,
    /// Becomes true then.
    stop: Arc<AtomicBool>,
    /// Time of its last message.
    heard: Mutex<Instant>,
}

/// A driver at the other end. Dropping it ends the driver.
pub(super) struct ProxiedDriver {
    number: u32,
    line: Arc<ClientLine>,
}

impl ClientLine {
    /// Begins to listen on standard input. Sets `stop` when that ends, or is silent for long: the
    /// connection was cut, or the rqps at the other end is gone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(
        stop: &Arc<AtomicBool>,
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
    ) -> Result<Arc<ClientLine>> {
        ClientLine::with_patience(stop, (input, output), (SILENCE, LOOK))
    }

    fn with_patience(
        stop: &Arc<AtomicBool>,
        (input, output): (Box<dyn Read + Send>, Box<dyn Write + Send>),
        (silence, look): (Duration, Duration),
    ) -> Result<Arc<ClientLine>> {
        let drivers = Arc::new(Drivers {
            listeners: Mutex::new(Some(BTreeMap::new())),
            stop: Arc::clone(stop),
            heard: Mutex::new(Instant::now()),
        });
        let (sender, side) = channel();
        let (listening, waiting) = (Arc::clone(&drivers), Arc::clone(&drivers));
        let begin = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work).context("start a thread")
        };
        begin("client line", Box::new(move || listening.listen(input, &sender)))?;
        let watch = move || {
            while !waiting.is_cut() {
                thread::sleep(look);
                if waiting.heard().elapsed() > silence {
                    waiting.cut();
                }
            }
        };
        begin("silence", Box::new(watch))?;
        let (output, side) = (Mutex::new(output), Mutex::new(side));
        Ok(Arc::new(ClientLine { output, drivers, side, last_number: AtomicU32::new(0) }))
    }

    /// Waits for the message of the other end about the clients. It comes once.
    ///
    /// # Errors
    /// No message comes.
    pub(super) fn side(&self) -> Result<ClientSide> {
        let side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        side.recv_timeout(GREETING).context("learn from the rqps that starts drivers who runs them")
    }

    /// Has a driver started on the host at that place of the list. Its lines come until it has
    /// ended: then comes an error.
    ///
    /// # Errors
    /// The line is cut.
    pub(super) fn start(
        self: &Arc<Self>,
        host: usize,
        request: String,
    ) -> Result<(ProxiedDriver, Receiver<Result<String>>)> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, lines) = channel();
        match self.drivers.lock().as_mut() {
            Some(drivers) => drop(drivers.insert(number, sender)),
            None => bail!("the connection to the rqps that starts drivers was cut"),
        }
        let driver = ProxiedDriver { number, line: Arc::clone(self) };
        self.say(&ServerWord::Start { driver: number, host, request })?;
        Ok((driver, lines))
    }

    fn say(&self, word: &ServerWord) -> Result<()> {
        let line = serde_json::to_string(word)?;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(output, "{line}")
            .and_then(|()| output.flush())
            .context("speak to the rqps that starts drivers")
    }
}

impl Drivers {
    fn lock(&self) -> MutexGuard<'_, Option<Listeners>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Instant> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cut(&self) -> bool {
        self.lock().is_none()
    }

    /// Lets nobody wait for the other end any more.
    fn cut(&self) {
        self.stop.store(true, Ordering::Relaxed);
        *self.lock() = None;
    }

    /// Hands out what the other end says, until it says nothing more.
    fn listen(&self, input: Box<dyn Read + Send>, side: &Sender<ClientSide>) {
        // An error is an end, too.
        for line in BoundedLines::of(input).map_while(Result::ok) {
            *self.heard() = Instant::now();
            match serde_json::from_str(&line) {
                // Nobody waits for it a second time.
                Ok(ClientWord::Side(said)) => drop(side.send(said)),
                Ok(ClientWord::Alive) => {}
                Ok(ClientWord::Said { driver, line }) => self.hear(driver, Ok(line)),
                Ok(ClientWord::Ended { driver, why }) => self.hear(driver, Err(anyhow!("{why}"))),
                Err(error) => self.fail_all(&format!("understand `{line}`: {error}")),
            }
        }
        self.cut();
    }

    /// Passes on what a driver said, unless nobody cares any more.
    fn hear(&self, driver: u32, said: Result<String>) {
        if let Some(listener) = self.lock().as_ref().and_then(|drivers| drivers.get(&driver)) {
            listener.send(said).ok();
        }
    }

    fn fail_all(&self, why: &str) {
        for listener in self.lock().iter().flat_map(BTreeMap::values) {
            listener.send(Err(anyhow!("{why}"))).ok();
        }
    }
}

impl ProxiedDriver {
    /// Passes a line on to it.
    ///
    /// # Errors
    /// The line is cut.
    pub(super) fn tell(&self, line: String) -> Result<()> {
        self.line.say(&ServerWord::Tell { driver: self.number, line })
    }
}

impl Drop for ProxiedDriver {
    fn drop(&mut self) {
        if let Some(drivers) = self.line.drivers.lock().as_mut() {
            drivers.remove(&self.number);
        }
        // If the line is cut, the other end has ended it.
        self.line.say(&ServerWord::End { driver: self.number }).ok();
    }
}

// What a server host may ask for. A request for a driver comes from there, and the driver runs on
// a host of the user's: it connects to the servers of the block, reads the files of the plan, and
// nothing else.

/// Drivers at once: two for each of many targets.
const DRIVERS: usize = 256;

/// The rules for one block.
pub(super) struct Permit {
    address: IpAddr,
    /// Files of the plan that drivers read.
    files: BTreeSet<PathBuf>,
    /// True if the user allowed scripts to run programs.
    shell: bool,
}

impl Permit {
    pub(super) fn new(
        address: IpAddr,
        files: impl Iterator<Item = PathBuf>,
        shell: bool,
    ) -> Permit {
        Permit { address, files: files.collect(), shell }
    }

    /// Checks a request for a driver on this host.
    ///
    /// # Errors
    /// It asks for something else than the plan needs.
    pub(super) fn check(&self, request: &str, host: &CarrierHost) -> Result<()> {
        let value: Value = serde_json::from_str(request)?;
        let request: DriverRequest = serde_json::from_str(request)?;
        match (&request.endpoint, &request.task) {
            (Endpoint::Fake { .. }, _) => {}
            (Endpoint::Server(Address::Tcp { host, tls, .. }), _)
                if host.parse() == Ok(self.address) && !names_files(tls) => {}
            _ => bail!("the server host asked for a driver on {:?}", request.endpoint),
        }
        // To open a device may do something by itself.
        if request.scratch.is_some() || request.standstill.is_some() {
            bail!("the server host named a folder for scripts, or a page of a client host");
        }
        if let Some(turns) = &request.turns
            && !is_page(&turns.page)
        {
            bail!("the server host named the page of turns {:?}", turns.page);
        }
        if let RequestBody::Step(step) = &request.task {
            if step.server_pid.is_some() {
                bail!("the server host named a process of a client host");
            }
            if step.cache.as_ref().is_some_and(|cache| *cache != host.datasets) {
                bail!("the server host named the folder {:?}", step.cache);
            }
        }
        self.check_paths(&value["task"], host)
    }

    /// Drivers work in the root folder, so a path is what begins there.
    fn check_paths(&self, value: &Value, host: &CarrierHost) -> Result<()> {
        match value {
            Value::String(text) => {
                let path = Path::new(text);
                let is_known = self.files.contains(path) || *path == host.datasets;
                if may_be_path(text) && !is_known && !self.is_folder_of_file(path) {
                    bail!("the server host named {:?}, which is no file of the plan", text);
                }
                Ok(())
            }
            Value::Array(all) => all.iter().try_for_each(|one| self.check_paths(one, host)),
            Value::Object(all) if !self.shell && all.get("shell") == Some(&Value::Bool(true)) => {
                bail!("the server host has a script run programs")
            }
            Value::Object(all) => all.values().try_for_each(|one| self.check_paths(one, host)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn is_folder_of_file(&self, path: &Path) -> bool {
        self.files.iter().any(|file| file.parent() == Some(path))
    }
}

/// True if a login would read certificates or keys, which servers that rqps runs do not need.
fn names_files(tls: &Tls) -> bool {
    let has_key = matches!(tls.consent.key, ServerKey::File(_));
    tls.roots.is_some() || tls.identity.is_some() || has_key
}

/// True if a text may be a path from the root folder: it begins with a slash, or with the name of a
/// folder there, or is that of a file there.
fn may_be_path(text: &str) -> bool {
    const AT_ROOT: [&str; 20] = [
        "", ".", "..", "bin", "boot", "data", "dev", "etc", "home", "lib", "media", "mnt", "opt",
        "proc", "root", "run", "srv", "tmp", "usr", "var",
    ];
    let Some((first, _)) = text.split_once('/') else {
        return !text.is_empty() && Path::new("/").join(text).is_file();
    };
    let is_comment = text.starts_with("/*");
    !is_comment && (AT_ROOT.contains(&first) || Path::new("/").join(first).is_dir())
}

/// `/proc/17/fd/5`: a page is memory of a process. The driver checks that it is no file.
fn is_page(path: &Path) -> bool {
    let parts: Vec<&str> = path.to_str().unwrap_or_default().split('/').collect();
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    matches!(parts.as_slice(), ["", "proc", pid, "fd", fd] if is_number(pid) && is_number(fd))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;

    use super::*;
    use crate::lab::driver_proxy::CarrierHost;

    const LONG: Duration = Duration::from_secs(3600);

    /// A line, its other end, and whether the block is to stop.
    fn line(silence: Duration) -> (Arc<ClientLine>, UnixStream, Arc<AtomicBool>) {
        let (near, far) = UnixStream::pair().expect("a pair");
        let stop = Arc::new(AtomicBool::new(false));
        let input = Box::new(near.try_clone().expect("clone"));
        let patience = (silence, Duration::from_millis(1));
        let line = ClientLine::with_patience(&stop, (input, Box::new(near)), patience);
        (line.expect("a line"), far, stop)
    }

    fn say(far: &mut UnixStream, word: &ClientWord) {
        writeln!(far, "{}", serde_json::to_string(word).expect("a word")).expect("say");
    }

    #[test]
    fn a_driver_is_asked_for_and_heard_and_ended() {
        let (line, mut far, stop) = line(LONG);
        let host = CarrierHost { name: "h".to_owned(), datasets: PathBuf::from("/d") };
        let side = ClientSide { address: [127, 0, 0, 1].into(), hosts: vec![host] };
        say(&mut far, &ClientWord::Side(side.clone()));
        assert_eq!(line.side().expect("it was said"), side);
        let mut words = BufReader::new(far.try_clone().expect("clone")).lines();
        let mut next = || -> ServerWord {
            serde_json::from_str(&words.next().expect("a line").expect("text")).expect("a word")
        };
        let (driver, heard) = line.start(0, "{}".to_owned()).expect("a driver");
        let request = "{}".to_owned();
        assert_eq!(next(), ServerWord::Start { driver: 1, host: 0, request });
        driver.tell("clock".to_owned()).expect("tell");
        assert_eq!(next(), ServerWord::Tell { driver: 1, line: "clock".to_owned() });
        say(&mut far, &ClientWord::Said { driver: 2, line: "of another".to_owned() });
        say(&mut far, &ClientWord::Said { driver: 1, line: "a \"word\"".to_owned() });
        say(&mut far, &ClientWord::Ended { driver: 1, why: "it was killed".to_owned() });
        assert_eq!(heard.recv().expect("a line").expect("no error"), "a \"word\"");
        let why = heard.recv().expect("its end").expect_err("an error");
        assert_eq!(why.to_string(), "it was killed");
        drop(driver);
        assert_eq!(next(), ServerWord::End { driver: 1 });
        assert!(!stop.load(Ordering::Relaxed));
    }

    #[test]
    fn who_is_gone_or_silent_stops_the_block() {
        let check = |silence: Duration, is_gone: bool| {
            let (line, far, stop) = line(silence);
            let (_driver, heard) = line.start(0, "{}".to_owned()).expect("a driver");
            let kept = (!is_gone).then_some(far);
            assert!(heard.recv().is_err(), "nobody speaks any more");
            assert!(stop.load(Ordering::Relaxed));
            assert!(line.start(0, "{}".to_owned()).is_err());
            drop(kept);
        };
        check(LONG, true);
        check(Duration::from_millis(50), false);
    }
}

#[cfg(test)]
mod permit_tests {
    use super::*;
    use rqps_driver::turns::token::TurnRules;

    fn request(change: &dyn Fn(&mut Value)) -> String {
        let (order, round, ns) = (vec![0, 1], 2, 1);
        let rules = TurnRules { order, round, turn_ns: ns, warmup_ns: ns, window_ns: ns };
        let mut request = DriverRequest::keep_turns(rules);
        let host = "10.0.0.1".to_owned();
        request.endpoint = Endpoint::Server(Address::Tcp { host, port: 5432, tls: Tls::OFF });
        let mut value = serde_json::to_value(&request).unwrap();
        change(&mut value);
        value.to_string()
    }

    #[test]
    fn a_request_names_nothing_but_what_the_plan_has() {
        let files = ["/home/me/plan/a.csv"].map(PathBuf::from);
        let permit = Permit::new([10, 0, 0, 1].into(), files.into_iter(), false);
        let host = CarrierHost { name: "h".to_owned(), datasets: PathBuf::from("/cache/datasets") };
        let check = |change: &dyn Fn(&mut Value), fits: bool| {
            let made = request(change);
            assert_eq!(permit.check(&made, &host).is_ok(), fits, "{made}");
        };
        check(&|_| {}, true);
        check(
            &|value| {
                value["endpoint"] =
                    serde_json::json!({"file": {"path": "/x", "library": "/tmp/evil.so"}})
            },
            false,
        );
        check(&|value| value["endpoint"]["server"]["tcp"]["host"] = "10.0.0.2".into(), false);
        check(&|value| value["scratch"] = "/home/me".into(), false);
        check(&|value| value["standstill"] = "/dev/watchdog".into(), false);
        for (key, files) in [
            ("roots", serde_json::json!("/home/me/ca.pem")),
            ("identity", serde_json::json!({"certificate": "/home/me/c.pem", "key": "/home/me/k"})),
            ("consent", serde_json::json!({"key": {"file": "/home/me/k"}, "clear": false})),
        ] {
            check(&|value| value["endpoint"]["server"]["tcp"]["tls"][key] = files.clone(), false);
        }
        for (text, fits) in [
            ("/home/me/.ssh/id_rsa", false),
            ("home/me/.ssh/id_rsa", false),
            ("../home/me/.ssh/id_rsa", false),
            ("/home/me/plan/a.csv", true),
            ("/cache/datasets", true),
            ("SELECT 1 / 2", true),
            ("/* a */ SELECT 1", true),
            ("N/A", true),
        ] {
            let task = serde_json::json!({"read_tables": {"names": [text], "bytes_most": 1}});
            check(&|value| value["task"] = task.clone(), fits);
        }
        let script = |shell: bool| serde_json::json!({"task": {"work": {"lua": {"shell": shell}}}});
        assert!(permit.check_paths(&script(false), &host).is_ok());
        assert!(permit.check_paths(&script(true), &host).is_err());
        let at_root = std::fs::read_dir("/").unwrap().flatten().find(|it| it.path().is_file());
        if let Some(name) = at_root.and_then(|file| file.file_name().into_string().ok()) {
            assert!(may_be_path(&name) && !may_be_path("home"), "{name}");
        }
        assert!(is_page(Path::new("/proc/17/fd/5")));
        assert!(!is_page(Path::new("/proc/17/fd/../environ")) && !is_page(Path::new("/home/me/a")));
    }
}
