//! Default folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::cli::args::Folders;
use crate::cli::{exit, parts};
use rqps_dbms::UserConfigs;
use rqps_host::lock::{Lock, LockError, MarkKey};
use rqps_host::perf::{self, Perf};
use rqps_host::valgrind::{PATIENCE, Valgrind};
use rqps_lab::lab::{Accepted, ExecutionOptions, HostLock};
use rqps_lab::plan::Plan;
use rqps_model::build::{BuildSource, Target};
use rqps_model::{escape, safe_path};
use rqps_wire as wire;
use rqps_wire::password::TypedPasswords;

/// The parent of new result folders.
const RESULTS: &str = "rqps-results";

/// The cache of builds: the given folder, else /var/cache/rqps for root (servers run as an
/// unprivileged user and must reach it), else the XDG cache folder. Without a home it is in the
/// current folder, as results are.
pub(super) fn cache(said: Option<&Path>) -> PathBuf {
    if let Some(said) = said.map(Path::to_owned).or_else(|| path("RQPS_CACHE")) {
        return said;
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/cache/rqps");
    }
    if let Some(folder) = path("XDG_CACHE_HOME") {
        return folder.join("rqps");
    }
    match path("HOME") {
        Some(home) => home.join(".cache/rqps"),
        None => Path::new(RESULTS).join(".cache"),
    }
}

/// A folder in an environment variable that is not empty.
fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// An environment variable that is not empty, as text.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The folder of A/A calibrations: below RQPS_STATE, else /var/lib/rqps for root, else in the XDG
/// state folder. Not in the cache, because each calibration takes an hour.
/// Without a home it is in the current folder.
pub(super) fn calibrations() -> PathBuf {
    state().join("calibrations")
}

/// The ledger of what sittings on this host differ by.
pub(super) fn ledger() -> PathBuf {
    state().join("ledger.csv")
}

/// The folder of layout noise, beside that of calibrations.
pub(super) fn layouts() -> PathBuf {
    state().join("layouts")
}

/// The folder of changes of work trees that were measured.
pub(super) fn patches() -> PathBuf {
    state().join("patches")
}

/// The file with the hashes of plans that were put together or accepted here. `None` without a
/// home: the current folder may hold somebody else's.
pub(super) fn known_plans() -> Option<PathBuf> {
    Some(state().join("plans")).filter(|path| path.is_absolute())
}

fn state() -> PathBuf {
    if let Some(folder) = path("RQPS_STATE") {
        folder
    } else if rustix::process::geteuid().is_root() {
        PathBuf::from("/var/lib/rqps")
    } else if let Some(folder) = path("XDG_STATE_HOME") {
        folder.join("rqps")
    } else if let Some(home) = path("HOME") {
        home.join(".local/state/rqps")
    } else {
        Path::new(RESULTS).join(".state")
    }
}

/// The result folder: the given folder, else a new one in ./rqps-results, named after the time and
/// the labels.
pub(super) fn results(said: Option<&Path>, labels: &[String]) -> PathBuf {
    if let Some(said) = said {
        return said.to_owned();
    }
    let time = rqps_host::clock::now_rfc3339();
    let time: String = time.chars().filter(|c| c.is_ascii_digit() || *c == 'T').take(15).collect();
    let mut name = format!("{time}-{}", labels.join("-vs-"));
    name.truncate(name.floor_char_boundary(120));
    Path::new(RESULTS).join(name)
}

/// The newest result folder below ./rqps-results.
pub(super) fn newest() -> Result<PathBuf> {
    let of = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let is_one = path.join("plan.toml").is_file() || parts::is_folder(&path);
        let changed = entry.metadata().and_then(|it| it.modified()).ok().filter(|_| is_one)?;
        Some((changed, path))
    };
    let all = std::fs::read_dir(RESULTS).into_iter().flatten().flatten().filter_map(of);
    match all.max() {
        Some((_, path)) => Ok(path),
        None => bail!(
            "find the newest results: ./{RESULTS} holds none; name a result folder\nhint: `rqps \
             compare A B` measures and makes one; `rqps quickstart` needs no server"
        ),
    }
}

/// The named result folders, else the newest.
pub(super) fn or_newest(said: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if !said.is_empty() {
        return Ok(said.to_vec());
    }
    let newest = newest()?;
    info!("rqps: the newest results: {}", newest.display());
    Ok(vec![newest])
}

/// The folder of configurations that nobody has to name, in the current folder.
pub(super) const CONFIGS: &str = "configs";

/// The user's configurations, if the folder exists. A folder given on the command line must exist.
pub(super) fn configs(said: Option<&Path>) -> Result<Option<PathBuf>> {
    let folder = said.unwrap_or(Path::new(CONFIGS));
    match folder.is_dir() {
        true => Ok(Some(folder.to_owned())),
        false if said.is_none() => Ok(None),
        false => bail!("look for configurations in {}: no such folder", folder.display()),
    }
}

/// The folders of debug files, which must exist.
pub(super) fn debug(said: &[PathBuf]) -> Result<Vec<PathBuf>> {
    match said.iter().find(|folder| !folder.is_dir()) {
        None => Ok(said.to_vec()),
        Some(folder) => bail!("look for debug files in {}: no such folder", folder.display()),
    }
}

/// The folder whose disk a plan would use, or the nearest one above it that exists.
pub(super) fn existing(said: &Folders) -> PathBuf {
    let here = Path::new(".");
    let said = said.work.as_deref().or(said.out.as_deref());
    let mut above = said.unwrap_or(here).ancestors();
    above.find(|path| path.is_dir()).unwrap_or(here).to_owned()
}

/// The lock that keeps a second rqps from measuring on this host: a file that other users cannot
/// open, and claims in a place for everyone. Concurrent tests on fake targets use their own locks.
fn host_lock() -> HostLock {
    match path("RQPS_HOST_LOCK") {
        Some(path) => HostLock::named(path),
        None => {
            let kept = |state: &PathBuf| state.is_absolute() && can_be_made(state);
            HostLock::of_user(Some(state()).filter(kept))
        }
    }
}

fn can_be_made(folder: &Path) -> bool {
    safe_path::make_folder(folder).is_ok()
        && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The key of the marks on folders that rqps makes and removes, in the state folder. One in the
/// current folder could be somebody else's.
pub(super) fn mark_key() -> Result<MarkKey> {
    MarkKey::open(Some(&state())).context("make a key for the marks of folders")
}

/// True if an rqps on this host writes to a result folder.
pub(super) fn is_in_use(results: &Path) -> bool {
    let lock = results.join(".lock");
    let held = |lock: &Path| Lock::acquire(lock, "rqps run --status");
    lock.exists() && matches!(held(&lock), Err(LockError::Held { .. }))
}

/// Options of the command line that no plan holds, so that `rqps run --resume` needs them again;
/// true for those with a value.
const AGAIN: &[(&str, bool)] = &[
    ("--work", true),
    ("--cache", true),
    ("--configs", true),
    ("--debug-dir", true),
    ("--on", true),
    ("--constraint", true),
    ("--client-constraint", true),
    ("--sbatch", true),
    ("--ssh-config", true),
    ("--replace", true),
    ("--keep", false),
    ("--yes-disk", false),
];

/// The words after `rqps run --resume`: the result folder, and options of this command line.
pub(super) fn resume_words(out: &Path) -> String {
    of_line(out, std::env::args())
}

fn of_line(out: &Path, line: impl Iterator<Item = String>) -> String {
    let mut text = escape::shell(&out.to_string_lossy()).into_owned();
    let mut line = line.take_while(|word| word != "--");
    while let Some(word) = line.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let Some((_, has_value)) = AGAIN.iter().find(|(again, _)| *again == name) else { continue };
        text.push_str(&format!(" {name}"));
        if *has_value && let Some(value) = value.or_else(|| line.next()) {
            text.push_str(&format!(" {}", escape::shell(&value)));
        }
    }
    text
}

// The paths of rqps itself and of the programs that it needs.

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
        let named = perf::has_function(&program, OF_SQLITE)
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
        cache: cache(None),
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
        host_lock: host_lock(),
        wait: Duration::ZERO,
        mark_key: mark_key()?,
        ssh_config: None,
        client_line: None,
        keep: false,
        variable,
        passwords: TypedPasswords::default(),
        replace: Vec::new(),
        shared_loads: BTreeMap::new(),
        stop: stop_flag()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_has_what_the_plan_does_not_hold() {
        let check = |line: &str, expected: &str| {
            let line = line.split_whitespace().map(str::to_owned);
            assert_eq!(of_line(Path::new("out"), line), expected);
        };
        check("rqps compare a b --blocks 3 --out out", "out");
        check("rqps compare a b --work /fast --keep --out out", "out --work /fast --keep");
        check("rqps compare a b --on=ssh:me@host --out out", "out --on ssh:me@host");
        check("rqps compare a b --out out -- --work x", "out");
        assert_eq!(of_line(Path::new("it's mine"), std::iter::empty()), r"'it'\''s mine'");
    }
}
