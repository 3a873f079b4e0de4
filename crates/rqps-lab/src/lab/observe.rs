//! Observers of a step: counters of host, server and CPU, who else is at work, the server's log,
//! the counters of the DBMS, its stacks and waits. One file for each [`StepObserver`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rqps_dbms as dbms;
use rqps_dbms::ControlPlane;
use rqps_host::affinity::{CountedEvent, EventCounters};
use rqps_host::noise::DisturbanceWatch;
use rqps_host::perf::{self, EVENT, Perf, Recorded, Recording};
use rqps_host::sample::{CounterSampler, Sample};
use rqps_host::waits::{Looking, Waits};
use rqps_host::{clock, tree};
use rqps_model::counted::{CallGraph, Profiled, Waited};
use rqps_model::endpoint::Endpoint;
use rqps_model::gate::Disturbance;
use rqps_model::run::{Counter, CpuEvents, Outcome, ServerEvent, Usage};
use rqps_model::safe_path;

/// A moment of a step, in this order. A second may come after the end of the window, where work
/// went on.
#[derive(Clone, Copy)]
pub(crate) enum Edge<'a> {
    /// The clients are connected and have not begun. Only clients of servers stop here.
    Prepared,
    /// The window begins now.
    WindowStart,
    /// A second of the window has ended.
    Second,
    /// The window has ended, and work goes on.
    WindowEnd,
    /// The clients are done, and this is what they counted.
    Measured(&'a Outcome),
    /// The clients are gone, and servers know what they did.
    Disconnected(&'a Outcome),
}

/// Observes a step without taking part in it.
pub(crate) trait StepObserver {
    /// Its key in the step's `missing` if it observed nothing.
    fn name(&self) -> &'static str;

    /// Reads what it wants of this moment.
    ///
    /// # Errors
    /// It cannot, for this reason. The step goes on without it.
    fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) -> Result<(), String>;

    /// Puts what it has seen beside what others have.
    fn end(self: Box<Self>, observed: &mut Observed);
}

/// The observations of a step.
#[derive(Default)]
pub(crate) struct Observed {
    /// Changes of the counters of host and server in the window.
    pub(crate) usage: Usage,
    /// Changes of these counters by second.
    pub(crate) seconds: Vec<Usage>,
    pub(crate) disturbance: Option<Disturbance>,
    pub(crate) server_log: Vec<ServerEvent>,
    /// Counters of the DBMS that moved.
    pub(crate) counters: Vec<Counter>,
    /// Its stacks, if they were sampled.
    pub(crate) stacks: Option<SampledStacks>,
    /// Waits of the server's threads, if they were observed.
    pub(crate) waited: Option<Waited>,
}

/// Stacks of the server's processes.
pub(crate) struct SampledStacks {
    pub(crate) sampled: Profiled,
    /// `outer;inner;innermost` → samples.
    pub(crate) folded: HashMap<String, u64>,
}

/// The observers of one step.
pub(crate) struct Observers {
    all: Vec<Box<dyn StepObserver>>,
    /// Observer → why it has nothing to tell.
    missing: BTreeMap<String, String>,
}

impl Observers {
    /// These observers, which see each moment in this order.
    pub(crate) fn new(all: Vec<Box<dyn StepObserver>>) -> Observers {
        Observers { all, missing: BTreeMap::new() }
    }

    /// One more, which sees each moment after the others.
    pub(crate) fn add(&mut self, observer: Box<dyn StepObserver>) {
        self.all.push(observer);
    }

    /// Lets all see a moment. One that cannot is left out from then on.
    pub(crate) fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) {
        let missing = &mut self.missing;
        self.all.retain_mut(|observer| match observer.edge(edge, control) {
            Ok(()) => true,
            Err(reason) => {
                missing.insert(observer.name().to_owned(), reason);
                false
            }
        });
    }

    /// Ends the observers and returns their observations.
    pub(crate) fn end(self) -> Observed {
        let mut observed = Observed::default();
        for observer in self.all {
            observer.end(&mut observed);
        }
        observed.usage.missing.extend(self.missing);
        if let Some(stacks) = &mut observed.stacks {
            stacks.sampled.waited = observed.waited.take();
        }
        observed
    }
}

// The server's log during a step.

/// Reads what the server writes into its log from the start of the window on.
pub(crate) struct ServerLogObserver {
    path: PathBuf,
    part: Option<LogPart>,
    events: Vec<ServerEvent>,
}

impl ServerLogObserver {
    /// For the server with its log in the folder `logs`.
    pub(crate) fn new(logs: &Path) -> ServerLogObserver {
        let path = logs.join("server.log");
        ServerLogObserver { path, part: None, events: Vec::new() }
    }
}

impl StepObserver for ServerLogObserver {
    fn name(&self) -> &'static str {
        "server_log"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        match (edge, &self.part) {
            (Edge::WindowStart, _) => self.part = Some(LogPart::from_now(self.path.clone())),
            (Edge::Measured(outcome), Some(part)) => {
                let turns_took = outcome.turns.as_ref().map(|turns| turns.wall_seconds);
                self.events = part.events(turns_took.unwrap_or(outcome.seconds));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.server_log = self.events;
    }
}

/// The part of a server's log that is written from some moment on.
struct LogPart {
    path: PathBuf,
    from: u64,
    /// Unix seconds.
    start: f64,
}

impl LogPart {
    /// No step needs more of it; a log that is written faster than this tells the same again.
    const BYTES_MAX: u64 = 4 << 20;

    /// From this moment on.
    fn from_now(path: PathBuf) -> LogPart {
        let from = std::fs::metadata(&path).map_or(0, |facts| facts.len());
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        LogPart { path, from, start: start.as_secs_f64() }
    }

    /// The events in the log in the `seconds` since then; empty without a log.
    fn events(&self, seconds: f64) -> Vec<ServerEvent> {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.from))?;
            let mut bytes = Vec::new();
            file.take(LogPart::BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
        let mut events = dbms::events(&text, self.start);
        // A whole second of clocks that tell no fractions.
        events.retain(|event| (-1.0..=seconds + 1.0).contains(&event.at_seconds));
        events
    }
}

/// Reads them before the clients begin and when they are gone. Without a server there are none, and
/// nothing is missing.
#[derive(Default)]
pub(crate) struct DbmsCounterObserver {
    before: Option<BTreeMap<String, f64>>,
    moved: Vec<Counter>,
}

impl StepObserver for DbmsCounterObserver {
    fn name(&self) -> &'static str {
        "dbms_counters"
    }

    fn edge(&mut self, edge: Edge<'_>, control: &mut dyn ControlPlane) -> Result<(), String> {
        match (edge, &self.before) {
            (Edge::Prepared, _) => self.before = Some(control.counters(false)?),
            (Edge::Disconnected(outcome), Some(_)) if outcome.cut.is_some() => {
                return Err("the step reached its time limit".to_owned());
            }
            (Edge::Disconnected(_), Some(before)) => {
                self.moved = moved(before, control.counters(true)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.counters = self.moved;
    }
}

/// Counters that are not what they were. One that is new began at zero.
fn moved(before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) -> Vec<Counter> {
    let counter = |(name, after): (String, f64)| {
        let before = before.get(&name).copied().unwrap_or(0.0);
        (before != after).then_some(Counter { name, before, after })
    };
    after.into_iter().filter_map(counter).collect()
}

// Counters of the host, the disk and the server's processes: over the window and in each second.

/// Reads the counters at each moment of the window.
pub(crate) struct CounterObserver {
    sampler: CounterSampler,
    /// At the start of the window, and at the end of the last second.
    first_and_last: Option<(Sample, Sample)>,
    /// At the end of the window.
    end: Option<Sample>,
    usage: Usage,
    seconds: Vec<Usage>,
}

impl CounterObserver {
    /// Reads them by `sampler`.
    pub(crate) fn new(sampler: CounterSampler) -> CounterObserver {
        let usage = Usage::default();
        CounterObserver { sampler, first_and_last: None, end: None, usage, seconds: Vec::new() }
    }
}

impl StepObserver for CounterObserver {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        match (edge, &mut self.first_and_last) {
            (Edge::WindowStart, window) => {
                let first = self.sampler.read();
                *window = Some((first.clone(), first));
            }
            (Edge::Second, Some((_, last))) => {
                let now = self.sampler.read();
                self.seconds.push(now.since(last));
                *last = now;
            }
            (Edge::WindowEnd, Some(_)) => self.end = Some(self.sampler.read()),
            (Edge::Measured(_), Some((first, _))) => {
                let end = self.end.take().unwrap_or_else(|| self.sampler.read());
                self.usage = end.since(first);
                self.sampler.read_memory(&mut self.usage);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.usage = self.usage;
        observed.seconds = self.seconds;
    }
}

const EVENTS: [CountedEvent; 2] = [CountedEvent::Instructions, CountedEvent::Cycles];

/// Counts from before the window to its end.
pub(crate) struct CpuEventObserver {
    server: Side,
    driver: Side,
}

/// The server's processes, or the driver.
struct Side {
    /// `None` if there is none on this host.
    root: Option<u32>,
    counters: Option<EventCounters>,
    counted: Option<CpuEvents>,
}

impl CpuEventObserver {
    /// Watches the processes below `server`, and the process `driver`.
    pub(crate) fn new(server: Option<u32>, driver: Option<u32>) -> CpuEventObserver {
        let side = |root| Side { root, counters: None, counted: None };
        CpuEventObserver { server: side(server), driver: side(driver) }
    }

    fn sides(&mut self) -> [&mut Side; 2] {
        [&mut self.server, &mut self.driver]
    }
}

impl Side {
    /// Opens counters of all threads that exist.
    fn open(&mut self) -> Result<(), String> {
        let Some(root) = self.root.filter(|_| self.counters.is_none()) else { return Ok(()) };
        let mut threads = Vec::new();
        for process in tree::processes(root).map_err(|error| error.to_string())? {
            // One that ends meanwhile is left out.
            threads.extend(tree::threads(process).unwrap_or_default());
        }
        self.counters = Some(EventCounters::open(&threads, &EVENTS)?);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), String> {
        self.counters.as_mut().map_or(Ok(()), EventCounters::begin)
    }

    fn count(&mut self) -> Result<(), String> {
        let Some(counters) = &mut self.counters else { return Ok(()) };
        let [instructions, cycles] = counters.moved()?[..] else { return Ok(()) };
        self.counted.get_or_insert(CpuEvents { instructions, cycles });
        Ok(())
    }
}

impl StepObserver for CpuEventObserver {
    fn name(&self) -> &'static str {
        "cpu_events"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        let mut sides = self.sides().into_iter();
        match edge {
            Edge::Prepared => sides.try_for_each(Side::open),
            Edge::WindowStart => sides.try_for_each(|side| side.open().and_then(|()| side.begin())),
            Edge::WindowEnd | Edge::Measured(_) => sides.try_for_each(Side::count),
            Edge::Second | Edge::Disconnected(_) => Ok(()),
        }
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.usage.server_events = self.server.counted;
        observed.usage.client_events = self.driver.counted;
    }
}

/// Watches from before the clients start until they are done.
pub(crate) struct DisturbanceObserver {
    watch: Option<DisturbanceWatch>,
    is_server: bool,
    seen: Option<Disturbance>,
}

impl DisturbanceObserver {
    /// Begins to watch; `None` where nothing real is measured.
    pub(crate) fn begin(
        endpoint: &Endpoint,
        server_pid: Option<u32>,
    ) -> Option<DisturbanceObserver> {
        if matches!(endpoint, Endpoint::Fake { .. }) {
            return None;
        }
        let ours: Vec<u32> = server_pid.into_iter().chain([std::process::id()]).collect();
        let is_server = matches!(endpoint, Endpoint::Server(_));
        Some(DisturbanceObserver {
            watch: Some(DisturbanceWatch::begin(&ours)),
            is_server,
            seen: None,
        })
    }

    /// The disturbance. A server that rqps does not run may be on this host unrecognised; its CPU
    /// would then count as that of a stranger.
    fn seen(&self, watch: DisturbanceWatch) -> Disturbance {
        let known = watch.knows_server();
        let mut seen = watch.end();
        if self.is_server && !known {
            seen.foreign_cpu = None;
            let reason = "unknown server processes, which may be among the others";
            seen.missing.insert("foreign_cpu".to_owned(), reason.to_owned());
        }
        seen
    }
}

impl StepObserver for DisturbanceObserver {
    fn name(&self) -> &'static str {
        "disturbance"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        if let Edge::Measured(_) = edge
            && let Some(watch) = self.watch.take()
        {
            self.seen = Some(self.seen(watch));
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.disturbance = self.seen;
    }
}

// The stacks of the server's processes in the window, as perf samples them.

/// So long a process must live that is to be sampled.
const SETTLE: Duration = Duration::from_millis(100);

/// Samples a process with all that it started.
pub(crate) struct ProfileObserver {
    perf: Perf,
    hertz: u32,
    call_graph: CallGraph,
    /// The server, or the client that a library works in.
    root: u32,
    in_client: bool,
    folder: PathBuf,
    recording: Option<Recording>,
    recorded: Option<Recorded>,
    /// The processes that were there at the beginning or at the end of the window.
    processes: BTreeSet<u32>,
    /// Start and end of the window, seconds of the monotonic clock.
    window: (f64, f64),
    found: Option<SampledStacks>,
}

fn monotonic_seconds() -> f64 {
    clock::monotonic_ns() as f64 / 1e9
}

impl ProfileObserver {
    /// Samples the process `root`; `in_client` if that is a client with a library. perf's own files
    /// are in `folder` meanwhile.
    pub(crate) fn new(
        perf: &Perf,
        (hertz, call_graph): (u32, CallGraph),
        (root, in_client): (u32, bool),
        folder: PathBuf,
    ) -> ProfileObserver {
        let mut observer = ProfileObserver {
            perf: perf.clone(),
            hertz,
            call_graph,
            root,
            in_client,
            folder,
            recording: None,
            recorded: None,
            processes: BTreeSet::new(),
            window: (0.0, 0.0),
            found: None,
        };
        // A library's client does not stop before it begins. Its threads come later, and are
        // sampled with it. Whatever fails here is tried again when the window begins.
        if in_client {
            observer.begin().ok();
        }
        observer
    }

    /// Processes that end just now, such as those of the lab's own questions to the server, are
    /// left out: perf would find them gone and give up.
    fn processes(&self) -> Result<Vec<u32>, String> {
        let now = || tree::processes(self.root).map_err(|error| error.to_string());
        let before = now()?;
        thread::sleep(SETTLE);
        let after = now()?;
        Ok(before.into_iter().filter(|pid| after.contains(pid)).collect())
    }

    fn begin(&mut self) -> Result<(), String> {
        let processes = self.processes()?;
        safe_path::make_folder(&self.folder)
            .map_err(|error| format!("make {}: {error}", self.folder.display()))?;
        self.processes.extend(&processes);
        let file = perf::file_in(&self.folder, &self.root.to_string());
        let recording = self.perf.record(&processes, self.hertz, self.call_graph, file);
        self.recording = Some(recording.map_err(|error| error.to_string())?);
        Ok(())
    }

    fn read(&self, recorded: &Recorded) -> Result<SampledStacks, String> {
        let processes: Vec<u32> = self.processes.iter().copied().collect();
        let stacks = recorded.stacks(&processes, self.window).map_err(|error| error.to_string())?;
        if stacks.samples == 0 {
            return Err("perf took no sample in the window".to_owned());
        }
        let sampled = Profiled {
            tool: self.perf.version().to_owned(),
            event: EVENT.to_owned(),
            hertz: self.hertz,
            call_graph: self.call_graph,
            in_client: self.in_client,
            samples: stacks.samples,
            lost: stacks.lost,
            broken: stacks.broken,
            nameless: stacks.nameless,
            waited: None,
            profile: None,
        };
        Ok(SampledStacks { sampled, folded: stacks.folded })
    }
}

impl StepObserver for ProfileObserver {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        match edge {
            Edge::Prepared => {
                self.begin()?;
                if let Some(recording) = &mut self.recording {
                    recording.wait_for_start();
                }
            }
            Edge::WindowStart => {
                if !self.recording.as_mut().is_some_and(Recording::is_at_work) {
                    self.begin()?;
                }
                self.window = (monotonic_seconds(), f64::INFINITY);
            }
            Edge::WindowEnd => {
                self.window.1 = monotonic_seconds();
                // Clients are still connected, and so the processes that serve them are there.
                let now = tree::processes(self.root).map_err(|error| error.to_string())?;
                self.processes.extend(now);
            }
            Edge::Measured(_) => {
                self.window.1 = self.window.1.min(monotonic_seconds());
                let recorded = self.recording.take().map(Recording::end).transpose();
                self.recorded = recorded.map_err(|error| error.to_string())?;
            }
            Edge::Disconnected(_) => {
                if let Some(recorded) = self.recorded.take() {
                    self.found = Some(self.read(&recorded)?);
                }
            }
            Edge::Second => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.stacks = self.found;
    }
}

/// Looks at the threads that serve clients.
pub(crate) struct WaitObserver {
    /// Until the window begins.
    waits: Option<Waits>,
    looking: Option<Looking>,
    waited: Option<Waited>,
}

impl WaitObserver {
    /// For these processes.
    pub(crate) fn new(waits: Waits) -> WaitObserver {
        WaitObserver { waits: Some(waits), looking: None, waited: None }
    }
}

impl StepObserver for WaitObserver {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn edge(&mut self, edge: Edge<'_>, _: &mut dyn ControlPlane) -> Result<(), String> {
        match edge {
            // All clients are connected and idle: who waits now serves them.
            Edge::Prepared => self.waits.iter_mut().for_each(Waits::search),
            Edge::WindowStart => {
                if let Some(mut waits) = self.waits.take() {
                    waits.search();
                    self.looking = Some(Looking::begin(waits));
                }
            }
            Edge::WindowEnd | Edge::Measured(_) => {
                if let Some(looking) = self.looking.take() {
                    self.waited = Some(looking.end()?);
                }
            }
            Edge::Second | Edge::Disconnected(_) => {}
        }
        Ok(())
    }

    fn end(self: Box<Self>, observed: &mut Observed) {
        observed.waited = self.waited;
    }
}
