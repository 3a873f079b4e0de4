//! `rqps gate`: checks result folders for regressions in a CI job; and the rules from its options
//! and the plan's `[gate]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::cli::args::{Gate, GateForm, RuleOptions};
use crate::cli::compared::Compared;
use crate::cli::{confirm, exit, folders, print};
use rqps_analysis::Comparison;
use rqps_analysis::gate::{Assessment, GateOutcome, assess};
use rqps_analysis::history::PastSets;
use rqps_host::clock;
use rqps_lab::plan::file;
use rqps_model::bounded;
use rqps_model::verdict::{GateRules, Rules};
use rqps_report::gate::{GateFormat, render_gate};
use rqps_results as results;

/// `rqps gate`.
pub(super) fn judge(words: &Gate) -> Result<u8> {
    let folders = folders::or_newest(&words.folders)?;
    let mut gate = gate_rules(&folders, words.thresholds.as_deref())?;
    if !words.metrics.is_empty() {
        gate.metrics.clone_from(&words.metrics);
    }
    gate.alpha = words.alpha.or(gate.alpha);
    gate.unclear_max = words.unclear_max.or(gate.unclear_max);
    gate.instructions = words.instructions.or(gate.instructions);
    gate.fail_on_inconclusive |= words.fail_on_inconclusive;
    let rules = with_options(&gate, &words.rules)?;
    let Compared { comparison, .. } = Compared::read(&folders, words.baseline.as_deref(), rules)?;
    let past = if words.history.is_empty() {
        None
    } else {
        let comparison = Compared::read(&words.history, None, rules)?.comparison;
        let accepted = accepted_in(&comparison)?;
        Some(PastSets { accepted, comparison, same_host: words.same_host })
    };
    accept(&comparison, &words.accept)?;
    let tonight = accepted_in(&comparison)?.into_values().flatten().collect();
    let mut assessment = assess(&comparison, &gate, past.as_ref(), &tonight)
        .map_err(|fault| anyhow!("judge: {fault}"))?;
    if words.confirm && assessment.ending == GateOutcome::Regression {
        let Some(fresh) = confirm::confirmed((words, &folders), (&comparison, assessment))? else {
            return Ok(exit::INTERRUPTED);
        };
        assessment = fresh;
    }
    let code = code(assessment.ending);
    let format = match words.format {
        GateForm::Text => GateFormat::Text,
        GateForm::Json => GateFormat::Json,
        GateForm::Markdown => GateFormat::Markdown,
        GateForm::Junit => GateFormat::Junit,
        GateForm::Github => GateFormat::Github,
    };
    let text = render_gate(&assessment, code, format);
    match &words.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        None => print::escaped(text.as_bytes())?,
    }
    Ok(code)
}

/// The exit code of an end.
fn code(ending: GateOutcome) -> u8 {
    match ending {
        GateOutcome::Boring | GateOutcome::NoRegression | GateOutcome::Undecided => exit::FINE,
        GateOutcome::Regression => exit::REGRESSION,
        GateOutcome::NoVerdict => exit::NO_VERDICT,
        GateOutcome::RunFailed => exit::RUN_FAILED,
    }
}

/// Assesses a comparison by the `[gate]` of the plan in its result folder; with the exit code.
pub(super) fn assessed(comparison: &Comparison, folder: &Path) -> Result<(Assessment, u8)> {
    let gate = gate_rules(&[folder.to_owned()], None)?;
    let assessment = assess(comparison, &gate, None, &BTreeSet::new());
    let assessment = assessment.map_err(|fault| anyhow!("judge: {fault}"))?;
    let code = code(assessment.ending);
    Ok((assessment, code))
}

/// Records steps as accepted in the result sets of a comparison.
fn accept(comparison: &Comparison, steps: &[String]) -> Result<()> {
    if let Some(step) =
        steps.iter().find(|step| !comparison.steps.iter().any(|other| other.name == **step))
    {
        let names: Vec<&str> = comparison.steps.iter().map(|step| step.name.as_str()).collect();
        bail!("accept `{step}`: these folders have no such step; they hold {}", names.join(", "));
    }
    if !steps.is_empty() {
        let at = clock::now_rfc3339();
        for set in sets_of(comparison).into_values() {
            results::keep_accepted(&set, steps, &at).context("record what is accepted")?;
        }
    }
    Ok(())
}

/// Result set → the steps that were accepted in it.
fn accepted_in(comparison: &Comparison) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let sets = sets_of(comparison).into_iter();
    let read = |(name, path): (String, PathBuf)| {
        Ok((name, results::read_accepted(&path).context("read what is accepted")?))
    };
    sets.map(read).collect()
}

/// The name and the folder of each result set.
fn sets_of(comparison: &Comparison) -> BTreeMap<String, PathBuf> {
    let sets = comparison.runs.iter().filter_map(|run| {
        Some((run.result_set.clone(), Path::new(&run.folder).parent()?.to_owned()))
    });
    sets.collect()
}

/// The rules of reports on these folders: options over the plan's `[gate]` over the defaults.
pub(super) fn rules(folders: &[PathBuf], options: &RuleOptions) -> Result<Rules> {
    with_options(&gate_rules(folders, None)?, options)
}

/// The rules of verdicts: options over a plan's `[gate]` over the defaults.
pub(super) fn with_options(gate: &GateRules, options: &RuleOptions) -> Result<Rules> {
    let gate = GateRules {
        delta: options.delta.or(gate.delta),
        tau: options.tau.or(gate.tau),
        q: options.q.or(gate.q),
        answers: options.answers.or(gate.answers),
        data: options.data.or(gate.data),
        ..gate.clone()
    };
    if let Some(fault) = gate.fault() {
        bail!("judge by these rules: {fault}");
    }
    Ok(gate.over(Rules::default()))
}

/// The rules that options set in a plan; `None` without such an option.
pub(super) fn said(options: &RuleOptions) -> Option<GateRules> {
    let RuleOptions { delta, tau, q, answers, data } = *options;
    let gate = GateRules { delta, tau, q, answers, data, ..GateRules::default() };
    (gate != GateRules::default()).then_some(gate)
}

/// `[gate]` in the named file, or else in the plan of the first folder that has one: a result set,
/// or a run folder in one.
fn gate_rules(folders: &[PathBuf], named: Option<&Path>) -> Result<GateRules> {
    let path = match named {
        Some(path) => Some(path.to_owned()),
        None => folders.iter().find_map(|folder| {
            let own = folder.join("plan.toml");
            let above = folder.join("../plan.toml");
            let run = folder.join("run.json").is_file();
            if own.is_file() { Some(own) } else { Some(above).filter(|p| run && p.is_file()) }
        }),
    };
    let Some(path) = path else { return Ok(GateRules::default()) };
    let text = bounded::text(&path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read {}", path.display()))?;
    match file::gate_rules(&text) {
        Ok(gate) => Ok(gate),
        // The folder may have results of another tool, or of an old handwritten plan.
        Err(file::PlanError::Syntax(_)) if named.is_none() && !text.contains("[gate") => {
            Ok(GateRules::default())
        }
        Err(fault) => Err(fault).with_context(|| format!("use the rules of {}", path.display())),
    }
}
