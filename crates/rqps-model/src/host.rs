//! Facts of the machine, with a fingerprint that identifies it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::gate::Disturbance;
use crate::units;

/// Facts about the host. A fact that could not be read is `None` and has its reason in `missing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// `model name` of /proc/cpuinfo.
    pub cpu_model: Option<String>,
    /// Logical CPUs that this process may use.
    pub cpus: u32,
    /// Physical cores, if the topology tells.
    pub cores: Option<u32>,
    /// `on`, `off`, `notsupported` … from /sys/devices/system/cpu/smt/control.
    pub smt: Option<String>,
    /// Scaling governor of CPU 0.
    pub governor: Option<String>,
    /// Hypervisor, if one is seen: `kvm`.
    pub virtualization: Option<String>,
    /// `uname -r` and `-v`.
    pub kernel: Option<String>,
    /// Vulnerability name → state, from sysfs.
    pub mitigations: BTreeMap<String, String>,
    /// Bracketed choice of transparent_hugepage/enabled.
    pub transparent_huge_pages: Option<String>,
    /// HugePages_Total of /proc/meminfo.
    pub huge_pages: Option<u64>,
    /// MemTotal in bytes.
    pub memory_bytes: u64,
    /// SwapTotal in bytes.
    pub swap_bytes: u64,
    /// The block device under the data folder: `vda`.
    pub disk: Option<String>,
    /// True for spinning disks.
    pub disk_rotational: Option<bool>,
    /// File system type under the data folder.
    pub filesystem: Option<String>,
    /// Its mount options.
    pub mount_options: Option<String>,
    /// PRETTY_NAME of os-release.
    pub os: Option<String>,
    /// Facts that may explain a difference but do not make it another machine. `None` in results of
    /// versions that did not record them. Never part of the fingerprint, so that those results
    /// still pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// Fact → why it is missing.
    pub missing: BTreeMap<String, String>,
}

/// Settings and revisions of a machine that change without it becoming another one. A fact that
/// could not be read is `None` and has its reason in [`Host::missing`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuning {
    /// `microcode` of /proc/cpuinfo.
    pub microcode: Option<String>,
    /// Frequencies above the nominal one: `on` or `off`.
    pub turbo: Option<String>,
    /// kernel.randomize_va_space: 0 off, 1 without the heap, 2 all.
    pub aslr: Option<u64>,
    /// NUMA node → its CPUs, as `0-11,24-35`.
    pub numa: BTreeMap<String, String>,
    /// Largest request that the kernel sends to the disk under the data, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request that the disk takes, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Requests that wait at most.
    pub nr_requests: Option<u64>,
    /// I/O scheduler: `none`, `mq-deadline`.
    pub scheduler: Option<String>,
    /// Readahead of the page cache, KiB.
    pub read_ahead_kb: Option<u64>,
}

impl Host {
    /// Class label like `c8r32`: 8 CPUs, 32 GB of memory rounded to the nearest power of two or
    /// multiple of 8.
    pub fn class(&self) -> String {
        let gib = (self.memory_bytes as f64 / (1u64 << 30) as f64).ceil() as u64;
        let rounded = if gib <= 8 { gib } else { gib.div_ceil(8) * 8 };
        format!("c{}r{}", self.cpus, rounded)
    }
}

/// The facts that make the fingerprint, and no other.
pub fn compared(host: &Host) -> Host {
    Host {
        memory_bytes: host.memory_bytes.next_multiple_of(256 << 20),
        tuning: None,
        missing: BTreeMap::new(),
        ..host.clone()
    }
}

/// 12 hex digits of SHA-256 over the facts that make results comparable. What changes from boot to
/// boot without meaning (some MiB of memory that the kernel keeps for itself) does not count, nor
/// do the reasons of what is missing, nor [`Tuning`]: results of before it was recorded pair with
/// those of since.
pub fn fingerprint(host: &Host) -> String {
    // A struct of strings, numbers and maps with string keys cannot fail to become JSON.
    let text = serde_json::to_vec(&compared(host)).unwrap_or_default();
    units::hex(&Sha256::digest(&text)[..6])
}

// Hosts of clients and of servers, where clients run on other hosts than the servers.

/// The hosts that carry the clients of every step, and the host of the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsOfClients {
    /// As ssh takes them: `user@host` or a name of its configuration. They share the clients of a
    /// step evenly; where some are left over, the first have one more each. Empty for the host of
    /// rqps, where `server_host` names another for the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Number of nodes of Slurm, in place of `hosts`: each block gets them beside that of its
    /// servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Address of the server's host that servers listen at; `None` for the one that the first
    /// client host sees, or by which ssh reaches `server_host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<String>,
    /// The host that runs and loads the servers, as ssh takes it; `None` for that of rqps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_host: Option<String>,
}

impl HostsOfClients {
    /// Number of hosts for clients; 0 for that of rqps.
    pub fn count(&self) -> usize {
        self.nodes.map_or(self.hosts.len(), |nodes| nodes as usize)
    }

    /// The clients of each host: evenly, and where some are left over one more for the first.
    pub fn shares(&self, clients: u32) -> Vec<u32> {
        let hosts = (self.count() as u32).max(1);
        (0..hosts).map(|host| clients / hosts + u32::from(host < clients % hosts)).collect()
    }
}

// A sitting on a host.

/// One sitting of rqps on one host: from its start to its end. What is measured in one sitting
/// shares the state of the host; a resumed plan has several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Fingerprint of the host ([`fingerprint`]).
    pub host: String,
    /// The kernel's name for the time since the host was started; `None` where it does not tell.
    pub boot: Option<String>,
    /// RFC 3339, UTC: when rqps began there.
    pub started: String,
    /// Name of the host in a pool whose hosts measure blocks of one plan; `None` where a plan has
    /// one host. Hosts of the same class have the same fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

// Changes of the counters of host and server.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_tell_hosts_apart_but_not_boots() {
        let host = Host { memory_bytes: (8 << 30) - 5_000_000, ..Host::default() };
        let print = fingerprint(&host);
        assert_eq!(print.len(), 12);
        assert!(print.bytes().all(|byte| byte.is_ascii_hexdigit()), "{print}");
        let booted = Host { memory_bytes: (8 << 30) - 9_000_000, ..host.clone() };
        assert_eq!(fingerprint(&booted), print);
        let reasons = BTreeMap::from([("governor".to_string(), "no file".to_string())]);
        assert_eq!(fingerprint(&Host { missing: reasons, ..host.clone() }), print);
        let others = [
            Host { memory_bytes: 16 << 30, ..host.clone() },
            Host { cpus: 3, ..host.clone() },
            Host { governor: Some("powersave".to_string()), ..host.clone() },
            Host { mount_options: Some("nobarrier".to_string()), ..host.clone() },
        ];
        for other in others {
            assert_ne!(fingerprint(&other), print, "{other:?}");
        }
    }

    #[test]
    fn hosts_share_clients_evenly_and_the_first_have_one_more() {
        let hosts = |count: usize| HostsOfClients {
            hosts: vec![String::new(); count],
            ..HostsOfClients::default()
        };
        assert_eq!(hosts(1).shares(5), [5]);
        assert_eq!(hosts(2).shares(8), [4, 4]);
        assert_eq!(hosts(3).shares(8), [3, 3, 2]);
        assert_eq!(hosts(2).shares(1), [1, 0]);
        assert_eq!(HostsOfClients { nodes: Some(2), ..hosts(0) }.shares(3), [2, 1]);
    }
}
