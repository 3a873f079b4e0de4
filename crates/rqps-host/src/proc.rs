//! Pure parsers of the text files of /proc: text in, struct out. They never panic, whatever the
//! text, and know nothing of files.

use thiserror::Error;

/// A text of /proc that lacks what it must hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {what} in {file}")]
pub struct Malformed {
    /// The file of the text: `/proc/stat`.
    pub file: &'static str,
    /// The part that is missing or not a number.
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
    /// Milliseconds that reads took, summed.
    pub read_ms: u64,
    /// Milliseconds that writes took, summed.
    pub write_ms: u64,
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
        read_ms: count(6)?,
        write_ms: count(10)?,
    })
}

/// /proc/meminfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryInfo {
    /// MemTotal, bytes.
    pub total_bytes: u64,
    /// SwapTotal, bytes.
    pub swap_bytes: u64,
    /// HugePages_Total, pages.
    pub huge_pages: u64,
}

/// Parses /proc/meminfo.
pub fn memory(text: &str) -> Result<MemoryInfo, Malformed> {
    let total_bytes = value_kib(text, "MemTotal:").ok_or(malformed("/proc/meminfo", "MemTotal"))?;
    Ok(MemoryInfo {
        total_bytes,
        swap_bytes: value_kib(text, "SwapTotal:").unwrap_or(0),
        huge_pages: value(text, "HugePages_Total:").unwrap_or(0),
    })
}

/// The number after `name` at the start of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// A value in kB, as bytes.
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
    /// Model of the first CPU, if the system reports it (not on every architecture).
    pub model: Option<String>,
    /// Logical CPUs listed.
    pub cpus: u32,
    /// Distinct pairs of physical and core id, if known.
    pub cores: Option<u32>,
    /// True if the CPU itself says that it is a guest's; `None` where CPUs do not tell (ARM).
    pub hypervisor: Option<bool>,
    /// Microcode revision of the first CPU, if the system reports it.
    pub microcode: Option<String>,
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
                "microcode" if info.microcode.is_none() => {
                    info.microcode = Some(told.to_string());
                }
                "physical id" => package = told,
                "core id" => core = Some(told),
                "flags" => {
                    let seen = told.split_ascii_whitespace().any(|flag| flag == "hypervisor");
                    info.hypervisor = Some(seen || info.hypervisor == Some(true));
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
    /// The mount point.
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

/// Microseconds since boot in which at least one task waited, by /proc/pressure/cpu, io or memory.
pub fn pressure_us(text: &str) -> Result<u64, Malformed> {
    const FILE: &str = "/proc/pressure";
    let some = text.lines().find_map(|line| line.strip_prefix("some "));
    let mut words = some.ok_or(malformed(FILE, "line `some`"))?.split_ascii_whitespace();
    let total = words.find_map(|word| word.strip_prefix("total="));
    total.and_then(|total| total.parse().ok()).ok_or(malformed(FILE, "total"))
}

/// A counter of files with a name and a number on each line: /proc/vmstat, cpu.stat of a cgroup.
pub fn counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find_map(|(own, value)| (own == name).then(|| value.trim().parse().ok()).flatten())
}

/// The choice in brackets: `always [madvise] never` → `madvise`.
pub fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn host_stat_counts_nice_as_user_and_interrupts_as_system() {
        let text = "cpu  100 20 30 4000 50 6 7 8 9 1\n\
                    cpu0 60 10 15 2000 25 3 4 4 5 1\n\
                    cpu3 40 10 15 2000 25 3 3 4 4 0\n\
                    intr 12345 1 2 3\n\
                    ctxt 987654\n\
                    btime 1700000000\n";
        let cpu = CpuTicks { user: 120, nice: 20, system: 43, idle: 4000, iowait: 50, steal: 8 };
        let expected = HostStat { cpu, cpus: 2, context_switches: 987_654 };
        assert_eq!(host_stat(text), Ok(expected));
    }

    #[test]
    fn host_stat_of_an_old_kernel_has_four_columns() {
        let stat = host_stat("cpu 1 2 3 4\ncpu0 1 2 3 4\nctxt 5\n").unwrap();
        assert_eq!((stat.cpu.user, stat.cpu.idle, stat.cpu.steal), (3, 4, 0));
    }

    #[test]
    fn host_stat_names_what_is_missing() {
        let check = |text, what: &str| assert_eq!(host_stat(text).unwrap_err().what, what);
        check("", "line of all CPUs");
        check("cpu 1 2 3\nctxt 5", "line of all CPUs");
        check("cpu 1 2 x 4\nctxt 5", "line of all CPUs");
        check("cpu 1 2 3 4\n", "context switches");
        check("cpu 1 2 3 4\nctxt many\n", "context switches");
    }

    #[test]
    fn a_program_may_have_a_parenthesis_and_spaces_in_its_name() {
        let text = "4242 (a) R (b c) S 17 4242 4242 0 -1 4194560 900 800 1 2 \
                    11 22 33 44 20 0 5 0 123456 1000000 777 18446744073709551615 1 1 0 0";
        let stat = process_stat(text).unwrap();
        let expected = ProcessStat {
            pid: 4242,
            name: "a) R (b c".to_string(),
            state: 'S',
            parent: 17,
            user: 11,
            system: 22,
            waited_user: 33,
            waited_system: 44,
            threads: 5,
            start: 123_456,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn a_short_process_stat_is_refused() {
        let check = |text, what: &str| assert_eq!(process_stat(text).unwrap_err().what, what);
        check("", "name in parentheses");
        check("12 (x", "name in parentheses");
        check("x (x) S 1", "process id");
        check("12 (x)", "state");
        check("12 (x) S", "parent");
        check("12 (x) S 1 1 1 0 -1 0 0 0 0 0 11", "system time");
    }

    const DISKS: &str = "\
   8       0 sda 100 5 2000 30 40 6 800 70 0 90 160 0 0 0 0\n\
   8       1 sda1 1 0 8 1 2 0 16 1 0 2 3\n\
 259       0 nvme0n1 7 0 56 1 9 0 72 3 0 11 12 0 0 0 0 0 0\n";

    #[test]
    fn disks_are_found_by_their_whole_name() {
        let sda = DiskCounters {
            reads: 100,
            sectors_read: 2000,
            writes: 40,
            sectors_written: 800,
            busy_ms: 90,
            read_ms: 30,
            write_ms: 70,
        };
        assert_eq!(disk_counters(DISKS, "sda"), Ok(sda));
        assert_eq!(disk_counters(DISKS, "sda1").unwrap().sectors_written, 16);
        assert_eq!(disk_counters(DISKS, "nvme0n1").unwrap().busy_ms, 11);
        assert_eq!(disk_counters(DISKS, "sd").unwrap_err().what, "line of that device");
    }

    #[test]
    fn memory_is_told_in_kib_but_pages_in_pages() {
        let text = "MemTotal:        1000 kB\nMemFree: 1 kB\nMemAvailable:  600 kB\n\
                    SwapTotal:        24 kB\nHugePages_Total:      12\nHugepagesize: 2048 kB\n";
        let expected = MemoryInfo { total_bytes: 1_024_000, swap_bytes: 24_576, huge_pages: 12 };
        assert_eq!(memory(text), Ok(expected));
        assert_eq!(memory("MemFree: 1 kB").unwrap_err().what, "MemTotal");
    }

    #[test]
    fn sizes_of_processes() {
        let rollup = "55d0-7fff ---p 00000000 00:00 0    [rollup]\n\
                      Rss:                1788 kB\nPss:                 340 kB\n\
                      Pss_Dirty:           116 kB\n";
        assert_eq!(proportional_bytes(rollup), Ok(340 * 1024));
        let status = "Name:\tpostgres\nVmHWM:\t  900 kB\nVmRSS:\t     800 kB\n\
                      voluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(resident_bytes(status), Ok(800 * 1024));
        assert_eq!(voluntary_switches(status), Ok(17));
        assert_eq!(resident_bytes("Name:\tkthreadd\n").unwrap_err().what, "VmRSS");
    }

    #[test]
    fn a_thread_has_three_numbers() {
        let expected = SchedStat { running_ns: 123, waiting_ns: 45, timeslices: 6 };
        assert_eq!(sched_stat("123 45 6\n"), Ok(expected));
        assert_eq!(sched_stat("123 45").unwrap_err().what, "timeslices");
    }

    #[test]
    fn cores_are_counted_once_whatever_their_threads() {
        let cpu = |processor, package, core| {
            format!(
                "processor\t: {processor}\nmodel name\t: Some CPU @ 3.00GHz\n\
                 microcode\t: 0x7\n\
                 physical id\t: {package}\ncore id\t\t: {core}\nflags\t\t: fpu vme sse\n"
            )
        };
        let text = [cpu(0, 0, 0), cpu(1, 0, 0), cpu(2, 1, 0), cpu(3, 1, 0)].join("\n");
        let expected = CpuInfo {
            model: Some("Some CPU @ 3.00GHz".to_string()),
            cpus: 4,
            cores: Some(2),
            hypervisor: Some(false),
            microcode: Some("0x7".to_string()),
        };
        assert_eq!(cpu_info(&text), expected);
        let guest = cpu_info("processor : 0\nflags : fpu hypervisor sse\n");
        assert_eq!(guest.hypervisor, Some(true));
        let arm = cpu_info("processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\n");
        assert_eq!((arm.cpus, arm.cores, arm.model, arm.hypervisor), (2, None, None, None));
    }

    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
40 27 259:2 /sub /srv/my\\040data rw,noatime shared:7 - xfs /dev/nvme0n1p2 rw,attr2\n\
41 27 0:40 / /srv rw - tmpfs tmpfs rw,size=4k\n\
garbage\n";

    #[test]
    fn mounts_may_have_spaces_and_optional_fields() {
        let mounts = mounts(MOUNTS);
        assert_eq!(mounts.len(), 3);
        let expected = Mount {
            device: (259, 2),
            point: "/srv/my data".to_string(),
            options: "rw,noatime,attr2".to_string(),
            filesystem: "xfs".to_string(),
            source: "/dev/nvme0n1p2".to_string(),
        };
        assert_eq!(mounts[1], expected);
    }

    #[test]
    fn the_deepest_mount_holds_a_path() {
        let mounts = mounts(MOUNTS);
        let check = |path, filesystem: &str| {
            assert_eq!(
                mount_of(&mounts, Path::new(path)).unwrap().filesystem,
                filesystem,
                "{path}"
            );
        };
        check("/home", "ext4");
        check("/srv/other", "tmpfs");
        check("/srvother", "ext4");
        check("/srv/my data/pg", "xfs");
        assert_eq!(mount_of(&[], Path::new("/")), None);
    }

    #[test]
    fn of_two_mounts_at_one_place_the_later_lies_on_top() {
        let twice = "25 24 0:23 / /m rw - tmpfs a rw\n30 25 0:27 / /m rw - ext4 b rw\n";
        let mounts = mounts(twice);
        assert_eq!(mount_of(&mounts, Path::new("/m/x")).unwrap().filesystem, "ext4");
    }

    #[test]
    fn pressure_of_cpu_may_lack_the_full_line() {
        let some = "some avg10=0.11 avg60=0.75 avg300=0.72 total=14916386\n";
        assert_eq!(pressure_us(some), Ok(14_916_386));
        let both = format!("{some}full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
        assert_eq!(pressure_us(&both), Ok(14_916_386));
        assert_eq!(pressure_us("").unwrap_err().what, "line `some`");
        assert_eq!(pressure_us("some avg10=0.11\n").unwrap_err().what, "total");
    }

    #[test]
    fn choices_are_in_brackets() {
        assert_eq!(bracketed("always [madvise] never\n"), Some("madvise"));
        assert_eq!(bracketed("always"), None);
        assert_eq!(bracketed("]["), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(
            text in "(cpu[0-9]?|ctxt|some|full|total=|avg10=|Pss:|VmRSS:|MemTotal:|\
                     processor|core id|flags|\\(|\\)|-|:|/|\\\\|[0-9]{1,25}|\\PC| |\n){0,60}"
        ) {
            let _ = (host_stat(&text), process_stat(&text), disk_counters(&text, "sda"));
            let _ = (memory(&text), proportional_bytes(&text), resident_bytes(&text));
            let _ = (sched_stat(&text), voluntary_switches(&text), pressure_us(&text));
            let _ = (cpu_info(&text), bracketed(&text), unescape(&text));
            let _ = mount_of(&mounts(&text), Path::new("/a/b"));
        }
    }
}
