//! Reads result folders and compares their runs.

use std::path::PathBuf;

use anyhow::{Context, Result};

use rqps_analysis::causes::{self, CauseReaders, Causes, TakeCounter};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::families::{FamilyPart, by_family};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_lab::benchmarks;
use rqps_lab::lab::fault;
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_model::verdict::Rules;
use rqps_results as results;

/// Result folders and their comparison.
pub(super) struct Compared {
    /// All runs.
    pub dataset: Dataset,
    /// The comparison of their targets.
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
        let options = VerdictOptions { baseline: baseline.map(str::to_owned), rules };
        let comparison = benchmarks::compare_measured(&dataset, measured, &options)
            .context("compare the runs")?;
        Ok(Compared { dataset, comparison })
    }

    /// Reads the folders as one comparison per family of targets, with the family's name.
    /// `baselines` are labels; a family without one has its first target as baseline.
    pub(super) fn read_families(
        folders: &[PathBuf],
        baselines: &[String],
        rules: Rules,
    ) -> Result<Vec<(String, Compared)>> {
        let (dataset, measured) =
            results::read_each(folders, benchmarks::digest).context("read the results")?;
        let parts = by_family(dataset, measured, baselines)?;
        let compared = |part: FamilyPart| {
            let FamilyPart { family, baseline, dataset, measured } = part;
            let comparison = benchmarks::compare_measured(
                &dataset,
                measured,
                &VerdictOptions { baseline, rules },
            )
            .with_context(|| format!("compare the runs of {family}"))?;
            Ok((family, Compared { dataset, comparison }))
        };
        parts.into_iter().map(compared).collect()
    }

    /// Other differences in these steps of the comparison.
    pub(super) fn causes(&self, steps: &[&StepComparison]) -> Causes {
        let settings =
            |run: &Run| results::settings_of(run).map_err(|error| fault::text(&error.into()));
        let counters = |run: &Run, step: &StepRecord, take: TakeCounter<'_>| {
            results::each_counter(run, step, take).map_err(|error| fault::text(&error.into()))
        };
        let readers = CauseReaders { settings: &settings, counters: &counters };
        causes::find(&self.comparison, &self.dataset, steps, readers)
    }

    /// Adds other differences to the steps that differ.
    pub(super) fn explained(mut self) -> Compared {
        let steps = causes::differing_steps(&self.comparison);
        self.comparison.causes =
            if steps.is_empty() { None } else { Some(Box::new(self.causes(&steps))) };
        self
    }
}
