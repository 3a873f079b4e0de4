//! The execution of a plan: its options, and what stays the same while it runs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lab::client_hosts::ClientHosts;
use crate::lab::driver_proxy::ClientLine;
use crate::lab::progress::Progress;
use crate::plan::{Interleave, Plan};
use rqps_dbms::UserConfigs;
use rqps_host::affinity::Spinner;
use rqps_host::beneath::Folder;
use rqps_host::cgroup::MemoryGroup;
use rqps_host::disk;
use rqps_host::fingerprint::Fingerprint;
use rqps_host::lock::{HostClaim, Lock, LockError, MarkKey, OwnFolder};
use rqps_host::perf::Perf;
use rqps_host::user::{self, Identity, User, UserError};
use rqps_host::valgrind::Valgrind;
use rqps_model::build::{BuildSource, Target};
use rqps_model::dialect::Dialect;
use rqps_model::gate::{Calibration, SittingScatter};
use rqps_model::host::Session;
use rqps_model::safe_path;
use rqps_results::ResultSet;
use rqps_wire::password::TypedPasswords;

/// The plan to carry out, and its surroundings.
#[derive(Clone)]
pub struct ExecutionOptions {
    /// The plan.
    pub plan: Plan,
    /// The result folder.
    pub out: PathBuf,
    /// The cache of builds.
    pub cache: PathBuf,
    /// The user's configurations, which come before the shipped ones.
    pub configs: UserConfigs,
    /// Files that the user was asked about, as they were then.
    pub accepted: Accepted,
    /// A/A calibrations, of this host and of others.
    pub calibrations: Vec<Calibration>,
    /// What sittings of this host and of others differed by.
    pub ledger: Vec<SittingScatter>,
    /// Folder for data and snapshots; `None` puts them beside the results.
    pub work: Option<PathBuf>,
    /// True if the user knows that the disk suffices, whatever the estimate says.
    pub ignores_space: bool,
    /// The rqps binary: drivers and wardens are started from it.
    pub program: PathBuf,
    /// Valgrind, if the plan counts instructions.
    pub valgrind: Option<Valgrind>,
    /// The profiler, if the plan samples stacks.
    pub perf: Option<Perf>,
    /// Folders of debug files by build id, for the names of functions of stripped builds.
    pub debug_folders: Vec<PathBuf>,
    /// The lock that keeps a second rqps from measuring on this host.
    pub host_lock: HostLock,
    /// How long to wait for one that measures.
    pub wait: Duration,
    /// The key of the marks on folders that rqps makes and removes.
    pub mark_key: MarkKey,
    /// Configuration file of ssh to client hosts instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// The line to the rqps that starts drivers for the servers of this one.
    pub client_line: Option<Arc<ClientLine>>,
    /// True to leave the tables on servers that rqps does not run.
    pub keep: bool,
    /// Looks a name up in the environment: passwords for such servers.
    pub variable: fn(&str) -> Option<String>,
    /// Passwords that the user typed, by DSN.
    pub passwords: TypedPasswords,
    /// Tables of others on such servers that may be dropped for their names.
    pub replace: Vec<String>,
    /// Label → that of the target of the same build from whose load it starts, where the settings
    /// of both would load the same.
    pub shared_loads: BTreeMap<String, String>,
    /// Becomes true when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

/// The end of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionSummary {
    /// One line for each run or target that failed.
    pub faults: Vec<String>,
    /// True if the user stopped it before the end.
    pub interrupted: bool,
}

/// Everything that stays the same while a plan is carried out.
pub(super) struct Execution<'a> {
    pub(super) options: &'a ExecutionOptions,
    pub(super) plan: &'a Plan,
    pub(super) folders: WorkFolders,
    pub(super) results: ResultSet,
    /// This sitting on this host.
    pub(super) session: Session,
    /// The block device under the work folder.
    pub(super) disk: Option<String>,
    pub(super) memory_bytes: u64,
    pub(super) spinner: Option<Spinner>,
    /// The client hosts; `None` for this host.
    pub(super) clients: Option<ClientHosts>,
}

impl Execution<'_> {
    /// True once the user wants to stop.
    pub(super) fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }
}

/// Files as they were when the user accepted them; empty for a plan of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Builds that a plan names by their path, by the label of their target.
    pub builds: BTreeMap<String, Fingerprint>,
    /// Scripts, SQL, recipes, patches and data.
    pub files: Vec<Fingerprint>,
}

impl Accepted {
    /// Checks the files, and the build of a target, right before they are used.
    ///
    /// # Errors
    /// Somebody has changed one; the text names it.
    pub(super) fn check(&self, label: &str) -> Result<()> {
        let prints = self.files.iter().chain(self.builds.get(label));
        for print in prints {
            if let Err(fault) = print.check() {
                bail!("use {fault}\nhint: run it again to be asked about what is there now");
            }
        }
        Ok(())
    }

    /// Checks that the build of a target is the one that was read.
    ///
    /// # Errors
    /// It stands elsewhere, because somebody changed a link, or was changed.
    pub(super) fn check_place(&self, label: &str, root: Option<&Path>) -> Result<()> {
        self.check(label)?;
        match (self.builds.get(label), root) {
            (Some(print), Some(root)) if !print.path.starts_with(root) => bail!(
                "use {}: it leads elsewhere since it was allowed\nhint: run it again to be asked \
                 about what is there now",
                root.display()
            ),
            _ => Ok(()),
        }
    }
}

// The limit on a server's memory that a workload may ask for.

/// Makes the group of a server that is to be started, with the limit of the workload, if there is
/// one.
///
/// # Errors
/// The limit is not possible here; the text says why and what to do.
pub(super) fn group(plan: &Plan, target: &Target) -> Result<Option<MemoryGroup>> {
    let Some(bytes) = plan.memory_limit() else { return Ok(None) };
    if let BuildSource::Dsn(_) | BuildSource::Client(_) = target.source {
        bail!(
            "limit the memory of {}: rqps does not run this server; limit its memory where you \
             start it, and leave memory_limit out",
            target.label
        );
    }
    Ok(Some(MemoryGroup::create(Path::new("/"), &target.label, bytes)?))
}

/// Tries whether every target can be limited, before anything is measured.
///
/// # Errors
/// As [`group`].
pub(super) fn try_out(plan: &Plan) -> Result<()> {
    plan.targets.iter().try_for_each(|target| group(plan, target).map(drop))
}

/// Refuses caches that do not fit into memory beside each other, where all targets are up at once.
///
/// # Errors
/// They do not; the text has the numbers.
pub fn check_together(plan: &Plan, memory_bytes: u64) -> Result<()> {
    let Some(cache) = plan.workload.cache_bytes else { return Ok(()) };
    let own =
        |target: &&Target| !target.source.is_elsewhere() && target.dbms.dialect() != Dialect::Fake;
    let targets = plan.targets.iter().filter(own).count() as u64;
    let all = targets.saturating_mul(cache);
    if plan.interleave == Interleave::Turns && all > memory_bytes {
        bail!(
            "run {targets} targets at once: caches of {} MiB each need {} MiB, and their host \
             has {} MiB\nhint: use a smaller cache (--set cache=), or measure one target at a time \
             (--interleave run)",
            cache >> 20,
            all >> 20,
            memory_bytes >> 20
        );
    }
    Ok(())
}

/// The number of servers with a cache of this size that fit into memory at the same time; at least
/// 1. Servers without a cache size get a share of memory, so all of them fit.
pub(super) fn servers_that_fit(cache: Option<u64>, memory_bytes: u64) -> usize {
    cache.map_or(usize::MAX, |cache| (memory_bytes / cache.max(1)).max(1) as usize)
}

/// A reason for a server's failure: the kernel killed processes of it because of the limit.
pub(super) fn killed(group: Option<&MemoryGroup>) -> Option<String> {
    let killed = group?.killed().filter(|killed| *killed > 0)?;
    Some(format!("memory_limit is too small: the kernel killed {killed} of its processes"))
}

// Temporary folders of a plan while it runs: data folders, snapshots, sockets, locks.
//
// All of it is apart from the results, because those are small text that people copy around, and
// because servers that run as an unprivileged user must be able to reach it.

/// The parent of work folders if servers cannot reach the results.
const ELSEWHERE: &str = "/var/tmp";
/// The place for everyone: the parent of folders of sockets, with a short path, and of claims.
const FOR_EVERYONE: &str = "/tmp";
/// Time between two looks at whether the host is free.
const LOOK_AT_HOST: Duration = Duration::from_millis(500);
/// A folder that only root can make.
const OF_ROOT: &str = "/run/rqps";
/// All may pass through the folders of targets: servers run as another user.
const PASSABLE: u32 = 0o711;

/// One measuring program per host: a second one would be noise to the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLock {
    /// The file, which other users cannot open: whoever can may lock it.
    pub path: PathBuf,
    /// A folder for everyone, in which users tell each other that they measure. `None` where the
    /// file is one that the user named.
    pub claims: Option<PathBuf>,
}

/// This host, taken.
#[derive(Debug)]
pub struct HeldHost {
    _lock: Lock,
    _claim: Option<HostClaim>,
}

/// The host for one measuring program, and the result folder if it is there already: all that is
/// taken before it is known that the plan can be carried out.
#[derive(Debug)]
pub(super) struct Reservation {
    /// The user of servers and scripts if rqps runs as root.
    pub(super) run_as: Option<User>,
    doing: String,
    results: Option<Lock>,
    host: HeldHost,
}

impl Reservation {
    /// Locks the result folder, if there is one, and the host.
    ///
    /// # Errors
    /// Another rqps writes there or measures on this host.
    pub(super) fn new(
        results: &Path,
        host_lock: &HostLock,
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

/// Waits until no other program measures here, as long as the user allows.
pub(super) fn wait_for_host(options: &ExecutionOptions, progress: &mut Progress<'_>) {
    let begun = Instant::now();
    while begun.elapsed() < options.wait && !options.stop.load(Ordering::Relaxed) {
        match options.host_lock.hold(&doing(&options.out)) {
            Err(LockError::Held { .. } | LockError::Claimed { .. }) => {}
            // Whoever takes the host tells all else.
            Ok(_) | Err(LockError::Io { .. }) => return,
        }
        progress.doing("", "waiting for another rqps that measures on this host", None);
        thread::sleep(LOOK_AT_HOST);
    }
}

/// Takes this host for a program that measures.
///
/// # Errors
/// Another rqps measures here, or the lock cannot be made.
pub(super) fn lock_host(results: &Path, host: &HostLock) -> Result<HeldHost> {
    host.hold(&doing(results)).map_err(|error| {
        let why = match error {
            LockError::Held { .. } => {
                ": another rqps is measuring here, and each would disturb the other; wait for it \
                 (--wait 30m), or stop it"
            }
            LockError::Claimed { .. } => {
                ": another user says that he measures here, and each would disturb the other; wait \
                 for him, or set RQPS_HOST_LOCK to a file of your own to measure all the same"
            }
            LockError::Io { .. } => "",
        };
        anyhow::Error::new(error).context(format!("measure on this host{why}"))
    })
}

impl HostLock {
    /// That of this user, with claims for others. `state` is the user's folder of states, if it can
    /// be written.
    pub fn of_user(state: Option<PathBuf>) -> HostLock {
        let user = rustix::process::geteuid();
        let folder = match user.is_root() {
            true => PathBuf::from(OF_ROOT),
            // One without a home has no other folder that all its processes know.
            false => state.unwrap_or_else(|| {
                Path::new(FOR_EVERYONE).join(format!("rqps-user-{}", user.as_raw()))
            }),
        };
        let claims = Some(PathBuf::from(FOR_EVERYONE));
        HostLock { path: folder.join("measuring.lock"), claims }
    }

    /// A file that the user named, and nothing else.
    pub fn named(path: PathBuf) -> HostLock {
        HostLock { path, claims: None }
    }

    /// Takes the host.
    ///
    /// # Errors
    /// Another process has it, or the lock cannot be made.
    pub fn hold(&self, doing: &str) -> Result<HeldHost, LockError> {
        let Some(claims) = &self.claims else {
            return Ok(HeldHost { _lock: Lock::acquire(&self.path, doing)?, _claim: None });
        };
        let lock = Lock::acquire_private(&self.path, doing)?;
        Ok(HeldHost { _lock: lock, _claim: Some(HostClaim::make(claims, doing)?) })
    }
}

fn lock_results(results: &Path, doing: &str) -> Result<Lock> {
    Lock::acquire(&results.join(".lock"), doing).map_err(|error| {
        let why = match error {
            LockError::Held { .. } => ": another rqps is writing to it",
            LockError::Claimed { .. } | LockError::Io { .. } => "",
        };
        let what = format!("use the result folder {}{why}", results.display());
        anyhow::Error::new(error).context(what)
    })
}

/// The folders of one plan, locked for as long as this lives.
#[derive(Debug)]
pub(super) struct WorkFolders {
    /// The proof that rqps made it; `None` where only other hosts measure.
    own: Option<OwnFolder>,
    work: PathBuf,
    /// The user of servers and scripts if rqps runs as root.
    pub(super) run_as: Option<User>,
    _results: Lock,
    /// `None` where only other hosts measure.
    _host: Option<HeldHost>,
}

impl WorkFolders {
    /// The result folder of a plan that other hosts measure: this host is free for others, unless
    /// clients run on it and its lock is given.
    ///
    /// # Errors
    /// Another rqps writes there.
    pub(super) fn elsewhere(results: &Path, host: Option<HeldHost>) -> Result<WorkFolders> {
        let of_results = lock_results(results, &doing(results))?;
        Ok(WorkFolders {
            own: None,
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
        (results, work): (&Path, Option<&Path>),
        key: &MarkKey,
    ) -> Result<WorkFolders> {
        safe_path::make_folder(results)
            .with_context(|| format!("make the result folder {}", results.display()))?;
        let Reservation { run_as, doing, results: locked, host } = reservation;
        let of_results = locked.map_or_else(|| lock_results(results, &doing), Ok)?;
        let own = choose_work(results, work, (run_as.as_ref(), key))?;
        let work = own.path().to_owned();
        Ok(WorkFolders { own: Some(own), work, run_as, _results: of_results, _host: Some(host) })
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

    /// The folder for the files of callgrind beside a data folder. It belongs to the user of the
    /// counted process, so it is not in a folder of rqps's own files.
    pub(super) fn counts(&self, data: &Path) -> PathBuf {
        let name = data.file_name().unwrap_or_default().to_string_lossy();
        data.with_file_name(format!(".{name}.counts"))
    }

    /// The working folder of a target's driver that executes code of the user's: new and empty.
    /// `user` is its owner, if not the user of rqps.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(super) fn scratch(&self, label: &str, user: Option<Identity>) -> Result<PathBuf> {
        let path = self.work.join(".scratch").join(label);
        self.remove(&path)?;
        let folder = self.make(&path)?;
        if let Some(user) = user {
            folder.give(user).with_context(|| format!("give away {}", path.display()))?;
        }
        Ok(path)
    }

    /// The work folder, by the proof that rqps made it.
    fn own(&self) -> Result<&OwnFolder> {
        self.own.as_ref().context("this host keeps no data")
    }

    /// Makes a folder in the work folder, and those above it, or finds it there.
    ///
    /// # Errors
    /// A link or another user's folder is in its place; the system refuses.
    pub(super) fn make(&self, path: &Path) -> Result<Folder> {
        let what = || format!("make {}", path.display());
        let mut folder = self.own()?.folder().below(Path::new("")).with_context(what)?;
        for name in path.strip_prefix(&self.work).with_context(what)?.iter() {
            folder = folder.make_or_find(name, PASSABLE).with_context(what)?;
        }
        Ok(folder)
    }

    /// The folder above a path in the work folder, and the name in it. No link is on the way.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn place<'p>(&self, path: &'p Path) -> Result<(Folder, &'p OsStr)> {
        let what = || format!("find {}", path.display());
        let below = path.strip_prefix(&self.work).with_context(what)?;
        let above = below.parent().unwrap_or(Path::new(""));
        let folder = self.own()?.folder().below(above).with_context(what)?;
        folder.check_own().with_context(what)?;
        Ok((folder, below.file_name().with_context(what)?))
    }

    /// Removes a folder in the work folder; nothing to remove is fine.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        Ok(self.own()?.remove_below(path)?)
    }

    /// A folder for a server's sockets, in one that nobody foresees; short, because the name of a
    /// socket ends at 107 bytes.
    ///
    /// # Errors
    /// The kernel gives no random bytes.
    pub(super) fn sockets(&self) -> Result<PathBuf> {
        let outer = format!("rqps-{}-{}", std::process::id(), user::name()?);
        Ok(Path::new(FOR_EVERYONE).join(outer).join("s"))
    }

    /// Removes the work folder: the plan is done, nothing in it is a result.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub(super) fn clear(&self) -> Result<()> {
        self.own.as_ref().map_or(Ok(()), |own| Ok(own.remove()?))
    }

    /// Refuses a plan that does not fit on the disk.
    ///
    /// # Errors
    /// Less space is free than `bytes`.
    pub(super) fn check_space(&self, bytes: u64) -> Result<()> {
        // What an earlier start of the plan left there is part of it.
        let there = disk::folder_bytes(&self.work).unwrap_or_default();
        check_space(&self.work, &self.work, bytes.saturating_sub(there))
    }
}

/// The user that servers, scripts and libraries run as, if rqps runs as root. A container may have
/// no /etc/passwd; then plans with servers or scripts have no user.
///
/// # Errors
///
/// The plan starts servers or runs scripts, and there is no such user.
pub(super) fn unprivileged_user(plan: &Plan) -> Result<Option<User>, UserError> {
    let is_server = |target: &Target| {
        !target.dbms.is_embedded() && !matches!(target.source, BuildSource::Dsn(_))
    };
    match user::choose(None) {
        Err(_) if !plan.runs_scripts() && !plan.targets.iter().any(is_server) => {
            Ok(Some(user::of_libraries()))
        }
        found => found,
    }
}

/// Refuses folders in the place of which the user who runs code under test could put others, while
/// root writes there.
///
/// # Errors
///
/// He may write there or above.
pub(super) fn check_alone(
    results: &Path,
    work: Option<&Path>,
    run_as: Option<&User>,
) -> Result<(), UserError> {
    let Some(user) = run_as else { return Ok(()) };
    [results]
        .into_iter()
        .chain(work)
        .try_for_each(|folder| user::check_alone(existing(folder), user))
}

/// The folder, or the nearest one above it that is there.
fn existing(folder: &Path) -> &Path {
    // The last ancestor of a relative path is empty and means the current folder.
    folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."))
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
    let there = existing(folder);
    let closed = run_as.is_some_and(|user| check_place(there, user).is_err());
    if work.is_none() && closed {
        check_space(Path::new(ELSEWHERE), Path::new(ELSEWHERE), bytes)
    } else {
        check_space(folder, there, bytes)
    }
}

/// Checks that data may lie in a folder: nobody but root changes them, and `user` can reach them.
fn check_place(folder: &Path, user: &User) -> Result<(), user::UserError> {
    user::check_entries(folder)?;
    user::check_reachable(folder, user)
}

fn check_space(folder: &Path, there: &Path, bytes: u64) -> Result<()> {
    let free = disk::free_bytes(there)
        .with_context(|| format!("get the free space of {}", there.display()))?;
    if free < bytes {
        bail!(
            "keep data and snapshots in {}: they need about {} MB and {} MB are free\nhint: use \
             fewer rows, one target at a time (--interleave run) or another disk with --work; \
             --yes-disk measures in spite of this estimate",
            folder.display(),
            bytes / 1_000_000,
            free / 1_000_000
        );
    }
    Ok(())
}

/// The work folder: beside the results, or one of its own where the user said. It is removed in the
/// end, so it must be one that rqps made: see [`MarkKey::claim`].
fn choose_work(
    results: &Path,
    work: Option<&Path>,
    (run_as, key): (Option<&User>, &MarkKey),
) -> Result<OwnFolder> {
    let beside = safe_path::whole(results)?.join(".work");
    let own = format!("rqps-{}", key.name(beside.as_os_str().as_encoded_bytes()));
    let folder = match work {
        Some(work) => {
            let made = safe_path::make_folder(work).and_then(|_| safe_path::whole(work));
            made.with_context(|| format!("make {}", work.display()))?.join(&own)
        }
        None => beside,
    };
    let claim = |folder: &Path| key.claim(folder).context("keep data");
    let Some(user) = run_as else { return claim(&folder) };
    let above = folder.parent().unwrap_or(Path::new("/"));
    let unreachable = match check_place(above, user) {
        Ok(()) => return claim(&folder),
        Err(error) => error,
    };
    if work.is_some() {
        return Err(unreachable).context("use the folder of --work");
    }
    // Results under root's own home are closed to servers, and others may put links beside those in
    // their folder; data go to a place for everyone.
    let elsewhere = claim(&Path::new(ELSEWHERE).join(own))?;
    user::check_reachable(elsewhere.path(), user)?;
    Ok(elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_servers_are_up_than_have_caches_in_memory() {
        let fit = |cache| servers_that_fit(cache, 10 << 30);
        assert_eq!([Some(6 << 30), Some(4 << 30), Some(20 << 30)].map(fit), [1, 2, 1]);
        assert_eq!(fit(None), usize::MAX);
    }
}
