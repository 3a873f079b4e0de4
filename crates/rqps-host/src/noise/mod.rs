//! The noise of a host: canaries that show it, readings of other activity, and findings with causes
//! (docs/doctor.md).

pub mod findings;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::noise::findings::Idleness;
use crate::proc::{self, HostStat};
use crate::{affinity, clock, tree, user};
use rqps_model::gate::{Canary, Disturbance};
use rqps_model::safe_path;

// Canaries: the same small work each time, so that what changes between two readings is the host.
//
// A reading takes about a quarter of a second. The work of spin and memory depends on how rqps was
// compiled, so readings of different builds of rqps are not compared.

/// Turns of the spin canary: about 6 ms of a CPU of 2026.
const SPIN_TURNS: u64 = 3_000_000;
/// Spins of each CPU at most; the median counts.
const SPINS: usize = 7;
/// Bytes that the memory canary reads: more than the caches that a core has to itself.
const MEMORY_BYTES: usize = 64 << 20;
/// Passes over the buffer at most; the median counts.
const PASSES: usize = 5;
/// Bytes written before each fsync: a page.
const FSYNC_BYTES: usize = 4096;
/// Most fsyncs; the median counts.
const FSYNCS: usize = 15;
/// Fewest of each, however slow.
const LEAST: usize = 3;
/// So long each kind may take in all, once there are enough.
const PATIENCE: Duration = Duration::from_millis(100);
/// The file that is fsynced.
const FILE: &str = ".rqps-canary";

/// Reads all canaries; the file to be fsynced goes into `folder`, which must exist, and is removed.
pub fn read_canaries(folder: &Path) -> Canary {
    let began = Instant::now();
    let mut missing = BTreeMap::new();
    let fsync_ns = match fsync(folder) {
        Ok(nanoseconds) => Some(nanoseconds),
        Err(error) => {
            missing.insert("fsync_ns".to_owned(), format!("in {}: {error}", folder.display()));
            None
        }
    };
    Canary {
        at: clock::now_rfc3339(),
        spin_ns: Some(spin()),
        memory_mb_s: Some(memory()),
        fsync_ns,
        missing,
        seconds: began.elapsed().as_secs_f64(),
    }
}

/// Nanoseconds of a fixed computation in registers: the mean over all CPUs, which work at the same
/// time, of each one's median.
fn spin() -> f64 {
    let cpus = affinity::allowed_cpus();
    let medians: Vec<f64> = thread::scope(|scope| {
        let one = |cpu: usize| {
            scope.spawn(move || {
                // Not pinned, it still shows how fast the host is, if less exactly.
                let _ = affinity::pin_thread(&[cpu]);
                median(repeated(SPINS, || turns(SPIN_TURNS)))
            })
        };
        let workers: Vec<_> = cpus.iter().map(|cpu| one(*cpu)).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    medians.iter().sum::<f64>() / medians.len().max(1) as f64
}

/// Multiply, xor, shift, each on the result of the one before: nothing to do at the same time, and
/// nothing to fetch.
fn turns(count: u64) -> u64 {
    let mut word = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..count {
        word = (word ^ (word >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    black_box(word)
}

/// MB/s of reading a buffer from end to end.
fn memory() -> f64 {
    // Write the pages: a page without a write is a shared page of zeros in the cache.
    let words: Vec<u64> = (0..MEMORY_BYTES as u64 / 8).collect();
    let pass = || black_box(words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
    pass();
    let nanoseconds = median(repeated(PASSES, pass));
    MEMORY_BYTES as f64 / nanoseconds * 1000.0
}

/// Median nanoseconds of writing a page and fsync.
fn fsync(folder: &Path) -> io::Result<f64> {
    // New, whatever name others may have put there.
    let path = folder.join(format!("{FILE}-{}", user::name()?));
    let times = fsyncs(&path);
    // It is nothing but in the way; the reading counts without this, too.
    let _ = fs::remove_file(&path);
    Ok(median(times?))
}

fn fsyncs(path: &Path) -> io::Result<Vec<f64>> {
    let file = safe_path::new_file(path)?;
    let page = [0x5A; FSYNC_BYTES];
    // The first makes the file, which is more than a write.
    file.write_all_at(&page, 0)?;
    file.sync_all()?;
    let mut failed = Ok(());
    let times = repeated(FSYNCS, || {
        let stored = file.write_all_at(&page, 0).and_then(|()| file.sync_all());
        if let Err(error) = stored {
            failed = Err(error);
        }
    });
    failed.map(|()| times)
}

/// Nanoseconds of each repetition: up to `most`, fewer where they take too long.
fn repeated<T>(most: usize, mut work: impl FnMut() -> T) -> Vec<f64> {
    let (began, mut times) = (Instant::now(), Vec::with_capacity(most));
    while times.len() < LEAST || (times.len() < most && began.elapsed() < PATIENCE) {
        times.push(timed(&mut work));
    }
    times
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_nanos() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

// Other activity on the host during a step: changes between readings of /proc and /sys at both
// ends.

/// Process id of the parent of all kernel threads.
const KERNEL_THREADS: u32 = 2;

/// A reading at the beginning; [`DisturbanceWatch::end`] takes the other one.
///
/// Costs some milliseconds on a host with hundreds of processes, so it is taken before the clients
/// start and after they have ended, never inside the window.
#[derive(Debug)]
pub struct DisturbanceWatch {
    began: Instant,
    ours: Vec<u32>,
    foreign_ticks: Result<u64, String>,
    totals: BTreeMap<&'static str, Result<u64, String>>,
}

impl DisturbanceWatch {
    /// Begins. `ours` are roots of process trees that are not foreign: rqps itself, the server.
    pub fn begin(ours: &[u32]) -> DisturbanceWatch {
        DisturbanceWatch {
            ours: ours.to_vec(),
            foreign_ticks: foreign_ticks(ours),
            totals: totals(Path::new("/")),
            began: Instant::now(),
        }
    }

    /// True if a server is among the trees that are not foreign.
    pub fn knows_server(&self) -> bool {
        self.ours.len() > 1
    }

    /// The changes since the start.
    pub fn end(self) -> Disturbance {
        let seconds = self.began.elapsed().as_secs_f64();
        let mut disturbance = Disturbance::default();
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let all = seconds * affinity::allowed_cpus().len() as f64;
        let foreign = moved(&self.foreign_ticks, &foreign_ticks(&self.ours));
        disturbance.foreign_cpu = kept("foreign_cpu", foreign, &mut disturbance.missing)
            .map(|ticks| (ticks as f64 * tick / all.max(f64::MIN_POSITIVE)).min(1.0));
        let now = totals(Path::new("/"));
        let mut total = |name: &'static str| {
            let unread = || Err("not checked".to_owned());
            let then = self.totals.get(name).cloned().unwrap_or_else(unread);
            let now = now.get(name).cloned().unwrap_or_else(unread);
            kept(name, moved(&then, &now), &mut disturbance.missing)
        };
        let share = |us: u64| (us as f64 / 1e6 / seconds.max(f64::MIN_POSITIVE)).min(1.0);
        let pressure = ["pressure_cpu", "pressure_io", "pressure_memory"].map(&mut total);
        let [cpu, io, memory] = pressure.map(|us| us.map(share));
        let counts = ["swapped_in", "throttled_thermal", "throttled_cgroup_us"].map(&mut total);
        let [swapped_in, throttled_thermal, throttled_cgroup_us] = counts;
        Disturbance {
            pressure_cpu: cpu,
            pressure_io: io,
            pressure_memory: memory,
            swapped_in,
            throttled_thermal,
            throttled_cgroup_us,
            ..disturbance
        }
    }
}

/// The difference, or the first reason why there is none. What falls has been reset: no difference.
fn moved(then: &Result<u64, String>, now: &Result<u64, String>) -> Result<u64, String> {
    match (then, now) {
        (Ok(then), Ok(now)) => Ok(now.saturating_sub(*then)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    }
}

fn kept(
    name: &str,
    value: Result<u64, String>,
    missing: &mut BTreeMap<String, String>,
) -> Option<u64> {
    match value {
        Ok(value) => Some(value),
        Err(reason) => {
            missing.insert(name.to_owned(), reason);
            None
        }
    }
}

/// CPU ticks of all processes but ours and the kernel's threads. The time of children that ended
/// moves to their parents, so the sum over all does not lose it.
fn foreign_ticks(ours: &[u32]) -> Result<u64, String> {
    let ours: BTreeSet<u32> =
        ours.iter().flat_map(|root| tree::processes(*root).unwrap_or_default()).collect();
    let mut all = tree::all_processes().peekable();
    all.peek().ok_or("read /proc: it shows no process")?;
    let foreign = all.filter(|pid| !ours.contains(pid) && *pid != KERNEL_THREADS);
    let stats = foreign.filter_map(|pid| tree::stat_of(pid).ok());
    let ticks = stats.filter(|stat| stat.parent != KERNEL_THREADS).map(|stat| {
        let waited = stat.waited_user.saturating_add(stat.waited_system);
        waited.saturating_add(stat.user + stat.system)
    });
    Ok(ticks.fold(0, u64::saturating_add))
}

/// Counters since boot, by the field that they are for.
fn totals(root: &Path) -> BTreeMap<&'static str, Result<u64, String>> {
    let pressure = |kind: &str| {
        let text = text(&root.join("proc/pressure").join(kind))?;
        proc::pressure_us(&text).map_err(|error| error.to_string())
    };
    BTreeMap::from([
        ("pressure_cpu", pressure("cpu")),
        ("pressure_io", pressure("io")),
        ("pressure_memory", pressure("memory")),
        ("swapped_in", swapped_in(root)),
        ("throttled_thermal", throttled_thermal(root)),
        ("throttled_cgroup_us", throttled_cgroup(root)),
    ])
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))
}

fn swapped_in(root: &Path) -> Result<u64, String> {
    let text = text(&root.join("proc/vmstat"))?;
    proc::counter(&text, "pswpin").ok_or_else(|| "no pswpin in /proc/vmstat".to_owned())
}

/// Over all CPUs. A package counts once for each of its CPUs, which does not matter for "more than
/// none".
fn throttled_thermal(root: &Path) -> Result<u64, String> {
    let folder = root.join("sys/devices/system/cpu");
    let mut sum = None;
    for cpu in affinity::allowed_cpus() {
        for kind in ["core", "package"] {
            let file = format!("cpu{cpu}/thermal_throttle/{kind}_throttle_count");
            let count = fs::read_to_string(folder.join(file)).ok();
            if let Some(count) = count.and_then(|text| text.trim().parse::<u64>().ok()) {
                *sum.get_or_insert(0) += count;
            }
        }
    }
    sum.ok_or_else(|| "no CPU has thermal_throttle counters in /sys".to_owned())
}

/// Microseconds for which this process's cgroup (version 2) was throttled.
fn throttled_cgroup(root: &Path) -> Result<u64, String> {
    let own = text(&root.join("proc/self/cgroup"))?;
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Err("this process is in no version 2 cgroup".to_owned());
    };
    let file = root.join("sys/fs/cgroup").join(path.trim_start_matches('/')).join("cpu.stat");
    let text = text(&file)?;
    proc::counter(&text, "throttled_usec")
        .ok_or_else(|| format!("no throttled_usec in {}: the cgroup has no limit", file.display()))
}

// Readings of the host while rqps is idle.

/// Watches for `time`, and calls `tick` several times a second with the share that is done; stops
/// when it returns false.
pub fn idleness(time: Duration, tick: &mut dyn FnMut(f64) -> bool) -> Idleness {
    let watch = DisturbanceWatch::begin(&[std::process::id()]);
    let (began, before) = (Instant::now(), stat());
    while began.elapsed() < time && tick(began.elapsed().as_secs_f64() / time.as_secs_f64()) {
        std::thread::sleep(Duration::from_millis(100).min(time));
    }
    let steal = before.and_then(|before| steal(&before, &stat()?));
    let seconds = began.elapsed().as_secs_f64();
    Idleness { seconds, steal, disturbance: watch.end() }
}

fn stat() -> Option<HostStat> {
    proc::host_stat(&fs::read_to_string("/proc/stat").ok()?).ok()
}

/// Share of all ticks between two readings that the hypervisor took.
fn steal(before: &HostStat, after: &HostStat) -> Option<f64> {
    let all = |stat: &HostStat| {
        let cpu = stat.cpu;
        cpu.user + cpu.system + cpu.idle + cpu.iowait + cpu.steal
    };
    let ticks = all(after).saturating_sub(all(before));
    let stolen = after.cpu.steal.saturating_sub(before.cpu.steal);
    (ticks > 0).then(|| stolen as f64 / ticks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::CpuTicks;
    use crate::test_support::root_with;

    #[test]
    fn all_canaries_sing_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let canary = read_canaries(folder.path());
        for value in [canary.spin_ns, canary.memory_mb_s, canary.fsync_ns] {
            assert!(value.is_some_and(|value| value > 0.0), "{canary:?}");
        }
        assert!(canary.missing.is_empty(), "{canary:?}");
        assert!(canary.seconds > 0.0 && canary.at.ends_with('Z'), "{canary:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_costs_one_canary_and_has_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let canary = read_canaries(&folder.path().join("none"));
        assert_eq!(canary.fsync_ns, None);
        assert!(canary.missing["fsync_ns"].contains("none"), "{canary:?}");
        assert!(canary.spin_ns.is_some());
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn turns_depend_on_each_other() {
        assert_ne!(turns(1), turns(2));
        assert_eq!(turns(1000), turns(1000));
    }

    #[test]
    fn counters_come_from_their_files() {
        let pressure = "some avg10=1.00 avg60=0.00 avg300=0.00 total=123\n";
        let root = root_with(&[
            ("proc/pressure/cpu", pressure),
            ("proc/vmstat", "nr_free_pages 5\npswpin 7\npswpout 9\n"),
            ("proc/self/cgroup", "1:name=systemd:/x\n0::/user/me\n"),
            ("sys/fs/cgroup/user/me/cpu.stat", "usage_usec 1\nthrottled_usec 450\n"),
        ]);
        let totals = totals(root.path());
        assert_eq!(totals["pressure_cpu"], Ok(123));
        assert_eq!(totals["swapped_in"], Ok(7));
        assert_eq!(totals["throttled_cgroup_us"], Ok(450));
        let reason = totals["pressure_io"].clone().unwrap_err();
        assert!(reason.contains("pressure/io"), "{reason}");
        assert!(totals["throttled_thermal"].is_err());
    }

    #[test]
    fn time_of_somebody_else_is_foreign_and_ours_is_not() {
        // A shell that spins for as long as it takes to be seen: not ours when only a process that
        // is gone is, and ours when this process is.
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let pid = child.id();
        let before = foreign_ticks(&[]).unwrap();
        let own_before = tree::stat_of(pid).unwrap().user;
        while tree::stat_of(pid).unwrap().user < own_before + 3 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(foreign_ticks(&[]).unwrap() >= before + 3);
        let without: BTreeSet<u32> =
            tree::processes(std::process::id()).unwrap().into_iter().collect();
        assert!(without.contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_watch_has_a_value_or_a_reason_for_everything() {
        let disturbance = DisturbanceWatch::begin(&[std::process::id()]).end();
        let value = serde_json::to_value(&disturbance).unwrap();
        for (name, value) in value.as_object().unwrap() {
            let reason = disturbance.missing.contains_key(name);
            assert!(name == "missing" || value.is_null() == reason, "{name}: {disturbance:?}");
        }
        assert!(disturbance.foreign_cpu.is_some_and(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn what_falls_was_reset() {
        assert_eq!(moved(&Ok(5), &Ok(3)), Ok(0));
        assert_eq!(moved(&Ok(5), &Ok(8)), Ok(3));
        assert_eq!(moved(&Err("a".into()), &Err("b".into())), Err("a".to_owned()));
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let stat = |factor: u64| {
            let (user, idle, steal) = (40 * factor, 50 * factor, 10 * factor);
            HostStat {
                cpu: CpuTicks { user, idle, steal, ..Default::default() },
                ..Default::default()
            }
        };
        assert_eq!(steal(&stat(1), &stat(3)), Some(0.1));
        assert_eq!(steal(&stat(1), &stat(1)), None);
    }

    #[test]
    fn watching_ends_when_it_is_told_to() {
        let mut ticks = 0;
        let idle = idleness(Duration::from_secs(3600), &mut |_| {
            ticks += 1;
            ticks < 2
        });
        assert!(ticks == 2 && idle.seconds > 0.0 && idle.seconds < 3600.0);
    }
}
