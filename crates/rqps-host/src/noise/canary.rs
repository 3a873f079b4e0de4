//! Canaries: the same small work each time, so that what changes between two readings is the host.
//!
//! A reading takes about a quarter of a second. The work of spin and memory depends on how rqps was
//! compiled, so readings of different builds of rqps are not compared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::{affinity, clock, secret};
use rqps_model::gate::Canary;

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
pub fn read(folder: &Path) -> Canary {
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
    let path = folder.join(format!("{FILE}-{}", secret::name()?));
    let times = fsyncs(&path);
    // It is nothing but in the way; the reading counts without this, too.
    let _ = fs::remove_file(&path);
    Ok(median(times?))
}

fn fsyncs(path: &Path) -> io::Result<Vec<f64>> {
    let file = File::create_new(path)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_canaries_sing_and_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let canary = read(folder.path());
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
        let canary = read(&folder.path().join("none"));
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
}
