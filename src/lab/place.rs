//! Where a plan keeps what it needs while it runs: data folders, snapshots, sockets, locks.
//!
//! All of it is apart from the results, because those are small text that people copy around, and
//! because servers that run as an unprivileged user must be able to reach it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::os::disk;
use crate::os::lock::Lock;
use crate::os::user::{self, User};

/// One measuring program per host: a second one would be noise to the first.
pub const HOST_LOCK: &str = "/tmp/rqps.measuring.lock";

/// The folders of one plan, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct Place {
    work: PathBuf,
    /// Who servers run as, when rqps runs as root.
    pub(super) run_as: Option<User>,
    _results: Lock,
    _host: Lock,
}

impl Place {
    /// Locks the result folder and the host, and makes the work folder.
    ///
    /// # Errors
    /// Another rqps writes there or measures on this host; the work folder cannot be made or
    /// reached.
    pub(super) fn open(results: &Path, work: Option<&Path>, host_lock: &Path) -> Result<Place> {
        if results.is_file() {
            bail!(
                "keep results in {}: it is a file; choose another folder with --out",
                results.display()
            );
        }
        fs::create_dir_all(results)
            .with_context(|| format!("make the result folder {}", results.display()))?;
        let doing = format!("rqps, results in {}", results.display());
        let results_lock = Lock::acquire(&results.join(".lock"), &doing).with_context(|| {
            format!("use the result folder {}: another rqps writes there", results.display())
        })?;
        let host_lock = Lock::acquire(host_lock, &doing).with_context(|| {
            "measure on this host: another rqps measures on it, and each would be noise to the \
             other; wait for it or stop it"
        })?;
        let run_as = user::choose(None)?;
        let work = choose_work(results, work, run_as.as_ref())?;
        Ok(Place { work, run_as, _results: results_lock, _host: host_lock })
    }

    /// The folder of one target: its snapshot and its data.
    pub(super) fn target(&self, label: &str) -> PathBuf {
        self.work.join(label)
    }

    /// Where a server keeps its sockets: short, because the name of a socket ends at 107 bytes.
    pub(super) fn sockets(&self, label: &str) -> PathBuf {
        PathBuf::from(format!("/tmp/rqps-{}-{}", std::process::id(), short_name(label.as_bytes())))
    }

    /// Removes the work folder: the plan is done, nothing in it is a result.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub(super) fn clear(&self) -> Result<()> {
        disk::remove_tree(&self.work)
            .with_context(|| format!("remove the work folder {}", self.work.display()))
    }

    /// Refuses a plan that does not fit on the disk.
    ///
    /// # Errors
    /// Less space is free than `bytes`.
    pub(super) fn check_space(&self, bytes: u64) -> Result<()> {
        let free = disk::free_bytes(&self.work)
            .with_context(|| format!("ask how much is free under {}", self.work.display()))?;
        if free < bytes {
            bail!(
                "keep data and snapshots in {}: about {} MB are needed and {} MB are free\n\
                 hint: use fewer rows, or another disk with --work",
                self.work.display(),
                bytes / 1_000_000,
                free / 1_000_000
            );
        }
        Ok(())
    }
}

fn choose_work(results: &Path, work: Option<&Path>, run_as: Option<&User>) -> Result<PathBuf> {
    let beside = match work {
        Some(work) => work.to_owned(),
        None => results.join(".work"),
    };
    fs::create_dir_all(&beside).with_context(|| format!("make {}", beside.display()))?;
    let beside = fs::canonicalize(&beside)?;
    let Some(user) = run_as else { return Ok(beside) };
    let unreachable = match user::check_reachable(&beside, user) {
        Ok(()) => return Ok(beside),
        Err(error) => error,
    };
    if work.is_some() {
        return Err(unreachable).context("use the folder of --work");
    }
    // Results under root's own home are closed to servers; what they need goes where they may.
    let elsewhere = PathBuf::from(format!(
        "/var/tmp/rqps-{}",
        short_name(beside.as_os_str().as_encoded_bytes())
    ));
    fs::remove_dir(&beside).ok();
    fs::create_dir_all(&elsewhere).with_context(|| format!("make {}", elsewhere.display()))?;
    user::check_reachable(&elsewhere, user)?;
    Ok(elsewhere)
}

/// A short name that is the same for the same text: a resumed plan finds its snapshots by it.
fn short_name(text: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
