//! Facts of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{affinity, disk, proc};
use rqps_model::host::{Host, Tuning};

/// A guest of a hypervisor that does not tell its name.
const GUEST: &str = "unnamed";

/// Reads the facts of this machine and of the disk under `data_folder`. What cannot be read has its
/// reason in `missing`.
pub fn read(data_folder: &Path) -> Host {
    let mut host = read_tree(Path::new("/"));
    host.cpus = u32::try_from(affinity::allowed_cpus().len()).unwrap_or(u32::MAX);
    let kernel = rustix::system::uname();
    let words = [kernel.release(), kernel.version()].map(|word| word.to_string_lossy());
    host.kernel = Some(words.join(" "));
    if host.virtualization.as_deref() == Some(GUEST) {
        host.virtualization = hypervisor().or(host.virtualization);
    }
    match disk::device_under(data_folder) {
        Ok(device) => {
            if let Some(name) = &device.name {
                queue(Path::new("/"), name, &mut host);
            }
            let no_disk = format!("file system {} has no block device", device.filesystem);
            put(&mut host.disk, device.name, "disk", &no_disk, &mut host.missing);
            let rotational = &mut host.disk_rotational;
            put(rotational, device.rotational, "disk_rotational", &no_disk, &mut host.missing);
            host.filesystem = Some(device.filesystem);
            host.mount_options = Some(device.options);
        }
        Err(error) => {
            for fact in ["disk", "disk_rotational", "filesystem", "mount_options"] {
                host.missing.insert(fact.to_string(), error.to_string());
            }
        }
    }
    host
}

/// The name of this machine; empty if it has none.
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The output of `uname -m`: `x86_64`.
pub fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// The kernel's name for the time since this machine was started; `None` where it does not tell.
pub fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// MemTotal of this machine in bytes; 0 if it cannot be read.
pub fn memory_bytes() -> u64 {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_in(&text)).unwrap_or_default()
}

/// MemTotal of the machine with this /proc/meminfo, bytes.
pub fn memory_in(meminfo: &str) -> Option<u64> {
    proc::memory(meminfo).ok().map(|memory| memory.total_bytes)
}

/// The version of the C library that this program runs with, as `2.36`; `None` if it is not glibc.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "a function of the C library")]
pub fn libc_version() -> Option<String> {
    // SAFETY: it takes nothing and returns a constant text.
    let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    text.to_str().ok().map(str::to_string)
}

/// The version of the C library that this program runs with, as `2.36`; `None` if it is not glibc.
#[cfg(not(target_env = "gnu"))]
pub fn libc_version() -> Option<String> {
    None
}

fn put<T>(
    fact: &mut Option<T>,
    found: Option<T>,
    name: &str,
    reason: &str,
    missing: &mut BTreeMap<String, String>,
) {
    if found.is_none() {
        missing.insert(name.to_string(), reason.to_string());
    }
    *fact = found;
}

/// The facts that lie in files below `root`.
fn read_tree(root: &Path) -> Host {
    let mut facts = Facts { root, missing: BTreeMap::new() };
    let cpu = facts.text("cpu_model", "proc/cpuinfo").map(|text| proc::cpu_info(&text));
    let cpu = cpu.unwrap_or_default();
    if cpu.model.is_none() {
        facts.absent("cpu_model", "not in /proc/cpuinfo");
    }
    if cpu.cores.is_none() {
        facts.absent("cores", "/proc/cpuinfo has no topology");
    }
    if cpu.hypervisor.is_none() {
        facts.absent("virtualization", "/proc/cpuinfo does not show whether this is a guest");
    }
    let memory = facts.text("memory_bytes", "proc/meminfo").and_then(|text| {
        let memory = proc::memory(&text);
        memory.map_err(|error| facts.absent("memory_bytes", &error.to_string())).ok()
    });
    let system = "sys/devices/system/cpu";
    let huge = facts.text("transparent_huge_pages", "sys/kernel/mm/transparent_hugepage/enabled");
    let mut host = Host {
        cpu_model: cpu.model,
        cpus: cpu.cpus,
        cores: cpu.cores,
        smt: facts.line("smt", &format!("{system}/smt/control")),
        governor: facts.line("governor", &format!("{system}/cpu0/cpufreq/scaling_governor")),
        virtualization: cpu.hypervisor.map(|guest| if guest { GUEST } else { "none" }.to_string()),
        mitigations: facts.mitigations(&format!("{system}/vulnerabilities")),
        transparent_huge_pages: huge.as_deref().and_then(proc::bracketed).map(str::to_string),
        huge_pages: memory.map(|memory| memory.huge_pages),
        memory_bytes: memory.unwrap_or_default().total_bytes,
        swap_bytes: memory.unwrap_or_default().swap_bytes,
        os: facts.os_name(),
        ..Host::default()
    };
    host.tuning = Some(facts.tuning(cpu.microcode));
    host.missing = facts.missing;
    host
}

/// The limits of a block device: of the disk, where it is a partition.
fn queue(root: &Path, device: &str, host: &mut Host) {
    let there = root.join("sys/class/block").join(device);
    let there = fs::canonicalize(&there).unwrap_or(there);
    let queue = [Some(there.as_path()), there.parent()].into_iter().flatten();
    let queue = queue.map(|folder| folder.join("queue")).find(|folder| folder.is_dir());
    let Some(queue) = queue else {
        host.missing.insert("disk_limits".to_owned(), format!("{device} has no queue in /sys"));
        return;
    };
    let text = |name: &str| fs::read_to_string(queue.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse().ok();
    let tuning = host.tuning.get_or_insert_default();
    tuning.max_sectors_kb = number("max_sectors_kb");
    tuning.max_hw_sectors_kb = number("max_hw_sectors_kb");
    tuning.nr_requests = number("nr_requests");
    tuning.read_ahead_kb = number("read_ahead_kb");
    tuning.scheduler = text("scheduler")
        .map(|text| proc::bracketed(&text).map_or_else(|| text.trim().to_owned(), str::to_owned));
}

struct Facts<'a> {
    root: &'a Path,
    missing: BTreeMap<String, String>,
}

impl Facts<'_> {
    fn absent(&mut self, fact: &str, reason: &str) {
        self.missing.insert(fact.to_string(), reason.to_string());
    }

    fn text(&mut self, fact: &str, path: &str) -> Option<String> {
        match fs::read_to_string(self.root.join(path)) {
            Ok(text) => Some(text),
            Err(error) => {
                self.absent(fact, &format!("read /{path}: {error}"));
                None
            }
        }
    }

    fn line(&mut self, fact: &str, path: &str) -> Option<String> {
        self.text(fact, path).map(|text| text.trim().to_string())
    }

    fn mitigations(&mut self, path: &str) -> BTreeMap<String, String> {
        let files = self.folder("mitigations", path).into_iter().filter_map(|(name, path)| {
            Some((name, fs::read_to_string(path).ok()?.trim().to_string()))
        });
        files.collect()
    }

    /// Names and paths of what is in a folder.
    fn folder(&mut self, fact: &str, path: &str) -> Vec<(String, PathBuf)> {
        let entries = match fs::read_dir(self.root.join(path)) {
            Ok(entries) => entries,
            Err(error) => {
                self.absent(fact, &format!("read /{path}: {error}"));
                return Vec::new();
            }
        };
        let named =
            |entry: fs::DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry.path());
        entries.flatten().map(named).collect()
    }

    fn tuning(&mut self, microcode: Option<String>) -> Tuning {
        if microcode.is_none() {
            self.absent("microcode", "not in /proc/cpuinfo");
        }
        let aslr = self.line("aslr", "proc/sys/kernel/randomize_va_space");
        Tuning {
            microcode,
            turbo: self.turbo(),
            aslr: aslr.and_then(|text| text.parse().ok()),
            numa: self.numa(),
            ..Tuning::default()
        }
    }

    /// Intel's driver says whether turbo is off, others whether it is on.
    fn turbo(&mut self) -> Option<String> {
        let system = "sys/devices/system/cpu";
        let files = [("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1")];
        let found = files.iter().find_map(|(file, on)| {
            let text = fs::read_to_string(self.root.join(system).join(file)).ok()?;
            Some(if text.trim() == *on { "on" } else { "off" }.to_owned())
        });
        if found.is_none() {
            self.absent("turbo", "no frequency driver, as in most virtual machines");
        }
        found
    }

    fn numa(&mut self) -> BTreeMap<String, String> {
        let nodes = self.folder("numa", "sys/devices/system/node").into_iter();
        let nodes =
            nodes.filter(|(name, _)| name.starts_with("node")).filter_map(|(name, path)| {
                Some((name, fs::read_to_string(path.join("cpulist")).ok()?.trim().to_owned()))
            });
        nodes.collect()
    }

    fn os_name(&mut self) -> Option<String> {
        let text = self.text("os", "etc/os-release")?;
        let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        if name.is_none() {
            self.absent("os", "/etc/os-release has no PRETTY_NAME");
        }
        name.map(|name| name.trim_matches('"').to_string())
    }
}

/// The hypervisor by the name that it gives to its guests.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    // The leaf that hypervisors agreed on; asked only if the CPU says that it is a guest's.
    let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
    let name: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_string();
    Some(match name.as_str() {
        "KVMKVMKVM" => "kvm".to_string(),
        "Microsoft Hv" => "hyperv".to_string(),
        "VMwareVMware" => "vmware".to_string(),
        "XenVMMXenVMM" => "xen".to_string(),
        "TCGTCGTCGTCG" => "qemu".to_string(),
        _ => name,
    })
    .filter(|name| !name.is_empty())
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::root_with;
    use rqps_model::host::fingerprint;

    fn tree() -> tempfile::TempDir {
        root_with(&[
            (
                "proc/cpuinfo",
                "processor: 0\nmodel name: M\nmicrocode\t: 0x2b000590\ncore id: 0\nflags: a \
                 hypervisor\n",
            ),
            ("proc/sys/kernel/randomize_va_space", "2\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/devices/system/node/node0/cpulist", "0-11\n"),
            ("sys/devices/system/node/node1/cpulist", "12-23\n"),
            ("sys/devices/system/node/online", "0-1\n"),
            ("sys/class/block/vda/queue/max_sectors_kb", "1280\n"),
            ("sys/class/block/vda/queue/max_hw_sectors_kb", "32767\n"),
            ("sys/class/block/vda/queue/nr_requests", "256\n"),
            ("sys/class/block/vda/queue/read_ahead_kb", "128\n"),
            ("sys/class/block/vda/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("sys/class/block/vda/vda1/size", "1\n"),
            ("proc/meminfo", "MemTotal: 8388608 kB\nSwapTotal: 0 kB\nHugePages_Total: 3\n"),
            ("sys/devices/system/cpu/smt/control", "off\n"),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n"),
        ])
    }

    #[test]
    fn facts_come_from_their_files() {
        let root = tree();
        let host = read_tree(root.path());
        let expected = Host {
            cpu_model: Some("M".to_string()),
            cpus: 1,
            cores: Some(1),
            smt: Some("off".to_string()),
            virtualization: Some("unnamed".to_string()),
            mitigations: BTreeMap::from([("meltdown".to_string(), "Not affected".to_string())]),
            transparent_huge_pages: Some("always".to_string()),
            huge_pages: Some(3),
            memory_bytes: 8 << 30,
            os: Some("Some Linux 1".to_string()),
            tuning: Some(Tuning {
                microcode: Some("0x2b000590".to_string()),
                turbo: Some("off".to_string()),
                aslr: Some(2),
                numa: BTreeMap::from([
                    ("node0".to_string(), "0-11".to_string()),
                    ("node1".to_string(), "12-23".to_string()),
                ]),
                ..Tuning::default()
            }),
            missing: host.missing.clone(),
            ..Host::default()
        };
        assert_eq!(host, expected);
        assert_eq!(host.missing.keys().collect::<Vec<_>>(), ["governor"]);
        assert!(host.missing["governor"].contains("scaling_governor"));
    }

    #[test]
    fn the_limits_of_a_disk_are_read_for_it_and_for_its_partitions() {
        let root = tree();
        // The links are like the kernel's.
        let block = root.path().join("sys/class/block");
        std::os::unix::fs::symlink("vda/vda1", block.join("vda1")).unwrap();
        for device in ["vda", "vda1"] {
            let mut host = Host::default();
            queue(root.path(), device, &mut host);
            let tuning = host.tuning.unwrap();
            assert_eq!(
                (tuning.max_sectors_kb, tuning.max_hw_sectors_kb),
                (Some(1280), Some(32767))
            );
            assert_eq!((tuning.nr_requests, tuning.read_ahead_kb), (Some(256), Some(128)));
            assert_eq!(tuning.scheduler.as_deref(), Some("mq-deadline"));
        }
        let mut host = Host::default();
        queue(root.path(), "vdb", &mut host);
        assert!(host.missing["disk_limits"].contains("vdb"));
    }

    /// SHA-256 of a host without facts, as 0.1.0 wrote it.
    const BEFORE: &str = "142ccb192280";

    #[test]
    fn facts_that_make_no_other_machine_leave_the_fingerprint_as_it_was() {
        assert_eq!(fingerprint(&Host::default()), BEFORE);
        let tuned = Tuning { turbo: Some("off".to_string()), ..Tuning::default() };
        assert_eq!(fingerprint(&Host { tuning: Some(tuned), ..Host::default() }), BEFORE);
        // A file of then is read, and says nothing of them.
        let text = serde_json::to_string(&Host::default()).unwrap();
        assert!(!text.contains("tuning"), "{text}");
        assert_eq!(serde_json::from_str::<Host>(&text).unwrap().tuning, None);
    }

    #[test]
    fn nothing_at_all_is_no_panic_but_reasons() {
        let root = tempfile::tempdir().unwrap();
        let host = read_tree(root.path());
        for fact in ["cpu_model", "cores", "virtualization", "memory_bytes", "mitigations", "os"] {
            assert!(host.missing.contains_key(fact), "{fact}");
        }
    }

    #[test]
    fn the_memory_of_another_machine_is_read_from_its_text() {
        let text = "MemTotal: 8388608 kB\nSwapTotal: 0 kB\nHugePages_Total: 3\n";
        assert_eq!(memory_in(text), Some(8 << 30));
        assert_eq!(memory_in("cat: /proc/meminfo: no such file"), None);
    }

    #[test]
    fn this_machine_has_cpus_memory_and_a_file_system() {
        let host = read(&std::env::temp_dir());
        assert!(host.cpus > 0 && host.memory_bytes > 0, "{host:?}");
        assert!(host.virtualization.is_some() || host.missing.contains_key("virtualization"));
        assert!(host.kernel.is_some() && host.filesystem.is_some(), "{host:?}");
        assert_eq!(fingerprint(&host), fingerprint(&read(&std::env::temp_dir())));
    }
}
