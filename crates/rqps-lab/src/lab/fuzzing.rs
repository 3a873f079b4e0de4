//! Entries for the fuzz targets (`fuzz/`): readers of what Slurm prints and of lines of a relay,
//! which are private otherwise. Nothing else calls them.

use crate::lab::executor::queued_task;
use crate::lab::relay::{ClientWord, ServerWord};
use rqps_model::json;

/// A line of the queue of Slurm: seconds that were left of its limit.
pub fn queue_line(line: &str) -> Option<u64> {
    let task = queued_task(line)?;
    let _ = (task.array(), task.reason_words(), task.has_ended());
    task.seconds_left()
}

/// A line of one end of a relay to the other: true if it is one.
pub fn relay_line(line: &str) -> bool {
    json::read::<ServerWord>(line).is_ok() || json::read::<ClientWord>(line).is_ok()
}
