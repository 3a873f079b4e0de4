//! The rqps program itself.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::os::perf::Perf;
use crate::os::valgrind::Valgrind;

/// The path of this program, which also runs drivers and wardens.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}

/// Valgrind, as PATH has it.
pub(super) fn valgrind() -> Result<Valgrind> {
    Ok(Valgrind::find(&folders_of_path())?)
}

/// perf, as PATH has it, if it may sample.
pub(super) fn perf() -> Result<Perf> {
    Ok(Perf::find(&folders_of_path())?)
}

fn folders_of_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}
