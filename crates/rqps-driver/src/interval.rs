//! Turns the records of clients into intervals of about a second.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::SECOND;
use crate::event::StepInterval;
use crate::recorder::{Recorder, Snapshot};
use crate::request::{DriverRequest, StepRequest};
use rqps_model::benchmark::Pace;

/// Makes one recorder per client.
pub fn recorders<B>(task: &StepRequest<B>) -> Vec<Arc<Recorder>> {
    let open = matches!(task.pace, Pace::Open { .. });
    (0..task.clients).map(|_| Arc::new(Recorder::new(open))).collect()
}

/// Makes the intervals of a window.
pub struct IntervalMeter {
    recorders: Vec<Arc<Recorder>>,
    earlier: Snapshot,
    from_ns: u64,
    second: u32,
    /// True if each interval contains its latencies, so that those of several hosts can be merged.
    tells_latencies: bool,
}

impl IntervalMeter {
    /// Begins at the start of the window.
    pub fn new(recorders: &[Arc<Recorder>], start_ns: u64) -> IntervalMeter {
        IntervalMeter {
            recorders: recorders.to_vec(),
            earlier: Snapshot::default(),
            from_ns: start_ns,
            second: 0,
            tells_latencies: false,
        }
    }

    /// For a driver with this share of the step's clients.
    pub fn for_share_of(self, request: &DriverRequest, clients: u32) -> IntervalMeter {
        IntervalMeter { tells_latencies: request.is_shared(clients), ..self }
    }

    /// The interval since the last call.
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
            latencies: BTreeMap::new(),
        };
        self.from_ns = now_ns;
        self.earlier = now;
        interval
    }

    /// The end of the next interval: a second after the last, or the end of the window if less than
    /// 1.5 s remain.
    pub fn next_cut(&self, start_ns: u64, end_ns: u64) -> u64 {
        let next = start_ns + (u64::from(self.second) + 1) * SECOND as u64;
        if next + SECOND as u64 / 2 > end_ns && next < end_ns { end_ns } else { next }
    }
}
