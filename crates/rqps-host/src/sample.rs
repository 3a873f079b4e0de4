//! Cumulative readings of the counters of host, disk and server, and what they moved by.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use crate::proc::{self, DiskCounters, HostStat};
use crate::tree::{self, CounterSource, Cpu, TreeCpu};
use rqps_model::run::{CpuTime, DiskUsage, HostUsage, Usage};

/// Reads counters. One reading costs well below a millisecond, so one each second is harmless.
#[derive(Debug)]
pub struct CounterSampler {
    begin: Instant,
    server: Result<TreeCpu, String>,
    spinner: Option<TreeCpu>,
    disk: Option<String>,
    server_pid: Option<u32>,
}

/// One reading: counters since boot or since the start of a process, each with its fault if it
/// could not be read.
#[derive(Clone, Debug)]
pub struct Sample {
    at_seconds: f64,
    server: Result<(Cpu, CounterSource), String>,
    spinner: Option<Cpu>,
    host: Result<HostStat, String>,
    disk: Result<DiskCounters, String>,
}

impl CounterSampler {
    /// Watches the process tree below `server_pid`, the block device `disk` (`vda`) and the
    /// spinner process. What is not given is missing in every [`Usage`], with the reason.
    pub fn new(server_pid: Option<u32>, disk: Option<String>, spinner_pid: Option<u32>) -> Self {
        let server = match server_pid {
            Some(pid) => TreeCpu::new(pid).map_err(|error| error.to_string()),
            None => Err("no server process on this host is known".to_string()),
        };
        let spinner = spinner_pid.and_then(|pid| TreeCpu::new(pid).ok());
        Self { begin: Instant::now(), server, spinner, disk, server_pid }
    }

    /// Reads all counters but memory.
    pub fn read(&mut self) -> Sample {
        let server = match &mut self.server {
            Ok(tree) => {
                let source = tree.source();
                tree.read().map(|cpu| (cpu, source)).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason.clone()),
        };
        Sample {
            at_seconds: self.begin.elapsed().as_secs_f64(),
            server,
            spinner: self.spinner.as_mut().and_then(|tree| tree.read().ok()),
            host: read("/proc/stat").and_then(|t| proc::host_stat(&t).map_err(|e| e.to_string())),
            disk: match &self.disk {
                Some(device) => disk(device),
                None => Err("no block device under the data folder".to_string()),
            },
        }
    }

    /// Resident memory of the server now, put into `usage`. Costs milliseconds where the cache is
    /// large: for the end of a window.
    pub fn read_memory(&self, usage: &mut Usage) {
        let name = "server_rss_bytes".to_string();
        let memory = match self.server_pid {
            Some(pid) => tree::memory(pid).map_err(|error| error.to_string()),
            None => Err("no server process on this host is known".to_string()),
        };
        match memory {
            Ok(memory) => {
                usage.server_rss_bytes = Some(memory.bytes);
                usage.missing.remove(&name);
                let source = match memory.resident {
                    0 => "proc smaps_rollup, Pss",
                    _ => "proc status, VmRSS: pages shared by processes count once per process",
                };
                usage.sources.insert(name, source.to_string());
            }
            Err(reason) => {
                usage.missing.insert(name, reason);
            }
        }
    }
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("read {path}: {error}"))
}

fn disk(device: &str) -> Result<DiskCounters, String> {
    let counters = proc::disk_counters(&read("/proc/diskstats")?, device);
    counters.map_err(|error| format!("{error} ({device})"))
}

impl Sample {
    /// The changes of the counters since `earlier`, a reading of the same sampler.
    pub fn since(&self, earlier: &Sample) -> Usage {
        let mut usage = Usage {
            seconds: (self.at_seconds - earlier.at_seconds).max(0.0),
            missing: BTreeMap::from([(
                "server_rss_bytes".to_string(),
                "only read at the end of a window".to_string(),
            )]),
            ..Usage::default()
        };
        match both(&self.server, &earlier.server) {
            Ok(((now, source), (then, _))) => {
                usage.server_cpu = Some(now.since(*then));
                usage.sources.insert("server_cpu".to_string(), source.name().to_string());
            }
            Err(reason) => {
                usage.missing.insert("server_cpu".to_string(), reason);
            }
        }
        match both(&self.host, &earlier.host) {
            Ok((now, then)) => usage.host = host_usage(now, then),
            Err(reason) => {
                usage.missing.insert("host".to_string(), reason);
            }
        }
        match both(&self.disk, &earlier.disk) {
            Ok((now, then)) => usage.disk = Some(disk_usage(now, then)),
            Err(reason) => {
                usage.missing.insert("disk".to_string(), reason);
            }
        }
        usage.spinner_cpu = match (self.spinner, earlier.spinner) {
            (Some(now), Some(then)) => now.since(then),
            _ => CpuTime::default(),
        };
        usage
    }
}

/// Both values, or the later fault, or the earlier.
fn both<'a, T>(
    now: &'a Result<T, String>,
    then: &'a Result<T, String>,
) -> Result<(&'a T, &'a T), String> {
    match (now, then) {
        (Ok(now), Ok(then)) => Ok((now, then)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

fn host_usage(now: &HostStat, then: &HostStat) -> HostUsage {
    let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
    // The kernel may take back some iowait; less than none is none.
    let moved = |now: u64, then: u64| now.saturating_sub(then) as f64 * tick;
    HostUsage {
        cpus: now.cpus,
        user: moved(now.cpu.user, then.cpu.user),
        nice: moved(now.cpu.nice, then.cpu.nice),
        system: moved(now.cpu.system, then.cpu.system),
        idle: moved(now.cpu.idle, then.cpu.idle),
        iowait: moved(now.cpu.iowait, then.cpu.iowait),
        steal: moved(now.cpu.steal, then.cpu.steal),
        context_switches: now.context_switches.saturating_sub(then.context_switches),
    }
}

fn disk_usage(now: &DiskCounters, then: &DiskCounters) -> DiskUsage {
    DiskUsage {
        reads: now.reads.saturating_sub(then.reads),
        read_kb: now.sectors_read.saturating_sub(then.sectors_read) as f64 / 2.0,
        writes: now.writes.saturating_sub(then.writes),
        write_kb: now.sectors_written.saturating_sub(then.sectors_written) as f64 / 2.0,
        busy_ms: now.busy_ms.saturating_sub(then.busy_ms),
        read_ms: now.read_ms.saturating_sub(then.read_ms),
        write_ms: now.write_ms.saturating_sub(then.write_ms),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use crate::proc::CpuTicks;

    use super::*;

    fn sample(at_seconds: f64, factor: u64) -> Sample {
        let cpu = CpuTicks {
            user: 100 * factor,
            nice: 30 * factor,
            system: 40 * factor,
            idle: 500 * factor,
            iowait: 10 * factor,
            steal: 2 * factor,
        };
        let server =
            Cpu { total_ns: 9_000_000 * factor, user_ticks: 2 * factor, system_ticks: factor };
        let disk = DiskCounters {
            reads: 5 * factor,
            sectors_read: 80 * factor,
            writes: 7 * factor,
            sectors_written: 11 * factor,
            busy_ms: 13 * factor,
            read_ms: 17 * factor,
            write_ms: 19 * factor,
        };
        Sample {
            at_seconds,
            server: Ok((server, CounterSource::TaskClock)),
            spinner: Some(Cpu { total_ns: 4_000 * factor, user_ticks: 1, system_ticks: 1 }),
            host: Ok(HostStat { cpu, cpus: 4, context_switches: 1000 * factor }),
            disk: Ok(disk),
        }
    }

    #[test]
    fn usage_is_the_difference_in_the_units_of_the_domain() {
        let usage = sample(3.5, 3).since(&sample(1.0, 1));
        // Clock ticks are 10 ms on Linux of every architecture that rqps runs on.
        let host = HostUsage {
            cpus: 4,
            user: 2.0,
            nice: 0.6,
            system: 0.8,
            idle: 10.0,
            iowait: 0.2,
            steal: 0.04,
            context_switches: 2000,
        };
        let disk = DiskUsage {
            reads: 10,
            read_kb: 80.0,
            writes: 14,
            write_kb: 11.0,
            busy_ms: 26,
            read_ms: 34,
            write_ms: 38,
        };
        assert_eq!(usage.seconds, 2.5);
        assert_eq!(usage.host, host);
        assert_eq!(usage.disk, Some(disk));
        let server = CpuTime { user_us: 12_000.0, system_us: 6_000.0 };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        close(usage.server_cpu.unwrap().user_us, server.user_us);
        close(usage.server_cpu.unwrap().system_us, server.system_us);
        close(usage.spinner_cpu.total_us(), 8.0);
        assert_eq!(usage.sources["server_cpu"], "task clock");
    }

    #[test]
    fn what_is_missing_has_its_reason() {
        let mut broken = sample(2.0, 2);
        broken.disk = Err("no line of that device in /proc/diskstats (sdz)".to_string());
        broken.server = Err("process 7 has ended".to_string());
        let usage = broken.since(&sample(1.0, 1));
        assert_eq!((usage.disk, usage.server_cpu), (None, None));
        assert_eq!(usage.missing["server_cpu"], "process 7 has ended");
        assert!(usage.missing["disk"].contains("sdz"));
        assert!(usage.missing.contains_key("server_rss_bytes"));
        let usage = sample(2.0, 2).since(&broken);
        assert_eq!(usage.missing["server_cpu"], "process 7 has ended");
    }

    #[test]
    fn counters_that_go_back_did_not_move() {
        let usage = sample(2.0, 1).since(&sample(1.0, 2));
        assert_eq!(usage.host.iowait, 0.0);
        assert_eq!(usage.host.context_switches, 0);
        assert_eq!(usage.disk.unwrap(), DiskUsage::default());
    }

    #[test]
    fn a_real_process_is_read() {
        let loops = "echo; read x; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; read x";
        let mut command = Command::new("sh");
        command.args(["-c", loops]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0];
        let mut hear = |child: &mut std::process::Child| {
            std::io::Read::read(child.stdout.as_mut().unwrap(), &mut line).unwrap()
        };
        hear(&mut child);
        let mut sampler = CounterSampler::new(Some(child.id()), None, None);
        let before = sampler.read();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\n").unwrap();
        hear(&mut child);
        let mut usage = sampler.read().since(&before);
        sampler.read_memory(&mut usage);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(usage.server_cpu.unwrap().total_us() > 1000.0, "{usage:?}");
        assert!(usage.server_rss_bytes.unwrap() > 0 && usage.host.cpus > 0);
        assert!(usage.seconds > 0.0 && usage.host.user > 0.0);
        assert_eq!(usage.missing.keys().collect::<Vec<_>>(), ["disk"]);
        assert!(sampler.read().since(&before).missing["server_cpu"].contains("has ended"));
    }

    #[test]
    fn without_a_server_the_reason_is_told() {
        let mut sampler = CounterSampler::new(None, Some("no-such-disk".to_string()), None);
        let before = sampler.read();
        let mut usage = sampler.read().since(&before);
        sampler.read_memory(&mut usage);
        for counter in ["server_cpu", "server_rss_bytes"] {
            assert_eq!(usage.missing[counter], "no server process on this host is known");
        }
        assert!(usage.missing["disk"].contains("no-such-disk"));
    }
}
