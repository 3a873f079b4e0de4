//! Counters of the host, the disk and the server's processes: over the window and in each second.

use crate::lab::observe::observer::{Edge, Observed, StepObserver};
use rqps_dbms::ControlPlane;
use rqps_host::sample::{CounterSampler, Sample};
use rqps_model::run::Usage;

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
