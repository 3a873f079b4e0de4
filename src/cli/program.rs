//! The rqps program itself.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The path of this program, which also runs drivers and wardens.
pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}
