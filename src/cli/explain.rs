//! `rqps explain`: what may explain the differences between the builds of a result folder.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::analyze::Comparison;
use crate::analyze::comparison::{StepComparison, TargetResult};
use crate::analyze::counters::{CounterValues, MovedCounter, moved, per_operation};
use crate::analyze::measurement::Measurement;
use crate::cli::args::Explain;
use crate::cli::compared::Compared;
use crate::cli::{gate, report};
use crate::domain::run::Dataset;
use crate::report::explain::{self, Causes};
use crate::report::render_text;
use crate::results;

/// `rqps explain`.
pub(super) fn explain(words: &Explain) -> Result<u8> {
    let rules = gate::rules(&words.folders, &words.rules)?;
    let Compared { dataset, comparison } =
        Compared::read(&words.folders, words.baseline.as_deref(), rules)?;
    let steps = chosen(&comparison, &words.steps)?;
    if steps.is_empty() {
        say!("No step differs by its verdict. Name one with --step to see what is known of it.");
        return Ok(report::ended(&comparison));
    }
    let causes = causes(&comparison, &dataset, &steps)?;
    say!("{}", render_text(&explain::document(&comparison, &causes, &steps)).trim_end());
    Ok(report::ended(&comparison))
}

/// The named steps, or those that differ.
fn chosen<'a>(comparison: &'a Comparison, names: &[String]) -> Result<Vec<&'a StepComparison>> {
    if names.is_empty() {
        let steps = comparison.measured_steps();
        return Ok(steps.filter(|step| explain::differs(comparison, step)).collect());
    }
    let find = |name: &String| {
        let mut steps = comparison.measured_steps();
        let Some(step) = steps.find(|step| step.name == *name) else {
            let known: Vec<&str> =
                comparison.measured_steps().map(|step| step.name.as_str()).collect();
            bail!("explain the step {name}: there is none; these folders hold {}", known.join(", "))
        };
        Ok(step)
    };
    names.iter().map(find).collect()
}

fn causes(comparison: &Comparison, dataset: &Dataset, steps: &[&StepComparison]) -> Result<Causes> {
    let mut settings = Vec::new();
    for target in &comparison.targets {
        settings.push(match target.runs.first() {
            Some(run) => results::settings_of(&dataset.runs[*run])?,
            None => BTreeMap::new(),
        });
    }
    let known: Vec<BTreeSet<String>> = comparison
        .targets
        .iter()
        .map(|target| known_counters(dataset, &target.runs))
        .collect::<Result<_>>()?;
    let mut counters = BTreeMap::new();
    for step in steps {
        let Some((base, targets)) = step.targets.split_first() else { continue };
        for (target, of_target) in targets.iter().zip(&known[1..]) {
            let shared = &known[0] & of_target;
            let found = moved_counters(comparison, dataset, (base, target), &shared)?;
            counters.insert((step.name.clone(), target.label.clone()), found);
        }
    }
    Ok(Causes { settings, counters })
}

/// Counters that moved in any step of these runs. A version may lack what another one counts, and
/// folders hold only what moved: a counter that never did says nothing.
fn known_counters(dataset: &Dataset, runs: &[usize]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for run in runs.iter().map(|run| &dataset.runs[*run]) {
        for step in &run.steps {
            names.extend(results::counters_of(run, step)?.into_iter().map(|counter| counter.name));
        }
    }
    Ok(names)
}

/// The counters of both targets that differ, from the blocks in which both were measured.
fn moved_counters(
    comparison: &Comparison,
    dataset: &Dataset,
    (base, target): (&TargetResult, &TargetResult),
    shared: &BTreeSet<String>,
) -> Result<Vec<MovedCounter>> {
    let block = |run: usize| {
        let run = &comparison.runs[run];
        (&run.result_set, run.key.block, run.key.attempt)
    };
    let mut pairs: Vec<(CounterValues, CounterValues)> = Vec::new();
    for before in &base.samples {
        let partner = target.samples.iter().find(|after| block(after.run) == block(before.run));
        let Some(after) = partner else { continue };
        let values = |sample: &Measurement| -> Result<CounterValues> {
            let all = results::counters_of(&dataset.runs[sample.run], &sample.record)?;
            let each = all.iter().filter(|counter| shared.contains(&counter.name));
            let each = each.filter_map(|counter| {
                Some((counter.name.clone(), per_operation(&sample.record, counter)?))
            });
            Ok(each.collect())
        };
        pairs.push((values(before)?, values(after)?));
    }
    Ok(moved(&pairs))
}
