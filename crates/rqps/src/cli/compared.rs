//! Reads result folders and compares their runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use rqps_analysis::causes::{self, CauseReaders, Causes, TakeCounter};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::families::{FamilyPart, by_family};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_lab::benchmarks;
use rqps_lab::lab::error_text;
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
        Compared::read_named(folders, baseline, rules, &BTreeMap::new())
    }

    /// The same with new names of targets by their labels.
    pub(super) fn read_named(
        folders: &[PathBuf],
        baseline: Option<&str>,
        rules: Rules,
        names: &BTreeMap<String, String>,
    ) -> Result<Compared> {
        let (mut dataset, measured) =
            results::read_each(folders, benchmarks::digest).context("read the results")?;
        rename(&mut dataset, names)?;
        let baseline = baseline.map(|label| names.get(label).map_or(label, String::as_str));
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
            |run: &Run| results::settings_of(run).map_err(|error| error_text(&error.into()));
        let counters = |run: &Run, step: &StepRecord, take: TakeCounter<'_>| {
            results::each_counter(run, step, take).map_err(|error| error_text(&error.into()))
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

/// Gives targets new names by their labels; two targets stay two.
fn rename(dataset: &mut Dataset, names: &BTreeMap<String, String>) -> Result<()> {
    let labels = dataset.runs.iter().flat_map(|run| run.record.targets.iter().cloned());
    let keys = dataset.runs.iter().map(|run| run.record.key.label.clone());
    let known: BTreeSet<String> = labels.chain(keys).collect();
    let name = |label: &String| names.get(label).unwrap_or(label).clone();
    if let Some(label) = names.keys().find(|label| !known.contains(*label)) {
        let known = Vec::from_iter(known).join(", ");
        bail!("rename {label}: these folders have no such target; they have {known}");
    }
    if known.iter().map(name).collect::<BTreeSet<_>>().len() < known.len() {
        bail!("rename targets: two of them would have one name");
    }
    for run in &mut dataset.runs {
        let record = &mut run.record;
        let labels = record.targets.iter_mut();
        for label in labels.chain([&mut record.key.label, &mut record.target.label]) {
            *label = name(label);
        }
    }
    Ok(())
}
