//! The server's log during a step.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::lab::observe::{Edge, Observed, StepObserver};
use rqps_dbms::{self as dbms, ControlPlane};
use rqps_model::run::{Counter, ServerEvent};

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
