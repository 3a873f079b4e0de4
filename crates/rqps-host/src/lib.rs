//! The operating system: pure parsers of /proc, samples of counters, processes that die with their
//! parent, CPUs, disks, the clock. Knows no DBMS by name.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
compile_error!(
    "rqps needs Linux with glibc: it loads database libraries, and the builds that it runs are \
     made for glibc; on Alpine, build and run it in a container of a distribution with glibc"
);

pub mod affinity;
pub mod beneath;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod command_output;
pub mod confinement;
pub mod disk;
pub mod fingerprint;
pub mod host;
pub mod lock;
pub mod noise;
pub mod perf;
pub mod proc;
pub mod process;
pub mod sample;
pub mod shared_memory;
#[cfg(test)]
mod test_support;
pub mod tree;
pub mod user;
pub mod valgrind;
pub mod waits;
pub mod warden;

/// Entries for the fuzz targets (`fuzz/`): readers of texts of the operating system and its tools,
/// which are private otherwise. Nothing else calls them.
#[doc(hidden)]
pub mod fuzzing {
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
}
