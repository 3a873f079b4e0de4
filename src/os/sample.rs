//! Cumulative readings of the counters of host, disk and server, and what they moved by.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use crate::domain::run::{CpuTime, DiskUsage, HostUsage, Usage};
use crate::os::proc::{self, DiskCounters, HostStat};
use crate::os::tree::{self, Cpu, Source, TreeCpu};

/// Reads counters. One reading costs well below a millisecond, so one each second is harmless.
#[derive(Debug)]
pub struct Sampler {
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
    server: Result<(Cpu, Source), String>,
    spinner: Option<Cpu>,
    host: Result<HostStat, String>,
    disk: Result<DiskCounters, String>,
}

impl Sampler {
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
                    _ => "proc status, VmRSS: pages shared by processes count once for each",
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
    /// What the counters moved by since `earlier`, a reading of the same sampler.
    pub fn since(&self, earlier: &Sample) -> Usage {
        let mut usage = Usage {
            seconds: (self.at_seconds - earlier.at_seconds).max(0.0),
            missing: BTreeMap::from([(
                "server_rss_bytes".to_string(),
                "read at the end of a window only".to_string(),
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
    }
}
