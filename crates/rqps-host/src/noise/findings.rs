//! The doctor's findings: facts about the host, their meaning for measurements, and advice.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::hardware::{CountedEvent, EventCounters};
use crate::{proc, tree};
use rqps_model::gate::{Canary, Disturbance};
use rqps_model::host::Host;

/// More CPU time than this taken by the hypervisor makes a host noisy.
pub const STEAL_MAX: f64 = 0.01;
/// More CPU time than this used by others does.
pub const FOREIGN_MAX: f64 = 0.02;
/// More time than this in which some task waited for a CPU does, on a host that ought to be idle.
pub const PRESSURE_MAX: f64 = 0.05;
/// fsync faster than this is not one: the disk, or the hypervisor, acknowledges what it has not
/// stored, or the file system keeps it in memory.
const FSYNC_NS_MIN: f64 = 20_000.0;
/// fsync slower than this decides the rate of every step that commits.
const FSYNC_NS_MAX: f64 = 5_000_000.0;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingLevel {
    /// Makes measurements noisy, or wrong.
    Noisy,
    /// Changes what is measured: keep it the same, and know it.
    Mind,
    /// Could not be found out.
    Unknown,
    /// Good.
    Fine,
}

impl FindingLevel {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            FindingLevel::Noisy => "NOISY",
            FindingLevel::Mind => "mind",
            FindingLevel::Unknown => "unknown",
            FindingLevel::Fine => "fine",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostFinding {
    /// The subject: `steal`, `frequency`.
    pub about: &'static str,
    /// The severity.
    pub level: FindingLevel,
    /// The finding with its numbers, or the reason why it is unknown.
    pub found: String,
    /// The meaning for measurements.
    pub means: &'static str,
    /// Advice; empty if there is none.
    pub advice: &'static str,
}

/// Readings over some seconds on a host that should be idle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Idleness {
    /// Length, seconds.
    pub seconds: f64,
    /// Share of CPU time taken by the hypervisor; `None` if /proc/stat could not be read.
    pub steal: Option<f64>,
    /// Other activity.
    pub disturbance: Disturbance,
}

/// All findings, the gravest first.
pub fn all(root: &Path, host: &Host, idle: &Idleness, canary: &Canary) -> Vec<HostFinding> {
    let mut findings = load(host, idle);
    findings.extend(cpu(root, host));
    findings.extend(memory(root, host));
    findings.extend(disk(host, canary));
    findings.extend(proc_files());
    findings.push(cpu_counters());
    findings.sort_by_key(|finding| finding.level);
    findings
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The trimmed text of a file below `root`.
fn line(root: &Path, path: &str) -> Result<String, String> {
    let read = fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned());
    read.map_err(|error| format!("read /{path}: {error}"))
}

/// A share that is noisy above a limit.
fn share(
    about: &'static str,
    (value, missing): (Option<f64>, &str),
    limit: f64,
    what: &str,
    (means, advice): (&'static str, &'static str),
) -> HostFinding {
    let (level, found) = match value {
        None => (FindingLevel::Unknown, missing.to_owned()),
        Some(share) if share > limit => (FindingLevel::Noisy, format!("{} {what}", percent(share))),
        Some(share) => (FindingLevel::Fine, format!("{} {what}", percent(share))),
    };
    let advice = if level == FindingLevel::Noisy { advice } else { "" };
    HostFinding { about, level, found, means, advice }
}

fn load(host: &Host, idle: &Idleness) -> Vec<HostFinding> {
    let seconds = format!("in {:.1} s", idle.seconds);
    let seen = &idle.disturbance;
    let why = |name: &str| seen.missing.get(name).cloned().unwrap_or_default();
    let guest = host.virtualization.as_deref().is_some_and(|name| name != "none");
    let mut findings = vec![
        share(
            "steal",
            (idle.steal, "read /proc/stat: no line of all CPUs"),
            STEAL_MAX,
            &format!("of CPU time taken by the hypervisor {seconds}"),
            (
                "other guests of this machine slow it down at random",
                "use a dedicated host or instance; measure more blocks; do not trust single runs",
            ),
        ),
        share(
            "other load",
            (seen.foreign_cpu, &why("foreign_cpu")),
            FOREIGN_MAX,
            &format!("of CPU time used by other processes {seconds}"),
            (
                "other processes take CPU and cache, perhaps from one target only",
                "stop other services, timers (cron, apt, updatedb), agents and desktops",
            ),
        ),
        share(
            "CPU pressure",
            (seen.pressure_cpu, &why("pressure_cpu")),
            PRESSURE_MAX,
            &format!("of the time some task waited for a CPU {seconds}, without load from rqps"),
            (
                "the host has more work than CPUs before rqps measures (the value includes load \
                 hidden from this container)",
                "find the running processes (top) and stop them",
            ),
        ),
    ];
    findings.push(match seen.swapped_in {
        None => {
            let means = "the kernel reads swapped pages back during a step";
            unknown("swapping", why("swapped_in"), means)
        }
        Some(pages) => HostFinding {
            about: "swapping",
            level: if pages > 0 { FindingLevel::Noisy } else { FindingLevel::Fine },
            found: format!("{pages} pages swapped in {seconds}"),
            means: "memory is short: the kernel reads pages back from disk during a step",
            advice: if pages > 0 { "use fewer rows, or swapoff -a" } else { "" },
        },
    });
    findings.push(throttling(seen, &why));
    findings.push(HostFinding {
        about: "virtualisation",
        level: if guest { FindingLevel::Mind } else { FindingLevel::Fine },
        found: host.virtualization.clone().unwrap_or_else(|| "unknown".to_owned()),
        means: "waking a halted virtual CPU costs more than a short query, and other guests share \
                caches and disks",
        advice: if guest {
            "prefer --idle awake or placement together; calibrate with rqps doctor --aa"
        } else {
            ""
        },
    });
    findings
}

fn throttling(seen: &Disturbance, why: &dyn Fn(&str) -> String) -> HostFinding {
    let means = "heat or a quota slows the CPU and changes rates";
    let counts = [
        (seen.throttled_thermal, "times for heat", "throttled_thermal"),
        (seen.throttled_cgroup_us, "us by the cgroup's quota", "throttled_cgroup_us"),
    ];
    let told: Vec<String> = counts
        .iter()
        .map(|(count, what, name)| match count {
            Some(count) => format!("{count} {what}"),
            None => why(name),
        })
        .collect();
    let (any, none) = (
        counts.iter().any(|(count, ..)| count.is_some_and(|count| count > 0)),
        counts.iter().all(|(count, ..)| count.is_none()),
    );
    let level = match (any, none) {
        (true, _) => FindingLevel::Noisy,
        (_, true) => FindingLevel::Unknown,
        _ => FindingLevel::Fine,
    };
    let advice = if any { "cool the CPU, lower its frequency, or raise the quota" } else { "" };
    HostFinding { about: "throttling", level, found: told.join("; "), means, advice }
}

fn unknown(about: &'static str, found: String, means: &'static str) -> HostFinding {
    HostFinding { about, level: FindingLevel::Unknown, found, means, advice: "" }
}

fn cpu(root: &Path, host: &Host) -> Vec<HostFinding> {
    let governor = match host.governor.as_deref() {
        Some("performance") => HostFinding {
            about: "frequency",
            level: FindingLevel::Fine,
            found: "governor performance".to_owned(),
            means: "the CPU frequency does not follow the load",
            advice: "",
        },
        Some(other) => HostFinding {
            about: "frequency",
            level: FindingLevel::Noisy,
            found: format!("governor {other}"),
            means: "the CPU frequency follows the load: short steps run at varying frequencies",
            advice: "cpupower frequency-set -g performance",
        },
        None => unknown(
            "frequency",
            host.missing.get("governor").cloned().unwrap_or_default(),
            "the frequency governor is not visible here; in a guest the hypervisor's host sets it",
        ),
    };
    vec![governor, turbo(root), smt(host), aslr(root), numa(root), mitigations(host), clock(root)]
}

fn turbo(root: &Path) -> HostFinding {
    let means = "the CPU frequency depends on temperature and on the number of busy CPUs";
    let intel = line(root, "sys/devices/system/cpu/intel_pstate/no_turbo");
    let boost = line(root, "sys/devices/system/cpu/cpufreq/boost");
    let on = match (intel.as_deref(), boost.as_deref()) {
        (Ok(no), _) => no == "0",
        (_, Ok(boost)) => boost == "1",
        (Err(_), Err(reason)) => return unknown("turbo", reason.to_owned(), means),
    };
    HostFinding {
        about: "turbo",
        level: if on { FindingLevel::Mind } else { FindingLevel::Fine },
        found: if on { "on" } else { "off" }.to_owned(),
        means,
        advice: if on {
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
             /sys/devices/system/cpu/cpufreq/boost"
        } else {
            ""
        },
    }
}

fn smt(host: &Host) -> HostFinding {
    let means = "two threads share a core, so the choice of CPUs changes a run's rate";
    match host.smt.as_deref() {
        Some("on") => HostFinding {
            about: "SMT",
            level: FindingLevel::Mind,
            found: "on".to_owned(),
            means,
            advice: "echo off > /sys/devices/system/cpu/smt/control",
        },
        Some(state) => HostFinding {
            about: "SMT",
            level: FindingLevel::Fine,
            found: state.to_owned(),
            means,
            advice: "",
        },
        None => unknown("SMT", host.missing.get("smt").cloned().unwrap_or_default(), means),
    }
}

fn aslr(root: &Path) -> HostFinding {
    let means = "each server start has a different memory layout and other cache conflicts: noise \
                 between blocks, not within one, so blocks average it out";
    match line(root, "proc/sys/kernel/randomize_va_space") {
        Ok(state) => HostFinding {
            about: "address layout",
            level: FindingLevel::Fine,
            found: if state == "0" { "fixed" } else { "random for each process" }.to_owned(),
            means,
            advice: "",
        },
        Err(reason) => unknown("address layout", reason, means),
    }
}

fn numa(root: &Path) -> HostFinding {
    let means = "memory of another node is slower, so the placement of a server's pages changes \
                 its rate";
    match line(root, "sys/devices/system/node/online") {
        Ok(nodes) => {
            let several = nodes.contains(['-', ',']);
            HostFinding {
                about: "NUMA",
                level: if several { FindingLevel::Mind } else { FindingLevel::Fine },
                found: format!("nodes {nodes}"),
                means,
                advice: if several {
                    "keep rqps and servers on one node: numactl -N 0 -m 0"
                } else {
                    ""
                },
            }
        }
        Err(reason) => unknown("NUMA", reason, means),
    }
}

fn cpu_counters() -> HostFinding {
    let means = "without them no step has instructions and cycles per operation; `rqps count` \
                 counts instructions anywhere";
    let events = [CountedEvent::Instructions, CountedEvent::Cycles];
    match EventCounters::open(&[tree::thread_id()], &events) {
        Ok(_) => HostFinding {
            about: "CPU counters",
            level: FindingLevel::Fine,
            found: "instructions and cycles are readable".to_owned(),
            means,
            advice: "",
        },
        Err(reason) => unknown("CPU counters", reason, means),
    }
}

fn mitigations(host: &Host) -> HostFinding {
    let means = "some of them make system calls slower, equally on both sides of a comparison";
    if host.mitigations.is_empty() {
        let reason = host.missing.get("mitigations").cloned().unwrap_or_default();
        return unknown("mitigations", reason, means);
    }
    let active = host.mitigations.values().filter(|state| state.starts_with("Mitigation")).count();
    HostFinding {
        about: "mitigations",
        level: FindingLevel::Fine,
        found: format!("{active} of {} vulnerabilities mitigated", host.mitigations.len()),
        means,
        advice: "",
    }
}

fn clock(root: &Path) -> HostFinding {
    let means = "clients read the time for each event, so that must not be a system call";
    match line(root, "sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Ok(source) => {
            let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];
            let fast = fast.contains(&source.as_str());
            HostFinding {
                about: "clock source",
                level: if fast { FindingLevel::Fine } else { FindingLevel::Noisy },
                found: source,
                means,
                advice: if fast { "" } else { "boot with clocksource=tsc if the TSC is stable" },
            }
        }
        Err(reason) => unknown("clock source", reason, means),
    }
}

fn memory(root: &Path, host: &Host) -> Vec<HostFinding> {
    let huge = "the kernel builds and splits huge pages while a server runs, which costs some \
                servers time";
    let pages = match host.transparent_huge_pages.as_deref() {
        Some("always") => HostFinding {
            about: "huge pages",
            level: FindingLevel::Mind,
            found: "transparent huge pages: always".to_owned(),
            means: huge,
            advice: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        },
        Some(state) => HostFinding {
            about: "huge pages",
            level: FindingLevel::Fine,
            found: format!("transparent huge pages: {state}"),
            means: huge,
            advice: "",
        },
        None => {
            let name = "transparent_huge_pages";
            unknown("huge pages", host.missing.get(name).cloned().unwrap_or_default(), huge)
        }
    };
    let means = "the kernel may swap out a block's idle servers while rqps measures another one";
    let swap = match host.swap_bytes {
        0 => HostFinding {
            about: "swap",
            level: FindingLevel::Fine,
            found: "none".to_owned(),
            means,
            advice: "",
        },
        bytes => {
            let swappiness = line(root, "proc/sys/vm/swappiness").unwrap_or_default();
            let mib = bytes >> 20;
            let found = format!("{mib} MiB, vm.swappiness {swappiness}");
            let advice = "swapoff -a, or sysctl vm.swappiness=1";
            HostFinding { about: "swap", level: FindingLevel::Mind, found, means, advice }
        }
    };
    vec![pages, swap]
}

fn disk(host: &Host, canary: &Canary) -> Vec<HostFinding> {
    let means = "steps that commit wait for fsync";
    let fsync = match canary.fsync_ns {
        None => {
            let reason = canary.missing.get("fsync_ns").cloned().unwrap_or_default();
            unknown("fsync", reason, means)
        }
        Some(ns) => {
            let found = format!("{:.3} ms for a page of 4 KiB (median)", ns / 1e6);
            let (level, advice) = match ns {
                _ if ns < FSYNC_NS_MIN => (
                    FindingLevel::Mind,
                    "too fast for a disk: fsync returns before data are stored; fine for CPU \
                     comparisons, not for durability",
                ),
                _ if ns > FSYNC_NS_MAX => (
                    FindingLevel::Mind,
                    "the disk limits the rates of steps that commit: use --work on a faster disk, \
                     or more clients",
                ),
                _ => (FindingLevel::Fine, ""),
            };
            HostFinding { about: "fsync", level, found, means, advice }
        }
    };
    let named = host.disk.as_deref().unwrap_or("no block device");
    let system = host.filesystem.as_deref().unwrap_or("unknown file system");
    let found = format!("{named}, {system} ({})", host.mount_options.as_deref().unwrap_or("?"));
    let counted = host.disk.is_some();
    let counters = HostFinding {
        about: "disk counters",
        level: if counted { FindingLevel::Fine } else { FindingLevel::Unknown },
        found,
        means: "rqps reads r/o, rKB/o and wKB/o from /proc/diskstats of the device under the data",
        advice: if counted { "" } else { "put the data on a separate disk with --work" },
    };
    vec![fsync, counters]
}

/// Checks whether rqps can read the memory of other users' processes: as root, it runs servers as
/// another user.
fn proc_files() -> Vec<HostFinding> {
    let own = fs::read_to_string("/proc/self/smaps_rollup").map_err(|error| error.to_string());
    let read = own.and_then(|text| proc::proportional_bytes(&text).map_err(|e| e.to_string()));
    let means = "the resident memory of a server should count shared pages once";
    vec![match read {
        Ok(_) => HostFinding {
            about: "memory of servers",
            level: FindingLevel::Fine,
            found: "smaps_rollup is readable".to_owned(),
            means,
            advice: "",
        },
        Err(reason) => unknown(
            "memory of servers",
            format!("read /proc/self/smaps_rollup: {reason}; VmRSS counts shared pages repeatedly"),
            means,
        ),
    }]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::made_root::made_root;

    fn of<'a>(findings: &'a [HostFinding], about: &str) -> &'a HostFinding {
        findings.iter().find(|finding| finding.about == about).unwrap()
    }

    fn quiet() -> (Host, Idleness, Canary) {
        let host = Host {
            governor: Some("performance".to_owned()),
            smt: Some("off".to_owned()),
            transparent_huge_pages: Some("never".to_owned()),
            virtualization: Some("none".to_owned()),
            mitigations: BTreeMap::from([("a".to_owned(), "Mitigation: b".to_owned())]),
            disk: Some("nvme0n1".to_owned()),
            ..Host::default()
        };
        let disturbance = Disturbance {
            foreign_cpu: Some(0.001),
            pressure_cpu: Some(0.0),
            swapped_in: Some(0),
            throttled_thermal: Some(0),
            ..Disturbance::default()
        };
        let canary = Canary { fsync_ns: Some(4e5), ..Canary::default() };
        (host, Idleness { seconds: 2.0, steal: Some(0.0), disturbance }, canary)
    }

    const QUIET: [(&str, &str); 4] = [
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/node/online", "0\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        ("proc/sys/kernel/randomize_va_space", "2\n"),
    ];

    #[test]
    fn a_quiet_host_is_fine() {
        let (host, idle, canary) = quiet();
        let root = made_root(&QUIET);
        for finding in all(root.path(), &host, &idle, &canary) {
            // These are of the machine that this runs on.
            let own = ["memory of servers", "CPU counters"].contains(&finding.about);
            assert!(own || finding.level == FindingLevel::Fine, "{finding:?}");
            assert!(finding.advice.is_empty(), "{finding:?}");
        }
    }

    #[test]
    fn each_noise_is_found_and_comes_first_with_advice() {
        let (host, idle, canary) = quiet();
        let noisy_host = Host {
            governor: Some("powersave".to_owned()),
            smt: Some("on".to_owned()),
            transparent_huge_pages: Some("always".to_owned()),
            virtualization: Some("kvm".to_owned()),
            swap_bytes: 1 << 30,
            ..host
        };
        let disturbance = Disturbance {
            foreign_cpu: Some(0.05),
            pressure_cpu: Some(0.2),
            swapped_in: Some(7),
            throttled_thermal: Some(1),
            ..idle.disturbance
        };
        let idle = Idleness { steal: Some(0.031), disturbance, ..idle };
        let root = made_root(&[
            ("sys/devices/system/cpu/cpufreq/boost", "1"),
            ("sys/devices/system/node/online", "0-1"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
        ]);
        let slow = Canary { fsync_ns: Some(2e7), ..canary };
        let findings = all(root.path(), &noisy_host, &idle, &slow);
        let noisy = ["steal", "other load", "CPU pressure", "swapping", "throttling", "frequency"];
        for about in noisy.iter().chain(&["clock source"]) {
            assert_eq!(of(&findings, about).level, FindingLevel::Noisy, "{about}");
            assert!(!of(&findings, about).advice.is_empty(), "{about}");
        }
        for about in ["turbo", "SMT", "NUMA", "huge pages", "swap", "fsync", "virtualisation"] {
            assert_eq!(of(&findings, about).level, FindingLevel::Mind, "{about}");
        }
        assert!(of(&findings, "steal").found.starts_with("3.1 % of CPU time"));
        assert!(findings.is_sorted_by_key(|finding| finding.level));
    }

    #[test]
    fn what_cannot_be_read_is_said_to_be_unknown_and_why() {
        let root = made_root(&[]);
        let idle = Idleness::default();
        let findings = all(root.path(), &Host::default(), &idle, &Canary::default());
        for about in ["turbo", "NUMA", "clock source", "address layout"] {
            let finding = of(&findings, about);
            assert_eq!(finding.level, FindingLevel::Unknown, "{about}");
            assert!(finding.found.starts_with("read /"), "{finding:?}");
        }
        for about in ["steal", "SMT", "frequency", "fsync", "throttling", "disk counters"] {
            assert_eq!(of(&findings, about).level, FindingLevel::Unknown, "{about}");
        }
    }
}
