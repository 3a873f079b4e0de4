//! The limit on a server's memory that a workload may ask for.

use std::path::Path;

use anyhow::{Result, bail};

use crate::plan::{Interleave, Plan};
use rqps_host::cgroup::MemoryGroup;
use rqps_model::build::BuildSource;
use rqps_model::dialect::Dialect;
use rqps_model::target::Target;

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
