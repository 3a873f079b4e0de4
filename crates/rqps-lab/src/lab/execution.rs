//! The execution of a plan: its options, and what stays the same while it runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::lab::client_hosts::ClientHosts;
use crate::lab::driver_proxy::ClientLine;
use crate::lab::work_folders::{HostLock, WorkFolders};
use crate::plan::{Interleave, Plan};
use rqps_dbms::UserConfigs;
use rqps_host::cgroup::MemoryGroup;
use rqps_host::fingerprint::Fingerprint;
use rqps_host::mark::MarkKey;
use rqps_host::perf::Perf;
use rqps_host::spinner::Spinner;
use rqps_host::valgrind::Valgrind;
use rqps_model::build::BuildSource;
use rqps_model::dialect::Dialect;
use rqps_model::gate::{Calibration, SittingScatter};
use rqps_model::host::Session;
use rqps_model::target::Target;
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
