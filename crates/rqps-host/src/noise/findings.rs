//! The doctor's findings: facts about the host, their meaning for measurements, and advice.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::affinity::{CountedEvent, EventCounters};
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
/// Clocks that a process reads without a system call.
const FAST_CLOCKS: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

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

use FindingLevel::{Fine, Mind, Noisy, Unknown};

impl FindingLevel {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Noisy => "NOISY",
            Mind => "mind",
            Unknown => "unknown",
            Fine => "fine",
        }
    }

    fn if_so(self, is_so: bool) -> FindingLevel {
        if is_so { self } else { Fine }
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

/// What was found of one thing: its level, the words, and what to do unless it is fine. The error
/// is why it is unknown.
type Seen = Result<(FindingLevel, String, &'static str), String>;

fn finding(about: &'static str, means: &'static str, seen: Seen) -> HostFinding {
    let (level, found, advice) = seen.unwrap_or_else(|reason| (Unknown, reason, ""));
    let advice = if level == Fine { "" } else { advice };
    HostFinding { about, level, found, means, advice }
}

/// All findings, the gravest first.
pub fn all(root: &Path, host: &Host, idle: &Idleness, canary: &Canary) -> Vec<HostFinding> {
    let mut findings = load(host, idle);
    findings.extend(cpu(root, host));
    findings.extend(memory(root, host));
    findings.extend(disk(host, canary));
    findings.push(server_memory());
    findings.push(cpu_counters());
    findings.sort_by_key(|finding| finding.level);
    findings
}

fn missing(host: &Host, fact: &str) -> String {
    host.missing.get(fact).cloned().unwrap_or_default()
}

fn line(root: &Path, path: &str) -> Result<String, String> {
    let read = fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned());
    read.map_err(|error| format!("read /{path}: {error}"))
}

fn load(host: &Host, idle: &Idleness) -> Vec<HostFinding> {
    let (seen, seconds) = (&idle.disturbance, format!("in {:.1} s", idle.seconds));
    let why = |name: &str| seen.missing.get(name).cloned().unwrap_or_default();
    let share = |value: Option<f64>, why: String, limit: f64, what: &str, advice| -> Seen {
        let share = value.ok_or(why)?;
        let found = format!("{:.1} % {what} {seconds}", 100.0 * share);
        Ok((Noisy.if_so(share > limit), found, advice))
    };
    let steal = share(
        idle.steal,
        "read /proc/stat: no line of all CPUs".to_owned(),
        STEAL_MAX,
        "of CPU time taken by the hypervisor",
        "use a dedicated host or instance; measure more blocks; do not trust single runs",
    );
    let foreign = share(
        seen.foreign_cpu,
        why("foreign_cpu"),
        FOREIGN_MAX,
        "of CPU time used by other processes",
        "stop other services, timers (cron, apt, updatedb), agents and desktops",
    );
    let pressure = share(
        seen.pressure_cpu,
        why("pressure_cpu"),
        PRESSURE_MAX,
        "of the time some task waited for a CPU, without load from rqps,",
        "find the running processes (top) and stop them",
    );
    let swapping = seen.swapped_in.ok_or_else(|| why("swapped_in")).map(|pages| {
        let found = format!("{pages} pages swapped in {seconds}");
        (Noisy.if_so(pages > 0), found, "use fewer rows, or swapoff -a")
    });
    let kind = host.virtualization.as_deref();
    let guest = (
        Mind.if_so(kind.is_some_and(|name| name != "none")),
        kind.unwrap_or("unknown").to_owned(),
        "prefer --idle awake or placement together; calibrate with rqps doctor --aa",
    );
    vec![
        finding("steal", "other guests of this machine slow it down at random", steal),
        finding(
            "other load",
            "other processes take CPU and cache, perhaps from one target only",
            foreign,
        ),
        finding(
            "CPU pressure",
            "the host has more work than CPUs before rqps measures (the value includes load \
             hidden from this container)",
            pressure,
        ),
        finding(
            "swapping",
            "memory is short: the kernel reads pages back from disk during a step",
            swapping,
        ),
        finding(
            "throttling",
            "heat or a quota slows the CPU and changes rates",
            throttling(seen, &why),
        ),
        finding(
            "virtualisation",
            "waking a halted virtual CPU costs more than a short query, and other guests share \
             caches and disks",
            Ok(guest),
        ),
    ]
}

fn throttling(seen: &Disturbance, why: &dyn Fn(&str) -> String) -> Seen {
    let counts = [
        (seen.throttled_thermal, "times for heat", "throttled_thermal"),
        (seen.throttled_cgroup_us, "us by the cgroup's quota", "throttled_cgroup_us"),
    ];
    let told = counts.iter().map(|(count, what, name)| match count {
        Some(count) => format!("{count} {what}"),
        None => why(name),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    if counts.iter().all(|(count, ..)| count.is_none()) {
        return Err(told);
    }
    let any = counts.iter().any(|(count, ..)| count.is_some_and(|count| count > 0));
    Ok((Noisy.if_so(any), told, "cool the CPU, lower its frequency, or raise the quota"))
}

fn cpu(root: &Path, host: &Host) -> Vec<HostFinding> {
    let governor = host.governor.as_deref().ok_or_else(|| missing(host, "governor"));
    let frequency = governor.map(|name| {
        let level = Noisy.if_so(name != "performance");
        (level, format!("governor {name}"), "cpupower frequency-set -g performance")
    });
    let smt = host.smt.clone().ok_or_else(|| missing(host, "smt")).map(|state| {
        (Mind.if_so(state == "on"), state, "echo off > /sys/devices/system/cpu/smt/control")
    });
    let tuning = host.tuning.clone().unwrap_or_default();
    let turbo = tuning.turbo.ok_or_else(|| missing(host, "turbo")).map(|state| {
        let advice = "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > \
                      /sys/devices/system/cpu/cpufreq/boost";
        (Mind.if_so(state == "on"), state, advice)
    });
    let aslr = tuning.aslr.ok_or_else(|| missing(host, "aslr")).map(|state| {
        let words = if state == 0 { "fixed" } else { "random for each process" };
        (Fine, words.to_owned(), "")
    });
    let numa = line(root, "sys/devices/system/node/online").map(|nodes| {
        let several = Mind.if_so(nodes.contains(['-', ',']));
        let advice = "keep rqps and servers on one node: numactl -N 0 -m 0";
        (several, format!("nodes {nodes}"), advice)
    });
    let all = host.mitigations.len();
    let active = host.mitigations.values().filter(|state| state.starts_with("Mitigation")).count();
    let mitigations = match all {
        0 => Err(missing(host, "mitigations")),
        _ => Ok((Fine, format!("{active} of {all} vulnerabilities mitigated"), "")),
    };
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clock = line(root, clock).map(|source| {
        let level = Noisy.if_so(!FAST_CLOCKS.contains(&source.as_str()));
        (level, source, "boot with clocksource=tsc if the TSC is stable")
    });
    vec![
        finding(
            "frequency",
            "a CPU frequency that follows the load varies in short steps; in a guest the \
             hypervisor's host sets it",
            frequency,
        ),
        finding(
            "turbo",
            "the CPU frequency depends on temperature and on the number of busy CPUs",
            turbo,
        ),
        finding("SMT", "two threads share a core, so the choice of CPUs changes a run's rate", smt),
        finding(
            "address layout",
            "each server start has a different memory layout and other cache conflicts: noise \
             between blocks, not within one, so blocks average it out",
            aslr,
        ),
        finding(
            "NUMA",
            "memory of another node is slower, so the placement of a server's pages changes its \
             rate",
            numa,
        ),
        finding(
            "mitigations",
            "some of them make system calls slower, equally on both sides of a comparison",
            mitigations,
        ),
        finding(
            "clock source",
            "clients read the time for each event, so that must not be a system call",
            clock,
        ),
    ]
}

fn cpu_counters() -> HostFinding {
    let events = [CountedEvent::Instructions, CountedEvent::Cycles];
    let opened = EventCounters::open(&[tree::thread_id()], &events);
    finding(
        "CPU counters",
        "without them no step has instructions and cycles per operation; `rqps count` counts \
         instructions anywhere",
        opened.map(|_| (Fine, "instructions and cycles are readable".to_owned(), "")),
    )
}

fn memory(root: &Path, host: &Host) -> Vec<HostFinding> {
    let pages = host.transparent_huge_pages.as_deref();
    let pages = pages.ok_or_else(|| missing(host, "transparent_huge_pages")).map(|state| {
        let found = format!("transparent huge pages: {state}");
        let advice = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        (Mind.if_so(state == "always"), found, advice)
    });
    let swap = match host.swap_bytes >> 20 {
        0 => "none".to_owned(),
        mib => {
            let swappiness = line(root, "proc/sys/vm/swappiness").unwrap_or_default();
            format!("{mib} MiB, vm.swappiness {swappiness}")
        }
    };
    let level = Mind.if_so(host.swap_bytes > 0);
    vec![
        finding(
            "huge pages",
            "the kernel builds and splits huge pages while a server runs, which costs some \
             servers time",
            pages,
        ),
        finding(
            "swap",
            "the kernel may swap out a block's idle servers while rqps measures another one",
            Ok((level, swap, "swapoff -a, or sysctl vm.swappiness=1")),
        ),
    ]
}

fn disk(host: &Host, canary: &Canary) -> Vec<HostFinding> {
    let reason = || canary.missing.get("fsync_ns").cloned().unwrap_or_default();
    let fsync = canary.fsync_ns.ok_or_else(reason).map(|ns| {
        let (level, advice) = match ns {
            _ if ns < FSYNC_NS_MIN => (
                Mind,
                "too fast for a disk: fsync returns before data are stored; fine for CPU \
                 comparisons, not for durability",
            ),
            _ if ns > FSYNC_NS_MAX => (
                Mind,
                "the disk limits the rates of steps that commit: use --work on a faster disk, \
                 or more clients",
            ),
            _ => (Fine, ""),
        };
        (level, format!("{:.3} ms for a page of 4 KiB (median)", ns / 1e6), advice)
    });
    let named = host.disk.as_deref().unwrap_or("no block device");
    let system = host.filesystem.as_deref().unwrap_or("unknown file system");
    let found = format!("{named}, {system} ({})", host.mount_options.as_deref().unwrap_or("?"));
    let level = Unknown.if_so(host.disk.is_none());
    vec![
        finding("fsync", "steps that commit wait for fsync", fsync),
        finding(
            "disk counters",
            "rqps reads r/o, rKB/o and wKB/o from /proc/diskstats of the device under the data",
            Ok((level, found, "put the data on a separate disk with --work")),
        ),
    ]
}

fn server_memory() -> HostFinding {
    let read = line(Path::new("/"), "proc/self/smaps_rollup").and_then(|text| {
        proc::proportional_bytes(&text).map_err(|error| error.to_string())?;
        Ok((Fine, "smaps_rollup is readable".to_owned(), ""))
    });
    finding(
        "memory of servers",
        "the resident memory of a server should count shared pages once",
        read.map_err(|reason| format!("{reason}; VmRSS counts shared pages repeatedly")),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::test_support::root_with;
    use rqps_model::host::Tuning;

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
            tuning: Some(tuning("off")),
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

    fn tuning(turbo: &str) -> Tuning {
        Tuning { turbo: Some(turbo.to_owned()), aslr: Some(2), ..Tuning::default() }
    }

    const QUIET: [(&str, &str); 2] = [
        ("sys/devices/system/node/online", "0\n"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ];

    #[test]
    fn a_quiet_host_is_fine() {
        let (host, idle, canary) = quiet();
        let root = root_with(&QUIET);
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
            tuning: Some(tuning("on")),
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
        let root = root_with(&[
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
        let root = root_with(&[]);
        let idle = Idleness::default();
        let findings = all(root.path(), &Host::default(), &idle, &Canary::default());
        for about in ["NUMA", "clock source"] {
            let finding = of(&findings, about);
            assert_eq!(finding.level, FindingLevel::Unknown, "{about}");
            assert!(finding.found.starts_with("read /"), "{finding:?}");
        }
        for about in ["steal", "SMT", "turbo", "address layout", "frequency", "fsync", "throttling"]
        {
            assert_eq!(of(&findings, about).level, FindingLevel::Unknown, "{about}");
        }
    }
}
