//! Reads the canaries on the host that measures, around each block.

use std::time::Duration;

use crate::lab::canaries::{self, CanarySource, FIRST_READINGS};
use crate::lab::execution::Execution;
use crate::lab::progress::Progress;
use rqps_model::gate::{Canary, CanaryReference};

/// A block is not begun while the canary before it is out of range; but no longer than this many
/// pauses.
const PAUSES: usize = 3;
/// Between two readings of them.
const PAUSE: Duration = Duration::from_secs(5);
/// A canary takes a tenth of a second, and a block minutes: a disturbance must persist for this
/// long before it discards a block.
const MOMENT: Duration = Duration::from_secs(1);

/// A source of readings, and how many were taken from it.
pub(super) struct CanaryReader {
    source: CanarySource,
    readings: usize,
}

impl CanaryReader {
    /// Goes on after `readings` readings: only a script knows one from the next.
    pub(super) fn new(source: CanarySource, readings: usize) -> CanaryReader {
        CanaryReader { source, readings }
    }

    /// Readings before the first block.
    pub(super) fn first(&mut self) -> Vec<Canary> {
        (0..FIRST_READINGS).filter_map(|_| self.read()).collect()
    }

    /// The reading before a block. Waits a while if it is out of range.
    pub(super) fn before(
        &mut self,
        execution: &Execution<'_>,
        reference: &CanaryReference,
        progress: &mut Progress<'_>,
    ) -> Option<Canary> {
        let mut reading = self.read();
        let pauses = if reference.may_discard { PAUSES } else { 0 };
        for _ in 0..pauses {
            let slow = reading.as_ref().and_then(|reading| canaries::slow(reference, reading));
            let Some(fault) = slow.filter(|_| !execution.stopped()) else { break };
            progress.doing("", &format!("wait for a quieter host ({fault})"), None);
            self.rest(PAUSE);
            reading = self.read();
        }
        reading
    }

    /// The reading after a block, the second one if the first is out of range.
    pub(super) fn after(
        &mut self,
        reference: &CanaryReference,
        before: Option<&Canary>,
    ) -> Option<Canary> {
        let reading = self.read();
        let faults = canaries::faults(reference, [before, reading.as_ref()]);
        if faults.is_empty() || !reference.may_discard {
            return reading;
        }
        self.rest(MOMENT);
        self.read()
    }

    /// The reading of a node before a block, and the reason why it is sick, if it still is after a
    /// while.
    pub(super) fn of_node(&mut self, others: &[Canary]) -> (Option<Canary>, Option<String>) {
        for _ in 0..PAUSES {
            let reading = self.read();
            if reading.as_ref().and_then(|reading| canaries::sick(others, reading)).is_none() {
                return (reading, None);
            }
            self.rest(PAUSE);
        }
        let reading = self.read();
        let sick = reading.as_ref().and_then(|reading| canaries::sick(others, reading));
        (reading, sick)
    }

    fn rest(&self, pause: Duration) {
        if self.source.is_real() {
            std::thread::sleep(pause);
        }
    }

    fn read(&mut self) -> Option<Canary> {
        let reading = self.source.read(self.readings);
        self.readings += 1;
        reading
    }
}
