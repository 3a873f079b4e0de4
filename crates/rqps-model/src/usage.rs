//! Changes of the counters of host and server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gate::Disturbance;

/// CPU time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user mode, microseconds.
    pub user_us: f64,
    /// In the kernel, microseconds.
    pub system_us: f64,
}

impl CpuTime {
    /// Both, microseconds.
    pub fn total_us(self) -> f64 {
        self.user_us + self.system_us
    }
}

/// Events that CPUs count, in user space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuEvents {
    /// Instructions executed.
    pub instructions: f64,
    /// Cycles, at whatever frequency the CPUs ran.
    pub cycles: f64,
}

/// Changes of counters in the window, as sampled by the lab. `None` has its reason in `missing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Seconds between the first and the last sample. Close to the outcome's, not the same.
    pub seconds: f64,
    /// CPU of the server's process tree.
    pub server_cpu: Option<CpuTime>,
    /// Resident memory of the server's process tree at the end, bytes. Shared pages count once per
    /// process that Pss tells, else Rss.
    pub server_rss_bytes: Option<u64>,
    /// The whole host.
    pub host: HostUsage,
    /// The disk under the data folder.
    pub disk: Option<DiskUsage>,
    /// CPU of the spinners that keep CPUs awake: contained in `host` but to be left out of every
    /// per-operation figure.
    pub spinner_cpu: CpuTime,
    /// Counted by the CPU for the server's processes. `None` without a server, or if the counters
    /// cannot be read: `missing["cpu_events"]` then says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_events: Option<CpuEvents>,
    /// Counted by the CPU for the driver process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_events: Option<CpuEvents>,
    /// Other activity on the host; `None` for single seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// Sources of the counters: `server_cpu` → `proc stat`, `task clock`, `perf`.
    pub sources: BTreeMap<String, String>,
    /// Counter → why it is missing.
    pub missing: BTreeMap<String, String>,
}

/// /proc/stat over the window; times in seconds summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// Logical CPUs.
    pub cpus: u32,
    /// User and nice (nice holds the idle-class spinners).
    pub user: f64,
    /// The niced part of `user`.
    pub nice: f64,
    /// System, irq and softirq.
    pub system: f64,
    /// Idle.
    pub idle: f64,
    /// Waiting for I/O.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Context switches.
    pub context_switches: u64,
}

/// /proc/diskstats over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskUsage {
    /// Reads completed.
    pub reads: u64,
    /// KiB read.
    pub read_kb: f64,
    /// Writes completed.
    pub writes: u64,
    /// KiB written.
    pub write_kb: f64,
    /// Milliseconds that the device was busy.
    pub busy_ms: u64,
    /// Milliseconds that reads took, summed.
    #[serde(default)]
    pub read_ms: u64,
    /// Milliseconds that writes took, summed.
    #[serde(default)]
    pub write_ms: u64,
}

/// Facts about one client host in the window of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientHostRecord {
    /// The name in the plan.
    pub host: String,
    /// Its clients.
    pub clients: u32,
    /// Events that they completed.
    pub events: u64,
    /// CPU of its driver process.
    pub cpu: CpuTime,
    /// Largest share of its CPU that one of its clients' threads used, 0 to 1.
    pub busiest: f64,
    /// Its logical CPUs; `None` if its counters are unknown.
    pub cpus: Option<u32>,
    /// Busy share of these CPUs over all processes of the host, 0 to 1; `None` if its counters are
    /// unknown.
    pub host_busy: Option<f64>,
    /// Lead of its wall clock over that of the server's host at the start of the step,
    /// milliseconds. `None` if the step does not wait for its clients to be ready.
    pub clock_ahead_ms: Option<f64>,
    /// Uncertainty of that lead, milliseconds: half of the quickest round trip.
    pub clock_bound_ms: Option<f64>,
    /// Delay of its window after the first window of the step, milliseconds; uncertain by the
    /// bounds of both clocks.
    pub start_ms: Option<f64>,
}
