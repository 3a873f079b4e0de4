//! The order of calls from a dataset to a comparison.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::caveat;
use super::comparison::{Comparison, StepComparison};
use super::extension::Extension;
use super::groups::summarize_groups;
use super::measure::measure;
use super::measurement::Measurement;
use super::pairing::divide;
use super::verdict::{self, VerdictOptions, VerdictSummary};
use super::{answers, assembly, counted, ledger, remarks, sampled, server_settings, write_rate};
use rqps_model::benchmark::Group;
use rqps_model::run::{Dataset, Run, RunRecord};
use rqps_model::verdict::LookSchedule;
use rqps_stats::parallel;

/// The reason why nothing can be compared.
#[derive(Debug, Error)]
pub enum AnalyzeError {
    /// No run folder in the input.
    #[error(
        "compare: no run in these folders; resume one with `rqps run --resume`, or name a folder \
         that holds run folders"
    )]
    NoRuns,
    /// The baseline that was asked for is not among the targets.
    #[error("compare with baseline `{baseline}`: no such target; these folders hold {}",
            labels.join(", "))]
    UnknownBaseline {
        /// The label as given.
        baseline: String,
        /// The labels there are.
        labels: Vec<String>,
    },
}

/// The measurements of the steps of one run, in their order.
type Measured = Vec<Option<Measurement>>;

/// Compares every target of a dataset with its baseline: the one of `options`, or the first target
/// of the plan.
///
/// Per step and metric, each block and attempt in which both sides completed the step is a pair
/// with d = ln(target) − ln(baseline); the ratio is exp(mean d) and its interval the t interval on
/// d, which covers what it promises from few pairs on (`stats::paired::mean_interval`). The ratio
/// of one pair is its quotient. Pairs of several result sets are pooled with a random effect for
/// the set ([`super::sessions`]). All completed pairs count, also those of a block that was
/// interrupted and done again. Where a value of a pair is 0 the ratio is that of the medians over
/// the pairs, in the field's convention: 0/0 is 1, x/0 is infinite; it has no interval. Where both
/// sides were measured but never in one block, the ratio is that of the medians, has no pairs and
/// no interval, and a caveat says so.
pub fn compare(
    dataset: &Dataset,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    let measured = parallel::map(dataset.runs.iter().collect(), |run| measure(run, extensions));
    compare_measured(dataset, measured, options, extensions)
}

/// [`compare`] with the measurements that [`measure`] or [`digest`](super::digest) made of each run
/// of the dataset, in its order.
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Measured>,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    assert_eq!(measured.len(), dataset.runs.len(), "every run is measured");
    let mut measured = measured;
    let mut passes: Vec<(Cow<'_, Dataset>, Vec<Measured>)> = Vec::new();
    for runs in dataset.runs.chunk_by(|one, next| one.pass() == next.pass()) {
        let rest = measured.split_off(runs.len());
        passes.push((with_runs(dataset, runs), std::mem::replace(&mut measured, rest)));
    }
    let mut passes = passes.into_iter();
    let Some((first, measured)) = passes.next() else { return Err(AnalyzeError::NoRuns) };
    let mut comparison = compare_alike(&first, measured, options, extensions)?;
    for (part, measured) in passes {
        // Without runs of the baseline in this pass, its first target is the baseline.
        let labels = ordered_labels(&part, None)?;
        let baseline =
            Some(comparison.baseline.clone()).filter(|baseline| labels.contains(baseline));
        let options = VerdictOptions { baseline, ..options.clone() };
        let beside = compare_alike(&part, measured, &options, extensions)?;
        if part.runs.iter().any(Run::is_profiled) {
            sampled::explain(&mut comparison, &beside);
            comparison.overhead = sampled::overhead(&beside);
            comparison.profiles = Some(Box::new(beside));
        } else {
            counted::explain(&mut comparison, &beside);
            comparison.counts = Some(Box::new(beside));
        }
    }
    Ok(comparison)
}

/// The dataset with only these runs. Most datasets have one pass, and then nothing is copied.
fn with_runs<'a>(dataset: &'a Dataset, runs: &[Run]) -> Cow<'a, Dataset> {
    if runs.len() == dataset.runs.len() {
        return Cow::Borrowed(dataset);
    }
    let Dataset { hosts, tunings, gates, .. } = dataset;
    Cow::Owned(Dataset {
        hosts: hosts.clone(),
        tunings: tunings.clone(),
        runs: runs.to_vec(),
        gates: gates.clone(),
    })
}

/// Compares runs of one pass: all measured, all counted or all profiled.
fn compare_alike(
    dataset: &Dataset,
    measured: Vec<Measured>,
    options: &VerdictOptions,
    extensions: &[&Extension],
) -> Result<Comparison, AnalyzeError> {
    let labels = ordered_labels(dataset, options.baseline.as_deref())?;
    let runs = assembly::run_facts(dataset);
    let targets = assembly::target_facts(dataset, &labels);
    let in_sequence = extensions
        .iter()
        .filter(|own| own.in_sequence)
        .any(|own| dataset.runs.iter().all(|run| run.record.benchmark == own.benchmark));
    let heads = assembly::step_heads(dataset, &labels, measured, (in_sequence, extensions));
    let mut steps = parallel::map(heads, |head| {
        let mut step = assembly::measured_step(dataset, &labels, head);
        divide(&runs, &mut step);
        write_rate::note(&targets, &mut step, extensions);
        server_settings::note(&targets, &mut step);
        step
    });
    let answers = answers::find(dataset, &labels, &options.rules, &mut steps);
    let groups = summarize_groups(&steps);
    let comparison = Comparison {
        baseline: labels[0].clone(),
        targets,
        hosts: dataset.hosts.clone(),
        runs,
        steps,
        groups,
        rules: options.rules,
        schedule: schedule(dataset),
        summary: VerdictSummary::default(),
        gates: dataset.gates.clone(),
        counts: None,
        profiles: None,
        overhead: None,
        causes: None,
        caveats: Vec::new(),
        answers,
        hides_terms: false,
        remarks: remarks::find(dataset),
    };
    let mut comparison = judged(with_derived(comparison, extensions));
    comparison.caveats = caveat::find(dataset, &comparison, extensions);
    Ok(comparison)
}

/// The interim looks of the plans of all runs. A plan whose number of blocks was raised after a
/// look at fewer has a look at each number from then on.
fn schedule(dataset: &Dataset) -> Option<LookSchedule> {
    let mut of_sets: BTreeMap<&str, LookSchedule> = BTreeMap::new();
    for run in &dataset.runs {
        if let Some(own) = run.record.schedule {
            let all = of_sets.entry(&run.result_set).or_insert(own);
            all.blocks_min = all.blocks_min.min(own.blocks_min);
            all.blocks_max = all.blocks_max.max(own.blocks_max);
        }
    }
    of_sets.into_values().find(|all| all.blocks_min < all.blocks_max)
}

/// Adds the steps that follow from the measured ones, where a reader of points meets them first.
fn with_derived(mut comparison: Comparison, extensions: &[&Extension]) -> Comparison {
    let derived = extensions.iter().flat_map(|own| (own.derive)(&comparison));
    let mut derived: Vec<StepComparison> = derived.collect();
    derived.iter_mut().for_each(|step| divide(&comparison.runs, step));
    let points = comparison.steps.partition_point(|step| step.group < Group::Point);
    comparison.steps.splice(points..points, derived);
    comparison
}

/// Adds the verdicts, what explains them, and their summary.
fn judged(mut comparison: Comparison) -> Comparison {
    let judged = verdict::judge(&comparison);
    for (at, judgement) in judged.judgements {
        comparison.steps[at.step].targets[at.target].take_judgement(at.metric, judgement);
    }
    ledger::widen(&mut comparison);
    counted::compare(&mut comparison);
    sampled::compare(&mut comparison);
    for target in comparison.steps.iter_mut().flat_map(|step| step.targets.iter_mut().skip(1)) {
        target.explanations = verdict::explanations(target);
    }
    comparison.summary =
        verdict::summarize(&comparison, judged.families, (&judged.notes, judged.widened));
    comparison
}

/// Labels with the baseline first and the others in the order of the plans.
fn ordered_labels(dataset: &Dataset, baseline: Option<&str>) -> Result<Vec<String>, AnalyzeError> {
    let mut records: Vec<&RunRecord> = dataset.runs.iter().map(|run| &run.record).collect();
    // The runs of one plan name the same targets, their own among them.
    records
        .dedup_by(|next, one| next.targets == one.targets && one.targets.contains(&next.key.label));
    let named = records.iter().flat_map(|it| it.targets.iter().chain([&it.key.label]));
    let mut known = BTreeSet::new();
    let new = named.filter(|label| known.insert(label.as_str()));
    let mut labels: Vec<String> = new.cloned().collect();
    let Some(first) = labels.first().cloned() else { return Err(AnalyzeError::NoRuns) };
    let baseline = baseline.unwrap_or(&first);
    match labels.iter().position(|label| label == baseline) {
        Some(place) => {
            let baseline = labels.remove(place);
            labels.insert(0, baseline);
            Ok(labels)
        }
        None => Err(AnalyzeError::UnknownBaseline { baseline: baseline.to_owned(), labels }),
    }
}
