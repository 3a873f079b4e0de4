//! `rqps gate`: checks result folders for regressions in a CI job; and the rules from its options
//! and the plan's `[gate]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::cli::args::{Confirm, Folders, Gate, GateForm, GuestOptions, RuleOptions};
use crate::cli::hosts::{self, Hosts};
use crate::cli::parts::SITTINGS_EVERY;
use crate::cli::questions::{self, Origin};
use crate::cli::report::Compared;
use crate::cli::{bundle, exit, folders, measure, own_workload, terminal};
use rqps_analysis::Comparison;
use rqps_analysis::confirm::{assess as assess_fresh, steps, tripped};
use rqps_analysis::gate::{Assessment, GateOutcome, assess};
use rqps_analysis::history::PastSets;
use rqps_host::clock;
use rqps_lab::plan::{Blocks, Plan, PlanDraft, Sittings, file};
use rqps_model::bounded;
use rqps_model::datagen::rng::Rng;
use rqps_model::units::counted;
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
        let Some(fresh) = confirmed((words, &folders), (&comparison, assessment))? else {
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
    terminal::put(words.output.as_deref(), text.as_bytes())?;
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

// `rqps confirm` and `rqps gate --confirm`: measures what failed a gate again, in fresh sittings.

/// Folder of the fresh sittings in the result folder.
const FRESH: &str = "confirm";
/// Fewer sittings fail no gate.
const SITTINGS: u32 = 3;
/// Blocks of each.
const BLOCKS: u32 = 4;

/// `rqps confirm`.
pub(super) fn confirm(words: Confirm) -> Result<u8> {
    let Confirm { folder, fresh, format, rules, output } = words;
    let folders = folder.into_iter().collect();
    judge(&Gate { folders, confirm: true, fresh, format, rules, output, ..Gate::default() })
}

/// What fresh sittings say of a regression; `None` if the user stopped them.
///
/// # Errors
/// Several folders, which no one plan measured; a plan that cannot be measured; a failed run.
pub(super) fn confirmed(
    (words, folders): (&Gate, &[PathBuf]),
    (first, assessment): (&Comparison, Assessment),
) -> Result<Option<Assessment>> {
    let [folder] = folders else {
        bail!("confirm: {} folders; name one result folder", folders.len());
    };
    let (found, others) = tripped(first, &assessment);
    if found.is_empty() {
        return Ok(Some(assessment));
    }
    let path = folder.join("plan.toml");
    let doing = || format!("confirm what failed in {}", folder.display());
    let text = bounded::text(&path, bounded::WRITTEN_MAX).with_context(doing)?;
    let draft = file::draft(&text).with_context(doing)?;
    let draft = own_workload::of_plan(draft, &path).with_context(doing)?.draft();
    let seed = Rng::stream(draft.seed, FRESH, 0).next_u64();
    let number = words.fresh.sittings.unwrap_or(SITTINGS);
    let every = words.fresh.every.unwrap_or(SITTINGS_EVERY);
    let mut draft = PlanDraft {
        steps: steps(first, &found, seed),
        blocks: Blocks::Fixed(BLOCKS * number),
        sittings: Some(Sittings { number, every }),
        loads: 1,
        seed,
        count: None,
        profile: None,
        ..draft
    };
    draft.loads = draft.usual_loads();
    let plan = Plan::build(draft).with_context(doing)?;
    info!(
        "rqps: {}; measuring {} in {number} fresh sittings",
        counted(found.len(), "regression"),
        counted(plan.steps.len(), "step")
    );
    let own = bundle::configs_in(folder);
    let out = folder.join(FRESH);
    let folders = Folders {
        out: Some(out.clone()),
        work: words.fresh.work.clone(),
        cache: words.fresh.cache.clone(),
        configs: words.fresh.configs.clone().or_else(|| own.clone()),
        ..Folders::default()
    };
    let allow = words.fresh.allow.as_deref();
    let origin = Origin { file: &path, allow, bundle: None, brings_configs: own.is_some() };
    let consent = questions::ask(&plan, &origin, &folders)?;
    hosts::refuse_server(&plan, "rqps confirm")?;
    let place = (&folders, Hosts::default(), &consent);
    let (stored, _) = results::read_calibrations(&folders::calibrations());
    let guest = GuestOptions::default();
    let (summary, _) = measure::measure_on(plan, place, &guest, stored, 0.0)?;
    if summary.interrupted {
        info!("rqps: stopped; the same command resumes it");
        return Ok(None);
    }
    let fresh = Compared::read(&[out], Some(&first.baseline), first.rules)?.comparison;
    let mut fresh = assess_fresh(&fresh, &found);
    if !others.is_empty() {
        // A history or counts have no fresh data here: they stand as they are.
        fresh.ending = GateOutcome::Regression;
        fresh.findings.splice(0..0, others);
    }
    Ok(Some(fresh))
}
