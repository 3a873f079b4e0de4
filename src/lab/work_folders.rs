//! Temporary folders of a plan while it runs: data folders, snapshots, sockets, locks.
//!
//! All of it is apart from the results, because those are small text that people copy around, and
//! because servers that run as an unprivileged user must be able to reach it.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::domain::build::BuildSource;
use crate::domain::target::Target;
use crate::os::disk;
use crate::os::lock::{Lock, LockError};
use crate::os::user::Identity;
use crate::os::user::{self, User, UserError};
use crate::plan::Plan;
use crate::units::short_hash;

/// One measuring program per host: a second one would be noise to the first.
pub const HOST_LOCK: &str = "/tmp/rqps.measuring.lock";

/// The parent of work folders if servers cannot reach the results.
const ELSEWHERE: &str = "/var/tmp";

/// The host for one measuring program, and the result folder if it is there already: all that is
/// taken before it is known that the plan can be carried out.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The user of servers and scripts if rqps runs as root.
    pub(super) run_as: Option<User>,
    doing: String,
    results: Option<Lock>,
    host: Lock,
}

impl Reservation {
    /// Locks the result folder, if there is one, and the host.
    ///
    /// # Errors
    /// Another rqps writes there or measures on this host.
    pub(super) fn new(
        results: &Path,
        host_lock: &Path,
        run_as: Option<User>,
    ) -> Result<Reservation> {
        let doing = doing(results);
        let of_results = results.is_dir().then(|| lock_results(results, &doing)).transpose()?;
        let host = lock_host(results, host_lock)?;
        Ok(Reservation { run_as, doing, results: of_results, host })
    }
}

fn doing(results: &Path) -> String {
    format!("rqps, results in {}", results.display())
}

/// Takes this host for a program that measures.
///
/// # Errors
/// Another rqps measures here, or the lock cannot be made.
pub(super) fn lock_host(results: &Path, host_lock: &Path) -> Result<Lock> {
    Lock::acquire(host_lock, &doing(results)).map_err(|error| {
        let why = match error {
            LockError::Held { .. } => {
                ": another rqps is measuring here, and each would disturb the other; wait for it \
                 or stop it"
            }
            LockError::Io { .. } => "",
        };
        anyhow::Error::new(error).context(format!("measure on this host{why}"))
    })
}

fn lock_results(results: &Path, doing: &str) -> Result<Lock> {
    Lock::acquire(&results.join(".lock"), doing).map_err(|error| {
        let why = match error {
            LockError::Held { .. } => ": another rqps is writing to it",
            LockError::Io { .. } => "",
        };
        let what = format!("use the result folder {}{why}", results.display());
        anyhow::Error::new(error).context(what)
    })
}

/// The folders of one plan, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct WorkFolders {
    work: PathBuf,
    /// The user of servers and scripts if rqps runs as root.
    pub(super) run_as: Option<User>,
    _results: Lock,
    /// `None` where only other hosts measure.
    _host: Option<Lock>,
}

impl WorkFolders {
    /// The result folder of a plan that other hosts measure: this host is free for others, unless
    /// clients run on it and its lock is given.
    ///
    /// # Errors
    /// Another rqps writes there.
    pub(super) fn elsewhere(results: &Path, host: Option<Lock>) -> Result<WorkFolders> {
        let of_results = lock_results(results, &doing(results))?;
        Ok(WorkFolders {
            work: results.join(".work"),
            run_as: None,
            _results: of_results,
            _host: host,
        })
    }

    /// Makes the result folder and the work folder.
    ///
    /// # Errors
    /// Another rqps writes there; a folder cannot be made or reached.
    pub(super) fn open(
        reservation: Reservation,
        results: &Path,
        work: Option<&Path>,
    ) -> Result<WorkFolders> {
        fs::create_dir_all(results)
            .with_context(|| format!("make the result folder {}", results.display()))?;
        let Reservation { run_as, doing, results: locked, host } = reservation;
        let of_results = locked.map_or_else(|| lock_results(results, &doing), Ok)?;
        let work = choose_work(results, work, run_as.as_ref())?;
        Ok(WorkFolders { work, run_as, _results: of_results, _host: Some(host) })
    }

    /// The folder of one target: its snapshot and its data.
    pub(super) fn target(&self, label: &str) -> PathBuf {
        self.work.join(label)
    }

    /// The data folder of the counted run at that place of its block. All are of one length: the
    /// length of a path decides where strings lie in memory, and with that what comparing them
    /// costs.
    pub(super) fn counted(&self, order: u32) -> PathBuf {
        self.work.join(format!(".counted-{order:02}"))
    }

    /// The working folder of a target's driver that executes code of the user's. The driver makes
    /// it; `user` is who may, if not the user of rqps.
    ///
    /// # Errors
    /// The folder above it cannot be made.
    pub(super) fn scratch(&self, label: &str, user: Option<Identity>) -> Result<PathBuf> {
        let above = self.work.join(".scratch");
        if let Some(Identity { uid, gid }) = user {
            fs::create_dir_all(&above)
                .and_then(|()| chown(&above, Some(uid), Some(gid)))
                .with_context(|| format!("make {}", above.display()))?;
        }
        Ok(above.join(label))
    }

    /// The folder of a server's sockets; short, because the name of a socket ends at 107 bytes.
    pub(super) fn sockets(&self, label: &str) -> PathBuf {
        PathBuf::from(format!("/tmp/rqps-{}-{}", std::process::id(), short_hash(label.as_bytes())))
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
        check_space(&self.work, &self.work, bytes)
    }
}

/// The user that servers and scripts run as, if rqps runs as root. A plan without either needs
/// none: a container may have no /etc/passwd.
///
/// # Errors
///
/// The plan starts servers or runs scripts, and there is no such user.
pub(super) fn unprivileged_user(plan: &Plan) -> Result<Option<User>, UserError> {
    let is_server = |target: &Target| {
        !target.dbms.is_embedded() && !matches!(target.source, BuildSource::Dsn(_))
    };
    match user::choose(None) {
        Err(_) if !plan.runs_scripts() && !plan.targets.iter().any(is_server) => Ok(None),
        found => found,
    }
}

/// Checks the free space before any folder of a new plan is made.
///
/// # Errors
///
/// Less than `bytes` is free.
pub(super) fn check_space_for(
    results: &Path,
    work: Option<&Path>,
    run_as: Option<&User>,
    bytes: u64,
) -> Result<()> {
    let folder = work.unwrap_or(results);
    // The last ancestor of a relative path is empty and means the current folder.
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let closed = run_as.is_some_and(|user| user::check_reachable(there, user).is_err());
    match work.is_none() && closed {
        true => check_space(Path::new(ELSEWHERE), Path::new(ELSEWHERE), bytes),
        false => check_space(folder, there, bytes),
    }
}

fn check_space(folder: &Path, there: &Path, bytes: u64) -> Result<()> {
    let free = disk::free_bytes(there)
        .with_context(|| format!("get the free space of {}", there.display()))?;
    if free < bytes {
        bail!(
            "keep data and snapshots in {}: they need about {} MB and {} MB are free\nhint: use \
             fewer rows, or another disk with --work",
            folder.display(),
            bytes / 1_000_000,
            free / 1_000_000
        );
    }
    Ok(())
}

/// The work folder: beside the results, or one of its own where the user said, because it is
/// removed in the end and what else lies there is not ours.
fn choose_work(results: &Path, work: Option<&Path>, run_as: Option<&User>) -> Result<PathBuf> {
    let beside = fs::canonicalize(results)?.join(".work");
    let own = format!("rqps-{}", short_hash(beside.as_os_str().as_encoded_bytes()));
    let folder = match work {
        Some(work) => work.join(&own),
        None => beside,
    };
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let folder = fs::canonicalize(&folder)?;
    let Some(user) = run_as else { return Ok(folder) };
    let unreachable = match user::check_reachable(&folder, user) {
        Ok(()) => return Ok(folder),
        Err(error) => error,
    };
    if work.is_some() {
        return Err(unreachable).context("use the folder of --work");
    }
    // Results under root's own home are closed to servers; what they need goes where they may.
    fs::remove_dir(&folder).ok();
    let elsewhere = Path::new(ELSEWHERE).join(own);
    fs::create_dir_all(&elsewhere).with_context(|| format!("make {}", elsewhere.display()))?;
    user::check_reachable(&elsewhere, user)?;
    Ok(elsewhere)
}
