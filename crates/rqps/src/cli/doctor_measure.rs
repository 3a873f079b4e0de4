//! Measures for `rqps doctor`: the workload of its A/A test and of its layout noise, and the folder
//! that keeps what they find.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli::args::{Doctor, GuestOptions};
use crate::cli::workload_args::{BlocksWord, WorkloadArgs};
use crate::cli::{exit, measure};
use rqps_lab::plan::Plan;

const SYSBENCH: &str = "sysbench";

/// The workload as given, with defaults for what it leaves out: this number of blocks, and a few
/// short steps of sysbench.
pub(super) fn shape(said: &Doctor, blocks: u32) -> WorkloadArgs {
    let mut shape = said.shape.clone();
    shape.blocks = Some(shape.blocks.unwrap_or(BlocksWord::Number(blocks)));
    if shape.steps.is_empty() && shape.bench == [SYSBENCH] {
        shape.steps = measure::SHORT_STEPS.map(str::to_owned).to_vec();
    }
    shape
}

/// The end of a measurement.
pub(super) enum Measured {
    /// The result folder, and the exit code for it.
    Done(PathBuf, u8),
    /// The user stopped it.
    Stopped,
}

/// Carries out `plan` and reports its faults. `finding` names what `folder` will keep.
///
/// # Errors
/// The folder cannot be made, or the plan cannot be carried out.
pub(super) fn carry_out(
    said: &Doctor,
    plan: Plan,
    (finding, folder): (&str, &Path),
) -> Result<Measured> {
    // Known now, not after an hour of measuring.
    std::fs::create_dir_all(folder).with_context(|| {
        let place = folder.display();
        format!("keep {finding} in {place}; name another folder with RQPS_STATE")
    })?;
    let guest = GuestOptions::default();
    // An earlier calibration must not judge what makes the next one.
    let (summary, out) = measure::measure(plan, &said.folders, &guest, Vec::new())?;
    for fault in &summary.faults {
        error!("rqps: failed: {fault}");
    }
    if summary.interrupted {
        let out = out.display();
        info!(
            "rqps: stopped; finished runs are in {out}\nhint: give the same command again with \
             --out {out}, and it goes on there"
        );
        return Ok(Measured::Stopped);
    }
    let code = if summary.faults.is_empty() { exit::FINE } else { exit::RUN_FAILED };
    Ok(Measured::Done(out, code))
}
