//! Instructions and cycles of the server's processes and of the driver, as the CPU counts them.

use crate::lab::observe::observer::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::hardware::{CountedEvent, EventCounters};
use rqps_host::tree;
use rqps_model::run::CpuEvents;

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
