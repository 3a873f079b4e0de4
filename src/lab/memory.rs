//! The limit on a server's memory that a workload may ask for.

use anyhow::{Context, Result};

use crate::bench;
use crate::dbms::ControlPlane;
use crate::domain::benchmark::Workload;
use crate::lab::Bench;
use crate::os::cgroup::MemoryGroup;

/// Puts a started server into a group of its own with the limit of the workload, if there is one.
///
/// # Errors
/// The limit is not possible here; the text says why and what to do.
pub(super) fn limit(
    bench: &Bench<'_>,
    label: &str,
    control: &dyn ControlPlane,
) -> Result<Option<MemoryGroup>> {
    let Some(bytes) = bench::memory_limit(&bench.assignment.plan.workload) else {
        return Ok(None);
    };
    let pid = control.server_pid().with_context(|| {
        format!(
            "limit the memory of {label}: its processes are not rqps's own; limit it where it is \
             started, and leave memory_limit out"
        )
    })?;
    let group = MemoryGroup::create(&format!("rqps-{}-{label}", std::process::id()), bytes)?;
    group.add_tree(pid)?;
    Ok(Some(group))
}

/// Tries whether a limit is possible at all, before anything is measured.
///
/// # Errors
/// As [`limit`].
pub(super) fn try_out(workload: &Workload) -> Result<()> {
    match bench::memory_limit(workload) {
        Some(bytes) => {
            let name = format!("rqps-{}-try", std::process::id());
            MemoryGroup::create(&name, bytes).map(drop).map_err(anyhow::Error::from)
        }
        None => Ok(()),
    }
}
