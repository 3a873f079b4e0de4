//! Counters of the host, the disk and the server's processes: over the window and in each second.

use crate::lab::observe::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::hardware::{CountedEvent, EventCounters};
use rqps_host::noise::disturbance::Watch;
use rqps_host::sample::{CounterSampler, Sample};
use rqps_host::tree;
use rqps_model::endpoint::Endpoint;
use rqps_model::gate::Disturbance;
use rqps_model::run::{CpuEvents, Usage};

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
    watch: Option<Watch>,
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
        Some(DisturbanceObserver { watch: Some(Watch::begin(&ours)), is_server, seen: None })
    }

    /// The disturbance. A server that rqps does not run may be on this host unrecognised; its CPU
    /// would then count as that of a stranger.
    fn seen(&self, watch: Watch) -> Disturbance {
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
