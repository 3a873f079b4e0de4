//! The paths of rqps itself and of the programs that it needs.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::os::perf::Perf;
use crate::os::valgrind::{PATIENCE, Valgrind};

/// The path of this program, which also runs drivers and wardens.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
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
