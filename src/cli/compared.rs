//! Result folders as commands read them: all runs, and their comparison.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::analyze::{Comparison, VerdictOptions};
use crate::domain::run::Dataset;
use crate::domain::verdict::Rules;
use crate::{benchmarks, results};

/// Result folders and their comparison.
pub(super) struct Compared {
    /// All runs.
    pub dataset: Dataset,
    /// Of the targets in them.
    pub comparison: Comparison,
}

impl Compared {
    /// Reads the folders. `baseline` is a label; `None` for the first target of the plan.
    pub(super) fn read(
        folders: &[PathBuf],
        baseline: Option<&str>,
        rules: Rules,
    ) -> Result<Compared> {
        let (dataset, measured) =
            results::read_each(folders, benchmarks::digest).context("read the results")?;
        let options = VerdictOptions { base: baseline.map(str::to_owned), rules };
        let comparison = benchmarks::compare_measured(&dataset, measured, &options)
            .context("compare the runs")?;
        Ok(Compared { dataset, comparison })
    }
}
