//! The measured window of a step.

use std::time::Duration;

use crate::clock::SECOND;
use crate::request::StepRequest;
use rqps_model::benchmark::RateUnit;

/// Drivers of several hosts that wake so much later than the common start still begin their windows
/// together.
pub const LATE: Duration = Duration::from_millis(10);

/// The measured window on the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first nanosecond.
    pub start: u64,
    /// Its end, nanoseconds. Later events do not count.
    pub end: u64,
    /// True if every client begins an event at the start and finishes the event in flight at the
    /// end: for events so long that a cut would falsify the count.
    pub whole_events: bool,
}

/// True if the step needs whole events: a scan may last as long as the window.
pub fn counts_whole_events<B>(task: &StepRequest<B>) -> bool {
    task.rate == RateUnit::RowsScanned
}

/// The window that begins at `start`.
pub fn window<B>(task: &StepRequest<B>, start: u64) -> Window {
    let length = (task.seconds * SECOND) as u64;
    Window { start, end: start + length.max(1), whole_events: counts_whole_events(task) }
}
