//! Manual pages, for packages: `rqps.1` and one per command.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;

use crate::cli::exit;

/// `rqps man DIR`.
pub(super) fn write(command: Command, folder: &Path) -> Result<u8> {
    let doing = || format!("write manual pages into {}", folder.display());
    fs::create_dir_all(folder).with_context(doing)?;
    clap_mangen::generate_to(command, folder).with_context(doing)?;
    info!("rqps: wrote manual pages into {}", folder.display());
    Ok(exit::FINE)
}
