//! Turns what clients recorded into intervals, one a second.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::benchmark::Pace;
use crate::driver::clock::SECOND;
use crate::driver::event::StepInterval;
use crate::driver::recorder::{Recorder, Snapshot};
use crate::driver::request::{DriverRequest, StepRequest};

/// One recorder per client.
pub fn recorders<B>(task: &StepRequest<B>) -> Vec<Arc<Recorder>> {
    let open = matches!(task.pace, Pace::Open { .. });
    (0..task.clients).map(|_| Arc::new(Recorder::new(open))).collect()
}

/// Turns recorders into intervals.
pub struct IntervalMeter {
    recorders: Vec<Arc<Recorder>>,
    earlier: Snapshot,
    from_ns: u64,
    second: u32,
    /// True if intervals hold all latencies, for who puts them together with those of other hosts.
    tells_latencies: bool,
}

impl IntervalMeter {
    /// Starts at the start of the window.
    pub fn new(recorders: &[Arc<Recorder>], start_ns: u64) -> IntervalMeter {
        IntervalMeter {
            recorders: recorders.to_vec(),
            earlier: Snapshot::default(),
            from_ns: start_ns,
            second: 0,
            tells_latencies: false,
        }
    }

    /// For a driver with these of the step's clients.
    pub fn for_share_of(self, job: &DriverRequest, clients: u32) -> IntervalMeter {
        IntervalMeter { tells_latencies: job.all_clients(clients) > clients, ..self }
    }

    /// What happened since the last call.
    pub fn interval(&mut self, now_ns: u64) -> StepInterval {
        let now = Snapshot::take(self.recorders.iter().map(AsRef::as_ref));
        let (events, quantiles) = now.since(&self.earlier, &[0.5, 0.95, 0.99, 1.0]);
        let us = |index: usize| quantiles.get(index).map_or(0.0, |value| *value as f64 / 1e3);
        self.second += 1;
        let interval = StepInterval {
            second: self.second,
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / SECOND,
            events,
            statements: now.statements - self.earlier.statements,
            errors: now.errors - self.earlier.errors,
            p50_us: us(0),
            p95_us: us(1),
            p99_us: us(2),
            max_us: us(3),
            extra: BTreeMap::new(),
            latency: self.tells_latencies.then(|| now.latencies_since(&self.earlier)),
        };
        self.from_ns = now_ns;
        self.earlier = now;
        interval
    }

    /// When the next interval is to end: a second after the last, or at the end of the window if
    /// that is nearer than a second and a half.
    pub fn next_cut(&self, start_ns: u64, end_ns: u64) -> u64 {
        let next = start_ns + (u64::from(self.second) + 1) * SECOND as u64;
        if next + SECOND as u64 / 2 > end_ns && next < end_ns { end_ns } else { next }
    }
}
