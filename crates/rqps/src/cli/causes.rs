//! `rqps gap`: which of the settings that differ make the difference.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, ValueEnum};

use crate::cli::args::{Explain, Folders};
use crate::cli::bisect::{self, check_step};
use crate::cli::measure::plan_of;
use crate::cli::parts::{SittingArgs, WorkloadArgs};
use crate::cli::report::{self, Compared};
use crate::cli::terminal::{self, Display};
use crate::cli::{exit, folders, gate, hosts};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::{Comparison, causes};
use rqps_lab::campaign::gap::close as close_gap;
use rqps_lab::plan::{Interleave, Plan, PlanDraft, file};
use rqps_model::bisection::GapRequest;
use rqps_model::build::BuildSource;
use rqps_model::target::Target;
use rqps_report::{explanation, gap_json, gap_text, render_text};
use rqps_results::GapFolder;

/// The time for everything, if none is given.
const BUDGET: Duration = Duration::from_mins(15);

/// `rqps gap`.
pub(super) fn close(words: &GapArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => GapFolder::open(path)
            .context("resume a gap; name the folder that the interrupted command printed")?,
        None => begin(words)?,
    };
    let out = folder.path().to_owned();
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let plan = &folder.log().request.plan;
    let options = bisect::options_of(plan, &out, resumed, &words.folders)?;
    let mut display = Display::new();
    let end = close_gap(&options, folder, &mut |event| display.show(event));
    drop(display);
    let ended = end.with_context(|| format!("close the gap ({})", out.display()))?;
    let Some(gap) = ended else {
        info!(
            "rqps: stopped; the results so far are in {}\nhint: resume with `rqps gap --resume \
             {}`",
            out.display(),
            folders::resume_words(&out)
        );
        return Ok(exit::INTERRUPTED);
    };
    info!("rqps: results are in {}", out.display());
    let text = match words.format {
        GapFormat::Text => gap_text(&gap),
        GapFormat::Json => gap_json(&gap)?,
    };
    terminal::escaped(text.as_bytes())?;
    Ok(exit::FINE)
}

/// The folder of a new gap.
fn begin(words: &GapArgs) -> Result<GapFolder> {
    let [_, _] = words.targets.as_slice() else {
        bail!(
            "gap: name two targets, such as `rqps gap mysql@5.7.22:installed mysql@8.0.33:installed \
             --step point-query`"
        );
    };
    let Some(step) = words.step.clone() else {
        bail!(
            "gap: name the step that differs with --step NAME\nhint: `rqps compare` of both targets \
             shows which it is; `rqps plan` lists the steps"
        );
    };
    if !(0.0..1.0).contains(&(words.least / 100.0)) {
        bail!("gap: --least is a percentage, such as 1");
    }
    let shape = WorkloadArgs {
        steps: vec![step.clone()],
        budget: None,
        sittings: SittingArgs::default(),
        ..words.shape.clone()
    };
    let plan = plan_of(&words.targets, &shape)?;
    hosts::refuse_server(&plan, "rqps gap")?;
    check_step(&plan, &step)?;
    if let [a, b] = plan.targets.as_slice()
        && a.dbms.dialect() != b.dbms.dialect()
    {
        bail!("gap: {} and {} have no settings in common", a.label, b.label);
    }
    let changed = if words.from_b { plan.targets.first() } else { plan.targets.last() };
    if let Some(Target { label, source: BuildSource::Dsn(_), .. }) = changed {
        bail!(
            "gap: {label} is a server that somebody else runs, and rqps changes none of its \
             settings\nhint: put its settings into the other target{}",
            if words.from_b { ": leave --from-b out" } else { " with --from-b" }
        );
    }
    let labels: Vec<String> = plan.targets.iter().map(|target| target.label.clone()).collect();
    let out = folders::results(words.folders.out.as_deref(), &labels);
    // In turns, what they watch for cancels, and no block is repeated for it.
    let canaries = plan.canaries && plan.interleave != Interleave::Turns;
    let plan = Plan::build(PlanDraft { canaries, ..plan.draft() })?;
    let request = GapRequest {
        plan: file::print(&plan)?,
        step,
        from_b: words.from_b,
        budget_seconds: words.shape.budget.unwrap_or(BUDGET).as_secs_f64(),
        least: words.least / 100.0,
    };
    Ok(GapFolder::create(&out, request)?)
}

#[derive(Debug, Args)]
pub(super) struct GapArgs {
    /// Two targets, A and B: rqps puts settings of A into B until B is as A, as far as it goes
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub targets: Vec<String>,
    /// Step that differs
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Put settings of B into A instead: what of B makes A slower
    #[arg(long)]
    pub from_b: bool,
    /// Smallest effect that matters, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub least: f64,
    /// Resume the interrupted gap in this folder, or show what it found
    #[arg(long, value_name = "DIR", conflicts_with_all = ["targets", "step", "from_b", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a gap that is new on this host if all that it would use has this hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: GapFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GapFormat {
    Text,
    Json,
}

/// Hides the options of workloads that a gap decides itself, and says what its budget is.
pub(super) fn arrange_options(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "budget" => {
            arg.help("Time for everything, such as 30m; what it does not suffice for is named [default: 15m]")
        }
        _ => bisect::hide_options_without_effect(arg),
    }
}

// `rqps explain`: possible causes of the differences between the builds of a result folder.

/// `rqps explain`.
pub(super) fn explain(words: &Explain) -> Result<u8> {
    let folders = folders::or_newest(&words.folders)?;
    let rules = gate::rules(&folders, &words.rules)?;
    let mut found = Compared::read(&folders, words.baseline.as_deref(), rules)?;
    let steps = chosen(&found.comparison, &words.steps)?;
    if steps.is_empty() {
        out!("No step has a verdict of a difference. Name a step with --step to see its data.");
        return Ok(report::exit_code(&[&found.comparison]));
    }
    let causes = found.causes(&steps);
    for fault in &causes.faults {
        info!("rqps: {fault}");
    }
    found.comparison.causes = Some(Box::new(causes));
    out!("{}", render_text(&explanation(&found.comparison), terminal::columns()).trim_end());
    Ok(report::exit_code(&[&found.comparison]))
}

/// The named steps, or those that differ.
fn chosen<'a>(comparison: &'a Comparison, names: &[String]) -> Result<Vec<&'a StepComparison>> {
    if names.is_empty() {
        return Ok(causes::differing_steps(comparison));
    }
    let find = |name: &String| {
        let mut steps = comparison.measured_steps();
        let Some(step) = steps.find(|step| step.name == *name) else {
            let known: Vec<&str> =
                comparison.measured_steps().map(|step| step.name.as_str()).collect();
            bail!("explain the step {name}: no such step; these folders hold {}", known.join(", "))
        };
        Ok(step)
    };
    names.iter().map(find).collect()
}
