//! Facts of the machine, and the fingerprint by which results of two machines are told apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What could be read about the host. A fact that could not be read is `None` and has its reason in
/// `missing`.
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
    /// What does not make it another machine but may explain a difference. `None` in results of
    /// before it was recorded; never part of the fingerprint, so that those still pair.
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
    /// Whether CPUs may run above their nominal frequency: `on` or `off`.
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
