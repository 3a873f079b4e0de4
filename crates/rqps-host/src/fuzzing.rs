//! Entries for the fuzz targets (`fuzz/`): readers of texts of the operating system and its tools,
//! which are private otherwise. Nothing else calls them.

use super::{user, warden};
use crate::perf::ScriptReader;

/// What `perf script` printed: samples, and different stacks.
pub fn perf_script(text: &str) -> (u64, usize) {
    let mut reader = ScriptReader::new((0.0, f64::MAX));
    text.lines().for_each(|line| reader.line(line));
    let stacks = reader.end();
    (stacks.samples, stacks.folded.len())
}

/// The number of a user in the text of /etc/passwd.
pub fn user_of(passwd: &str, wanted: &str) -> Option<u32> {
    user::find(passwd, wanted).ok().map(|user| user.uid)
}

/// True if a line orders the warden to stop its server.
pub fn is_stop_order(line: &str) -> bool {
    warden::parse_stop(line).is_some()
}
