//! Other activity on the host during a step: changes between readings of /proc and /sys at both
//! ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::{affinity, proc, tree};
use rqps_model::gate::Disturbance;

/// Process id of the parent of all kernel threads.
const KERNEL_THREADS: u32 = 2;

/// A reading at the beginning; [`Watch::end`] takes the other one.
///
/// Costs some milliseconds on a host with hundreds of processes, so it is taken before the clients
/// start and after they have ended, never inside the window.
#[derive(Debug)]
pub struct Watch {
    began: Instant,
    ours: Vec<u32>,
    foreign_ticks: Result<u64, String>,
    totals: BTreeMap<&'static str, Result<u64, String>>,
}

impl Watch {
    /// Begins. `ours` are roots of process trees that are not foreign: rqps itself, the server.
    pub fn begin(ours: &[u32]) -> Watch {
        Watch {
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
        proc::pressure(&text).map(|told| told.some_total_us).map_err(|error| error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::root_with;

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
        let disturbance = Watch::begin(&[std::process::id()]).end();
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
}
