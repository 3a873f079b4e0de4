//! `rqps confirm` and `rqps gate --confirm`: measures what failed a gate again, in fresh sittings.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::cli::args::{Confirm, Folders, Gate, GuestOptions};
use crate::cli::brought::{self, Origin};
use crate::cli::compared::Compared;
use crate::cli::hosts::{self, Hosts};
use crate::cli::workload_args::SITTINGS_EVERY;
use crate::cli::{folders, gate, measure, own_workload, repeat};
use rqps_analysis::Comparison;
use rqps_analysis::confirm::{assess, steps, tripped};
use rqps_analysis::gate::{Assessment, GateOutcome};
use rqps_lab::plan::{Blocks, Plan, PlanDraft, Sittings, file};
use rqps_model::bounded;
use rqps_model::datagen::rng::Rng;
use rqps_model::units::counted;
use rqps_results as results;

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
    gate::judge(&Gate { folders, confirm: true, fresh, format, rules, output, ..Gate::default() })
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
    let own = repeat::configs(folder);
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
    let consent = brought::ask(&plan, &origin, &folders)?;
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
    let mut fresh = assess(&fresh, &found);
    if !others.is_empty() {
        // A history or counts have no fresh data here: they stand as they are.
        fresh.ending = GateOutcome::Regression;
        fresh.findings.splice(0..0, others);
    }
    Ok(Some(fresh))
}
