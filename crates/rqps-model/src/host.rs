//! Facts of the machine, with a fingerprint that identifies it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

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
}
