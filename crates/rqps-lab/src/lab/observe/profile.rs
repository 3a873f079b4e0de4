//! The stacks of the server's processes in the window, as perf samples them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use crate::lab::observe::{Edge, Observed, SampledStacks, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::perf::{self, EVENT, Perf, Recorded, Recording};
use rqps_host::waits::{Looking, Waits};
use rqps_host::{clock, tree};
use rqps_model::sampled::{CallGraph, Profiled, Waited};

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
        fs::create_dir_all(&self.folder)
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
