//! The limit on a server's memory that a workload may ask for.

use std::path::Path;

use anyhow::{Result, bail};

use crate::bench;
use crate::domain::benchmark::Workload;
use crate::domain::build::Source;
use crate::domain::target::Target;
use crate::os::cgroup::MemoryGroup;
use crate::plan::Plan;

/// Makes the group of a server that is to be started, with the limit of the workload, if there is
/// one.
///
/// # Errors
/// The limit is not possible here; the text says why and what to do.
pub(super) fn group(workload: &Workload, target: &Target) -> Result<Option<MemoryGroup>> {
    let Some(bytes) = bench::memory_limit(workload) else { return Ok(None) };
    if let Source::Dsn(_) = target.source {
        bail!(
            "limit the memory of {}: its processes are not rqps's own; limit it where it is \
             started, and leave memory_limit out",
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
    plan.targets.iter().try_for_each(|target| group(&plan.workload, target).map(drop))
}

/// Why a server may have failed: processes of it that the kernel killed for the limit.
pub(super) fn killed(group: Option<&MemoryGroup>) -> Option<String> {
    let killed = group?.killed().filter(|killed| *killed > 0)?;
    Some(format!("memory_limit was too little: the kernel killed {killed} of its processes"))
}
