//! The paths of rqps itself and of the programs that it needs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::cli::{exit, folders};
use rqps_dbms::UserConfigs;
use rqps_host::perf::Perf;
use rqps_host::symbols;
use rqps_host::valgrind::{PATIENCE, Valgrind};
use rqps_lab::lab::{Accepted, ExecutionOptions};
use rqps_lab::plan::Plan;
use rqps_model::build::BuildSource;
use rqps_model::target::Target;
use rqps_wire as wire;
use rqps_wire::password::TypedPasswords;

/// The path of this program, which also runs drivers and wardens.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}

/// A function of the SQLite that is compiled in.
const OF_SQLITE: &str = "sqlite3_step";

/// Valgrind for a plan that counts instructions.
///
/// # Errors
/// There is none, or the plan counts the compiled-in SQLite and this program has no symbols.
pub(super) fn valgrind_for(plan: &Plan) -> Result<Valgrind> {
    let compiled_in = |target: &&Target| target.source == BuildSource::CompiledIn;
    if let Some(target) = plan.targets.iter().find(compiled_in) {
        let program = program()?;
        let named = symbols::has_function(&program, OF_SQLITE)
            .with_context(|| format!("read {}", program.display()))?;
        if !named {
            bail!(
                "count instructions of {}: {} is stripped, so its SQLite cannot be told from the \
                 rest of it\nhint: name a library, such as \
                 `sqlite=/usr/lib/x86_64-linux-gnu/libsqlite3.so.0`, or use a program from `cargo \
                 build --release`",
                target.label,
                program.display()
            );
        }
    }
    valgrind()
}

/// Valgrind, found in PATH. RQPS_VALGRIND_PATIENCE: seconds that a process under it may be silent;
/// a slow host needs more.
pub(super) fn valgrind() -> Result<Valgrind> {
    let patience = match std::env::var("RQPS_VALGRIND_PATIENCE") {
        Err(_) => PATIENCE,
        Ok(text) => match text.parse() {
            Ok(seconds @ 1..=86_400) => Duration::from_secs(seconds),
            _ => bail!("RQPS_VALGRIND_PATIENCE must be seconds from 1 to 86400, not `{text}`"),
        },
    };
    Ok(Valgrind::find(&folders_of_path(), patience)?)
}

/// perf, found in PATH, if it is allowed to sample.
pub(super) fn perf() -> Result<Perf> {
    Ok(Perf::find(&folders_of_path())?)
}

fn folders_of_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// A flag that the first Ctrl-C sets; the second ends the program at once.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(exit::INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("listen for Ctrl-C")?;
    }
    // Whatever a server does, the first one ends rqps.
    wire::stop_with(Arc::clone(&stop));
    Ok(stop)
}

/// Writing beyond the largest size of files (`ulimit -f`) becomes an error, like a full disk. By
/// default it ends the process without a word.
///
/// # Errors
/// The signal cannot be listened for.
pub(super) fn outlive_file_limits() -> Result<()> {
    let unread = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(Signal::XFSZ.as_raw(), unread).context("listen for SIGXFSZ")?;
    Ok(())
}

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
        ledger: Vec::new(),
        work: None,
        ignores_space: false,
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
        shared_loads: BTreeMap::new(),
        stop: stop_flag()?,
    })
}
