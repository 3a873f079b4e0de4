//! Pure parsers of the text files of /proc: text in, struct out. They never panic, whatever the
//! text, and know nothing of files.

use thiserror::Error;

/// A text of /proc that lacks what it must hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {what} in {file}")]
pub struct Malformed {
    /// Which file the text came from: `/proc/stat`.
    pub file: &'static str,
    /// What could not be found or read as a number.
    pub what: &'static str,
}

fn malformed(file: &'static str, what: &'static str) -> Malformed {
    Malformed { file, what }
}

/// CPU time of the whole host since boot in clock ticks, summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// User mode, niced or not. Time of guests is part of it and not added again.
    pub user: u64,
    /// The niced part of `user`.
    pub nice: u64,
    /// Kernel, with interrupts.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with I/O in flight.
    pub iowait: u64,
    /// Taken by the hypervisor.
    pub steal: u64,
}

/// /proc/stat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStat {
    /// All CPUs together.
    pub cpu: CpuTicks,
    /// CPUs that are online.
    pub cpus: u32,
    /// Context switches since boot.
    pub context_switches: u64,
}

/// Parses /proc/stat.
pub fn host_stat(text: &str) -> Result<HostStat, Malformed> {
    const FILE: &str = "/proc/stat";
    let mut stat = HostStat::default();
    let (mut cpu_seen, mut switches_seen) = (false, false);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("cpu") => {
                stat.cpu = cpu_ticks(words).ok_or(malformed(FILE, "line of all CPUs"))?;
                cpu_seen = true;
            }
            Some("ctxt") => {
                let count = words.next().and_then(|w| w.parse().ok());
                stat.context_switches = count.ok_or(malformed(FILE, "context switches"))?;
                switches_seen = true;
            }
            Some(name) if name.starts_with("cpu") => stat.cpus = stat.cpus.saturating_add(1),
            _ => {}
        }
    }
    match (cpu_seen, switches_seen) {
        (true, true) => Ok(stat),
        (false, _) => Err(malformed(FILE, "line of all CPUs")),
        (true, false) => Err(malformed(FILE, "context switches")),
    }
}

/// Columns: user nice system idle iowait irq softirq steal; kernels before 2.6.11 have fewer.
fn cpu_ticks<'a>(words: impl Iterator<Item = &'a str>) -> Option<CpuTicks> {
    let mut columns = [0u64; 8];
    let mut seen = 0;
    for (column, word) in columns.iter_mut().zip(words) {
        *column = word.parse().ok()?;
        seen += 1;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = columns;
    (seen >= 4).then_some(CpuTicks {
        user: user.saturating_add(nice),
        nice,
        system: system.saturating_add(irq).saturating_add(softirq),
        idle,
        iowait,
        steal,
    })
}

/// /proc/PID/stat, as far as it is of use here. Times in clock ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id.
    pub pid: u32,
    /// Name of the program, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `Z` …
    pub state: char,
    /// Process id of the parent.
    pub parent: u32,
    /// User mode, all threads, ended ones too.
    pub user: u64,
    /// Kernel, all threads, ended ones too.
    pub system: u64,
    /// User mode of children that ended and were waited for, with what they had waited for.
    pub waited_user: u64,
    /// Kernel, the same.
    pub waited_system: u64,
    /// Threads now.
    pub threads: u32,
    /// Start in ticks after boot: with `pid` it names a process once and for all.
    pub start: u64,
    /// Resident pages.
    pub resident_pages: u64,
}

/// Parses /proc/PID/stat. The name may hold spaces and parentheses, so the last parenthesis ends
/// it.
pub fn process_stat(text: &str) -> Result<ProcessStat, Malformed> {
    const FILE: &str = "/proc/PID/stat";
    let named = text.split_once('(').and_then(|(pid, rest)| Some((pid, rest.rsplit_once(')')?)));
    let (pid, (name, rest)) = named.ok_or(malformed(FILE, "name in parentheses"))?;
    let pid = pid.trim().parse().map_err(|_| malformed(FILE, "process id"))?;
    let mut words = [""; 22];
    for (slot, word) in words.iter_mut().zip(rest.split_ascii_whitespace()) {
        *slot = word;
    }
    // The first word here is field 3 of proc(5).
    let field = |number: usize| words.get(number - 3).copied().unwrap_or("");
    let count = |number: usize, what| -> Result<u64, Malformed> {
        field(number).parse().map_err(|_| malformed(FILE, what))
    };
    Ok(ProcessStat {
        pid,
        name: name.to_string(),
        state: field(3).chars().next().ok_or(malformed(FILE, "state"))?,
        parent: field(4).parse().map_err(|_| malformed(FILE, "parent"))?,
        user: count(14, "user time")?,
        system: count(15, "system time")?,
        // Signed in the format, never negative in truth.
        waited_user: count(16, "user time of children")?,
        waited_system: count(17, "system time of children")?,
        threads: u32::try_from(count(20, "threads")?).unwrap_or(u32::MAX),
        start: count(22, "start time")?,
        resident_pages: count(24, "resident pages")?,
    })
}

/// A line of /proc/diskstats, counted since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Sectors read, 512 bytes each whatever the disk says.
    pub sectors_read: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Milliseconds with I/O in flight.
    pub busy_ms: u64,
}

/// Finds `device` (`vda`, `nvme0n1p2`) in /proc/diskstats. The whole name counts: `sda` is not
/// `sda1`.
pub fn disk_counters(text: &str, device: &str) -> Result<DiskCounters, Malformed> {
    const FILE: &str = "/proc/diskstats";
    let line = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .find(|words| words.get(2) == Some(&device))
        .ok_or(malformed(FILE, "line of that device"))?;
    let count = |column: usize| -> Result<u64, Malformed> {
        let word = line.get(column).and_then(|word| word.parse().ok());
        word.ok_or(malformed(FILE, "number where one belongs"))
    };
    Ok(DiskCounters {
        reads: count(3)?,
        sectors_read: count(5)?,
        writes: count(7)?,
        sectors_written: count(9)?,
        busy_ms: count(12)?,
    })
}

/// /proc/meminfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// MemTotal, bytes.
    pub total_bytes: u64,
    /// MemAvailable, bytes; 0 before Linux 3.14.
    pub available_bytes: u64,
    /// SwapTotal, bytes.
    pub swap_bytes: u64,
    /// HugePages_Total, pages.
    pub huge_pages: u64,
}

/// Parses /proc/meminfo.
pub fn memory(text: &str) -> Result<Memory, Malformed> {
    let bytes = |name| value_kib(text, name).unwrap_or(0);
    let total_bytes = value_kib(text, "MemTotal:").ok_or(malformed("/proc/meminfo", "MemTotal"))?;
    Ok(Memory {
        total_bytes,
        available_bytes: bytes("MemAvailable:"),
        swap_bytes: bytes("SwapTotal:"),
        huge_pages: value(text, "HugePages_Total:").unwrap_or(0),
    })
}

/// The number after `name` at the start of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// The same for values in kB, as bytes.
fn value_kib(text: &str, name: &str) -> Option<u64> {
    value(text, name)?.checked_mul(1024)
}

/// `Pss` of /proc/PID/smaps_rollup in bytes: shared pages divided by the number of their users.
pub fn proportional_bytes(text: &str) -> Result<u64, Malformed> {
    value_kib(text, "Pss:").ok_or(malformed("/proc/PID/smaps_rollup", "Pss"))
}

/// `VmRSS` of /proc/PID/status in bytes. Kernel threads and zombies have none.
pub fn resident_bytes(text: &str) -> Result<u64, Malformed> {
    value_kib(text, "VmRSS:").ok_or(malformed("/proc/PID/status", "VmRSS"))
}

/// `voluntary_ctxt_switches` of /proc/PID/task/TID/status: how often a thread went to sleep.
pub fn voluntary_switches(text: &str) -> Result<u64, Malformed> {
    let name = "voluntary_ctxt_switches:";
    value(text, name).ok_or(malformed("/proc/PID/task/TID/status", "voluntary switches"))
}

/// /proc/PID/task/TID/schedstat: one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedStat {
    /// Time on a CPU, ns.
    pub running_ns: u64,
    /// Time ready to run but waiting for a CPU, ns.
    pub waiting_ns: u64,
    /// Times that it was put on a CPU.
    pub timeslices: u64,
}

/// Parses /proc/PID/task/TID/schedstat.
pub fn sched_stat(text: &str) -> Result<SchedStat, Malformed> {
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    let mut next =
        |what| words.next().flatten().ok_or(malformed("/proc/PID/task/TID/schedstat", what));
    Ok(SchedStat {
        running_ns: next("running time")?,
        waiting_ns: next("waiting time")?,
        timeslices: next("timeslices")?,
    })
}

/// /proc/cpuinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    /// Model of the first CPU, if it is told (not on every architecture).
    pub model: Option<String>,
    /// Logical CPUs listed.
    pub cpus: u32,
    /// Distinct pairs of physical and core id, if they are told.
    pub cores: Option<u32>,
    /// True if the CPU itself says that it is a guest's.
    pub hypervisor: bool,
}

/// Parses /proc/cpuinfo. Nothing in it is certain to be there.
pub fn cpu_info(text: &str) -> CpuInfo {
    let mut info = CpuInfo::default();
    let mut cores = std::collections::BTreeSet::new();
    for block in text.split("\n\n") {
        let (mut package, mut core) = ("", None);
        for (name, told) in block.lines().filter_map(|line| line.split_once(':')) {
            let told = told.trim();
            match name.trim() {
                "processor" => info.cpus = info.cpus.saturating_add(1),
                "model name" if info.model.is_none() => info.model = Some(told.to_string()),
                "physical id" => package = told,
                "core id" => core = Some(told),
                "flags" => {
                    let seen = told.split_ascii_whitespace().any(|flag| flag == "hypervisor");
                    info.hypervisor = info.hypervisor || seen;
                }
                _ => {}
            }
        }
        if let Some(core) = core {
            cores.insert((package, core));
        }
    }
    info.cores = u32::try_from(cores.len()).ok().filter(|&count| count > 0);
    info
}

/// A line of /proc/PID/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the device.
    pub device: (u32, u32),
    /// Where it is mounted.
    pub point: String,
    /// Options of the mount and of the file system, comma-separated, each once.
    pub options: String,
    /// `ext4`, `xfs`, `tmpfs` …
    pub filesystem: String,
    /// `/dev/vda1`, or a name such as `tmpfs`.
    pub source: String,
}

/// Parses /proc/PID/mountinfo; lines that are not understood are left out.
pub fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let (major, minor) = left.next()?.split_once(':')?;
    let point = unescape(left.nth(1)?);
    let mut options: Vec<&str> = left.next()?.split(',').collect();
    let mut right = right.split(' ');
    let filesystem = right.next()?.to_string();
    let source = unescape(right.next()?);
    for option in right.next()?.split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        point,
        options: options.join(","),
        filesystem,
        source,
    })
}

/// Spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The mount that holds `path` (absolute, without links): the longest mount point that is a prefix
/// of it, and of equals the last, which lies on top.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &std::path::Path) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| std::path::Path::new(&mount.point).components().count())
}

/// /proc/pressure/*: shares of time in which tasks waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Per cent of the last ten seconds in which at least one task waited.
    pub some_avg10: f64,
    /// The same since boot, microseconds.
    pub some_total_us: u64,
    /// Microseconds since boot in which all tasks waited; `None` where the kernel does not tell.
    pub full_total_us: Option<u64>,
}

/// Parses /proc/pressure/cpu, io or memory.
pub fn pressure(text: &str) -> Result<Pressure, Malformed> {
    const FILE: &str = "/proc/pressure";
    let line = |kind| {
        text.lines()
            .map(str::split_ascii_whitespace)
            .find_map(|mut words| (words.next() == Some(kind)).then(|| words.collect::<Vec<_>>()))
    };
    let some = line("some").ok_or(malformed(FILE, "line `some`"))?;
    let avg10 = some.iter().find_map(|word| word.strip_prefix("avg10="));
    let total = |words: &[&str]| {
        words.iter().find_map(|word| word.strip_prefix("total=")).and_then(|w| w.parse().ok())
    };
    Ok(Pressure {
        some_avg10: avg10.and_then(|w| w.parse().ok()).ok_or(malformed(FILE, "avg10"))?,
        some_total_us: total(&some).ok_or(malformed(FILE, "total"))?,
        full_total_us: line("full").and_then(|words| total(&words)),
    })
}

/// The choice in brackets: `always [madvise] never` → `madvise`.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}
