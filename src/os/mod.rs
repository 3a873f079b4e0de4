//! The operating system: pure parsers of /proc, samples of counters, processes that die with their
//! parent, CPUs, disks, the clock. Knows no DBMS by name.

pub mod process;
pub mod user;
