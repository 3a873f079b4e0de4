//! Entries for the fuzz targets (`fuzz/`): readers of files of a run folder that are private
//! otherwise. Nothing else calls them.

use super::{profiles, seconds};

/// A profile of callgrind.
pub fn callgrind_profile(text: &str) -> bool {
    profiles::parse_callgrind(text).is_ok()
}

/// Folded stacks.
pub fn folded_stacks(text: &str) -> bool {
    let mut folded = profiles::Folded::default();
    text.lines().all(|line| folded.line(line).is_ok())
}

/// Rows of a file of counters.
pub fn counter_rows(text: &str) -> usize {
    text.lines().filter_map(seconds::counter).count()
}
