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
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
pub mod keeper;
pub mod lock;
pub mod mark;
pub mod noise;
pub mod perf;
pub mod plain;
pub mod proc;
pub mod process;
pub mod sample;
pub mod secret;
pub mod shared_memory;
pub mod spinner;
#[cfg(test)]
mod test_support;
pub mod tree;
pub mod user;
pub mod valgrind;
pub mod waits;
pub mod warden;
