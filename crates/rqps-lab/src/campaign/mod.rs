//! Loops of measuring, judging and deciding: when a plan has measured enough, and what an A/A run
//! shows about its host. The lab below measures and judges nothing.

pub mod best_rate;
pub mod bisect;
pub mod gap;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use thiserror::Error;

use crate::benchmarks;
use crate::lab::{
    self, Decider, Decision, Event, ExecutionOptions, ExecutionSummary, RemoteHosts, UndecidedStep,
};
use crate::plan::{Auto, Blocks, Plan};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::verdict::open_steps;
use rqps_analysis::{Comparison, VerdictOptions, calibration};
use rqps_model::benchmark::{Group, Phase};
use rqps_model::gate::Calibration;
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;
use rqps_model::verdict::{LookSchedule, Rules};
use rqps_results::{self as results, Campaign, CampaignFolder};

/// The user wants to stop.
#[derive(Debug, Error)]
#[error("stopped")]
struct Stopped;

/// The result of a search; `None` if the user stopped it, whose log the next one goes on with.
fn unless_stopped<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is::<Stopped>() => Ok(None),
        found => found.map(Some),
    }
}

/// Measures for a campaign, and remembers what was measured: a search that is resumed asks for the
/// same again, and gets it from the log.
struct Measuring<'a, R: Campaign, State = ()> {
    options: &'a ExecutionOptions,
    folder: CampaignFolder<R>,
    request: R,
    /// What a kind of campaign remembers beside its log.
    state: State,
    /// Rounds of the log that were asked for again.
    used: usize,
    events: &'a mut dyn FnMut(Event),
}

impl<'a, R: Campaign + Clone, State: Default> Measuring<'a, R, State> {
    fn new(
        options: &'a ExecutionOptions,
        folder: CampaignFolder<R>,
        events: &'a mut dyn FnMut(Event),
    ) -> Measuring<'a, R, State> {
        let request = folder.log().request.clone();
        Measuring { options, folder, request, state: State::default(), used: 0, events }
    }

    /// The rounds that were asked for so far.
    fn rounds(&self) -> &[R::Round] {
        &self.folder.log().rounds[..self.used]
    }

    /// Says something that stays.
    fn note(&mut self, text: String) {
        (self.events)(Event::Note(text));
    }

    /// What the log has of a question that is asked again: `of` takes it from the next round.
    ///
    /// # Errors
    /// That round belongs to another question.
    fn known<T>(&mut self, of: impl Fn(&R::Round) -> Option<T>) -> Result<Option<T>> {
        let Some(round) = self.folder.log().rounds.get(self.used) else { return Ok(None) };
        self.used += 1;
        let known = of(round).with_context(|| {
            format!(
                "resume the {} in {}: round {} of its log belongs to another search; begin anew \
                 with another --out",
                R::NAME,
                self.folder.path().display(),
                self.used
            )
        });
        known.map(Some)
    }

    /// Keeps a round that was just measured.
    fn keep(&mut self, round: R::Round) -> Result<()> {
        self.used += 1;
        Ok(self.folder.add(round)?)
    }

    /// What a result folder of the campaign holds.
    fn read(&self, folder: &str) -> Result<Dataset> {
        results::read(&[self.folder.path().join(folder)]).context("read the results")
    }
}

/// The comparison of runs by these rules.
fn compared(dataset: &Dataset, rules: Rules) -> Result<Comparison> {
    let options = VerdictOptions { rules, ..VerdictOptions::default() };
    benchmarks::compare(dataset, &options).context("compare the runs")
}

/// A step of a comparison by its name.
fn step<'a>(comparison: &'a Comparison, name: &str) -> Result<&'a StepComparison> {
    let found = comparison.steps.iter().find(|step| step.name == name);
    found.with_context(|| format!("find the step {name} in the results"))
}

/// True if a fault is of the target with this label: it begins with the whole label, because one
/// label may be the beginning of another.
fn is_fault_of(fault: &str, label: &str) -> bool {
    fault.strip_prefix(label).is_some_and(|rest| rest.starts_with(": "))
}

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

// The stop rule of a plan with `blocks = "auto"`: it stops when every step is decided.

/// Measures a plan, here or on `hosts`, until its steps are decided or its blocks are measured.
///
/// # Errors
/// As [`lab::run_plan`] and [`lab::run_plan_on`]; the results so far cannot be judged.
pub fn run_plan(
    options: &ExecutionOptions,
    hosts: Option<&RemoteHosts>,
    events: &mut dyn FnMut(Event),
) -> Result<ExecutionSummary> {
    let mut decider = StopRule::new(&options.plan, options.out.clone());
    match hosts {
        Some(hosts) => lab::run_plan_on(options, hosts, &mut decider, events),
        None => lab::run_plan(options, &mut decider, events),
    }
}

/// Measures a plan of which targets may fail. Label of a target → its first fault.
///
/// # Errors
/// [`Stopped`]; a fault that is of no target.
fn measured(
    options: &ExecutionOptions,
    folder: &str,
    events: &mut dyn FnMut(Event),
) -> Result<BTreeMap<String, String>> {
    let summary = run_plan(options, None, events).with_context(|| format!("measure {folder}"))?;
    if summary.interrupted {
        return Err(Stopped.into());
    }
    let mut faults = BTreeMap::new();
    for fault in &summary.faults {
        let mut targets = options.plan.targets.iter();
        let Some(target) = targets.find(|target| is_fault_of(fault, &target.label)) else {
            bail!("measure {folder}: {fault}");
        };
        faults.entry(target.label.clone()).or_insert_with(|| fault.clone());
    }
    Ok(faults)
}

/// Looks at the verdicts so far, by the schedule that their error rates are corrected for.
struct StopRule {
    /// The result folder.
    folder: PathBuf,
    /// `None` for a fixed number of blocks.
    auto: Option<(Auto, LookSchedule)>,
    rules: Rules,
    /// Steps that a block measures.
    steps: BTreeSet<String>,
}

impl StopRule {
    fn new(plan: &Plan, folder: PathBuf) -> StopRule {
        let auto = match plan.blocks {
            Blocks::Auto(auto) => plan.blocks.schedule().map(|schedule| (auto, schedule)),
            Blocks::Fixed(_) => None,
        };
        let rules = plan.gate.as_ref().map(|gate| gate.over(Rules::default()));
        StopRule { folder, auto, rules: rules.unwrap_or_default(), steps: steps(plan) }
    }
}

/// Names of the steps that blocks of the plan measure, on any target.
fn steps(plan: &Plan) -> BTreeSet<String> {
    // A plan without known phases is refused before anything is measured.
    let phases = plan.targets.iter().filter_map(|target| plan.phases(target).ok()).flatten();
    let names = phases.filter_map(|phase| match phase {
        Phase::Measure(step) => Some(step.name),
        Phase::Settle | Phase::Restore => None,
    });
    names.collect()
}

impl Decider for StopRule {
    fn after(&mut self, block: u32) -> Result<Decision> {
        let Some((auto, schedule)) = &self.auto else { return Ok(Decision::All) };
        if block < auto.min {
            return Ok(Decision::All);
        }
        let folders = std::slice::from_ref(&self.folder);
        let dataset = results::read(folders).context("analyse the results so far")?;
        let options = VerdictOptions { rules: self.rules, ..VerdictOptions::default() };
        let comparison =
            benchmarks::compare(&dataset, &options).context("analyse the results so far")?;
        let mut open = open_steps(&comparison, schedule);
        // More blocks do not load again.
        open.retain(|open| self.steps.contains(&open.step));
        if open.is_empty() {
            return Ok(Decision::Stop(self.end_text(*auto, &comparison)));
        }
        let open = open
            .into_iter()
            .map(|open| UndecidedStep { step: open.step, pairs_needed: open.pairs_needed });
        Ok(Decision::Only { open: open.collect(), steps: self.counted(&comparison).count() })
    }
}

impl StopRule {
    /// The steps that can be decided by more blocks: not loads before them.
    fn counted<'a>(&self, all: &'a Comparison) -> impl Iterator<Item = &'a StepComparison> {
        let is_counted =
            |step: &&StepComparison| step.group != Group::Load || self.steps.contains(&step.name);
        all.steps.iter().filter(is_counted)
    }

    /// The reason why no step needs another block: all are decided, or the plan allows no further
    /// look.
    fn end_text(&self, auto: Auto, comparison: &Comparison) -> String {
        let settled = |step: &&StepComparison| {
            step.targets.iter().skip(1).all(|target| {
                let told = target.relative(Metric::Rate).and_then(|told| told.judgement.as_ref());
                told.and_then(|told| told.test.as_ref()).is_some_and(|test| test.settled)
            })
        };
        let steps = self.counted(comparison).count();
        let count = self.counted(comparison).filter(settled).count();
        if count == steps {
            return format!("all {steps} steps decided");
        }
        format!(
            "{count} of {steps} steps decided; stopping at the limit of {} blocks (--max-blocks)",
            auto.max
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_of_the_version_with_its_whole_label() {
        let fault = "mysql-8.0.15: b01-1-mysql-8.0.15: point-query: the server is gone";
        assert!(is_fault_of(fault, "mysql-8.0.15"));
        assert!(!is_fault_of(fault, "mysql-8.0.1"));
        assert!(!is_fault_of("prepare: mysql-8.0.15", "mysql-8.0.15"));
    }
}
