//! The rqps program itself.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::os::valgrind::Valgrind;

/// The path of this program, which also runs drivers and wardens.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}

/// Valgrind, as PATH has it.
pub(super) fn valgrind() -> Result<Valgrind> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    Ok(Valgrind::find(&folders)?)
}
