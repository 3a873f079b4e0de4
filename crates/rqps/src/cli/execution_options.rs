//! The options of an execution that every command fills in alike.

use std::path::PathBuf;

use anyhow::Result;

use crate::cli::folders;
use crate::cli::program::{perf, program, valgrind_for};
use crate::cli::stop::stop_flag;
use rqps_dbms::UserConfigs;
use rqps_lab::lab::{Accepted, ExecutionOptions};
use rqps_lab::plan::Plan;
use rqps_wire::password::TypedPasswords;

/// Options without any choice of the user's: this program with the default cache, the tools that
/// the plan needs, and Ctrl-C.
///
/// # Errors
/// Valgrind or perf is missing, or Ctrl-C cannot be listened for.
pub(super) fn execution_options(plan: Plan, out: PathBuf) -> Result<ExecutionOptions> {
    let valgrind = plan.workload.counted_statements.map(|_| valgrind_for(&plan)).transpose()?;
    let perf = plan.workload.profile_hertz.map(|_| perf()).transpose()?;
    Ok(ExecutionOptions {
        plan,
        out,
        cache: folders::cache(None),
        configs: UserConfigs::default(),
        accepted: Accepted::default(),
        calibrations: Vec::new(),
        work: None,
        program: program()?,
        valgrind,
        perf,
        debug_folders: Vec::new(),
        host_lock: folders::host_lock(),
        mark_key: folders::mark_key()?,
        ssh_config: None,
        client_line: None,
        keep: false,
        variable: folders::variable,
        passwords: TypedPasswords::default(),
        replace: Vec::new(),
        stop: stop_flag()?,
    })
}
