//! Which hardware and software counters this process may open.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// A counter that could be used per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Instructions retired, in user mode.
    Instructions,
    /// Cycles, in user mode.
    Cycles,
    /// Misses of the last cache, in user mode.
    CacheMisses,
    /// CPU time as the scheduler counts it.
    TaskClock,
}

impl Counter {
    /// All.
    pub const ALL: [Counter; 4] =
        [Counter::Instructions, Counter::Cycles, Counter::CacheMisses, Counter::TaskClock];

    /// Its name as perf writes it.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Instructions => "instructions:u",
            Counter::Cycles => "cycles:u",
            Counter::CacheMisses => "cache-misses:u",
            Counter::TaskClock => "task-clock",
        }
    }

    /// Type and number of perf_event_open(2).
    fn event(self) -> (u32, u64) {
        match self {
            Counter::Cycles => (0, 0),
            Counter::Instructions => (0, 1),
            Counter::CacheMisses => (0, 3),
            Counter::TaskClock => (1, 1),
        }
    }
}

/// Bytes of the first version of `struct perf_event_attr`, which every kernel takes.
const ATTRIBUTES_BYTES: u64 = 64;
/// Bits of its flags: begin disabled; leave out kernel and hypervisor, which needs no right.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;

/// Opens the counter for this thread, and closes it again.
///
/// # Errors
/// The kernel's reason: ENOENT where the CPU (or the hypervisor) has no such counter, EACCES or
/// EPERM where kernel.perf_event_paranoid forbids it, ENOSYS where a sandbox does.
pub fn probe(counter: Counter) -> io::Result<()> {
    let (kind, number) = counter.event();
    // type and size; config; sample period, type and read format; flags; wakeup; config1.
    let attributes: [u64; 8] =
        [u64::from(kind) | ATTRIBUTES_BYTES << 32, number, 0, 0, 0, FLAGS, 0, 0];
    // SAFETY: the kernel reads 64 bytes, as the size field says, from an array that outlives the
    // call; the other arguments are numbers: this thread, any CPU, no group, close on exec.
    let opened =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 8_u64) };
    let number = i32::try_from(opened).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call returned a new descriptor that nobody else owns; dropped, it is closed.
    drop(unsafe { OwnedFd::from_raw_fd(number) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_is_there_or_has_a_reason() {
        for counter in Counter::ALL {
            if let Err(error) = probe(counter) {
                assert!(error.raw_os_error().is_some(), "{}: {error}", counter.name());
            }
        }
    }
}
