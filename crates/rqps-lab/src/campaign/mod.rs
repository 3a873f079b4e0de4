//! Loops of measuring, judging and deciding: when a plan has measured enough, and what an A/A run
//! shows about its host. The lab below measures and judges nothing.

pub mod bisect;
pub mod gap;
mod stopping;

pub use stopping::run_plan;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use thiserror::Error;

use crate::benchmarks;
use rqps_analysis::{Comparison, VerdictOptions, calibration};
use rqps_model::gate::Calibration;
use rqps_results as results;

/// The user wants to stop.
#[derive(Debug, Error)]
#[error("stopped")]
struct Stopped;

/// A calibration that was just made.
pub struct Calibrated {
    /// The calibration.
    pub known: Calibration,
    /// The comparison that it was made of.
    pub comparison: Comparison,
    /// Path of its file.
    pub file: PathBuf,
}

/// Calibrates the host by the A/A run in `results`, and stores the calibration in `folder`.
/// `target` is the target as it was written.
///
/// # Errors
/// The results cannot be read or are no A/A run; the calibration cannot be written.
pub fn calibrate(results: &Path, target: &str, folder: &Path) -> Result<Calibrated> {
    let dataset = results::read(&[results.to_owned()]).context("read the results")?;
    let comparison =
        benchmarks::compare(&dataset, &VerdictOptions::default()).context("compare")?;
    let known = calibration::calibrate(&dataset, &comparison, target)?;
    let file = results::keep_calibration(folder, &known)?;
    Ok(Calibrated { known, comparison, file })
}
